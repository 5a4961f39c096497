//! Theory: threads waited for a lock that they handed from one to the next.

mod convoy;
mod owner;
mod waiters;

use std::cmp::Reverse;
use std::ops::Range;

use selection::{Condition, Expression, Selection};
use tables::{HardFaultsView, StoreError, Table};

use crate::ranges::{overlap, union};
use crate::thresholds::{
    CAUSE_PERCENT, CONVOY_HANDOVERS, CONVOY_THREADS, DISRUPTIVE_NS, LOCK_WAIT_NS, NOTICED_NS,
    STARVED_HOLDER_PERCENT, is_share,
};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration, grouped, listed, moment, percent,
};

use crate::chain::path::Thread;
use crate::chain::starved_threads::StarvedThreads;
use crate::chain::user_attention::UserAttention;
use convoy::{Convoy, Wait, convoys, each_wait, shared_convoys};
use owner::Owner;
use waiters::{Waiters, Waits};

/// Theory about locks that pass from thread to thread, of one process or of several.
pub(crate) struct LockConvoys;

static ABOUT: About = About {
    id: "lock-convoy",
    name: "lock convoys",
    question: "Did threads wait for each other, one after the other?",
    tables: &[Table::CpuRuns, Table::HardFaults, Table::FutexWaits],
    sources: &[Source {
        title: "Microsoft: wait reasons (KWAIT_REASON)",
        url: Some(
            "https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ne-wdm-_kwait_reason",
        ),
    }],
};

static LINUX_SOURCE: Source = Source {
    title: "Linux manual: futex(2)",
    url: Some("https://man7.org/linux/man-pages/man2/futex.2.html"),
};

/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;
/// Maximum number of findings.
const FINDINGS: usize = 5;

