-- CPU time by the priority of threads when they were switched in, and the time that threads of each
-- priority were ready without a CPU. Excludes idle threads. The priority of runs that started before
-- the trace is unknown.
SELECT
    priority,
    sum(cpu_ns) AS cpu_ns,
    count(*) AS runs,
    sum(ready_ns) AS ready_ns,
    max(ready_ns) AS longest_ready_ns,
    trace
FROM cpu_runs
WHERE thread_id <> 0
GROUP BY trace, priority
