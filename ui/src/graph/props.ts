// Properties that all graphs of a panel have.

import type { Range, View } from "../api/types";
import type { Panel } from "../view/screen";
import type { OpenTrace } from "../view/open_trace.svelte";

export interface GraphProps {
  opened: OpenTrace;
  view: View;
  panel: Panel;
  title: string;
  range: Range;
  onsql?: (sql: string | null) => void;
  onpanel?: (change: Partial<Panel>) => void;
}
