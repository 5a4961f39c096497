-- One row per DPC and interrupt service routine, with module and function of the routine, like
-- *DPC/ISR* in Windows Performance Analyzer.
SELECT
    end_ns,
    start_ns,
    cpu,
    kind,
    module(image_row) AS module,
    symbol(image_row, routine) AS function,
    duration_ns,
    exclusive_ns,
    fragments,
    longest_fragment_ns,
    vector,
    message_number,
    routine,
    image_row,
    trace
FROM interrupts