impl Theory for LockConvoys {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.survey.has_ready_events || case.survey.cpus.is_empty() {
            let what = "the trace does not record what readied threads";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        if case.is_linux() && case.table(Table::FutexWaits)?.rows() == 0 {
            let what = "the recording has no calls that wait for locks";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut waits = Vec::new();
        each_wait(case, i64::MIN..i64::MAX, |wait| waits.push(wait))?;
        waits.sort_by_key(|wait| (wait.readied_ns, wait.thread_id));
        let mut convoys = convoys(case, &waits);
        if !case.is_linux() {
            convoys.extend(shared_convoys(case, &waits));
        }
        drop(waits);
        convoys.retain(|convoy| convoy.is_long() && !convoy.has_hub());
        if convoys.is_empty()
            && let Some(why) = case.survey.lacks_processes()
        {
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if convoys.is_empty() {
            let because = format!(
                "no {CONVOY_THREADS} or more threads handed a lock to each other \
                 {CONVOY_HANDOVERS} or more times (counted after waits of {} or longer)",
                duration(LOCK_WAIT_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        convoys.sort_by_key(|convoy| Reverse(convoy.during.end - convoy.during.start));
        convoys.truncate(FINDINGS);
        let noticed = case.noticed()?;
        let findings = convoys.iter().map(|convoy| {
            let waiters = Waiters::read(case, convoy)?;
            finding(case, noticed, &waiters)
        });
        let findings: Result<_, StoreError> = findings.collect();
        Ok(Outcome::For(findings?))
    }
}

/// Returns the names of a convoy's processes.
fn processes(case: &Case<'_>, convoy: &Convoy) -> String {
    const NAMED: usize = 3;
    let all = convoy.processes.iter();
    let mut names: Vec<String> = all.map(|row| case.process(Some(*row), None)).collect();
    if names.len() > NAMED + 1 {
        let more = names.len() - NAMED;
        names.truncate(NAMED);
        names.push(counted(more as u64, "more process", "more processes"));
    }
    listed(names)
}

fn finding(
    case: &Case<'_>,
    noticed: &UserAttention,
    waiters: &Waiters<'_>,
) -> Result<Finding, StoreError> {
    let convoy = waiters.convoy;
    let (thread_id, Waits { total_ns, .. }) = waiters.threads[0];
    let starved = starved(case, &waiters.waits, thread_id)?;
    let starved = starved.filter(|starved| is_share(starved.ns, total_ns, STARVED_HOLDER_PERCENT));
    let delay_ns = total_ns - starved.as_ref().map_or(0, |starved| starved.ns);
    let severity = match delay_ns {
        DISRUPTIVE_NS.. => Severity::Problem,
        NOTICED_NS.. => Severity::Warning,
        _ => Severity::Information,
    };
    let process = processes(case, convoy);
    let Range { start, end } = convoy.during;
    let asleep_ns = case.survey.suspend_gaps.asleep_ns(&convoy.during);
    let mut sentence = handovers(case, &process, waiters, asleep_ns);
    sentence += &starved
        .as_ref()
        .map_or_else(String::new, |starved| starved.sentence(case));
    let pages = pages(case, convoy)?;
    let is_paging = is_share(pages.0, (end - start - asleep_ns).max(1), CAUSE_PERCENT);
    if is_paging {
        sentence += &format!(
            " The lock is not the cause: in {} of this time, one of these threads waited for a page from \
             disk.",
            percent(pages.0, end - start - asleep_ns)
        );
    }
    let mut how = format!("of thread {thread_id}, which waited for the other threads");
    if starved.is_some() {
        how += " (without the time in which those threads were ready and got no CPU)";
    }
    let rows = convoy.processes.iter();
    let attention = rows.map(|row| noticed.attention(Some(*row), &convoy.during));
    let attention = attention.max().flatten();
    let owner = Owner::most_frequent(&waiters.waits);
    let remedy = if is_paging {
        format!(
            "Let {process} read its pages before it needs the lock, or from a faster disk: the finding \
             about hard faults has the files"
        )
    } else {
        shorter_hold(case, &process, owner.as_ref(), thread_id, &convoy.during)
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .during(convoy.during.clone())
        .attention(attention)
        .subjects((convoy.processes.iter()).flat_map(|row| case.process_subject(Some(*row), None)))
        .subjects(convoy.subjects(&waiters.waits))
        .delay(delay_ns, how)
        .remedy(remedy);
    if let Some(owner) = &owner {
        finding = finding
            .because(owner.why(case)?)
            .subjects([Subject::Thread {
                id: owner.thread.id,
                row: owner.thread.row,
                process_row: Some(owner.process_row),
            }]);
    }
    finding = with_doubts(finding, case, convoy)?;
    finding.evidence.extend(waiters.evidence(case));
    if asleep_ns > 0 {
        finding = finding.with(case.survey.suspend_gaps.evidence(&convoy.during));
    }
    if is_paging {
        finding = finding.with(pages.1);
    }
    if let Some(starved) = starved {
        finding.evidence.extend(starved.evidence);
        finding = finding.remedy(format!(
            "Let less work compete for the CPUs while {process} runs: a thread that holds the lock and \
             gets no CPU delays all others"
        ));
    }
    Ok(finding)
}

/// Returns sentences that say how threads waited for each other.
fn handovers(case: &Case<'_>, process: &str, waiters: &Waiters<'_>, asleep_ns: i64) -> String {
    let convoy = waiters.convoy;
    let Range { start, end } = convoy.during;
    let (thread_id, Waits { total_ns, .. }) = waiters.threads[0];
    let mut sentence = format!(
        "{} threads of {process} waited for each other, probably for a lock{}: from {} to {} it was \
         handed over {} times. Thread {thread_id} waited longest, {}.",
        waiters.threads.len(),
        convoy
            .lock
            .map_or(String::new(), |lock| format!(" (futex {lock:#x})")),
        moment(start),
        moment(end),
        grouped(waiters.waits.len() as u64),
        duration(total_ns)
    );
    let gaps = &case.survey.suspend_gaps;
    if asleep_ns > 0 {
        sentence += &format!(
            " This does not include {} during which {}.",
            duration(asleep_ns),
            gaps.clause()
        );
    }
    sentence
}

/// Returns a remedy for a lock that its owner holds for too long.
fn shorter_hold(
    case: &Case<'_>,
    process: &str,
    owner: Option<&Owner>,
    thread_id: u32,
    during: &Range<i64>,
) -> String {
    let whose = owner.map_or_else(
        || format!("threads of {process}"),
        |owner| {
            let process = case.process(Some(owner.process_row), None);
            format!("thread {} of {process}", owner.thread.id)
        },
    );
    // The times are rounded outwards, so that the range contains the end of the last wait.
    let (from_ms, to_ms) = (during.start.div_euclid(MS), during.end.div_euclid(MS) + 1);
    format!(
        "Change or update the program: {whose} should hold the lock for less time, and release it before \
         reads, writes and computations. `laglab explain TRACE --thread {thread_id} --from {from_ms}ms \
         --to {to_ms}ms` shows what thread {thread_id} waited for"
    )
}

/// Adds the doubts about a convoy, and the source of the facts about locks of Linux.
fn with_doubts(finding: Finding, case: &Case<'_>, convoy: &Convoy) -> Result<Finding, StoreError> {
    let mut finding = finding.doubt(if case.is_linux() {
                "A futex counts as a lock if its value is 2 while threads wait for it, as in glibc, Rust and Go. \
                 Other objects may have this value, too"
            } else {
                "A trace shows that threads waited and what readied them, but not the object that they \
                 waited for: locks and condition variables look alike"
            });
    if case.table(Table::HardFaults)?.rows() == 0 {
        finding = finding.doubt(
            "The trace has no hard faults. If they were not recorded, the threads that held the lock may have waited for \
             pages",
        );
    }
    if convoy.is_shared() {
        finding = finding.doubt(
            "Threads of several processes may also hand work to each other in this order, without a lock",
        );
    }
    if case.is_linux() {
        finding.sources = vec![LINUX_SOURCE];
    }
    Ok(finding)
}

/// Returns two values about the time range of a convoy. The first value is the time in nanoseconds during
/// which at least one thread of the convoy waited for a page from disk. The second value is evidence with the
/// hard faults of the convoy's process.
fn pages(case: &Case<'_>, convoy: &Convoy) -> Result<(i64, Evidence), StoreError> {
    let within = convoy.during.start..convoy.during.end.saturating_add(1);
    let (mut waits, mut sums) = (Vec::new(), (0_u64, None::<i64>));
    let table = case.table(Table::HardFaults)?;
    let columns = [
        "time_ns",
        "start_ns",
        "thread_id",
        "process_row",
        "duration_ns",
    ];
    for batch in case.batches(&table, within.clone(), &columns) {
        let batch = batch?;
        let view = HardFaultsView::new(&batch)?;
        for row in 0..view.len() {
            let at = view.time_ns[row];
            let process = view.process_row.get(row);
            let is_member = process.is_some_and(|row| convoy.processes.contains(&row));
            if !within.contains(&at) || !is_member {
                continue;
            }
            sums.0 += 1;
            if let Some(ns) = view.duration_ns.get(row) {
                sums.1 = Some(sums.1.unwrap_or(0).saturating_add(ns));
            }
            let start = view.start_ns.get(row);
            let is_of_convoy = convoy.has_thread(view.thread_id[row]);
            let wait = start.filter(|_| is_of_convoy).map(|start| start..at);
            waits.extend(wait.and_then(|wait| overlap(&wait, &convoy.during)));
        }
    }
    let waits = union(waits);
    let gaps = &case.survey.suspend_gaps;
    let waited = waits
        .iter()
        .map(|wait| wait.end - wait.start - gaps.asleep_ns(wait));
    let selection = Selection::new(Table::HardFaults)
        .within("time_ns", within)
        .filter(Condition::is_one_of(
            "process_row",
            &convoy.processes.iter().copied().collect::<Vec<u32>>(),
        ));
    let evidence = Evidence::from_selection("Hard faults of the program in this time", selection)
        .column("faults", "faults", Unit::Count, Expression::Count)
        .column(
            "waited_ns",
            "waited",
            Unit::Duration,
            Expression::Sum("duration_ns"),
        )
        .row([Some(sums.0.into()), sums.1.map(Into::into)]);
    Ok((waited.sum(), evidence))
}

/// Finds the time during which a thread waited for other threads that were ready and got no CPU.
fn starved(
    case: &Case<'_>,
    waits: &[Wait],
    thread_id: u32,
) -> Result<Option<StarvedThreads>, StoreError> {
    let of_thread = || waits.iter().filter(|wait| wait.thread_id == thread_id);
    let Some(row) = of_thread().next().map(|wait| wait.thread_row) else {
        return Ok(None);
    };
    let ranges: Vec<Range<i64>> = of_thread()
        .map(|wait| wait.readied_ns - wait.waits_ns..wait.readied_ns)
        .collect();
    let thread = Thread { id: thread_id, row };
    let starved = StarvedThreads::read(case, thread, &ranges)?;
    Ok((starved.ns > 0).then_some(starved))
}
