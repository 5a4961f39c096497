-- Ranks that threads had when they were switched out, per second and process: rank 0 runs before
-- higher ranks, whatever the priorities. Runs of unknown rank are left out: those of idle threads,
-- and all before Windows 10 1709.
SELECT
    from_ns,
    process(process_row) AS process,
    rank,
    runs,
    cpu_ns,
    ready_ns,
    process_row,
    trace
FROM (
    SELECT
        trace,
        bucket(end_ns, 1000000000) AS from_ns,
        process_row,
        rank_out AS rank,
        count(*) AS runs,
        sum(cpu_ns) AS cpu_ns,
        sum(ready_ns) AS ready_ns
    FROM cpu_runs
    WHERE rank_out IS NOT NULL
    GROUP BY trace, bucket(end_ns, 1000000000), process_row, rank_out
)
