import { expect, test, vi } from "vitest";
import type { PivotAnswer, PivotRequest, TableInfo, View } from "../api/types";
import { api } from "../api/client";
import { TableRows, type TableQuery } from "./table_rows.svelte";

const table = { name: "cpu_runs", columns: [], stacks: [], time: "start_ns" } as unknown as TableInfo;
const view: View = { table: "cpu_runs", columns: ["process", "thread", "|", "rows"], graph: { kind: "none" } };

/** Answers requests of groups: two processes with two threads each. Requests of processes wait for `answers`. */
function server() {
  const answers: (() => void)[] = [];
  vi.spyOn(api, "pivot").mockImplementation((_, { path = [] }: PivotRequest, signal) => {
    const group = (id: number) => ({ id, label: `${path.join("/")}#${id}`, rows: 1, values: [1], leaf: false });
    const answer = { rows: 4, groups_total: 2, totals: [4], exact: true, sql: "", groups: [group(1), group(2)] };
    return new Promise<PivotAnswer>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new DOMException("cancelled", "AbortError")));
      if (path.length === 0) answers.push(() => resolve(answer));
      else resolve(answer);
    });
  });
  return answers;
}

const query = (search: string): TableQuery => ({ trace: 0, table, view, range: null, filter: [], search, open: [] });

test("a row that is expanded while the next query loads is expanded in its answer", async () => {
  const answers = server();
  const rows = new TableRows(() => undefined);
  const first = rows.load(query(""));
  answers[0]();
  await first;
  const second = rows.load(query("a"));
  const toggled = rows.toggle((await rows.rows(0, 1))[0]);
  expect(rows.opened).toEqual([[1]]);
  answers[1]();
  expect(await second).toBe(true);
  await toggled;
  const labels = (await rows.rows(0, 9)).map(({ group }) => group.label);
  expect(labels).toEqual(["#1", "1#1", "1#2", "#2"]);
  expect(rows.opened).toEqual([[1]]);
});
