-- Time in DPCs and interrupt service routines by kind and module: number, total time without the
-- interrupts that interrupted them, and the longest time.
SELECT
    kind,
    module(image_row) AS module,
    times,
    exclusive_ns,
    longest_ns,
    image_row,
    trace
FROM (
    SELECT
        trace,
        kind,
        image_row,
        count(*) AS times,
        sum(exclusive_ns) AS exclusive_ns,
        max(duration_ns) AS longest_ns
    FROM interrupts
    GROUP BY trace, kind, image_row
)
