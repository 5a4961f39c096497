//! Evidence of a row: its sums in one recording, and the query that returns these sums.

use explain::{Column, Evidence, Unit, Value};
use selection::{Condition, Expression, Selection};
use tables::Table;

use crate::interrupts::{IN_THREADS, ISRS};
use crate::requests::FILE_SQL;
use crate::samples::Place;
use crate::sums::Key;
use crate::{Change, Kind, Recording, Root, Sum, Work, work};

/// Kinds of DPCs in the column `kind`.
const DPCS: [&str; 4] = ["dpc", "threaded_dpc", "timer_dpc", "io_timer"];

/// Maximum number of process rows or module names that a query lists. If there are more, the query computes the name of
/// each row, which takes longer.
const LISTED: usize = 1_000;

/// SQL expression for the name of a program in lower case, without the process id.
const PROGRAM_SQL: &str = r"lower(regexp_replace(process(process_row), ' \([0-9]+\)$', ''))";

/// SQL expression for the name of a module in lower case.
const MODULE_SQL: &str = "lower(module(image_row))";

/// Returns an SQL expression for the name of the function at the address in a column. The name is in lower
/// case and has no offset.
fn function_sql(column: &str) -> String {
    format!(r"lower(regexp_replace(symbol(image_row, {column}), '\+0x[0-9a-f]+$', ''))")
}

impl Recording {
    /// Returns the count and time of a row in this recording, with the query that computes them.
    pub(crate) fn evidence(&self, change: &Change) -> Evidence {
        let key = (change.kind, change.name.to_lowercase());
        let row = self.rows.named.get(&key);
        let sum = row.map_or_else(Sum::default, |row| Sum::total(&row.blocks));
        let name = key.1;
        let evidence = match change.kind {
            Kind::Program => self.own_time(&change.name, self.is_program(&name)),
            Kind::Thread => {
                let rows = self.threads.get(&name).map_or(&[][..], Vec::as_slice);
                self.own_time(&change.name, Condition::is_one_of("thread_row", rows))
            }
            Kind::Ready => {
                let waits = Selection::new(Table::CpuRuns)
                    .computed("ready_from_ns", "start_ns - ready_ns")
                    .filters([self.is_believed(), self.is_program(&name)])
                    .filter(Condition::AtLeast("ready_ns", 1));
                self.waits(change, waits, ["ready_from_ns", "start_ns"], "ready_ns")
            }
            Kind::Wait | Kind::WaitCode => {
                let (program, reason, stacks) = match &change.key {
                    Key::Wait(program, reason) => (&**program, *reason, None),
                    Key::WaitCode(program, reason, _) => {
                        let stacks = self.wait_stacks.get(&name);
                        (
                            &**program,
                            *reason,
                            Some(stacks.map_or(&[][..], Vec::as_slice)),
                        )
                    }
                    _ => ("", 0, None),
                };
                let in_code = stacks.map(|stacks| Condition::is_one_of("stack_id", stacks));
                let waits = Selection::new(Table::CpuRuns)
                    .computed(
                        "waits_from_ns",
                        "start_ns - coalesce(ready_ns, 0) - waits_ns",
                    )
                    .computed("waits_to_ns", "start_ns - coalesce(ready_ns, 0)")
                    .filters([self.is_believed(), self.is_program(program)])
                    .filter(Condition::is("previous_wait_reason", reason))
                    .filters(in_code)
                    .filter(Condition::AtLeast("waits_ns", 1));
                self.waits(change, waits, ["waits_from_ns", "waits_to_ns"], "waits_ns")
            }
            Kind::Dpc | Kind::DpcFunction | Kind::Isr | Kind::IsrFunction => {
                let kinds = match change.kind {
                    Kind::Isr | Kind::IsrFunction => &ISRS[..],
                    _ => &DPCS,
                };
                let routines = Selection::new(Table::Interrupts)
                    .filter(Condition::is_text("kind", kinds))
                    .filter(Condition::IsKnown("exclusive_ns"));
                let routines = match change.kind {
                    Kind::Dpc | Kind::Isr => routines.filter(self.is_module(&name)),
                    _ => routines
                        .computed("function", function_sql("routine"))
                        .filter(Condition::is_text("function", &[&name])),
                };
                self.rows(change, routines, "end_ns", "exclusive_ns")
            }
            Kind::Cpu => {
                let cpu = match change.key {
                    Key::Cpu(cpu) => cpu,
                    _ => 0,
                };
                self.rows(change, on_cpu(cpu), "end_ns", "exclusive_ns")
            }
            Kind::InterruptCode | Kind::ThreadCode => {
                let samples =
                    samples(change.kind == Kind::InterruptCode).filter(self.is_module(&name));
                self.rows(change, samples, "time_ns", "weight_ns")
            }
            Kind::InterruptFunction | Kind::ThreadFunction => {
                let samples = samples(change.kind == Kind::InterruptFunction)
                    .computed("function", function_sql("address"))
                    .filter(Condition::is_text("function", &[&name]));
                self.rows(change, samples, "time_ns", "weight_ns")
            }
            Kind::Disk => {
                let (disk, kind) = match change.key {
                    Key::Disk(disk, kind) => (disk, kind),
                    _ => (0, ""),
                };
                let requests = Selection::new(Table::DiskIo)
                    .filter(Condition::is("disk", disk))
                    .filter(Condition::is_text("kind", &[kind]))
                    .filter(Condition::IsKnown("service_ns"));
                self.rows(change, requests, "time_ns", "service_ns")
            }
            Kind::File => {
                let requests = Selection::new(Table::DiskIo)
                    .computed("file", FILE_SQL)
                    .filter(Condition::is_text("file", &[&name]))
                    .filter(Condition::is_text("kind", &["read", "write", "flush"]))
                    .filter(Condition::IsKnown("service_ns"));
                self.rows(change, requests, "time_ns", "service_ns")
            }
        };
        evidence.row(counts(sum))
    }

