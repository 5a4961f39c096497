//! `laglab process`: processes and their lifetimes. It stays code, because the tree needs all processes at once.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::RecordBatch;
use tables::{ProcessesView, Table};
use wording::Printable;

use crate::layout::{Cells, Column, EVENT, Format, Layout, Value};
use crate::{Error, Recording, Report, Writer};

static LAYOUT: Layout<Place> = Layout {
    name: "process",
    columns: &[
        Column::new(EVENT, "", Format::Plain).value(|place| place.label.as_str().into()),
        Column::new("Start Time", "start_ns", Format::Time),
        Column::new("  End Time", "end_ns", Format::Time),
        Column::new("Process Name ( PID)", "", Format::Process)
            .value(|place| Value::Process((Some(place.row), None))),
        Column::new("ParentPID", "parent_id", Format::Plain),
        Column::new("SessionID", "session_id", Format::Plain),
        Column::new("         UniqueKey", "unique_key", Format::Hex),
        Column::new("ExitStatus", "exit_status", Format::Plain),
        Column::new("UserSid", "user_sid", Format::Plain),
        Column::new("Command Line", "command_line", Format::Quoted),
        Column::new("", "depth", Format::Plain).value(|place| place.depth.into()),
    ],
};

/// Options of `laglab process`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// True to show each process below the process that created it.
    pub tree: bool,
}

/// Place of a process in the report.
struct Place {
    label: String,
    /// Row in the table of processes.
    row: u32,
    /// Number of ancestors in the tree. `None` if the report is not a tree.
    depth: Option<u32>,
}

impl Report for Process {
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let table = trace.tables.recorded(Table::Processes)?;
        let wanted = trace.filter.wanted(&trace.names);
        let batches = (0..table.chunks().len()).map(|chunk| table.read_all(chunk));
        let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
        let cells = batches.iter().map(|batch| Cells::of_layout(&LAYOUT, batch));
        let cells: Vec<_> = cells.collect();
        let mut lives: Vec<Life> = Vec::new();
        for (batch, cells) in batches.iter().zip(0..) {
            let view = ProcessesView::new(batch)?;
            lives.extend((0..view.len()).map(|row| Life {
                cells,
                row,
                id: view.process_id[row],
                parent_id: view.parent_id[row],
                start_ns: view.start_ns.get(row),
                end_ns: view.end_ns.get(row),
            }));
        }
        let order = if self.tree {
            tree(&lives)
        } else {
            (0..lives.len()).map(|at| (at, 0)).collect()
        };
        let mut table = out.table(&LAYOUT, &trace.names);
        for (at, depth) in order {
            let (life, row) = (&lives[at], at as u32);
            if !wanted.has((Some(row), None)) || !life.overlaps(&trace.range) {
                continue;
            }
            let place = Place {
                label: if self.tree {
                    branch(trace.names.process(Some(row), None).name, depth)
                } else {
                    "Process".to_owned()
                },
                row,
                depth: self.tree.then_some(depth as u32),
            };
            let cells = cells[life.cells].iter();
            let values = cells.map(|cells| cells.value(life.row, &place));
            table.row(&values.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Returns the label of a process in the tree, indented by its depth.
fn branch(name: Option<&str>, depth: usize) -> String {
    /// Maximum depth of indentation.
    const DEEPEST: usize = 32;
    let indent = "  ".repeat(depth.min(DEEPEST));
    let name = Printable(name.unwrap_or("Unknown"));
    format!("{:<40}", format!("{indent}{name}"))
}

/// Lifetime of a process. An unknown start is before the trace, an unknown end after it.
struct Life {
    /// Index of the batch with the process, and the row in it.
    cells: usize,
    row: usize,
    id: u32,
    parent_id: u32,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl Life {
    fn overlaps(&self, range: &Range<i64>) -> bool {
        self.start_ns.is_none_or(|start| start < range.end)
            && self.end_ns.is_none_or(|end| end >= range.start)
    }

    /// Returns true if this process was alive when `child` was created, so it can be the creator of `child`.
    fn could_create(&self, child: &Life) -> bool {
        match child.start_ns {
            // An unknown start comes before all known ones.
            Some(created) => {
                self.start_ns <= child.start_ns && self.end_ns.is_none_or(|end| end >= created)
            }
            None => self.start_ns.is_none(),
        }
    }
}

/// Returns the processes in the order of the tree, as indexes in `lives` with their depth. A process comes directly
/// before the processes that it created.
fn tree(lives: &[Life]) -> Vec<(usize, usize)> {
    let mut by_id: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, life) in lives.iter().enumerate() {
        by_id.entry(life.id).or_default().push(at);
    }
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lives.len()];
    let mut roots = Vec::new();
    for (at, child) in lives.iter().enumerate() {
        let candidates = by_id.get(&child.parent_id).into_iter().flatten().rev();
        let mut parents = candidates.filter(|it| **it != at && lives[**it].could_create(child));
        match parents.next() {
            Some(parent) => children[*parent].push(at),
            None => roots.push(at),
        }
    }
    let mut order = Vec::with_capacity(lives.len());
    let mut seen = vec![false; lives.len()];
    // A process id can be used again after its process ended. So the creators that the rows state may form a cycle. No
    // root leads to the processes of a cycle, so a process of the cycle becomes a root.
    for root in roots.into_iter().chain(0..lives.len()) {
        let mut open = vec![(root, 0)];
        while let Some((at, depth)) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            order.push((at, depth));
            open.extend(children[at].iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    order
}
