-- Context switches per tenth of a second and CPU, and the number of switches to threads that are
-- not idle.
SELECT
    bucket(time_ns, 100000000) AS from_ns,
    cpu,
    count(*) AS switches,
    sum(CASE WHEN new_thread_id <> 0 THEN 1 ELSE 0 END) AS switches_to_threads,
    trace
FROM context_switches
GROUP BY trace, bucket(time_ns, 100000000), cpu
