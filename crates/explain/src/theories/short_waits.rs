//! Theory: threads lost time to many short waits for a CPU, or to interrupts. For a periodic
//! real-time thread, even a single short wait can be a missed period.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{InterruptsView, StoreError, Table};

use crate::chain::cpu_wait::{SPREAD, WaitWithCause, examine, explain_wait};
use crate::chain::routine_name;
use crate::chain::user_attention::{UserAttention, is_asked};
use crate::ranges::union;
use crate::survey::{blocking_kinds, blocks_thread, cpu_names};
use crate::thresholds::{
    CAUSE_PERCENT, DISRUPTIVE_NS, MISSED_PERCENT, MISSED_PERIODS, NORMAL_PRIORITY, PERIODS,
    is_share,
};
use crate::{
    About, Case, Evidence, Finding, LostSecond, Name, Outcome, Severity, Subject, Theory,
    ThreadWaits, Unit, Value, Wait, counted, duration, listed, moment, percent,
};

/// Theory about many short waits for a CPU and about missed periods.
pub(crate) struct ShortWaits;

static ABOUT: About = About {
    id: "short-waits",
    name: "short waits",
    question: "Did threads lose time to many short waits for a CPU or to interrupts, or miss their \
        periods?",
    tables: &[
        Table::CpuRuns,
        Table::ReadyThreads,
        Table::Interrupts,
        Table::Focus,
    ],
    sources: &[],
};

/// Maximum number of findings of each kind.
const FINDINGS: usize = 3;
/// Maximum number of rows of evidence.
const SHOWN: usize = 12;
/// Id of the process System, whose threads run parts of drivers.
const SYSTEM: u32 = 4;
/// Longest period that is looked for, in nanoseconds.
const LONGEST_PERIOD_NS: i64 = 200_000_000;

impl Theory for ShortWaits {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Returns true, because only threads in scope are examined.
    fn is_scoped(&self) -> bool {
        true
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn main_delays(&self) -> Option<&'static str> {
        Some("short waits and missed periods")
    }

