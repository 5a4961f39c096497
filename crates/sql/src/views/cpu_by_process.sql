-- CPU time by process, from context switches: time and number of runs, and the time that its threads
-- were ready without a CPU. Idle threads belong to process 0. If the process is unknown, its id is
-- unknown too.
SELECT
    coalesce(process(process_row), CASE process_id WHEN 0 THEN 'Idle (0)' END) AS process,
    cpu_ns,
    runs,
    ready_ns,
    longest_ready_ns,
    longest_run_ns,
    process_id,
    process_row,
    trace
FROM (
    SELECT
        trace,
        process_row,
        process_id,
        sum(cpu_ns) AS cpu_ns,
        count(*) AS runs,
        sum(ready_ns) AS ready_ns,
        max(ready_ns) AS longest_ready_ns,
        max(cpu_ns) AS longest_run_ns
    FROM cpu_runs
    GROUP BY trace, process_row, process_id
)
