//! Slices for the time ranges in which a process has the focus or is frozen.

use std::io::Write;

use arrow_array::RecordBatch;
use tables::{FocusView, ProcessFreezesView, Table, WrongType};

use super::tracks::{Category, Place, Slice};
use super::{Drawing, moment, number, renamed, text};
use crate::Error;
use crate::roster::process_name;

/// A time range in which a process has the focus or is frozen.
struct State {
    place: Place,
    category: Category,
    process_id: u32,
    process_row: Option<u32>,
    start_ns: i64,
    end_ns: i64,
    /// True if an event in the trace recorded the start.
    starts_at_event: Option<bool>,
    /// True if an event in the trace recorded the end.
    ends_at_event: Option<bool>,
}

/// Columns that the tables of focus changes and of freezes have in common.
const COLUMNS: [&str; 6] = [
    "start_ns",
    "end_ns",
    "starts_at_event",
    "ends_at_event",
    "process_id",
    "process_row",
];

impl<W: Write> Drawing<'_, W> {
    /// Writes the time ranges in which processes have the focus.
    pub(super) fn write_focus(&mut self) -> Result<(), Error> {
        let columns = [&COLUMNS[..], &["session_id"]].concat();
        self.write_states(Table::Focus, &columns, |batch| {
            let view = FocusView::new(batch)?;
            let state = |row| State {
                place: Place::Focus(view.session_id[row]),
                category: Category::Focus,
                process_id: view.process_id[row],
                process_row: view.process_row.get(row),
                start_ns: view.start_ns[row],
                end_ns: view.end_ns[row],
                starts_at_event: view.starts_at_event.get(row),
                ends_at_event: view.ends_at_event.get(row),
            };
            Ok((0..batch.num_rows()).map(state).collect())
        })
    }

    /// Writes the time ranges in which processes are frozen.
    pub(super) fn write_freezes(&mut self) -> Result<(), Error> {
        self.write_states(Table::ProcessFreezes, &COLUMNS, |batch| {
            let view = ProcessFreezesView::new(batch)?;
            let state = |row| State {
                place: Place::Frozen,
                category: Category::Freeze,
                process_id: view.process_id[row],
                process_row: view.process_row.get(row),
                start_ns: view.start_ns[row],
                end_ns: view.end_ns[row],
                starts_at_event: view.starts_at_event.get(row),
                ends_at_event: view.ends_at_event.get(row),
            };
            Ok((0..batch.num_rows()).map(state).collect())
        })
    }

    /// Writes the states of a table, cut to the time range of the part. The details of a slice state if no event
    /// recorded its start or its end, or if the slice was cut at its start or its end.
    fn write_states(
        &mut self,
        table: Table,
        columns: &[&str],
        states: impl Fn(&RecordBatch) -> Result<Vec<State>, WrongType>,
    ) -> Result<(), Error> {
        for batch in self.part.rows_begun(table, columns)? {
            let mut slices = Vec::new();
            for state in states(&batch?)? {
                let Some(drawn) = self.part.cut(state.start_ns, state.end_ns) else {
                    continue;
                };
                let id = state.process_id;
                let process = state.process_row;
                let process = process.and_then(|row| self.roster.processes.get(row as usize));
                let name = match process {
                    Some(process) => renamed(&process.name, id, process.unique_id),
                    None => process_name(id, None),
                };
                let begins = state.starts_at_event == Some(true) && drawn.start == state.start_ns;
                let ends = state.ends_at_event == Some(true) && drawn.end == state.end_ns;
                let unknown = "not recorded or not exported";
                let details = [
                    Some(number("process id", id.into())),
                    (!begins).then(|| text("began", unknown)),
                    (!ends).then(|| text("ended", unknown)),
                ];
                slices.push(Slice {
                    place: state.place,
                    category: state.category,
                    name: self.out.name(&name)?,
                    start_ns: moment(drawn.start),
                    end_ns: moment(drawn.end),
                    details: details.into_iter().flatten().collect(),
                });
            }
            self.tracks.write(slices, &mut self.out)?;
        }
        Ok(())
    }
}