    fn needs_exact_times(&self) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            let why = "the trace has no context switches";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if case.survey.clocks_apart_ns() > 0 {
            let why = "the CPUs' clocks disagree, so the lengths of short waits are unknown";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let noticed = case.noticed()?;
        let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
        let in_scope = |thread: &&ThreadWaits| is_asked(&case.scope, &scope_rows, thread);
        let threads: Vec<&ThreadWaits> = case.survey.threads.iter().filter(in_scope).collect();
        let mut findings = missed_periods(case, &threads)?;
        findings.extend(woken_late(case, &threads)?);
        // Recordings of Linux do not show which programs a user notices. So only real-time threads are reported.
        if !case.is_linux() {
            findings.extend(lost_time(case, noticed, &threads)?);
        }
        if findings.is_empty() && !case.survey.has_ready_events {
            let why = "the trace does not record what readied threads, so the lengths of short waits are unknown";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty() && case.is_linux() {
            let because = "no real-time thread with a period was late often".to_owned();
            return Ok(Outcome::Against(because, Vec::new()));
        }
        if let Some(missing) = case
            .survey
            .interrupts
            .missing()
            .filter(|_| findings.is_empty())
        {
            let why = format!(
                "the trace has no {missing}, so the time that threads lost to them is unknown"
            );
            return Ok(Outcome::NotRecorded(why));
        }
        if findings.is_empty()
            && let Some(why) = case.survey.lacks_processes()
        {
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty() {
            let who = if !case.scope.has_all_threads() {
                "no requested thread"
            } else if noticed.knows_focus() {
                "no thread of a program with the focus"
            } else {
                "no thread with a window or of a user's program"
            };
            let because = format!(
                "{who} lost much time to short waits for a CPU or to interrupts, and no real-time \
                 thread missed its period often"
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        Ok(Outcome::For(findings))
    }
}

/// Period of a thread, and the wakes after which the thread was late.
struct MissedPeriods<'c> {
    thread: &'c ThreadWaits,
    period_ns: i64,
    late: Vec<(i64, i64)>,
}

/// Returns the period with which a real-time thread usually runs, in nanoseconds.
fn period_ns(thread: &ThreadWaits) -> Option<i64> {
    if thread.process_id == Some(SYSTEM) || thread.wakes.len() <= PERIODS {
        return None;
    }
    let pairs = thread.wakes.windows(2);
    let mut apart: Vec<i64> = pairs
        .map(|pair| pair[1].0.saturating_sub(pair[0].0))
        .collect();
    apart.sort_unstable();
    let period_ns = apart[apart.len() / 2];
    let is_near = |ns: &&i64| (**ns - period_ns).abs() <= period_ns / 4;
    let near = apart.iter().filter(is_near).count();
    let is_regular = near * 10 >= apart.len() * 6;
    (is_regular && (1..=LONGEST_PERIOD_NS).contains(&period_ns)).then_some(period_ns)
}

impl<'c> MissedPeriods<'c> {
    /// Returns the missed periods of a real-time thread that usually runs with a period.
    fn new(case: &Case<'_>, thread: &'c ThreadWaits) -> Option<MissedPeriods<'c>> {
        let period_ns = period_ns(thread)?;
        let gaps = &case.survey.suspend_gaps;
        let awake_ns = |at: i64, ready_ns: i64| {
            let ready = at..at.saturating_add(ready_ns);
            ready_ns - gaps.asleep_ns(&ready)
        };
        let late = (thread.wakes.iter()).map(|(at, ready_ns)| (*at, awake_ns(*at, *ready_ns)));
        let late = late.filter(|(_, ready_ns)| is_share(*ready_ns, period_ns, MISSED_PERCENT));
        let late: Vec<(i64, i64)> = late.collect();
        (late.len() >= MISSED_PERIODS).then_some(MissedPeriods {
            thread,
            period_ns,
            late,
        })
    }

    fn lost_ns(&self) -> i64 {
        self.late.iter().map(|(_, ns)| ns).sum()
    }
}

/// Returns findings about the real-time threads that missed most periods.
fn missed_periods(case: &Case<'_>, threads: &[&ThreadWaits]) -> Result<Vec<Finding>, StoreError> {
    let all = threads
        .iter()
        .filter_map(|thread| MissedPeriods::new(case, thread));
    let mut all: Vec<MissedPeriods<'_>> = all.collect();
    all.sort_by_key(|missed| Reverse((missed.lost_ns(), missed.thread.thread_id)));
    let mut findings = Vec::new();
    for missed in all.iter().take(FINDINGS) {
        let thread = missed.thread;
        let real_time = case.real_time_priority();
        let is_late = |wait: &&Wait| {
            is_share(wait.ready_ns, missed.period_ns, MISSED_PERCENT)
                && wait.priority >= Some(real_time)
        };
        let waits: Vec<Wait> = thread.short.iter().filter(is_late).copied().collect();
        let longest_ns = missed.late.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        let (first, last) = (missed.late[0], missed.late[missed.late.len() - 1]);
        let delay_ns = missed.lost_ns();
        let severity = match delay_ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let priority = waits.first().and_then(|wait| wait.priority);
        let priority = priority.map_or(String::new(), |priority| format!(" (priority {priority})"));
        let sentence = format!(
            "{}, a real-time thread{priority} that runs every {}, was late {}: it was ready for {} \
             or longer before it ran, {} at most.",
            wording::capitalized(&thread_name(case, thread)),
            duration(missed.period_ns),
            counted(missed.late.len() as u64, "time", "times"),
            duration(missed.period_ns / 100 * MISSED_PERCENT),
            duration(longest_ns)
        );
        let during = first.0..last.0.saturating_add(last.1);
        let finding = Finding::new(&ABOUT, severity, sentence)
            .subjects(subjects(case, thread))
            .during(during)
            .delay(
                delay_ns,
                format!(
                    "of {}: the sum of its late starts",
                    thread_name(case, thread)
                ),
            )
            .doubt(
                "The period was computed from the times when the thread was woken. The trace does \
                 not contain the deadlines of its work",
            );
        let ranges = missed.late.iter();
        let ranges = ranges.map(|(at, ready_ns)| *at..at.saturating_add(*ready_ns));
        let ranges = union(ranges.collect());
        let finding = finding.moments(ranges.clone());
        findings.push(with_cause(case, finding, &waits, ranges, false)?);
    }
    Ok(findings)
}

/// Returns findings about real-time threads that were woken late because DPCs and ISRs delayed the wake. A
/// wake was late if the time since the previous wake was too long, and the time until the next wake was too
/// short.
fn woken_late(case: &Case<'_>, threads: &[&ThreadWaits]) -> Result<Vec<Finding>, StoreError> {
    let mut all: Vec<(i64, i64, &ThreadWaits, Vec<Range<i64>>)> = Vec::new();
    for thread in threads {
        let Some(period_ns) = period_ns(thread) else {
            continue;
        };
        let late = thread.wakes.windows(3).filter_map(|wakes| {
            let apart = |a: usize, b: usize| wakes[b].0.saturating_sub(wakes[a].0);
            let late_ns = apart(0, 1) - period_ns;
            let is_late = is_share(late_ns, period_ns, MISSED_PERCENT) && late_ns <= period_ns;
            let is_early = apart(1, 2) <= period_ns - late_ns / 2;
            (is_late && is_early).then_some(wakes[1].0 - late_ns..wakes[1].0)
        });
        let late: Vec<Range<i64>> = late.collect();
        let ns: i64 = late.iter().map(|range| range.end - range.start).sum();
        if late.len() >= MISSED_PERIODS {
            all.push((ns, period_ns, thread, late));
        }
    }
    all.sort_by_key(|(ns, _, thread, _)| Reverse((*ns, thread.thread_id)));
    let mut findings = Vec::new();
    for (ns, period_ns, thread, late) in all.into_iter().take(FINDINGS) {
        let routines = Routines::read(case, late.clone())?;
        // If the routines took too little time, something else delayed the wakes, such as a timer or a
        // device.
        if !is_share(routines.most_ns(), ns, CAUSE_PERCENT) {
            continue;
        }
        let severity = match ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let longest_ns = late.iter().map(|range| range.end - range.start).max();
        let sentence = format!(
            "{}, a real-time thread that runs every {}, was woken late {}: {} late at most.",
            wording::capitalized(&thread_name(case, thread)),
            duration(period_ns),
            counted(late.len() as u64, "time", "times"),
            duration(longest_ns.unwrap_or(0))
        );
        let during = late[0].start..late[late.len() - 1].end;
        let finding = Finding::new(&ABOUT, severity, sentence)
            .subjects(subjects(case, thread))
            .during(during)
            .delay(
                ns,
                format!(
                    "of {}: the sum of its late wakes",
                    thread_name(case, thread)
                ),
            )
            .doubt(
                "The period was computed from the times when the thread was woken. The trace does \
                 not contain the deadlines of its work",
            );
        findings.push(routines.blamed(case, finding));
    }
    Ok(findings)
}

/// Returns findings about the threads that lost most time.
fn lost_time(
    case: &Case<'_>,
    noticed: &UserAttention,
    threads: &[&ThreadWaits],
) -> Result<Vec<Finding>, StoreError> {
    let mut all: Vec<(i64, &ThreadWaits, Vec<LostSecond>)> = Vec::new();
    for thread in threads {
        let is_urgent = thread
            .short
            .iter()
            .any(|wait| wait.priority >= Some(NORMAL_PRIORITY));
        let is_known = noticed.is_noticed(thread);
        if !is_known || !(is_urgent || thread.short.is_empty()) {
            continue;
        }
        let seconds = thread.lost.iter().copied();
        let seconds: Vec<LostSecond> = seconds
            .filter(|second| noticed.noticed_ns(thread.process_row, &second.range()) > 0)
            .filter(|second| {
                let scope = case.scope.during.as_ref();
                scope.is_none_or(|scope| {
                    let range = second.range();
                    range.start < scope.end && scope.start < range.end
                })
            })
            .collect();
        let ns: i64 = seconds.iter().map(LostSecond::ns).sum();
        if ns >= DISRUPTIVE_NS {
            all.push((ns, thread, seconds));
        }
    }
    all.sort_by_key(|(ns, thread, _)| Reverse((*ns, thread.thread_id)));
    let mut findings = Vec::new();
    for (ns, thread, seconds) in all {
        if findings.len() >= FINDINGS {
            break;
        }
        let inside_ns: i64 = seconds.iter().map(|second| second.inside_ns).sum();
        let is_inside = inside_ns * 2 > ns;
        let examined = examine(case, &thread.short)?;
        let own = examined.iter().filter(|one| one.is_among_its_own).count();
        if !is_inside && own * 2 > examined.len() {
            continue;
        }
        let severity = if noticed.knows_focus() || UserAttention::has_window(thread) {
            Severity::Problem
        } else {
            Severity::Warning
        };
        let (first, last) = (&seconds[0], &seconds[seconds.len() - 1]);
        let during = first.range().start..last.range().end;
        let (from, to) = (moment(during.start), moment(during.end));
        let spanned = last.second - first.second + 1;
        let (who, share) = (
            thread_name(case, thread),
            percent(ns, seconds.len() as i64 * 1_000_000_000),
        );
        let lost = match seconds.len() {
            1 => format!("{who} lost {share} of the second from {from}"),
            n if n as i64 == spanned => {
                format!("{who} lost {share} of the {n} seconds from {from} to {to}")
            }
            n => format!(
                "in {n} of the {spanned} seconds from {from} to {to}, {who} lost {share} of these {n} seconds"
            ),
        };
        let sentence = format!(
            "{} ({}): {} in short waits for a CPU, {} in DPCs and ISRs that interrupted it.",
            wording::capitalized(&lost),
            duration(ns),
            duration(ns - inside_ns),
            duration(inside_ns)
        );
        let ranges = seconds.iter().map(LostSecond::range).collect();
        let finding = Finding::new(&ABOUT, severity, sentence)
            .subjects(subjects(case, thread))
            .attention(noticed.attention(thread.process_row, &during))
            .during(during)
            .delay(ns, format!("of {}", thread_name(case, thread)));
        findings.push(with_cause(case, finding, &thread.short, ranges, is_inside)?);
    }
    Ok(findings)
}

fn thread_name(case: &Case<'_>, thread: &ThreadWaits) -> String {
    case.thread(
        (thread.thread_row, thread.thread_id),
        (thread.process_row, thread.process_id),
    )
}

fn subjects(case: &Case<'_>, thread: &ThreadWaits) -> Vec<Subject> {
    let mut subjects = vec![Subject::Thread {
        id: thread.thread_id,
        row: thread.thread_row,
        process_row: thread.process_row,
    }];
    subjects.extend(case.process_subject(thread.process_row, thread.process_id));
    subjects
}

/// Adds the cause of the longest of the waits. If the cause is interrupts, adds the routines that
/// ran in the ranges.
fn with_cause(
    case: &Case<'_>,
    mut finding: Finding,
    waits: &[Wait],
    ranges: Vec<Range<i64>>,
    is_inside: bool,
) -> Result<Finding, StoreError> {
    let examined = examine(case, waits)?;
    let by_interrupts = examined.iter().filter(|one| one.is_of_interrupts);
    let of_interrupts: i64 = by_interrupts.map(|one| one.wait.ready_ns).sum();
    let all: i64 = examined.iter().map(|one| one.wait.ready_ns).sum();
    if is_inside || of_interrupts * 2 > all {
        let routines = Routines::read(case, union(ranges))?;
        return Ok(routines.blamed(case, finding));
    }
    let Some(WaitWithCause {
        wait,
        because,
        verdicts,
        evidence,
        most,
        ..
    }) = examined.into_iter().next()
    else {
        return Ok(finding);
    };
    finding = finding.because(format!("In the longest of these waits, {because}."));
    finding.weighed = verdicts;
    finding.evidence.extend(evidence);
    let advice = explain_wait(case, &wait)?.advice;
    if let Some((row, id)) = most {
        finding = finding.subjects(case.process_subject(row, id));
        if advice.module.is_none() {
            let process = case.processes(row, id);
            finding = finding.remedy(format!(
                "Reduce the work of {process}, or give it a lower priority"
            ));
        }
    }
    if let Some(module) = advice.module {
        finding = finding.subjects([module]);
        finding.why.extend(advice.of_driver);
        finding.remedies.extend(advice.remedies);
    }
    Ok(finding)
}

/// Row of [`Routines`]: the CPU, the row of the image, the address of the routine, the number of its runs,
/// and the total time of these runs in nanoseconds.
type Routine = (u16, Option<u32>, u64, u64, i64);

/// DPCs and service routines in time ranges, by CPU. Routines that run in threads are left out. The routine with most
/// CPU time comes first.
struct Routines {
    ranges: Vec<Range<i64>>,
    rows: Vec<Routine>,
    /// Names of interrupts and softirqs of Linux, by the number in the place of an address.
    names: FxHashMap<u64, String>,
}

/// Routine with much CPU time, over all CPUs.
struct WorstRoutine {
    image_row: Option<u32>,
    address: u64,
    times: u64,
    /// CPU time, in nanoseconds.
    ns: i64,
    /// CPUs, each with the CPU time of the routine in nanoseconds.
    cpus: Vec<(u16, i64)>,
}

impl WorstRoutine {
    /// Returns the CPUs with a notable part of the routine's time, in order.
    fn main_cpus(&self) -> Vec<u16> {
        let cpus = self.cpus.iter().filter(|(_, ns)| is_share(*ns, self.ns, 5));
        let mut cpus: Vec<u16> = cpus.map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        cpus
    }
}

fn module_name(case: &Case<'_>, image_row: Option<u32>) -> String {
    let module = case.module_label(image_row);
    module.map_or("an unknown module".to_owned(), |name| {
        Name(name).to_string()
    })
}

impl Routines {
    fn read(case: &Case<'_>, ranges: Vec<Range<i64>>) -> Result<Routines, StoreError> {
        let mut sums: FxHashMap<(u16, Option<u32>, u64), (u64, i64)> = FxHashMap::default();
        let mut names = FxHashMap::default();
        let table = case.table(Table::Interrupts)?;
        let columns = [
            "start_ns",
            "end_ns",
            "cpu",
            "kind",
            "routine",
            "exclusive_ns",
            "image_row",
            "name",
        ];
        let first = ranges.first().map_or(0, |range| range.start);
        for batch in case.batches(&table, first..i64::MAX, &columns) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                let (Some(start), end) = (view.start_ns.get(row), view.end_ns[row]) else {
                    continue;
                };
                let at = ranges.partition_point(|range| range.end <= start);
                let is_in = ranges.get(at).is_some_and(|range| range.start < end);
                if !is_in || start >= end || !blocks_thread(&view, row) {
                    continue;
                }
                let key = (view.cpu[row], view.image_row.get(row), view.routine[row]);
                if let Some(name) = view.name.get(row).filter(|_| case.is_linux()) {
                    names
                        .entry(view.routine[row])
                        .or_insert_with(|| name.to_owned());
                }
                let sum = sums.entry(key).or_default();
                sum.0 += 1;
                sum.1 += view.exclusive_ns.get(row).unwrap_or(0);
            }
        }
        let rows = sums
            .into_iter()
            .map(|((cpu, image, routine), (times, ns))| (cpu, image, routine, times, ns));
        let mut rows: Vec<Routine> = rows.collect();
        rows.sort_unstable_by_key(|(cpu, image, routine, _, ns)| {
            (
                Reverse(*ns),
                *cpu,
                *routine,
                image.map_or(u64::MAX, u64::from),
            )
        });
        Ok(Routines {
            ranges,
            rows,
            names,
        })
    }

