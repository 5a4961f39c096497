//! Rows of both sides by kind, and the steps from the total before the change to the total after the change.

use serde::Serialize;
use ts_rs::TS;

use crate::{Change, Diff, Kind};

/// Rows of one kind, in one unit.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct ComparedRows {
    /// Title of the table for this kind of rows.
    pub title: &'static str,
    /// Description of the times of this kind of rows.
    pub about: &'static str,
    /// Word for one row of the table, for example `Module`.
    pub one: &'static str,
    /// Unit of counts and times, for example `per second`.
    pub unit: String,
    /// True if the rows are counted by samples. Their number depends on the sampling interval.
    pub is_sampled: bool,
    /// Change of the total of all rows, divided into steps.
    pub waterfall: Waterfall,
    /// Rows, sorted by descending change. Only the rows with the greatest changes are included.
    pub rows: Vec<ComparedRow>,
    /// Number of rows that are left out, because the table has too many rows.
    pub omitted: usize,
}

/// A row with its values on both sides. Counts and times are per `unit` of the table.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct ComparedRow {
    /// Name of the row.
    pub name: String,
    /// Count before the change.
    pub before_count: f64,
    /// Time before the change, in nanoseconds.
    pub before_ns: f64,
    /// Count after the change.
    pub after_count: f64,
    /// Time after the change, in nanoseconds.
    pub after_ns: f64,
    /// True if the time or the mean time of the row differs between the sides.
    pub differs: bool,
    /// Conclusion about the row, in words.
    pub conclusion: &'static str,
}

/// Change of a total, divided into steps. The total before the change plus all steps is the total after the
/// change.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Waterfall {
    /// Total time of all rows before the change, in nanoseconds per unit.
    pub before_ns: f64,
    /// Steps of the rows with the greatest changes, the greatest change first.
    pub steps: Vec<Step>,
    /// Number of the other rows, which have no separate step.
    pub others: usize,
    /// Total change of the other rows, in nanoseconds per unit.
    pub others_ns: f64,
    /// Total time of all rows after the change, in nanoseconds per unit.
    pub after_ns: f64,
}

/// Step of a waterfall: the change of one row.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Step {
    /// Name of the row.
    pub name: String,
    /// Change of the time of the row, in nanoseconds per unit.
    pub ns: f64,
}

/// Maximum number of steps in a waterfall.
const MOST_STEPS: usize = 8;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 500;

/// Returns the title of a kind of rows.
pub(crate) fn kind_title(kind: Kind) -> &'static str {
    words(kind).0
}

/// Returns three texts of a kind of rows: the title, the description of the times, and the word for one row.
fn words(kind: Kind) -> (&'static str, &'static str, &'static str) {
    match kind {
        Kind::Program => (
            "Programs",
            "CPU time of programs, without the DPCs and ISRs that interrupted them",
            "Program",
        ),
        Kind::Thread => (
            "Threads",
            "CPU time of threads, without the DPCs and ISRs that interrupted them",
            "Thread",
        ),
        Kind::Dpc => (
            "DPCs",
            "CPU time in DPCs, by module of the routine",
            "Module",
        ),
        Kind::DpcFunction => (
            "Functions of DPCs",
            "CPU time in DPCs, by function of the routine",
            "Function",
        ),
        Kind::Isr => (
            "ISRs",
            "CPU time in interrupt service routines, by module of the routine",
            "Module",
        ),
        Kind::IsrFunction => (
            "Functions of ISRs",
            "CPU time in interrupt service routines, by function of the routine",
            "Function",
        ),
        Kind::Cpu => ("CPUs", "CPU time in DPCs and ISRs, by CPU", "CPU"),
        Kind::InterruptCode => (
            "Code in DPCs and ISRs",
            "Samples within DPCs and ISRs, by module of the code",
            "Module",
        ),
        Kind::InterruptFunction => (
            "Functions in DPCs and ISRs",
            "Samples within DPCs and ISRs, by function",
            "Function",
        ),
        Kind::ThreadCode => (
            "Code in threads",
            "Samples within threads, by module of the code",
            "Module",
        ),
        Kind::ThreadFunction => (
            "Functions in threads",
            "Samples within threads, by function",
            "Function",
        ),
        Kind::Ready => (
            "Waits for a CPU",
            "Time that ready threads waited for a CPU, by program",
            "Program",
        ),
        Kind::Wait => (
            "Other waits",
            "Time that threads waited for something other than a CPU, by program and reason",
            "Program and reason",
        ),
        Kind::WaitCode => (
            "Code that waits",
            "Time that threads waited for something other than a CPU, by program, reason and code that waited",
            "Program, reason and code",
        ),
        Kind::Disk => ("Disks", "Time that disks served requests", "Disk"),
        Kind::File => (
            "Files",
            "Time that disks served requests for a file",
            "File",
        ),
    }
}

