-- CPU time by thread, with the columns of `cpu_by_process`. The idle threads of all CPUs are one row.
SELECT
    process(process_row) AS process,
    thread_id,
    thread_name(thread_row) AS thread_name,
    cpu_ns,
    runs,
    ready_ns,
    longest_ready_ns,
    lowest_priority,
    highest_priority,
    thread_row,
    process_row,
    trace
FROM (
    SELECT
        trace,
        thread_id,
        thread_row,
        max(process_row) AS process_row,
        sum(cpu_ns) AS cpu_ns,
        count(*) AS runs,
        sum(ready_ns) AS ready_ns,
        max(ready_ns) AS longest_ready_ns,
        min(priority) AS lowest_priority,
        max(priority) AS highest_priority
    FROM cpu_runs
    GROUP BY trace, thread_id, thread_row
)
