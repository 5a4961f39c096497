//! `laglab focuschange`: the process that has the keyboard focus, over time.

use tables::{FocusView, Table};

use crate::layout::Format::{Plain, Process, Time};
use crate::layout::{Column, EVENT, Layout};
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer};

/// The computed value is the duration of the focus in nanoseconds.
static LAYOUT: Layout<i64> = Layout {
    name: "focuschange",
    columns: &[
        Column::new(EVENT, "", Plain).value(|_| "FocusChange".into()),
        Column::new(" TimeStamp", "start_ns", Time),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("   Session", "session_id", Plain),
        Column::new("      Until", "end_ns", Time),
        Column::new("  Duration", "duration_ns", Time).value(|duration_ns| (*duration_ns).into()),
        Column::new("", "starts_at_event", Plain),
        Column::new("", "ends_at_event", Plain),
    ],
};

/// Report of `laglab focuschange`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FocusChange;

impl Report for FocusChange {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Focus]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        // A focus that began before the time range and ended within it is shown too.
        let focus = trace.rows(Table::Focus, Times::Overlapping)?;
        focus.list_with(&LAYOUT, out, &[], |batch, rows| {
            let view = FocusView::new(batch)?;
            let duration_ns = |row: usize| view.end_ns[row].saturating_sub(view.start_ns[row]);
            Ok(rows.iter().map(|row| (*row, duration_ns(*row))).collect())
        })
    }
}