/// Returns the tables per second and, if a unit of work is known, the tables per unit of work. The tables per unit come
/// first if the user requested the unit, or if the work per second differs between the sides. Otherwise, the tables per
/// second come first.
pub(crate) fn tables(diff: &Diff) -> Vec<ComparedRows> {
    let per_second = of_unit(&diff.per_second, "per second");
    let Some(work) = &diff.per_work else {
        return per_second;
    };
    let per_work = of_unit(&work.changes, &format!("per {}", work.work));
    if work.is_asked || work.differs() {
        [per_work, per_second].concat()
    } else {
        [per_second, per_work].concat()
    }
}

/// Returns one table for each kind. The kinds are in the order in which they first occur in `changes`.
fn of_unit(changes: &[Change], unit: &str) -> Vec<ComparedRows> {
    let mut kinds: Vec<Kind> = Vec::new();
    for change in changes {
        if !kinds.contains(&change.kind) {
            kinds.push(change.kind);
        }
    }
    let table = |kind: &Kind| ComparedRows::new(changes, *kind, unit);
    kinds.iter().map(table).collect()
}

impl ComparedRows {
    fn new(changes: &[Change], kind: Kind, unit: &str) -> ComparedRows {
        let mut rows: Vec<&Change> = changes.iter().filter(|it| it.kind == kind).collect();
        rows.sort_by(|a, b| b.ns().abs().total_cmp(&a.ns().abs()));
        let (title, about, one) = words(kind);
        ComparedRows {
            title,
            about,
            one,
            unit: unit.to_owned(),
            is_sampled: kind.is_sampled(),
            waterfall: Waterfall::new(&rows),
            rows: (rows.iter().take(MOST_ROWS))
                .map(|row| ComparedRow::new(row))
                .collect(),
            omitted: rows.len().saturating_sub(MOST_ROWS),
        }
    }
}

impl ComparedRow {
    fn new(change: &Change) -> ComparedRow {
        ComparedRow {
            name: change.name.clone(),
            before_count: change.before.count,
            before_ns: change.before.ns,
            after_count: change.after.count,
            after_ns: change.after.ns,
            differs: change.differs(),
            conclusion: change.conclusion.in_words(),
        }
    }
}

impl Waterfall {
    /// Divides the change of the total of all rows into steps. The rows must be sorted by the size of their
    /// change.
    fn new(rows: &[&Change]) -> Waterfall {
        let shown = rows.iter().take(MOST_STEPS);
        let shown = shown.take_while(|row| row.ns() != 0.0).count();
        let (shown, others) = rows.split_at(shown);
        let step = |row: &&Change| Step {
            name: row.name.clone(),
            ns: row.ns(),
        };
        Waterfall {
            before_ns: rows.iter().map(|row| row.before.ns).sum(),
            steps: shown.iter().map(step).collect(),
            others: others.len(),
            others_ns: others.iter().map(|row| row.ns()).sum(),
            after_ns: rows.iter().map(|row| row.after.ns).sum(),
        }
    }
}
