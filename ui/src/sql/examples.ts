// Queries with which users can start.

/** Query with its name. */
export interface NamedQuery {
  name: string;
  query: string;
}

/** Examples. Each uses only tables and views that every trace of Windows has, even if they are empty. */
export const EXAMPLES: NamedQuery[] = [
  {
    name: "CPU time of each process",
    query: "SELECT process, cpu_ns, runs, ready_ns FROM cpu_by_process ORDER BY cpu_ns DESC LIMIT 20",
  },
  {
    name: "Longest times without a CPU",
    query:
      "SELECT process(process_row) AS process, thread_id, start_ns - ready_ns AS from_ns, start_ns AS to_ns, ready_ns\nFROM cpu_runs WHERE ready_ns > 0 ORDER BY ready_ns DESC LIMIT 50",
  },
  {
    name: "Longest waits, and who ended them",
    query:
      "SELECT process(process_row) AS process, thread_id, start_ns, waits_ns, process(readying_process_row) AS readied_by\nFROM cpu_runs WHERE waits_ns > 0 ORDER BY waits_ns DESC LIMIT 50",
  },
  {
    name: "Context switches per 100 ms",
    query:
      "SELECT end_ns / 100000000 * 100000000 AS time_ns, count(*) AS switches\nFROM cpu_runs GROUP BY 1 ORDER BY 1",
  },
  {
    name: "Longest DPCs and ISRs",
    query: "SELECT start_ns, end_ns, cpu, kind, duration_ns FROM interrupts ORDER BY duration_ns DESC LIMIT 50",
  },
  {
    name: "Slowest disk requests",
    query:
      "SELECT start_ns, end_ns, process(process_row) AS process, kind, path, duration_ns\nFROM disk_io ORDER BY duration_ns DESC LIMIT 50",
  },
  {
    name: "Events of each provider",
    query: "SELECT provider, count(*) AS n FROM events GROUP BY 1 ORDER BY n DESC LIMIT 50",
  },
];
