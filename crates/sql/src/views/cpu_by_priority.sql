-- CPU time by the priority that threads were switched in with: who got the CPUs, and how long
-- threads of each priority were ready and got none. Idle threads are left out; the priority of
-- runs that began before the trace is unknown.
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