    /// Returns the name of the routine: its function, or the interrupt or softirq of Linux.
    fn name(&self, case: &Case<'_>, image_row: Option<u32>, routine: u64) -> String {
        let name = self.names.get(&routine).cloned();
        name.unwrap_or_else(|| case.symbol(image_row, routine))
    }

    /// Returns the CPU time of the routine with most CPU time on a CPU, in nanoseconds.
    fn most_ns(&self) -> i64 {
        self.rows.first().map_or(0, |row| row.4)
    }

    /// Returns the two routines with most CPU time. The second one is left out if it has less than half of the time of the
    /// first.
    fn worst(&self) -> Vec<WorstRoutine> {
        let mut routines: Vec<WorstRoutine> = Vec::new();
        for (cpu, image_row, address, times, ns) in &self.rows {
            let is_it = |worst: &&mut WorstRoutine| {
                (worst.image_row, worst.address) == (*image_row, *address)
            };
            let routine = match routines.iter_mut().find(is_it) {
                Some(routine) => routine,
                None => {
                    routines.push(WorstRoutine {
                        image_row: *image_row,
                        address: *address,
                        times: 0,
                        ns: 0,
                        cpus: Vec::new(),
                    });
                    let last = routines.len() - 1;
                    &mut routines[last]
                }
            };
            routine.times += times;
            routine.ns += ns;
            routine.cpus.push((*cpu, *ns));
        }
        // The sort is stable, and `rows` has an order without ties.
        routines.sort_by_key(|routine| Reverse(routine.ns));
        let most_ns = routines.first().map_or(0, |routine| routine.ns);
        routines.retain(|routine| is_share(routine.ns, most_ns, CAUSE_PERCENT));
        routines.truncate(2);
        routines
    }

