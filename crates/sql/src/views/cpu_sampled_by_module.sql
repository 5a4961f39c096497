-- CPU time by process and module, from samples of the instruction pointer. `weight_ns` is unknown if
-- the trace does not contain the sampling interval.
SELECT
    process(process_row) AS process,
    module(image_row) AS module,
    weight_ns,
    samples,
    process_row,
    image_row,
    trace
FROM (
    SELECT
        trace,
        process_row,
        image_row,
        sum(weight_ns) AS weight_ns,
        sum(count) AS samples
    FROM samples
    GROUP BY trace, process_row, image_row
)
