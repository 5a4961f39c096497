//! `damage`: what the trace lacks and what is broken in it.

use std::collections::BTreeMap;

use etl::{Damage, Trace, buffer_flag};

use crate::column::{Nullable, Text};
use crate::schema::table;

table! {
    /// One row per loss or fault: numbers that rest on the stretch of time are to be doubted.
    ///
    /// The same loss can show several times: in the header's count, at the buffers that say they
    /// lost something, and as gaps in their numbering.
    Damages, DamagesView = "damage" sorted by start_ns {
        /// From when on it may have happened: the start of the session, or of the buffer, if
        /// nothing says more.
        start_ns: Vec<i64> = "log-file header: StartTime; first event of the buffer",
        /// Until when; unknown if nothing tells.
        end_ns: Nullable<i64> = "log-file header: EndTime; first event of the CPU's next buffer",
        /// What it is: `events_lost`, `buffers_lost` (stated by a session),
        /// `buffer_marks_lost_events`, `buffer_marks_lost_buffers`, `loss_events` (of a real-time
        /// session), `missing_sequence_numbers`, `unfinished`, or a kind of fault: `clock_inversion`,
        /// `truncated`, `ends_early`, `decompress`, `not_a_buffer`, `unknown_record`, …
        kind: Text = "what says so",
        /// How many events, buffers, numbers or faults.
        count: Nullable<u64> = "the header's count; number of such events or faults",
        /// The file, as it was given.
        file: Text = "the file",
        /// Where in the file the buffer begins.
        buffer_offset_bytes: Nullable<u64> = "offset of the buffer",
        /// Where in the decompressed buffer the record begins.
        record_offset_bytes: Nullable<u32> = "offset of the record",
        /// The CPU that the buffer is of.
        cpu: Nullable<u16> = "CPU of the buffer",
        /// What is wrong, in words.
        text: Text = "the fault",
    }
}

/// A row to be.
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

impl Damages {
    /// Tells of what is damaged: `damage` is that of all that was read.
    pub(crate) fn build(trace: &Trace, damage: &Damage) -> Damages {
        let mut rows = of_sessions(trace);
        rows.extend(of_buffers(trace));
        let whole = |kind, count| Row {
            kind,
            count: Some(count),
            ..Row::default()
        };
        for (kind, count) in [
            ("loss_events", damage.loss_events),
            ("missing_sequence_numbers", damage.missing_sequence_numbers),
        ] {
            rows.extend((count > 0).then(|| whole(kind, count)));
        }
        rows.extend(of_faults(trace, damage));
        // Faults beyond those that are kept with their places.
        for (kind, count) in damage.counts() {
            let placed = (damage.faults().iter()).filter(|fault| fault.what.name() == *kind);
            let more = count.saturating_sub(placed.count() as u64);
            rows.extend((more > 0).then(|| whole(kind, more)));
        }
        rows.sort_by_key(|row| row.start_ns);
        Damages::of(trace, rows)
    }

    fn of(trace: &Trace, rows: Vec<Row>) -> Damages {
        let files: Vec<&str> = trace.files().collect();
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
}

/// What sessions say that they lost, and whether they came to their end.
fn of_sessions(trace: &Trace) -> Vec<Row> {
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

/// Buffers that say that something was lost.
fn of_buffers(trace: &Trace) -> Vec<Row> {
    let mut rows = Vec::new();
    for stream in trace.streams() {
        let buffers = stream.buffers();
        for (i, buffer) in buffers.iter().enumerate() {
            let segment = &trace.segments()[usize::from(buffer.segment)];
            let first_ns = |i: usize| Some(segment.clock.to_ns(buffers.get(i)?.first_time));
            for (flag, kind, from, until) in [
                // Lost while the buffer was current, or before it began.
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

/// Broken places.
fn of_faults(trace: &Trace, damage: &Damage) -> Vec<Row> {
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