    /// Adds the routines with most CPU time to the finding as the cause.
    fn blamed(&self, case: &Case<'_>, finding: Finding) -> Finding {
        let worst = self.worst();
        let Some(first) = worst.first() else {
            return finding;
        };
        let linux = case.is_linux();
        let what = |routine: &WorstRoutine| {
            let name = self.name(case, routine.image_row, routine.address);
            let module = if linux {
                String::new()
            } else {
                format!(" ({})", module_name(case, routine.image_row))
            };
            format!(
                "{}{module}, {} in {} on {}",
                Name(&name),
                duration(routine.ns),
                counted(routine.times, "run", "runs"),
                cpu_names(&routine.main_cpus())
            )
        };
        let most: Vec<String> = worst.iter().map(what).collect();
        let (kept, remedy) = if linux {
            ("Softirqs and interrupts", SPREAD.to_owned())
        } else {
            ("DPCs and ISRs", self.update(case, &worst))
        };
        let because = format!(
            "{kept} kept the CPU: most CPU time went to {}.",
            most.join("; then to ")
        );
        let mut finding = finding.because(because);
        for routine in &worst {
            let module = case.module_label(routine.image_row).filter(|_| !linux);
            let name = if linux {
                self.name(case, routine.image_row, routine.address)
            } else {
                routine_name(case, routine.image_row, routine.address)
            };
            finding = finding
                .subjects(module.map(|name| Subject::Module {
                    name: name.to_owned(),
                }))
                .subjects([Subject::Routine { name }]);
        }
        finding
            .subjects((first.main_cpus().into_iter()).map(|number| Subject::Cpu { number }))
            .with(self.evidence(case))
            .remedy(remedy)
    }

