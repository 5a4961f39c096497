//! Events without a duration: user input and marks.

use std::io::Write;

use tables::{InputView, MarksView, Table};

use super::proto::DebugAnnotation;
use super::tracks::{Category, Instant, Place};
use super::{Drawing, moment, number, text};
use crate::Error;
use crate::roster::Roster;

impl<W: Write> Drawing<'_, W> {
    /// Writes user input.
    pub(super) fn write_input(&mut self) -> Result<(), Error> {
        let columns = [
            "time_ns",
            "kind",
            "key_code",
            "key",
            "button",
            "message",
            "process_row",
        ];
        for batch in self.part.rows(Table::Input, &columns)? {
            let batch = batch?;
            let view = InputView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let message = view.message.get(row);
                // The process of a window message is the process for which the input was meant. The process
                // of any other event is the process that received the event. Only the process of a window
                // message is written.
                let process_row = message.and(view.process_row.get(row));
                let button = view.button.get(row).and_then(|n| u64::try_from(n).ok());
                let details = [
                    view.key.get(row).map(|key| text("key", key)),
                    view.key_code.get(row).map(|n| number("key code", n.into())),
                    button.map(|n| number("button", n)),
                    message.map(|n| number("message", n.into())),
                    process(&self.roster, process_row),
                ];
                let instant = Instant {
                    place: Place::Input,
                    category: Category::Input,
                    name: view.kind.get(row).unwrap_or_default(),
                    time_ns: moment(view.time_ns[row]),
                    details: details.into_iter().flatten().collect(),
                };
                self.tracks.write_instant(instant, &mut self.out)?;
            }
        }
        Ok(())
    }

    /// Writes the marks of programs and users.
    pub(super) fn write_marks(&mut self) -> Result<(), Error> {
        let columns = ["time_ns", "source", "text", "data", "process_row"];
        for batch in self.part.rows(Table::Marks, &columns)? {
            let batch = batch?;
            let view = MarksView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let label = view.text.get(row).filter(|text| !text.is_empty());
                let details = [
                    view.source.get(row).map(|source| text("source", source)),
                    view.data.get(row).map(|data| text("data", data)),
                    process(&self.roster, view.process_row.get(row)),
                ];
                let instant = Instant {
                    place: Place::Marks,
                    category: Category::Mark,
                    name: label.unwrap_or("mark"),
                    time_ns: moment(view.time_ns[row]),
                    details: details.into_iter().flatten().collect(),
                };
                self.tracks.write_instant(instant, &mut self.out)?;
            }
        }
        Ok(())
    }
}

/// Returns an annotation with the name of the process in a row.
fn process(roster: &Roster, row: Option<u32>) -> Option<DebugAnnotation> {
    let process = roster.processes.get(row? as usize)?;
    Some(text("process", &process.name))
}
