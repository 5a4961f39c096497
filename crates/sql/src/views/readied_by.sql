-- Threads that readied other threads: how often, and how long the readied threads then waited for a
-- CPU. If a DPC readied a thread, `by_dpc` is true and the readying process is unknown.
SELECT
    CASE WHEN by_dpc THEN NULL ELSE process(readying_process_row) END AS readying_process,
    by_dpc,
    process(process_row) AS readied_process,
    times,
    ready_ns,
    longest_ready_ns,
    trace
FROM (
    SELECT
        trace,
        CASE WHEN readied_by_dpc THEN NULL ELSE readying_process_row END AS readying_process_row,
        readied_by_dpc AS by_dpc,
        process_row,
        count(*) AS times,
        sum(ready_ns) AS ready_ns,
        max(ready_ns) AS longest_ready_ns
    FROM cpu_runs
    WHERE readied_ns IS NOT NULL
    GROUP BY
        trace,
        CASE WHEN readied_by_dpc THEN NULL ELSE readying_process_row END,
        readied_by_dpc,
        process_row
)
