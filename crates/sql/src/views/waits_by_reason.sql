-- Waits of threads by process and wait reason: number, time until the threads were readied, and time
-- from then until they ran. Excludes threads that only lost their CPU (preempted, quantum ended).
SELECT
    process(process_row) AS process,
    wait_reason(previous_wait_reason) AS waited_for,
    waits,
    waits_ns,
    longest_ns,
    ready_ns,
    process_row,
    trace
FROM (
    SELECT
        trace,
        process_row,
        previous_wait_reason,
        count(*) AS waits,
        sum(waits_ns) AS waits_ns,
        max(waits_ns) AS longest_ns,
        sum(ready_ns) AS ready_ns
    FROM cpu_runs
    WHERE previous_state = 5 AND thread_id <> 0
    GROUP BY trace, process_row, previous_wait_reason
)
