// Titles of columns of stacks.

/** Titles of Windows Performance Analyzer for columns of stacks, by table and column. */
const TITLES: Record<string, string> = {
  "cpu_runs.stack_id": "New Thread Stack",
  "cpu_runs.readying_stack_id": "Ready Thread Stack",
  "ready_threads.stack_id": "Ready Thread Stack",
  "disk_io.stack_id": "Init Stack",
};

/** Returns the title of a column of stacks for the user. */
export function stackTitle(column: string, table = ""): string {
  const known = `${table}.${column}`;
  if (Object.hasOwn(TITLES, known)) return TITLES[known];
  const words = column.replace(/_id$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
