-- CPU time by process and module, from samples: where the instructions were that ran. `weight_ns`
-- is unknown where the trace does not tell how often samples were taken.
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
