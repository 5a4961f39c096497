//! `damage`: lost events and unreadable parts of the trace.

use std::collections::BTreeMap;

use etl::{Damage, Trace, buffer_flag};
use tables::Damages;
use tables::import::UnreadableEvents;

use crate::register::{TraceFacts, WholeTable};

#[derive(Default)]
struct Row {
    start_ns: i64,
    end_ns: Option<i64>,
    kind: &'static str,
    count: Option<u64>,
    file: Option<u16>,
    buffer_offset: Option<u64>,
    record_offset: Option<u32>,
    cpu: Option<u16>,
    text: Option<String>,
}

impl WholeTable for Damages {
    fn build(facts: &TraceFacts<'_>, _: &mut UnreadableEvents) -> Damages {
        let TraceFacts { trace, damage, .. } = facts;
        let mut rows = session_rows(trace);
        rows.extend(buffer_rows(trace));
        let whole = |kind, count| Row {
            kind,
            count: Some(count),
            ..Row::default()
        };
        for (kind, count) in [
            (Damages::LOSS_EVENTS, damage.loss_events),
            (
                "missing_sequence_numbers",
                // If the number of missing sequence numbers is unknown, other rows report the damaged
                // sequence numbers as faults.
                damage.missing_sequence_numbers().unwrap_or(0),
            ),
        ] {
            rows.extend((count > 0).then(|| whole(kind, count)));
        }
        rows.extend(fault_rows(trace, damage));
        // Only a limited number of faults is stored with a position. The rows below count the other faults.
        for (kind, count) in damage.counts() {
            let placed = (damage.faults().iter()).filter(|fault| fault.what.name() == *kind);
            let more = count.saturating_sub(placed.count() as u64);
            rows.extend((more > 0).then(|| whole(kind, more)));
        }
        rows.sort_by_key(|row| row.start_ns);
        from_rows(trace, rows)
    }
}

/// Returns the rows from the headers of sessions. A session has up to three rows: the number of lost events, the number
/// of lost buffers, and a row if the session never stopped. Rows with the number 0 are left out.
fn session_rows(trace: &Trace) -> Vec<Row> {
    let mut rows = Vec::new();
    for segment in trace.segments() {
        let Some(header) = &segment.header else {
            continue;
        };
        let origin = segment.clock.origin_filetime();
        let ns = |filetime: i64| filetime.saturating_sub(origin).saturating_mul(100);
        let mut add = |kind, count: u32| {
            if count > 0 {
                rows.push(Row {
                    start_ns: ns(header.start),
                    end_ns: header.end.map(ns),
                    kind,
                    count: Some(count.into()),
                    file: Some(segment.file),
                    ..Row::default()
                });
            }
        };
        add("events_lost", header.events_lost);
        add("buffers_lost", header.buffers_lost);
        add("unfinished", u32::from(header.end.is_none()));
    }
    rows
}

/// Returns one row for each mark in a buffer. A mark means that events or buffers were lost.
fn buffer_rows(trace: &Trace) -> Vec<Row> {
    let mut rows = Vec::new();
    for stream in trace.streams() {
        let buffers = stream.buffers();
        for (i, buffer) in buffers.iter().enumerate() {
            let segment = &trace.segments()[usize::from(buffer.segment)];
            let first_ns = |i: usize| Some(segment.clock.to_ns(buffers.get(i)?.first_time));
            for (flag, kind, from, until) in [
                // A mark of lost events means that events were lost while the buffer was filled. A mark of
                // lost buffers means that buffers were lost before this buffer.
                (
                    buffer_flag::EVENTS_LOST,
                    "buffer_marks_lost_events",
                    Some(i),
                    i + 1,
                ),
                (
                    buffer_flag::BUFFER_LOST,
                    "buffer_marks_lost_buffers",
                    i.checked_sub(1),
                    i,
                ),
            ] {
                if buffer.flags & flag == 0 {
                    continue;
                }
                rows.push(Row {
                    start_ns: from.and_then(first_ns).unwrap_or(0),
                    end_ns: first_ns(until),
                    kind,
                    file: Some(segment.file),
                    buffer_offset: Some(buffer.offset),
                    cpu: Some(buffer.cpu),
                    ..Row::default()
                });
            }
        }
    }
    rows
}

/// Returns the faults whose position is known.
fn fault_rows(trace: &Trace, damage: &Damage) -> Vec<Row> {
    let mut rows: BTreeMap<(u16, u64), Vec<Row>> = BTreeMap::new();
    for fault in damage.faults() {
        rows.entry((fault.file, fault.buffer_offset))
            .or_default()
            .push(Row {
                kind: fault.what.name(),
                count: Some(1),
                file: Some(fault.file),
                buffer_offset: Some(fault.buffer_offset),
                record_offset: fault.offset,
                text: Some(fault.what.to_string()),
                ..Row::default()
            });
    }
    for stream in trace.streams() {
        let buffers = stream.buffers();
        for (i, buffer) in buffers.iter().enumerate() {
            let segment = &trace.segments()[usize::from(buffer.segment)];
            let next = buffers.get(i + 1);
            for row in (rows.get_mut(&(segment.file, buffer.offset)).into_iter()).flatten() {
                row.start_ns = segment.clock.to_ns(buffer.first_time);
                row.end_ns = next.map(|next| segment.clock.to_ns(next.first_time));
                row.cpu = Some(buffer.cpu);
            }
        }
    }
    rows.into_values().flatten().collect()
}

fn from_rows(trace: &Trace, rows: Vec<Row>) -> Damages {
    let files: Vec<&str> = trace.files().map(tables::file_name).collect();
    let mut table = Damages::default();
    for row in rows {
        table.start_ns.push(row.start_ns);
        table.end_ns.push(row.end_ns);
        table.kind.push(Some(row.kind));
        table.count.push(row.count);
        let file = row.file.and_then(|file| files.get(usize::from(file)));
        table.file.push(file.copied());
        table.buffer_offset_bytes.push(row.buffer_offset);
        table.record_offset_bytes.push(row.record_offset);
        table.cpu.push(row.cpu);
        table.text.push(row.text.as_deref());
    }
    table
}
