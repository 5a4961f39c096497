-- Threads that ran while a ready thread waited for 1 ms or more: on the CPU that the ready thread
-- finally got, with their priority, rank and time within the wait. A thread of lower priority can run
-- because of its rank or its affinity. The ready time can also be wrong, for example after lost events.
WITH waits AS (
    SELECT
        trace,
        cpu,
        thread_row,
        thread_id,
        process_row,
        priority,
        previous_rank AS rank,
        ready_ns,
        start_ns - ready_ns AS from_ns,
        start_ns AS to_ns
    FROM cpu_runs
    WHERE ready_ns >= 1000000 AND thread_id <> 0
),
-- A run that is within a wait on the same CPU also ended within it. Its end assigns each run to one time bucket. A
-- wait covers only a few buckets.
stretches AS (
    SELECT
        *,
        unnest(range(from_ns / 100000000, to_ns / 100000000 + 1)) AS stretch
    FROM waits
)
SELECT
    process(w.process_row) AS waiting_process,
    w.thread_id AS waiting_thread_id,
    w.priority AS waiting_priority,
    w.rank AS waiting_rank,
    w.ready_ns,
    w.from_ns,
    w.cpu,
    process(r.process_row) AS ran_instead,
    r.thread_id AS ran_thread_id,
    max(r.priority) AS ran_priority,
    max(r.rank_out) AS ran_rank,
    sum(r.end_ns - greatest(r.start_ns, w.from_ns)) AS ran_ns,
    count(*) AS ran_times,
    w.trace
FROM stretches w
JOIN cpu_runs r
    ON r.trace = w.trace
    AND r.cpu = w.cpu
    AND r.end_ns / 100000000 = w.stretch
    AND r.end_ns > w.from_ns
    AND r.end_ns <= w.to_ns
GROUP BY
    w.trace, w.process_row, w.thread_row, w.thread_id, w.priority, w.rank, w.ready_ns, w.from_ns,
    w.to_ns, w.cpu, r.process_row, r.thread_id
