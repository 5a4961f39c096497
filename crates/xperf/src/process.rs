//! `laglab process`: processes and their lifetimes.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use tables::{ProcessesView, Table};
use wording::Printable;

use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer};

static LAYOUT: Layout = Layout {
    name: "process",
    labelled: true,
    columns: &[
        Column::new("Start Time", "start_ns"),
        Column::new("  End Time", "end_ns"),
        Column::process("Process Name ( PID)", ""),
        Column::new("ParentPID", "parent_id"),
        Column::new("SessionID", "session_id"),
        Column::new("         UniqueKey", "unique_key"),
        Column::new("ExitStatus", "exit_status"),
        Column::new("UserSid", "user_sid"),
        Column::new("Command Line", "command_line"),
        Column::data_only("depth"),
    ],
};

/// Options of `laglab process`.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// True to show each process below the process that created it.
    pub tree: bool,
    /// Filter by process.
    pub processes: ProcessFilter,
}

impl Report for Process {
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let table = trace.tables.recorded(Table::Processes)?;
        let wanted = self.processes.wanted(&trace.names);
        let batches: Result<Vec<RecordBatch>, _> = (0..table.chunks().len())
            .map(|chunk| table.read_all(chunk))
            .collect();
        let batches = batches?;
        let views: Result<Vec<ProcessesView<'_>>, _> =
            batches.iter().map(ProcessesView::new).collect();
        let views = views?;
        let rows: Vec<Row<'_>> = views
            .iter()
            .flat_map(|view| (0..view.len()).map(move |row| Row { view, row }))
            .collect();
        let order = if self.tree {
            tree(&rows)
        } else {
            (0..rows.len()).map(|at| (at, 0)).collect()
        };
        out.table(&LAYOUT)?;
        for (at, depth) in order {
            let process = trace.names.process(Some(at as u32), None);
            let row = &rows[at];
            if wanted.has(Some(at as u32), None) && row.lived_in(&trace.range) {
                let label = if self.tree {
                    branch(process.name, depth)
                } else {
                    "Process".to_owned()
                };
                out.row(
                    &label,
                    &[
                        Value::time(row.start()),
                        Value::time(row.end()),
                        Value::Process(process),
                        Value::Number(row.view.parent_id[row.row].into()),
                        Value::number(row.view.session_id.get(row.row)),
                        Value::hex(row.view.unique_key.get(row.row)),
                        Value::number(row.view.exit_status.get(row.row)),
                        Value::text(row.view.user_sid.get(row.row)),
                        Value::quoted(row.view.command_line.get(row.row)),
                        if self.tree {
                            Value::Number(depth as i64)
                        } else {
                            Value::Unknown
                        },
                    ],
                )?;
            }
        }
        Ok(())
    }
}

/// Returns the label of a process in the tree, indented by its depth.
fn branch(name: Option<&str>, depth: usize) -> String {
    /// Maximum depth of indentation.
    const DEEPEST: usize = 32;
    let indent = "  ".repeat(depth.min(DEEPEST));
    format!(
        "{:<40}",
        format!("{indent}{}", Printable(name.unwrap_or("Unknown")))
    )
}

/// Row of a process in the table of processes.
struct Row<'b> {
    view: &'b ProcessesView<'b>,
    row: usize,
}

impl Row<'_> {
    fn id(&self) -> u32 {
        self.view.process_id[self.row]
    }

    fn start(&self) -> Option<i64> {
        self.view.start_ns.get(self.row)
    }

    fn end(&self) -> Option<i64> {
        self.view.end_ns.get(self.row)
    }

    fn lived_in(&self, range: &std::ops::Range<i64>) -> bool {
        self.start().is_none_or(|start| start < range.end)
            && self.end().is_none_or(|end| end >= range.start)
    }

    /// Returns true if this process was alive when `child` was created, so it can be the creator of `child`.
    fn could_create(&self, child: &Row<'_>) -> bool {
        match (self.start(), child.start()) {
            (Some(start), Some(child)) => {
                start <= child && self.end().is_none_or(|end| end >= child)
            }
            (Some(_), None) => false,
            (None, Some(child)) => self.end().is_none_or(|end| end >= child),
            (None, None) => true,
        }
    }
}

/// Returns the rows in the order of the tree, as indexes in `rows` with their depth. A process comes directly before
/// the processes that it created.
fn tree(rows: &[Row<'_>]) -> Vec<(usize, usize)> {
    let mut by_id: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        by_id.entry(row.id()).or_default().push(at);
    }
    let parent = |at: usize| {
        let child = &rows[at];
        let candidates = by_id.get(&child.view.parent_id[child.row])?;
        candidates
            .iter()
            .rev()
            .copied()
            .find(|candidate| *candidate != at && rows[*candidate].could_create(child))
    };
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    let mut roots = Vec::new();
    for at in 0..rows.len() {
        match parent(at) {
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let mut order = Vec::with_capacity(rows.len());
    let mut seen = vec![false; rows.len()];
    // A process id can be used again after its process ended. So the creators that the rows state may form a cycle. No
    // root leads to the processes of a cycle, so a process of the cycle becomes a root.
    for root in roots.into_iter().chain(0..rows.len()) {
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
