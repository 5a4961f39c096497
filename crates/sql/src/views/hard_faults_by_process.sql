-- Page faults that waited for a disk, by process: number, bytes read, total and longest waiting time
-- of threads.
SELECT
    process(process_row) AS process,
    faults,
    size_bytes,
    duration_ns,
    longest_ns,
    process_row,
    trace
FROM (
    SELECT
        trace,
        process_row,
        count(*) AS faults,
        sum(size_bytes) AS size_bytes,
        sum(duration_ns) AS duration_ns,
        max(duration_ns) AS longest_ns
    FROM hard_faults
    GROUP BY trace, process_row
)
