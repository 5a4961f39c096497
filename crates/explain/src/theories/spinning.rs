//! Theory: threads of Linux used CPUs while they only waited.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Condition, Expression, Order, Selection};
use tables::{ImageTracker, SamplesView, StacksView, StoreError, Table};

use crate::thresholds::{CAUSE_PERCENT, NOTICED_NS, PARTIAL_CAUSE_PERCENT, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration, percent,
};

/// Theory about threads that call `sched_yield` in a loop. Such a thread uses all CPU time that it gets until what it waits
/// for has happened.
pub(crate) struct Spinning;

static ABOUT: About = About {
    id: "busy-waiting",
    name: "threads that spin",
    question: "Did threads use CPUs while they only waited in a loop (sched_yield)?",
    tables: &[Table::Samples, Table::Stacks],
    sources: &[Source {
        title: "Linux manual: sched_yield(2), avoid calling it unnecessarily or inappropriately",
        url: Some("https://man7.org/linux/man-pages/man2/sched_yield.2.html"),
    }],
};

/// Maximum number of findings.
const FINDINGS: usize = 5;
/// Maximum number of addresses whose functions are remembered.
const ADDRESSES: usize = 1 << 20;
/// Part of the names of the kernel's functions that run the system call, on all architectures.
const YIELD: &str = "sched_yield";

impl Theory for Spinning {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.has(Table::Samples)? {
            let missing = "the recording has no samples";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let stacks = Yields::read(case)?;
        if !stacks.has_names {
            let missing =
                "the samples have no stacks, or the functions of the kernel have no names";
            return Ok(Outcome::NotRecorded(missing.to_owned()));
        }
        let mut threads = threads(case, &stacks)?;
        threads.retain(|thread| {
            thread.yield_ns >= NOTICED_NS && is_share(thread.yield_ns, thread.ns, CAUSE_PERCENT)
        });
        if threads.is_empty() {
            let because = format!(
                "no thread spent {} or longer, and half of its CPU time, in sched_yield",
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        threads.sort_unstable_by_key(|thread| (Reverse(thread.yield_ns), thread.id));
        let findings = threads.iter().take(FINDINGS);
        let findings = findings.map(|thread| thread.finding(case, &stacks));
        Ok(Outcome::For(findings.collect()))
    }
}

/// Stacks inside the system call `sched_yield`.
#[derive(Default)]
struct Yields {
    stacks: FxHashSet<u32>,
    /// Addresses in the kernel's functions for the system call, in order.
    addresses: Vec<u64>,
    /// True if a function of the kernel has a name.
    has_names: bool,
}

impl Yields {
    fn read(case: &Case<'_>) -> Result<Yields, StoreError> {
        let images = ImageTracker::new(&case.names.images);
        let mut yields = Yields::default();
        let mut known: FxHashMap<u64, bool> = FxHashMap::default();
        let mut is_yield = |address: u64, has_names: &mut bool| {
            if let Some(known) = known.get(&address) {
                return *known;
            }
            // The kernel is in every process, so process 0 finds the kernel only.
            let image = images.lookup(0, address, 0);
            let image = image.and_then(|row| u32::try_from(row).ok());
            let function = case.function(image, address);
            *has_names |= function.is_some();
            let is_yield = function.is_some_and(|function| function.contains(YIELD));
            if known.len() < ADDRESSES {
                known.insert(address, is_yield);
            }
            is_yield
        };
        let table = case.table(Table::Stacks)?;
        for chunk in 0..table.chunks().len() {
            case.check()?;
            let batch = table.read(chunk, &["stack_id", "addresses"])?;
            let view = StacksView::new(&batch)?;
            for row in 0..view.len() {
                let addresses = view.addresses.get(row).iter().copied();
                let inside = addresses.filter(|address| is_yield(*address, &mut yields.has_names));
                let inside: Vec<u64> = inside.collect();
                if !inside.is_empty() {
                    yields.stacks.extend(u32::try_from(view.stack_id[row]));
                    yields.addresses.extend(inside);
                    yields.addresses.sort_unstable();
                    yields.addresses.dedup();
                }
            }
        }
        Ok(yields)
    }

