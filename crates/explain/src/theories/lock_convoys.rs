//! Did threads of a program wait for each other, one after the other?

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{CpuRunsView, StoreError, Table};

use crate::silence::asleep_sql;
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Silences, Source, Theory, Unit,
    duration, grouped, labels,
};

use super::long_waits::starved::Starved;
use super::long_waits::story::Thread;

/// Locks that go from thread to thread of a process.
pub(crate) struct LockConvoys;

static ABOUT: About = About {
    id: "lock-convoy",
    question: "Did threads of one program wait for each other, one after the other?",
    tables: &[Table::CpuRuns],
    sources: &[Source {
        title: "Microsoft: wait reasons (KWAIT_REASON)",
        url: "https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ne-wdm-_kwait_reason",
    }],
};

/// What threads wait for that is a lock or may be one: `WrKeyedEvent`, `WrResource`, `WrPushLock`,
/// `WrMutex`, `WrFastMutex`, `WrGuardedMutex` and `WrAlertByThreadId` (locks and condition variables
/// of user mode since Windows 8).
const LOCKS: [u8; 7] = [21, 27, 28, 29, 34, 35, 37];
/// Shorter waits for a lock are its ordinary work.
const LONG_NS: i64 = 20_000_000;
/// A thread that hands a lock on has had it for no longer than this.
const HELD_NS: i64 = 1_000_000_000;
/// Fewer threads and fewer times may be stages of a pipeline.
const THREADS: usize = 4;
const TIMES: u64 = 8;
/// What people notice, and what interrupts their thoughts (Nielsen).
const NOTICED_NS: i64 = 100_000_000;
const PROBLEM_NS: i64 = 1_000_000_000;
/// A millisecond.
const MS: i64 = 1_000_000;
/// Rows shown.
const SHOWN: usize = 20;
/// Convoys told of.
const TOLD: usize = 5;
/// Of what a thread waited, a smaller part in which those that it waited for got no CPU is not told.
const PART: i64 = 10;

const COLUMNS: [&str; 10] = [
    "end_ns",
    "thread_id",
    "thread_row",
    "process_row",
    "readied_ns",
    "waits_ns",
    "readying_thread_id",
    "readying_process_row",
    "readied_by_dpc",
    "previous_wait_reason",
];

/// A wait that a thread of the same process ended.
#[derive(Clone, Copy, Debug)]
struct Wait {
    process_row: u32,
    thread_id: u32,
    thread_row: Option<u32>,
    by_thread_id: u32,
    readied_ns: i64,
    waits_ns: i64,
    /// How long of that the machine was awake.
    awake_ns: i64,
    reason: u8,
}

impl Wait {
    fn read(silences: &Silences, runs: &CpuRunsView<'_>, row: usize) -> Option<Wait> {
        let waits_ns = runs.waits_ns.get(row).filter(|ns| *ns >= LONG_NS)?;
        let readied_ns = runs.readied_ns.get(row)?;
        let asleep_ns = silences.asleep_ns(&(readied_ns.saturating_sub(waits_ns)..readied_ns));
        let wait = Wait {
            waits_ns,
            awake_ns: Some(waits_ns - asleep_ns).filter(|ns| *ns >= LONG_NS)?,
            reason: runs
                .previous_wait_reason
                .get(row)
                .filter(|reason| LOCKS.contains(reason))?,
            process_row: runs.process_row.get(row)?,
            thread_id: runs.thread_id[row],
            thread_row: runs.thread_row.get(row),
            by_thread_id: runs.readying_thread_id.get(row)?,
            readied_ns,
        };
        let is_of_fellow = runs.readying_process_row.get(row) == Some(wait.process_row)
            && runs.readied_by_dpc.get(row) == Some(false);
        is_of_fellow.then_some(wait)
    }
}

/// Threads that handed something on, each to the next.
struct Convoy {
    process_row: u32,
    threads: FxHashSet<u32>,
    times: u64,
    /// From when the first began to wait to when the last got it.
    during: Range<i64>,
}

