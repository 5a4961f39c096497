-- Ranks of threads when they were switched out, per second and process. Rank 0 runs before higher
-- ranks, regardless of priorities. Excludes runs of unknown rank: runs of idle threads, and all runs
-- before Windows 10 1709.
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
