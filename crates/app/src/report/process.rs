//! `laglab process`: the processes and their lifetimes.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use tables::{ProcessesView, Table};

use super::process_filter::ProcessFilter;
use super::recorded::Recorded;
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer};
use crate::cli::Failure;
use crate::output::Printable;

/// What the report rests on.
const PROCESSES: Recorded = Recorded {
    table: Table::Processes,
    what: "events of processes",
    xperf: "PROC_THREAD",
    wpr: "ProcessThread",
};

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
#[derive(clap::Args, Debug)]
pub(crate) struct Process {
    /// Below each process show those it created
    #[arg(long)]
    tree: bool,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl Report for Process {
    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        let table = PROCESSES.of(trace)?;
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
        let order = match self.tree {
            true => tree(&rows),
            false => (0..rows.len()).map(|at| (at, 0)).collect(),
        };
        out.table(&LAYOUT)?;
        for (at, depth) in order {
            let process = trace.names.process(Some(at as u32), None);
            let row = &rows[at];
            if wanted.has(Some(at as u32), None) && row.lived_in(&trace.range) {
                let label = match self.tree {
                    true => branch(process.name, depth),
                    false => "Process".to_owned(),
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

/// A process in the tree, in place of the label that lines begin with.
fn branch(name: Option<&str>, depth: usize) -> String {
    /// Deeper processes are not indented further.
    const DEEPEST: usize = 32;
    let indent = "  ".repeat(depth.min(DEEPEST));
    format!(
        "{:<40}",
        format!("{indent}{}", Printable(name.unwrap_or("Unknown")))
    )
}

/// A process in its table.
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

    /// Whether it lived when the other was created.
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

/// The rows with their depth, each process after the one that created it.
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
    // Ids that were there before the trace may seem to have created each other in a circle: what
    // no root leads to begins anew.
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