    /// Returns the total time of the samples whose stacks reach a call, with the query that computes it.
    /// Returns `None` if there are too many stacks to list them in a query.
    pub(crate) fn stack_evidence(&self, root: &Root, stacks: &[(u32, Place)]) -> Option<Evidence> {
        /// Maximum number of stacks in a query.
        const STACKS: usize = 4_000;
        if stacks.len() > STACKS {
            return None;
        }
        let ns = self.stacks.time_of(stacks);
        let mut ids: Vec<i64> = stacks.iter().map(|(id, _)| i64::from(*id)).collect();
        ids.dedup();
        let of_root = match root {
            Root::Interrupts => Vec::new(),
            Root::Program(name) => vec![self.is_program(name)],
        };
        let samples = samples(*root == Root::Interrupts)
            .filters(of_root)
            .filter(Condition::IsOneOf("stack_id", ids));
        let evidence =
            Evidence::from_selection("Samples below the call", self.within(samples, "time_ns"))
                .column(
                    "time_ns",
                    "time",
                    Unit::Duration,
                    Expression::Sum("weight_ns"),
                );
        let time = (!stacks.is_empty()).then(|| Value::from(ns.round() as i64));
        Some(evidence.row([time]))
    }

    /// Returns the amount of work in this recording, with the query that computes it.
    pub(crate) fn work_evidence(&self, work: &Work) -> Evidence {
        let threads = match work {
            Work::Waits(thread) => work::threads_called(&self.names, thread),
            _ => Vec::new(),
        };
        let units: f64 = self
            .work
            .get(work)
            .map_or(0.0, |blocks| blocks.iter().sum());
        let (selection, amount) = work.selection(&self.blocks, &threads);
        let (name, unit, value) = match work {
            Work::NetworkKib | Work::DiskKib => ("bytes", Unit::Bytes, units * 1024.0),
            _ => ("units", Unit::Count, units),
        };
        Evidence::from_selection(format!("Work: {work}"), selection)
            .column(name, name, unit, amount)
            .row([Some(Value::from(value.round() as i64))])
    }

