// What every graph of a panel is handed.

import type { Range, View } from "../api/types";
import type { Panel } from "../view/screen";
import type { Opened } from "../view/state.svelte";

export interface GraphProps {
  opened: Opened;
  view: View;
  panel: Panel;
  title: string;
  range: Range;
  onsql?: (sql: string | null) => void;
  onpanel?: (change: Partial<Panel>) => void;
}
