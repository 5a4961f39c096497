-- How busy each CPU was: time that idle threads had it, and time that others had.
SELECT
    cpu,
    sum(CASE WHEN thread_id <> 0 THEN cpu_ns ELSE 0 END) AS busy_ns,
    sum(CASE WHEN thread_id = 0 THEN cpu_ns ELSE 0 END) AS idle_ns,
    sum(count_waits) AS switches_to_threads,
    trace
FROM cpu_runs
GROUP BY trace, cpu
