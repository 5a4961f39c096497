-- One row per CPU sample, with the columns of *CPU Usage (Sampled)* in Windows Performance Analyzer:
-- the executed function and the time that the sample stands for.
SELECT
    time_ns,
    cpu,
    process(process_row) AS process,
    process_name(process_row) AS process_name,
    process_id,
    thread_id,
    thread_name(thread_row) AS thread_name,
    module(image_row) AS module,
    symbol(image_row, address) AS function,
    weight_ns,
    count,
    in_dpc,
    in_isr,
    priority,
    rank,
    address,
    stack_id,
    process_row,
    thread_row,
    image_row,
    trace
FROM samples