    fn condition(&self) -> Condition {
        let addresses = self.addresses.iter();
        Condition::StackReaches(addresses.map(|at| *at..at.saturating_add(1)).collect())
    }
}

/// Samples of a thread, and those of them inside the system call.
struct Thread {
    id: u32,
    row: Option<u32>,
    process_row: Option<u32>,
    samples: i64,
    ns: i64,
    yields: i64,
    yield_ns: i64,
    first_ns: i64,
    last_ns: i64,
}

fn threads(case: &Case<'_>, yields: &Yields) -> Result<Vec<Thread>, StoreError> {
    let mut threads: FxHashMap<(Option<u32>, u32), Thread> = FxHashMap::default();
    if yields.stacks.is_empty() {
        return Ok(Vec::new());
    }
    let table = case.table(Table::Samples)?;
    for batch in case.batches(&table, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let (id, process_row) = (view.thread_id[row], view.process_row.get(row));
            let at = view.time_ns[row];
            if id == 0 {
                continue;
            }
            let thread = threads.entry((process_row, id)).or_insert(Thread {
                id,
                row: view.thread_row.get(row),
                process_row,
                samples: 0,
                ns: 0,
                yields: 0,
                yield_ns: 0,
                first_ns: at,
                last_ns: at,
            });
            let ns = view.weight_ns.get(row).unwrap_or(0);
            thread.samples += 1;
            thread.ns = thread.ns.saturating_add(ns);
            let stack_id = view.stack_id.get(row);
            if stack_id.is_some_and(|stack_id| yields.stacks.contains(&stack_id)) {
                if thread.yields == 0 {
                    thread.first_ns = at;
                }
                thread.last_ns = at;
                thread.yields += 1;
                thread.yield_ns = thread.yield_ns.saturating_add(ns);
            }
        }
    }
    Ok(threads.into_values().collect())
}

const COLUMNS: [&str; 6] = [
    "time_ns",
    "thread_id",
    "thread_row",
    "process_row",
    "weight_ns",
    "stack_id",
];

impl Thread {
    fn finding(&self, case: &Case<'_>, yields: &Yields) -> Finding {
        let process = case.process(self.process_row, None);
        let sentence = format!(
            "Thread {} of {process} spent {} of its CPU time in sched_yield: {} ({}). It waits in a loop, and uses a CPU \
             during this time.",
            self.id,
            percent(self.yield_ns, self.ns),
            duration(self.yield_ns),
            counted(self.yields.unsigned_abs(), "sample", "samples")
        );
        let span_ns = case.survey.span_ns();
        let severity = if is_share(self.yield_ns, span_ns, PARTIAL_CAUSE_PERCENT) {
            Severity::Warning
        } else {
            Severity::Information
        };
        let thread = Subject::Thread {
            id: self.id,
            row: self.row,
            process_row: self.process_row,
        };
        Finding::new(&ABOUT, severity, sentence)
            .during(self.first_ns..self.last_ns)
            .subjects([thread])
            .subjects(case.process_subject(self.process_row, None))
            .with(self.evidence(case, yields))
            .remedy(format!(
                "Let {process} wait for what it needs (a futex, a condition variable, poll, or a sleep) instead of calling \
                 sched_yield in a loop. If it must spin, keep other threads away from its CPU (taskset -p, cpuset of the \
                 cgroup)."
            ))
            .doubt("Times come from samples and are as precise as the sampling interval")
    }

    fn evidence(&self, case: &Case<'_>, yields: &Yields) -> Evidence {
        let selection = Selection::new(Table::Samples)
            .filter(Condition::is("thread_id", self.id))
            .filter(Condition::is_or_unknown("process_row", self.process_row))
            .filter(yields.condition())
            .group_by(&["process_row", "thread_id"])
            .order(&[Order::ascending("thread_id")]);
        let process = Expression::Process("process_row");
        let time = Expression::Sum("weight_ns");
        Evidence::from_selection("Samples of the thread inside sched_yield", selection)
            .column("process", "process", Unit::None, process)
            .stored("thread_id", "thread", Unit::None)
            .column("samples", "samples", Unit::Count, Expression::Count)
            .column("yield_ns", "CPU time", Unit::Duration, time)
            .row([
                case.process_label(self.process_row).map(Into::into),
                Some(self.id.into()),
                Some(self.yields.into()),
                Some(self.yield_ns.into()),
            ])
    }
}
