//! Theory: threads of Linux had to free memory before they could go on.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{MemoryReclaimsView, StoreError, Table};

use crate::ranges::union;
use crate::thresholds::{DISRUPTIVE_NS, NOTICED_NS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration,
};

/// Theory about threads that free memory.
pub(crate) struct MemoryReclaim;

static ABOUT: About = About {
    id: "memory-reclaim",
    name: "memory reclaim",
    question: "Did threads have to free memory before they could go on?",
    tables: &[Table::MemoryReclaims],
    sources: &[Source {
        title: "Linux kernel: control group v2, memory.high and memory.max",
        url: Some("https://docs.kernel.org/admin-guide/cgroup-v2.html#memory"),
    }],
};

/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of threads of a finding.
const SHOWN: usize = 10;

impl Theory for MemoryReclaim {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut processes = read(case)?;
        if processes.is_empty() {
            let what =
                "there are no reclaims: either memory was not short, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        processes.sort_by_key(|process| (Reverse(process.delay_ns()), process.process));
        if processes[0].delay_ns() < NOTICED_NS {
            let because = format!(
                "no process spent {} or longer in total on freeing memory; {} spent the most: {}",
                duration(NOTICED_NS),
                case.process(processes[0].process.0, processes[0].process.1),
                duration(processes[0].delay_ns())
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        processes.retain(|process| process.delay_ns() >= NOTICED_NS);
        processes.truncate(FINDINGS);
        Ok(Outcome::For(
            processes
                .iter()
                .map(|process| process.finding(case))
                .collect(),
        ))
    }
}

/// Row and id of a process, as far as they are known.
type ProcessKey = (Option<u32>, Option<u32>);

/// Times in which the threads of a process freed memory.
#[derive(Default)]
struct Reclaims {
    process: ProcessKey,
    ranges: Vec<Range<i64>>,
    by_thread: FxHashMap<u32, i64>,
    count: u64,
    pages: u64,
    longest_ns: i64,
    total_ns: i64,
    /// Time of the reclaims that limits of cgroups caused, in nanoseconds.
    of_cgroups_ns: i64,
}

fn read(case: &Case<'_>) -> Result<Vec<Reclaims>, StoreError> {
    let mut by_process: FxHashMap<ProcessKey, Reclaims> = FxHashMap::default();
    let table = case.table(Table::MemoryReclaims)?;
    let columns = [
        "time_ns",
        "start_ns",
        "kind",
        "thread_id",
        "process_id",
        "process_row",
        "pages",
    ];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = MemoryReclaimsView::new(&batch)?;
        for row in 0..view.len() {
            let process = (view.process_row.get(row), view.process_id.get(row));
            let reclaims = by_process.entry(process).or_insert_with(|| Reclaims {
                process,
                ..Reclaims::default()
            });
            reclaims.count += 1;
            reclaims.pages = reclaims.pages.saturating_add(view.pages[row]);
            let Some(start_ns) = view.start_ns.get(row) else {
                continue;
            };
            let lasted_ns = view.time_ns[row].saturating_sub(start_ns);
            reclaims.ranges.push(start_ns..view.time_ns[row]);
            reclaims.total_ns = reclaims.total_ns.saturating_add(lasted_ns);
            reclaims.longest_ns = reclaims.longest_ns.max(lasted_ns);
            if view.kind.get(row) == Some("cgroup") {
                reclaims.of_cgroups_ns = reclaims.of_cgroups_ns.saturating_add(lasted_ns);
            }
            let of_thread = reclaims.by_thread.entry(view.thread_id[row]).or_default();
            *of_thread = of_thread.saturating_add(lasted_ns);
        }
    }
    Ok(by_process.into_values().collect())
}

impl Reclaims {
    /// Returns the time in which at least one thread freed memory, in nanoseconds.
    fn delay_ns(&self) -> i64 {
        let ranges = union(self.ranges.clone());
        ranges.iter().map(|range| range.end - range.start).sum()
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let (row, id) = self.process;
        let process = case.process(row, id);
        let delay_ns = self.delay_ns();
        let is_of_cgroup = self.of_cgroups_ns > self.total_ns / 2;
        let (short, remedy) = if is_of_cgroup {
            (
                "because its cgroup had used up its memory (memory.max or memory.high; memory.limit_in_bytes in \
                 version 1)",
                "Raise the limit of the cgroup (or of its container), let its programs use less memory, or protect \
                 what it needs (memory.low). Files that it reads count too",
            )
        } else {
            (
                "because the machine had little free memory",
                "Use less memory, or add some. A higher vm.min_free_kbytes or vm.watermark_scale_factor lets the \
                 kernel free memory earlier, in the background (kswapd)",
            )
        };
        let mut threads: Vec<(u32, i64)> =
            (self.by_thread.iter()).map(|(id, ns)| (*id, *ns)).collect();
        threads.sort_unstable_by_key(|(id, ns)| (Reverse(*ns), *id));
        let sentence = format!(
            "{} of {process} freed memory for {} ({}, {} at most), {short}.",
            wording::capitalized(&counted(threads.len() as u64, "thread", "threads")),
            duration(delay_ns),
            counted(self.count, "time", "times"),
            duration(self.longest_ns),
        );
        let severity = match delay_ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let start = self.ranges.iter().map(|range| range.start).min();
        let end = self.ranges.iter().map(|range| range.end).max();
        Finding::new(&ABOUT, severity, sentence)
            .subjects(threads.iter().take(SHOWN).map(|(id, _)| Subject::Thread {
                id: *id,
                row: None,
                process_row: row,
            }))
            .subjects(case.process_subject(row, id))
            .during(start.unwrap_or(0)..end.unwrap_or(0))
            .delay(delay_ns, format!("of {process}, overlaps counted once"))
            .remedy(remedy)
            .with(self.evidence())
    }

    fn evidence(&self) -> Evidence {
        let (row, id) = self.process;
        let selection = Selection::new(Table::MemoryReclaims)
            .filter(Condition::of_process(row, id))
            .order(&[Order::descending("total_ns")]);
        let (sum, longest) = (Expression::Sum, Expression::Max("duration_ns"));
        Evidence::from_selection("Its reclaims", selection)
            .column("reclaims", "times", Unit::Count, Expression::Count)
            .column("pages", "freed pages", Unit::Count, sum("pages"))
            .column("total_ns", "time", Unit::Duration, sum("duration_ns"))
            .column("longest_ns", "longest", Unit::Duration, longest)
            .row([
                Some(self.count.into()),
                Some(self.pages.into()),
                Some(self.total_ns.into()),
                Some(self.longest_ns.into()),
            ])
    }
}