    /// Returns the remedy for routines of drivers of Windows.
    fn update(&self, case: &Case<'_>, worst: &[WorstRoutine]) -> String {
        let mut modules: Vec<&str> = Vec::new();
        for routine in worst {
            let module = case.module_label(routine.image_row);
            modules.extend(module.filter(|module| !modules.contains(module)));
        }
        let of_windows = |module: &&str| crate::drivers::is_of_windows(module);
        let (of_windows, drivers): (Vec<&str>, Vec<&str>) =
            modules.into_iter().partition(of_windows);
        let names =
            |modules: Vec<&str>| listed(modules.into_iter().map(|name| Name(name).to_string()));
        let first = match (drivers.len(), of_windows.len()) {
            (0, 0) => "Find the driver of these DPCs and ISRs, and update it".to_owned(),
            (0, _) => format!(
                "{} is a part of Windows: find the drivers and filters that run in its DPCs and ISRs (CPU samples by \
                 module show them), and update them",
                names(of_windows)
            ),
            (1, _) => format!("Update the driver {}", names(drivers)),
            _ => format!("Update the drivers {}", names(drivers)),
        };
        format!(
            "{first}. Or spread the interrupts over more CPUs: while a CPU runs DPCs and ISRs, it runs no threads"
        )
    }

    fn evidence(&self, case: &Case<'_>) -> Evidence {
        let last = if case.is_linux() { "name" } else { "image_row" };
        let selection = Selection::new(Table::Interrupts)
            .filter(Condition::is_text("kind", &blocking_kinds()))
            .overlapping(&self.ranges)
            .group_by(&["cpu", last, "routine"])
            .order(&[
                Order::descending("exclusive_ns"),
                Order::ascending("cpu"),
                Order::ascending("routine"),
                Order::ascending(last),
            ]);
        let (selection, function) = if case.is_linux() {
            (selection, Expression::TextOrEmpty("name"))
        } else {
            (
                selection,
                Expression::Function {
                    image_row: "image_row",
                    address: "routine",
                },
            )
        };
        let time = Expression::Sum("exclusive_ns");
        let title = format!("{} in this time, by CPU and routine", case.terms().routines);
        let evidence =
            Evidence::from_selection(wording::capitalized(&title), selection.limit(SHOWN))
                .stored("cpu", "CPU", Unit::None)
                .column("function", "routine", Unit::None, function)
                .column("times", "runs", Unit::Count, Expression::Count)
                .column("exclusive_ns", "CPU time", Unit::Duration, time);
        let rows = self.rows.iter().take(SHOWN);
        rows.fold(evidence, |evidence, (cpu, image, routine, times, ns)| {
            evidence.row([
                Some((*cpu).into()),
                Some(Value::from(self.name(case, *image, *routine))),
                Some((*times).into()),
                Some((*ns).into()),
            ])
        })
    }
}