    /// Returns the total time of DPCs and service routines on a CPU, with the query that computes it.
    pub(crate) fn cpu_evidence(&self, cpu: u16) -> Evidence {
        let title = format!("DPCs and ISRs on CPU {cpu}");
        let ns = self.interrupts_ns.get(&cpu).copied();
        self.routines(title, on_cpu(cpu), ns)
    }

    /// Returns the total time of DPCs and service routines on all CPUs, with the query that computes it.
    pub(crate) fn interrupts_evidence(&self) -> Evidence {
        let all = self.interrupts_ns.values();
        let ns = (!self.interrupts_ns.is_empty()).then(|| all.sum());
        self.routines("DPCs and ISRs on all CPUs".to_owned(), on_cpus(), ns)
    }

    fn routines(&self, title: String, routines: Selection, ns: Option<f64>) -> Evidence {
        Evidence::from_selection(title, self.within(routines, "end_ns"))
            .column(
                "time_ns",
                "time",
                Unit::Duration,
                Expression::Sum("exclusive_ns"),
            )
            .row([ns.map(|ns| Value::from(ns.round() as i64))])
    }

    /// Returns the CPU time of all threads except idle threads, with the query that computes it.
    pub(crate) fn threads_evidence(&self) -> Evidence {
        let mut sum = Sum::default();
        for (_, row) in self.rows.named_of_kind(Kind::Program) {
            let of_row = Sum::total(&row.blocks);
            sum.add(of_row.count, of_row.ns);
        }
        for rest in [&self.rows.unnamed, &self.rows.joined] {
            rest.get(&Kind::Program)
                .inspect(|row| sum.add(row.count, row.ns));
        }
        let title = "CPU time of threads, without DPCs and ISRs";
        self.own_time(title, Condition::is_not("thread_id", 0))
            .row(counts(sum))
    }

    /// Returns evidence for rows that have a single time, in the column `at`. `time` is the column whose numbers are
    /// summed.
    fn rows(
        &self,
        change: &Change,
        selection: Selection,
        at: &'static str,
        time: &'static str,
    ) -> Evidence {
        counted(change, self.within(selection, at), Expression::Sum(time))
    }

    fn within(&self, selection: Selection, at: &'static str) -> Selection {
        match &self.blocks.part {
            Some(part) => selection.within(at, part.clone()),
            None => selection,
        }
    }

