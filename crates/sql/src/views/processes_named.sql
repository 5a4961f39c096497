-- One row per process: its name, the name of its parent, its lifetime and its command line. The parent
-- is the youngest process with the id `parent_id` that started earlier.
SELECT
    p.process_row,
    process(p.process_row) AS process,
    p.image_name AS process_name,
    p.process_id,
    p.parent_id,
    process(a.parent_row) AS parent,
    p.session_id,
    p.start_ns,
    p.end_ns,
    p.exit_status,
    p.user_sid,
    p.command_line,
    p.trace
FROM processes p
LEFT JOIN (
    SELECT c.process_row AS child_row, max(q.process_row) AS parent_row
    FROM processes c
    JOIN processes q ON q.trace = c.trace AND q.process_id = c.parent_id
    WHERE q.first_seen_ns <= c.first_seen_ns AND q.process_row <> c.process_row
    GROUP BY c.process_row
) a ON a.child_row = p.process_row
