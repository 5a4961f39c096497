-- Utilization of each CPU: time of idle threads and time of all others.
SELECT
    cpu,
    sum(CASE WHEN thread_id <> 0 THEN cpu_ns ELSE 0 END) AS busy_ns,
    sum(CASE WHEN thread_id = 0 THEN cpu_ns ELSE 0 END) AS idle_ns,
    sum(count_waits) AS switches_to_threads,
    trace
FROM cpu_runs
GROUP BY trace, cpu