impl Theory for LockConvoys {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.survey.has_ready_events || case.survey.cpus.is_empty() {
            let what = "the trace does not tell who made threads ready";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut convoys = convoys(case)?;
        convoys.retain(|convoy| convoy.threads.len() >= THREADS && convoy.times >= TIMES);
        if convoys.is_empty() {
            let because = format!(
                "nothing that threads waited for at least {} for was handed on {TIMES} times among \
                 {THREADS} or more threads of one program",
                duration(LONG_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        convoys.sort_by_key(|convoy| Reverse(convoy.during.end - convoy.during.start));
        convoys.truncate(TOLD);
        let found: Result<_, StoreError> =
            convoys.iter().map(|convoy| found(case, convoy)).collect();
        Ok(Outcome::For(found?))
    }
}

/// Follows what is handed on from thread to thread, in the order of time.
fn convoys(case: &Case<'_>) -> Result<Vec<Convoy>, StoreError> {
    let mut waits = Vec::new();
    each_wait(case, i64::MIN..i64::MAX, |wait| waits.push(wait))?;
    waits.sort_by_key(|wait| (wait.readied_ns, wait.thread_id));
    let mut convoys: Vec<Convoy> = Vec::new();
    // Of each thread that got what it waited for: when, and in which convoy.
    let mut got: FxHashMap<(u32, u32), (i64, usize)> = FxHashMap::default();
    for wait in waits {
        let from = got
            .get(&(wait.process_row, wait.by_thread_id))
            .filter(|(got_ns, _)| {
                let asleep_ns = case.survey.silences.asleep_ns(&(*got_ns..wait.readied_ns));
                wait.readied_ns - got_ns - asleep_ns <= HELD_NS
            });
        let convoy = match from {
            Some((_, convoy)) => *convoy,
            None => {
                convoys.push(Convoy {
                    process_row: wait.process_row,
                    threads: FxHashSet::from_iter([wait.by_thread_id]),
                    times: 0,
                    during: wait.readied_ns - wait.waits_ns..wait.readied_ns,
                });
                convoys.len() - 1
            }
        };
        got.insert(
            (wait.process_row, wait.thread_id),
            (wait.readied_ns, convoy),
        );
        let convoy = &mut convoys[convoy];
        convoy.threads.insert(wait.thread_id);
        convoy.times += 1;
        convoy.during.start = convoy.during.start.min(wait.readied_ns - wait.waits_ns);
        convoy.during.end = wait.readied_ns;
    }
    Ok(convoys)
}

/// Hands over the waits of runs that ended in the range.
fn each_wait(
    case: &Case<'_>,
    range: Range<i64>,
    mut each: impl FnMut(Wait),
) -> Result<(), StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    for batch in case.batches(&runs, range, &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        (0..view.len())
            .filter_map(|row| Wait::read(&case.survey.silences, &view, row))
            .for_each(&mut each);
    }
    Ok(())
}

fn found(case: &Case<'_>, convoy: &Convoy) -> Result<Finding, StoreError> {
    let Range { start, end } = convoy.during.clone();
    let mut waits = Vec::new();
    // A run that begins with the wait's end may go on long after the convoy.
    each_wait(case, start..i64::MAX, |wait| {
        let is_within = start < wait.readied_ns && wait.readied_ns <= end;
        if wait.process_row == convoy.process_row && is_within {
            waits.push(wait);
        }
    })?;
    waits.sort_by_key(|wait| (wait.readied_ns, wait.thread_id));
    let mut threads: FxHashMap<u32, (u64, i64, i64)> = FxHashMap::default();
    for wait in &waits {
        let (count, sum, longest) = threads.entry(wait.thread_id).or_default();
        *count += 1;
        *sum = sum.saturating_add(wait.awake_ns);
        *longest = (*longest).max(wait.awake_ns);
    }
    let mut threads: Vec<(u32, (u64, i64, i64))> = threads.into_iter().collect();
    threads.sort_by_key(|(id, (_, sum, _))| (Reverse(*sum), *id));
    let (most_id, (_, waited_ns, _)) = threads[0];
    let starved = starved(case, &waits, most_id)?;
    let starved = starved.filter(|starved| starved.ns >= waited_ns / PART);
    let lost_ns = waited_ns - starved.as_ref().map_or(0, |starved| starved.ns);

    let [a, b, c, d, e, f, g] = LOCKS;
    let row = convoy.process_row;
    let silences = case.survey.silences.parts_in(&(start..end));
    let slept = match asleep_sql(&silences, "readied_ns - waits_ns", "readied_ns") {
        _ if silences.is_empty() => String::new(),
        asleep => format!(" - ({asleep})"),
    };
    let of_convoy = format!(
        "FROM (SELECT *, waits_ns{slept} AS awake_ns FROM cpu_runs) WHERE process_row = {row} AND \
         readying_process_row = {row} AND NOT readied_by_dpc AND previous_wait_reason IN ({a}, {b}, \
         {c}, {d}, {e}, {f}, {g}) AND awake_ns >= {LONG_NS} AND readied_ns > {start} AND readied_ns \
         <= {end}"
    );
    let times = waits.len() as u64;
    let all = Evidence::new(
        "All of them",
        format!("SELECT count(DISTINCT thread_id) AS threads, count(*) AS times {of_convoy}"),
        &[
            Column::new("threads", "threads", Unit::Count),
            Column::new("times", "times", Unit::Count),
        ],
    )
    .row([threads.len() as u64, times].map(|count| Some(count.into())));
    let mut by_thread = Evidence::new(
        "Who waited how long",
        format!(
            "SELECT thread_id, count(*) AS waits, sum(awake_ns) AS waited_ns, max(awake_ns) AS \
             longest_ns {of_convoy} GROUP BY thread_id ORDER BY waited_ns DESC, thread_id LIMIT {SHOWN}"
        ),
        &[
            Column::new("thread_id", "thread", Unit::None),
            Column::new("waits", "waits", Unit::Count),
            Column::new("waited_ns", "waited", Unit::Duration),
            Column::new("longest_ns", "longest", Unit::Duration),
        ],
    );
    for (id, (count, sum, longest)) in threads.iter().take(SHOWN) {
        by_thread = by_thread.row([
            Some((*id).into()),
            Some((*count).into()),
            Some((*sum).into()),
            Some((*longest).into()),
        ]);
    }
    let mut handed = Evidence::new(
        "From thread to thread",
        format!(
            "SELECT readied_ns, readying_thread_id, thread_id, awake_ns AS waits_ns, \
             wait_reason(previous_wait_reason) AS reason {of_convoy} ORDER BY readied_ns, thread_id \
             LIMIT {SHOWN}"
        ),
        &[
            Column::new("readied_ns", "at", Unit::Moment),
            Column::new("readying_thread_id", "from thread", Unit::None),
            Column::new("thread_id", "to thread", Unit::None),
            Column::new("waits_ns", "which had waited", Unit::Duration),
            Column::new("reason", "for", Unit::None),
        ],
    );
    for wait in waits.iter().take(SHOWN) {
        handed = handed.row([
            Some(wait.readied_ns.into()),
            Some(wait.by_thread_id.into()),
            Some(wait.thread_id.into()),
            Some(wait.awake_ns.into()),
            Some(labels::wait_reason(wait.reason).into()),
        ]);
    }
    let process = case.process(Some(row), None);
    let sentence = format!(
        "{} threads of {process} waited for each other from {} to {}: what they waited for, a lock as \
         a rule, was handed on {} times. Thread {most_id} lost most, {}.",
        threads.len(),
        duration(start),
        duration(end),
        grouped(times),
        duration(waited_ns)
    );
    let asleep_ns = case.survey.silences.asleep_ns(&(start..end));
    let sentence = match asleep_ns {
        0 => sentence,
        ns => format!(
            "{sentence} The {} that the machine slept meanwhile are not counted.",
            duration(ns)
        ),
    };
    // Rounded outwards, so that the last wait is over at the end.
    let (from_ms, to_ms) = (start.div_euclid(MS), end.div_euclid(MS) + 1);
    let sentence = match &starved {
        None => sentence,
        Some(starved) => sentence + &starved.sentence(case),
    };
    let severity = match lost_ns {
        PROBLEM_NS.. => Severity::Problem,
        NOTICED_NS.. => Severity::Warning,
        _ => Severity::Information,
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .during(start..end)
        .costing(
            lost_ns,
            match &starved {
                None => format!("of thread {most_id}, which waited for others of its own program"),
                Some(_) => format!(
                    "of thread {most_id}, which waited for others of its own program, without the \
                     time that these could run and got no CPU"
                ),
            },
        )
        .with(all)
        .with(by_thread)
        .with(handed)
        .remedy(format!(
            "Have threads of {process} hold the lock for less: not while they read, write or compute. \
             `laglab explain TRACE --thread {most_id} --between {from_ms}ms {to_ms}ms` shows whose time \
             it was"
        ))
        .doubt(
            "A trace tells that threads waited and who ended that, not what they waited for: locks and \
             condition variables look alike",
        );
    if asleep_ns > 0 {
        finding = finding.with(case.survey.silences.evidence(&(start..end)));
    }
    if let Some(starved) = starved {
        finding.evidence.extend(starved.evidence);
        finding = finding.remedy(format!(
            "Have less work compete for the CPUs while {process} runs: who has the lock and gets no CPU \
             holds up all others"
        ));
    }
    Ok(finding)
}

/// What of the waits of a thread those that it waited for got no CPU.
fn starved(case: &Case<'_>, waits: &[Wait], thread_id: u32) -> Result<Option<Starved>, StoreError> {
    let of_thread = || waits.iter().filter(|wait| wait.thread_id == thread_id);
    let Some(row) = of_thread().next().map(|wait| wait.thread_row) else {
        return Ok(None);
    };
    let ranges: Vec<Range<i64>> = of_thread()
        .map(|wait| wait.readied_ns - wait.waits_ns..wait.readied_ns)
        .collect();
    let thread = Thread { id: thread_id, row };
    let starved = Starved::read(case, thread, &ranges)?;
    Ok((starved.ns > 0).then_some(starved))
}
