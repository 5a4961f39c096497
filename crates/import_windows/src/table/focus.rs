//! `focus`: processes that own the window in focus.

use std::collections::BTreeMap;

use tables::import::{Interval, UnreadableEvents};
use tables::{Focus, Table};

use crate::event_buffer::BufferedEvent;
use crate::providers::{WIN32K, buffered_fields, number};
use crate::register::{Reads, TraceFacts, WholeTable};

/// Id of the event that reports a change of the focus.
const CHANGE: u16 = 26;

/// Id of the event that reports a loss of the focus. The event with the id 258 reports a gain of the focus.
const LOST: u16 = 259;

/// State of a terminal session.
#[derive(Default)]
struct Session {
    /// Time range of the process that currently has the focus.
    present: Option<Interval>,
    /// True if an event has already named the process with the focus.
    known: bool,
}

impl WholeTable for Focus {
    const READS: Reads = Reads {
        providers: &[(WIN32K, &[CHANGE..=CHANGE, 258..=LOST])],
        ..Reads::NOTHING
    };

    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> Focus {
        let (start_ns, end_ns) = facts.span_ns;
        let mut sessions: BTreeMap<u32, Session> = BTreeMap::new();
        let mut rows: Vec<(u32, Interval)> = Vec::new();
        for event in &facts.events(Table::Focus) {
            let Some(change) = Change::read(event) else {
                unreadable.add(Table::Focus, event.place);
                continue;
            };
            let session = sessions.entry(change.session_id).or_default();
            let ended = session.take(&change, event.time_ns, start_ns);
            rows.extend(ended.map(|interval| (change.session_id, interval)));
        }
        for (id, session) in sessions {
            rows.extend(session.present.map(|interval| (id, interval.cut(end_ns))));
        }
        rows.sort_by_key(|(_, interval)| interval.start_ns);
        let mut table = Focus::default();
        for (session_id, interval) in rows {
            table.start_ns.push(interval.start_ns);
            table.end_ns.push(interval.end_ns);
            table.starts_at_event.push(interval.starts_at_event);
            table.ends_at_event.push(interval.ends_at_event);
            table.session_id.push(session_id);
            table.process_id.push(interval.process_id);
            let row = facts
                .processes
                .lookup(interval.process_id, interval.start_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
        }
        table
    }
}

impl Session {
    /// Applies a change and returns the interval that this change ends. Recent systems log a change twice:
    /// once as one event, and once as a loss event and a gain event.
    fn take(&mut self, change: &Change, time_ns: i64, trace_start_ns: i64) -> Option<Interval> {
        if !std::mem::replace(&mut self.known, true) {
            let old = change
                .old
                .map(|id| Interval::since_before(id, trace_start_ns));
            self.present = old;
        }
        let present_id = self.present.map(|interval| interval.process_id);
        let is_over = match (change.old, change.new) {
            // Another event may already have reported the loss of the focus. Then `old` is not the present process, and
            // no interval ends.
            (old, None) => old.is_none() || old == present_id,
            (_, new) => new != present_id,
        };
        if !is_over {
            return None;
        }
        let ended = self.present.take().map(|interval| interval.ended(time_ns));
        self.present = change.new.map(|id| Interval::open(id, time_ns));
        ended
    }
}

/// A change of the focus. In the event, the process id 0 means no process.
struct Change {
    session_id: u32,
    old: Option<u32>,
    new: Option<u32>,
}

impl Change {
    fn read(event: &BufferedEvent<'_>) -> Option<Change> {
        let fields = buffered_fields(WIN32K, event)?;
        let process = |name| number(&fields, name);
        let not_zero = |id: Option<u32>| id.filter(|id| *id != 0);
        let (old, new) = match event.id {
            CHANGE => (
                Some(process("OldProcessId")?),
                Some(process("NewProcessId")?),
            ),
            LOST => (Some(process("OldProcessId")?), None),
            _ => (None, Some(process("NewProcessId")?)),
        };
        Some(Change {
            session_id: number(&fields, "SessionId")?,
            old: not_zero(old),
            new: not_zero(new),
        })
    }
}
