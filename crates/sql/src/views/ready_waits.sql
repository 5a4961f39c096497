-- One row per wait of a ready thread for a CPU: its duration, the priority and rank of the thread, and
-- the thread that readied it. Longest waits: `ORDER BY ready_ns DESC LIMIT 20`.
SELECT
    ready_ns,
    start_ns - ready_ns AS ready_from_ns,
    start_ns AS switched_in_ns,
    process(process_row) AS process,
    thread_id,
    thread_name(thread_row) AS thread_name,
    cpu,
    priority,
    previous_rank AS rank,
    CASE WHEN readied_by_dpc THEN 'a DPC' ELSE process(readying_process_row) END AS readied_by,
    readying_thread_id,
    wait_reason(previous_wait_reason) AS waited_for,
    kernel_stack_not_resident,
    ran_unseen,
    thread_row,
    process_row,
    trace
FROM cpu_runs
WHERE ready_ns > 0 AND thread_id <> 0
