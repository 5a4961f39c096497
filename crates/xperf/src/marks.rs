//! `laglab marks`: marks that programs and users wrote into the trace.

use tables::Table;

use crate::layout::Format::{Plain, Process, Quoted, Time};
use crate::layout::{Column, EVENT, Layout};
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer};

static LAYOUT: Layout = Layout {
    name: "marks",
    columns: &[
        Column::new(EVENT, "", Plain).value(|_| "Mark".into()),
        Column::new(" TimeStamp", "time_ns", Time),
        Column::new("  Source", "source", Plain),
        Column::new("Process Name ( PID)", "", Process),
        Column::new("  ThreadID", "thread_id", Plain),
        Column::new("Data", "data", Quoted),
        Column::new("Text", "text", Quoted),
    ],
};

/// Report of `laglab marks`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks;

impl Report for Marks {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Marks]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let marks = trace.rows(Table::Marks, Times::At("time_ns"))?;
        marks.list(&LAYOUT, out)
    }
}