    /// Returns evidence of waits that last from the time in column `from` to the time in column `to`. Only
    /// the parts of the waits in the compared part of the trace count.
    fn waits(
        &self,
        change: &Change,
        waits: Selection,
        [from, to]: [&'static str; 2],
        time: &'static str,
    ) -> Evidence {
        let Some(part) = &self.blocks.part else {
            return counted(change, waits, Expression::Sum(time));
        };
        let waits = waits
            .filter(Condition::Below(from, part.end))
            .filter(Condition::AtLeast(to, part.start.saturating_add(1)));
        let within = format!(
            "sum(least({to}, {}) - greatest({from}, {}))",
            part.end, part.start
        );
        counted(change, waits, Expression::Formula(within))
    }

    /// Returns evidence of the CPU time of threads. The time excludes the DPCs and ISRs that interrupted the
    /// threads.
    fn own_time(&self, title: &str, whose: Condition) -> Evidence {
        let believed = self.is_believed();
        let part = self.blocks.part.as_ref();
        let has_routines = !self.interrupts_ns.is_empty();
        let runs = explain::own_runs(&believed, has_routines, part);
        let sql = format!(
            "SELECT count(*) AS count, sum(cpu_ns) AS time_ns FROM {runs} WHERE {}",
            whose.sql()
        );
        let shown = Selection::new(Table::CpuRuns)
            .filters([believed, whose])
            .column("cpu_ns", Expression::TimeWithin);
        let shown = match part {
            Some(part) => shown.overlapping(std::slice::from_ref(part)),
            None => shown,
        };
        Evidence::new(title.to_owned(), sql, &columns(Kind::Program)).about(shown)
    }

    /// Returns the condition on rows of `cpu_runs` that excludes idle threads and doubtful runs.
    fn is_believed(&self) -> Condition {
        let is_of_thread = Condition::is_not("thread_id", 0);
        if self.doubtful.are_none() {
            is_of_thread
        } else {
            Condition::All(vec![
                is_of_thread,
                Condition::IsDoubtful(self.doubtful.clone()).negated(),
            ])
        }
    }

    /// Returns the condition that a row belongs to the program `name`. `name` is in lower case.
    fn is_program(&self, name: &str) -> Condition {
        let rows = (0_i64..).zip(self.names.processes());
        let rows = rows.filter(|(_, process)| {
            let known = process.name;
            known.is_some_and(|known| known.to_lowercase() == name)
        });
        let rows: Vec<i64> = rows.map(|(row, _)| row).collect();
        if rows.len() > LISTED {
            has_name(PROGRAM_SQL, name)
        } else {
            Condition::IsOneOf("process_row", rows)
        }
    }

    /// Returns the condition that a row belongs to the module `name`. `name` is in lower case.
    fn is_module(&self, name: &str) -> Condition {
        let images = 0..self.names.images.len() as u32;
        let labels = images.filter_map(|row| self.names.module_label(Some(row)));
        let mut labels: Vec<String> = labels
            .filter(|label| label.to_lowercase() == name)
            .map(str::to_owned)
            .collect();
        labels.sort_unstable();
        labels.dedup();
        if labels.len() > LISTED {
            has_name(MODULE_SQL, name)
        } else {
            Condition::HasLabel(Expression::Module("image_row"), labels)
        }
    }
}

/// Returns the condition that the SQL expression `sql` gives the name `name`.
fn has_name(sql: &str, name: &str) -> Condition {
    Condition::HasLabel(Expression::Formula(sql.to_owned()), vec![name.to_owned()])
}

/// Returns the columns `count` and `time` of evidence.
fn counts(sum: Sum) -> [Option<Value>; 2] {
    let time = (sum.count > 0.0).then(|| Value::from(sum.ns.round() as i64));
    [Some(Value::from(sum.count.round() as i64)), time]
}

/// Selects the DPCs and service routines on a CPU, except routines that run in threads.
fn on_cpu(cpu: u16) -> Selection {
    on_cpus().filter(Condition::is("cpu", cpu))
}

/// Selects the DPCs and service routines on all CPUs, except routines that run in threads.
fn on_cpus() -> Selection {
    Selection::new(Table::Interrupts)
        .filter(Condition::IsNotText(
            "kind",
            IN_THREADS.map(str::to_owned).to_vec(),
        ))
        .filter(Condition::IsKnown("exclusive_ns"))
}

/// Selects the weighted samples of DPCs and ISRs if `in_interrupts` is true. Otherwise, selects the weighted
/// samples of threads.
fn samples(in_interrupts: bool) -> Selection {
    let inside = Condition::Any(vec![
        Condition::IsTrue("in_dpc"),
        Condition::IsTrue("in_isr"),
    ]);
    let samples = Selection::new(Table::Samples).filter(Condition::IsKnown("weight_ns"));
    if in_interrupts {
        samples.filter(inside)
    } else {
        samples
            .filter(Condition::Any(vec![
                Condition::IsKnown("in_dpc"),
                Condition::IsKnown("in_isr"),
            ]))
            .filter(inside.negated())
            .filter(Condition::is_not("thread_id", 0))
    }
}

fn columns(kind: Kind) -> [Column; 2] {
    [
        Column::new("count", kind.counted(), Unit::Count),
        Column::new("time_ns", "time", Unit::Duration),
    ]
}

fn counted(change: &Change, selection: Selection, time: Expression) -> Evidence {
    let [count, ns] = columns(change.kind);
    Evidence::from_selection(change.name.clone(), selection)
        .column(count.name, count.label, count.unit, Expression::Count)
        .column(ns.name, ns.label, ns.unit, time)
}
