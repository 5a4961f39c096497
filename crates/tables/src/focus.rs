//! `focus`: which process had the window in focus.

use std::collections::BTreeMap;

use crate::ProcessTracker;
use crate::Table;
use crate::column::Nullable;
use crate::intervals::Interval;
use crate::kept::KeptEvent;
use crate::provider_events::{WIN32K, kept_fields, number};
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per stretch of time during which one process owned the window in focus of a
    /// terminal session. Where no row is, nobody did or the trace does not say.
    Focus, FocusView = "focus" sorted by start_ns {
        /// When the process got the focus, or the trace's start.
        start_ns: Vec<i64> = "Win32k FocusedProcessChange, FocusedProcessChangeGained: header time",
        /// When it lost the focus, or the trace's end.
        end_ns: Vec<i64> = "Win32k FocusedProcessChange, FocusedProcessChangeLost: header time",
        /// An event tells that it got the focus then; else it had it when the trace began.
        starts_at_event: Vec<bool> = "an event at start_ns",
        /// An event tells that it lost the focus then; else it had it when the trace ended.
        ends_at_event: Vec<bool> = "an event at end_ns",
        /// The terminal session.
        session_id: Vec<u32> = "SessionId",
        /// The process.
        process_id: Vec<u32> = "NewProcessId, OldProcessId" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
    }
}

/// Event ids.
const CHANGE: u16 = 26;
const LOST: u16 = 259;

/// What is known of a terminal session.
#[derive(Default)]
struct Session {
    /// The process that has the focus.
    present: Option<Interval>,
    /// An event told who has it.
    known: bool,
}

impl Focus {
    /// Builds the table from the focus events in time order.
    pub(crate) fn build(
        events: &[KeptEvent<'_>],
        (start_ns, end_ns): (i64, i64),
        processes: &ProcessTracker<'_>,
        unreadable: &mut UnreadableEvents,
    ) -> Focus {
        let mut sessions: BTreeMap<u32, Session> = BTreeMap::new();
        let mut rows: Vec<(u32, Interval)> = Vec::new();
        for event in events {
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
            let row = processes.lookup(interval.process_id, interval.start_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
        }
        table
    }
}

impl Session {
    /// Takes in a change; gives the interval that it ends. Recent systems log it twice, as one
    /// event and as a pair.
    fn take(&mut self, change: &Change, time_ns: i64, trace_start_ns: i64) -> Option<Interval> {
        if !std::mem::replace(&mut self.known, true) {
            let old = change
                .old
                .map(|id| Interval::since_before(id, trace_start_ns));
            self.present = old;
        }
        let present_id = self.present.map(|interval| interval.process_id);
        let is_over = match (change.old, change.new) {
            // The loss of a focus that it has no more.
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

/// A change of the focus. The process id 0 is nobody's.
struct Change {
    session_id: u32,
    old: Option<u32>,
    new: Option<u32>,
}

impl Change {
    fn read(event: &KeptEvent<'_>) -> Option<Change> {
        let fields = kept_fields(WIN32K, event)?;
        let process = |name| number(&fields, name);
        let someone = |id: Option<u32>| id.filter(|id| *id != 0);
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
            old: someone(old),
            new: someone(new),
        })
    }
}
