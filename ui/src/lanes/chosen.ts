// Run that the user selected.

/** Run that the user selected, with the time of the click. */
export interface ChosenRun {
  cpu: number;
  process: number | null;
  thread: number | null;
  at_ns: number;
  start_ns: number;
  end_ns: number;
}
