//! What held of a process for a while: its window was in focus, it was frozen.

use std::io::Write;

use tables::{FocusView, ProcessFreezesView, Table};

use super::packets::Packets;
use super::tracks::{Category, Place, Slice, Tracks};
use super::{moment, number, renamed, text};
use crate::cli::Failure;
use crate::export::part::Part;
use crate::export::roster::{Roster, process_name};

/// A state of a process.
struct State {
    place: Place,
    category: Category,
    process_id: u32,
    process_row: Option<u32>,
    start_ns: i64,
    end_ns: i64,
    /// Events tell that it began and that it ended.
    at_events: (bool, bool),
}

/// Writes who had the focus.
///
/// # Errors
/// If the table cannot be read or the packets not be written.
pub(super) fn write_focus<W: Write>(
    part: &Part<'_>,
    roster: &Roster,
    tracks: &mut Tracks,
    out: &mut Packets<W>,
) -> Result<(), Failure> {
    let columns = [
        "start_ns",
        "end_ns",
        "starts_at_event",
        "ends_at_event",
        "session_id",
        "process_id",
        "process_row",
    ];
    for batch in part.rows_begun(Table::Focus, &columns)? {
        let batch = batch?;
        let view = FocusView::new(&batch)?;
        let states = (0..batch.num_rows()).map(|row| State {
            place: Place::Focus(view.session_id[row]),
            category: Category::Focus,
            process_id: view.process_id[row],
            process_row: view.process_row.get(row),
            start_ns: view.start_ns[row],
            end_ns: view.end_ns[row],
            at_events: (
                view.starts_at_event.get(row) == Some(true),
                view.ends_at_event.get(row) == Some(true),
            ),
        });
        write(states, part, roster, tracks, out)?;
    }
    Ok(())
}

/// Writes which processes were frozen.
///
/// # Errors
/// If the table cannot be read or the packets not be written.
pub(super) fn write_freezes<W: Write>(
    part: &Part<'_>,
    roster: &Roster,
    tracks: &mut Tracks,
    out: &mut Packets<W>,
) -> Result<(), Failure> {
    let columns = [
        "start_ns",
        "end_ns",
        "starts_at_event",
        "ends_at_event",
        "process_id",
        "process_row",
    ];
    for batch in part.rows_begun(Table::ProcessFreezes, &columns)? {
        let batch = batch?;
        let view = ProcessFreezesView::new(&batch)?;
        let states = (0..batch.num_rows()).map(|row| State {
            place: Place::Frozen,
            category: Category::Freeze,
            process_id: view.process_id[row],
            process_row: view.process_row.get(row),
            start_ns: view.start_ns[row],
            end_ns: view.end_ns[row],
            at_events: (
                view.starts_at_event.get(row) == Some(true),
                view.ends_at_event.get(row) == Some(true),
            ),
        });
        write(states, part, roster, tracks, out)?;
    }
    Ok(())
}

/// Writes states as far as they are in the part, and says which of their ends is no end.
fn write<W: Write>(
    states: impl Iterator<Item = State>,
    part: &Part<'_>,
    roster: &Roster,
    tracks: &mut Tracks,
    out: &mut Packets<W>,
) -> Result<(), Failure> {
    let mut slices = Vec::new();
    for state in states {
        let Some(drawn) = part.cut(state.start_ns, state.end_ns) else {
            continue;
        };
        let id = state.process_id;
        let process = state.process_row;
        let process = process.and_then(|row| roster.processes.get(row as usize));
        let name = match process {
            Some(process) => renamed(&process.name, id, process.unique_id),
            None => process_name(id, None),
        };
        let begins = state.at_events.0 && drawn.start == state.start_ns;
        let ends = state.at_events.1 && drawn.end == state.end_ns;
        let unseen = "not in what is drawn";
        let details = [
            Some(number("process id", id.into())),
            (!begins).then(|| text("began", unseen)),
            (!ends).then(|| text("ended", unseen)),
        ];
        slices.push(Slice {
            place: state.place,
            category: state.category,
            name: out.name(&name)?,
            start_ns: moment(drawn.start),
            end_ns: moment(drawn.end),
            details: details.into_iter().flatten().collect(),
        });
    }
    Ok(tracks.write(slices, out)?)
}
