-- Disk requests by process, disk and kind: number, bytes, service time of the disk, time in its queue,
-- and the longest time from start to completion.
SELECT
    process(process_row) AS process,
    disk,
    kind,
    requests,
    size_bytes,
    service_ns,
    queue_ns,
    longest_ns,
    process_row,
    trace
FROM (
    SELECT
        trace,
        process_row,
        disk,
        kind,
        count(*) AS requests,
        sum(size_bytes) AS size_bytes,
        sum(service_ns) AS service_ns,
        sum(queue_ns) AS queue_ns,
        max(duration_ns) AS longest_ns
    FROM disk_io
    GROUP BY trace, process_row, disk, kind
)
