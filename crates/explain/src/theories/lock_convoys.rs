//! Theory: threads of one program waited for a lock that they handed from one to the next.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Condition, Expression, Order, Selection};
use tables::{CpuRunsView, HardFaultsView, StoreError, Table, linux_states};

use crate::ranges::{overlap, union};
use crate::suspend_gaps::asleep_sql;
use crate::thresholds::{
    CAUSE_PERCENT, CONVOY_HANDOVERS, CONVOY_THREADS, DISRUPTIVE_NS, LOCK_HELD_NS, LOCK_WAIT_NS,
    NOTICED_NS, STARVED_HOLDER_PERCENT, is_share,
};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, duration,
    grouped, labels, percent,
};

use super::futexes::Futexes;
use super::hangs::Noticed;
use super::long_waits::starved::Starved;
use super::long_waits::story::Thread;

/// Theory about locks that pass from thread to thread of a process.
pub(crate) struct LockConvoys;

static ABOUT: About = About {
    id: "lock-convoy",
    name: "lock convoys",
    question: "Did threads of one program wait for each other, one after the other?",
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

/// Codes of the wait reasons of locks or possible locks: `WrKeyedEvent`, `WrResource`,
/// `WrPushLock`, `WrMutex`, `WrFastMutex`, `WrGuardedMutex` and `WrAlertByThreadId` (locks and
/// condition variables of user mode since Windows 8).
pub(super) const LOCKS: [u8; 7] = [21, 27, 28, 29, 34, 35, 37];
/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;
/// Maximum number of rows of evidence.
const SHOWN: usize = 20;
/// Maximum number of findings.
const TOLD: usize = 5;

const COLUMNS: [&str; 11] = [
    "end_ns",
    "previous_out_ns",
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

/// Wait that another thread of the same process ended.
#[derive(Clone, Copy, Debug)]
struct Wait {
    process_row: u32,
    thread_id: u32,
    thread_row: Option<u32>,
    by_thread_id: u32,
    readied_ns: i64,
    waits_ns: i64,
    /// Part of the wait during which the machine was not suspended, in nanoseconds.
    awake_ns: i64,
    reason: u8,
    /// Address of the lock. Only recordings of Linux have it.
    lock: Option<u64>,
}

impl Wait {
    fn read(
        case: &Case<'_>,
        futexes: &Futexes,
        runs: &CpuRunsView<'_>,
        row: usize,
    ) -> Option<Wait> {
        let waits_ns = runs.waits_ns.get(row).filter(|ns| *ns >= LOCK_WAIT_NS)?;
        let readied_ns = runs.readied_ns.get(row)?;
        let silences = &case.survey.suspend_gaps;
        let asleep_ns = silences.asleep_ns(&(readied_ns.saturating_sub(waits_ns)..readied_ns));
        let lock = match case.is_linux() {
            true => Some(futexes.lock(runs.thread_id[row], runs.previous_out_ns.get(row)?)?),
            false => None,
        };
        let wait = Wait {
            waits_ns,
            awake_ns: Some(waits_ns - asleep_ns).filter(|ns| *ns >= LOCK_WAIT_NS)?,
            reason: runs
                .previous_wait_reason
                .get(row)
                .filter(|reason| reasons(case).contains(reason))?,
            lock,
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

/// Returns the wait reasons of locks. On Linux, a signal can interrupt the wait for a lock, so the recorded
/// state is `INTERRUPTIBLE`.
fn reasons(case: &Case<'_>) -> &'static [u8] {
    match case.is_linux() {
        true => &[linux_states::INTERRUPTIBLE],
        false => &LOCKS,
    }
}

/// Threads of a process that handed a lock from one to the next.
struct Convoy {
    process_row: u32,
    lock: Option<u64>,
    threads: FxHashSet<u32>,
    times: u64,
    /// Time range from the start of the first wait to the end of the last wait.
    during: Range<i64>,
}

impl Convoy {
    /// Returns the threads of the convoy as subjects, in the order of their ids.
    fn subjects(&self, waits: &[Wait]) -> Vec<Subject> {
        let rows: FxHashMap<u32, Option<u32>> = waits
            .iter()
            .map(|wait| (wait.thread_id, wait.thread_row))
            .collect();
        let mut threads: Vec<u32> = self.threads.iter().copied().collect();
        threads.sort_unstable();
        let subjects = threads.into_iter().map(|id| Subject::Thread {
            id,
            row: rows.get(&id).copied().flatten(),
            process_row: Some(self.process_row),
        });
        subjects.collect()
    }
}

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
        let futexes = Futexes::read(case)?;
        if case.is_linux() && !futexes.is_recorded() {
            let what = "the recording has no calls that wait for locks";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut convoys = convoys(case, &futexes)?;
        convoys.retain(|convoy| {
            convoy.threads.len() >= CONVOY_THREADS && convoy.times >= CONVOY_HANDOVERS
        });
        if convoys.is_empty() {
            let because = format!(
                "in no program did {CONVOY_THREADS} or more threads hand a lock to each other \
                 {CONVOY_HANDOVERS} or more times (counted after waits of {} or longer)",
                duration(LOCK_WAIT_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        convoys.sort_by_key(|convoy| Reverse(convoy.during.end - convoy.during.start));
        convoys.truncate(TOLD);
        let noticed = Noticed::read(case)?;
        let found = convoys.iter().map(|convoy| {
            let waiters = Waiters::read(case, &futexes, convoy)?;
            found(case, &noticed, &waiters)
        });
        let found: Result<_, StoreError> = found.collect();
        Ok(Outcome::For(found?))
    }
}

/// Follows locks from thread to thread, in the order of time.
fn convoys(case: &Case<'_>, futexes: &Futexes) -> Result<Vec<Convoy>, StoreError> {
    let mut waits = Vec::new();
    each_wait(case, futexes, i64::MIN..i64::MAX, |wait| waits.push(wait))?;
    waits.sort_by_key(|wait| (wait.readied_ns, wait.thread_id));
    let mut convoys: Vec<Convoy> = Vec::new();
    // For each lock: the time when a thread got it, and the index of its convoy. If the trace does not show which lock
    // it was, the id of the thread that got the lock is the key.
    let mut got: FxHashMap<(u32, u64), (i64, usize)> = FxHashMap::default();
    for wait in waits {
        let lock = |thread: u32| (wait.process_row, wait.lock.unwrap_or(thread.into()));
        let from = got.get(&lock(wait.by_thread_id)).filter(|(got_ns, _)| {
            let asleep_ns = case
                .survey
                .suspend_gaps
                .asleep_ns(&(*got_ns..wait.readied_ns));
            wait.readied_ns - got_ns - asleep_ns <= LOCK_HELD_NS
        });
        let convoy = match from {
            Some((_, convoy)) => *convoy,
            None => {
                convoys.push(Convoy {
                    process_row: wait.process_row,
                    lock: wait.lock,
                    threads: FxHashSet::from_iter([wait.by_thread_id]),
                    times: 0,
                    during: wait.readied_ns - wait.waits_ns..wait.readied_ns,
                });
                convoys.len() - 1
            }
        };
        got.insert(lock(wait.thread_id), (wait.readied_ns, convoy));
        let convoy = &mut convoys[convoy];
        convoy.threads.insert(wait.thread_id);
        convoy.times += 1;
        convoy.during.start = convoy.during.start.min(wait.readied_ns - wait.waits_ns);
        convoy.during.end = wait.readied_ns;
    }
    Ok(convoys)
}

/// Calls `each` for every wait for a lock whose next run ended in the range. The table is read in chunks, so `each`
/// may also be called for waits outside of the range.
fn each_wait(
    case: &Case<'_>,
    futexes: &Futexes,
    range: Range<i64>,
    mut each: impl FnMut(Wait),
) -> Result<(), StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    for batch in case.batches(&runs, range, &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        (0..view.len())
            .filter_map(|row| Wait::read(case, futexes, &view, row))
            .for_each(&mut each);
    }
    Ok(())
}

/// Number, total length and maximum length of the waits of a thread.
#[derive(Clone, Copy, Default)]
struct Waits {
    count: u64,
    total_ns: i64,
    longest_ns: i64,
}

/// Waits of a convoy, sorted by time.
struct Waiters<'c> {
    convoy: &'c Convoy,
    waits: Vec<Wait>,
    /// Waits by thread. The thread with the longest total wait comes first.
    threads: Vec<(u32, Waits)>,
}

impl<'c> Waiters<'c> {
    fn read(
        case: &Case<'_>,
        futexes: &Futexes,
        convoy: &'c Convoy,
    ) -> Result<Waiters<'c>, StoreError> {
        let Range { start, end } = convoy.during;
        let mut waits = Vec::new();
        // The run after the last wait may end long after the convoy, so all later runs are read.
        each_wait(case, futexes, start..i64::MAX, |wait| {
            let is_within = start < wait.readied_ns && wait.readied_ns <= end;
            let is_same = (wait.process_row, wait.lock) == (convoy.process_row, convoy.lock);
            if is_same && is_within {
                waits.push(wait);
            }
        })?;
        waits.sort_by_key(|wait| (wait.readied_ns, wait.thread_id));
        let mut threads: FxHashMap<u32, Waits> = FxHashMap::default();
        for wait in &waits {
            let waits = threads.entry(wait.thread_id).or_default();
            waits.count += 1;
            waits.total_ns = waits.total_ns.saturating_add(wait.awake_ns);
            waits.longest_ns = waits.longest_ns.max(wait.awake_ns);
        }
        let mut threads: Vec<(u32, Waits)> = threads.into_iter().collect();
        threads.sort_by_key(|(id, waits)| (Reverse(waits.total_ns), *id));
        Ok(Waiters {
            convoy,
            waits,
            threads,
        })
    }

    /// Returns a selection of the rows of the convoy's waits. The second value is the name of the column that
    /// contains the lengths of the waits.
    fn selection(&self, case: &Case<'_>) -> (Selection, &'static str) {
        let Range { start, end } = self.convoy.during;
        let row = self.convoy.process_row;
        let gaps = case.survey.suspend_gaps.parts_in(&(start..end));
        let selection = Selection::of(Table::CpuRuns)
            .within("readied_ns", start.saturating_add(1)..end.saturating_add(1));
        let (selection, awake_ns) = match gaps.is_empty() {
            true => (selection, "waits_ns"),
            false => {
                let asleep = asleep_sql(&gaps, "readied_ns - waits_ns", "readied_ns");
                let awake_ns = format!("waits_ns - ({asleep})");
                (selection.computed("awake_ns", awake_ns), "awake_ns")
            }
        };
        let selection = selection.filters([
            Condition::is("process_row", row),
            Condition::is("readying_process_row", row),
            Condition::IsFalse("readied_by_dpc"),
            Condition::is_one_of("previous_wait_reason", reasons(case)),
            Condition::AtLeast(awake_ns, LOCK_WAIT_NS),
        ]);
        // On Linux, threads that wait for something other than a lock have the same state. So the rows are selected by
        // the ends of the waits.
        let selection = match self.convoy.lock {
            None => selection,
            Some(_) => {
                let ends: Vec<i64> = self.waits.iter().map(|wait| wait.readied_ns).collect();
                selection.filter(Condition::is_one_of("readied_ns", &ends))
            }
        };
        (selection, awake_ns)
    }

    fn evidence(&self, case: &Case<'_>) -> [Evidence; 3] {
        let (selection, awake_ns) = self.selection(case);
        [
            self.all(selection.clone()),
            self.by_thread(selection.clone(), awake_ns),
            self.handovers(selection, awake_ns),
        ]
    }

    fn all(&self, selection: Selection) -> Evidence {
        let different = Expression::CountDistinct("thread_id");
        let counts = [self.threads.len() as u64, self.waits.len() as u64];
        Evidence::of("All waits", selection)
            .column("threads", "threads", Unit::Count, different)
            .column("times", "waits", Unit::Count, Expression::Count)
            .row(counts.map(|count| Some(count.into())))
    }

    fn by_thread(&self, selection: Selection, awake_ns: &'static str) -> Evidence {
        let selection = selection
            .group_by(&["thread_id"])
            .order(&[
                Order::descending("waited_ns"),
                Order::ascending("thread_id"),
            ])
            .limit(SHOWN);
        let (waited, longest) = (Expression::Sum(awake_ns), Expression::Max(awake_ns));
        let evidence = Evidence::of("Waits by thread", selection)
            .stored("thread_id", "thread", Unit::None)
            .column("waits", "waits", Unit::Count, Expression::Count)
            .column("waited_ns", "waited", Unit::Duration, waited)
            .column("longest_ns", "longest", Unit::Duration, longest);
        let threads = self.threads.iter().take(SHOWN);
        threads.fold(evidence, |evidence, (id, waits)| {
            evidence.row([
                Some((*id).into()),
                Some(waits.count.into()),
                Some(waits.total_ns.into()),
                Some(waits.longest_ns.into()),
            ])
        })
    }

    fn handovers(&self, selection: Selection, awake_ns: &'static str) -> Evidence {
        let selection = selection
            .order(&[
                Order::ascending("readied_ns"),
                Order::ascending("thread_id"),
            ])
            .limit(SHOWN);
        let waited = Expression::Column(awake_ns);
        let reason = Expression::WaitReason("previous_wait_reason");
        let evidence = Evidence::of("Handovers, from thread to thread", selection)
            .stored("readied_ns", "at", Unit::Moment)
            .stored("readying_thread_id", "from thread", Unit::None)
            .stored("thread_id", "to thread", Unit::None)
            .column("waits_ns", "after a wait of", Unit::Duration, waited)
            .column("reason", "wait reason", Unit::None, reason);
        let waits = self.waits.iter().take(SHOWN);
        waits.fold(evidence, |evidence, wait| {
            evidence.row([
                Some(wait.readied_ns.into()),
                Some(wait.by_thread_id.into()),
                Some(wait.thread_id.into()),
                Some(wait.awake_ns.into()),
                Some(labels::wait_reason(wait.reason).into()),
            ])
        })
    }
}

fn found(case: &Case<'_>, noticed: &Noticed, waiters: &Waiters<'_>) -> Result<Finding, StoreError> {
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
    let process = case.process(Some(convoy.process_row), None);
    let Range { start, end } = convoy.during;
    let mut sentence = format!(
        "{} threads of {process} waited for each other, probably for a lock{}: from {} to {} it was \
         handed over {} times. Thread {thread_id} waited longest, {}.",
        waiters.threads.len(),
        convoy
            .lock
            .map_or(String::new(), |lock| format!(" (futex {lock:#x})")),
        duration(start),
        duration(end),
        grouped(waiters.waits.len() as u64),
        duration(total_ns)
    );
    let asleep_ns = case.survey.suspend_gaps.asleep_ns(&convoy.during);
    if asleep_ns > 0 {
        sentence += &format!(
            " This does not include {} during which the machine was suspended.",
            duration(asleep_ns)
        );
    }
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
    let mut how = format!("of thread {thread_id}, which waited for other threads of its program");
    if starved.is_some() {
        how += " (without the time in which those threads were ready and got no CPU)";
    }
    // The times are rounded outwards, so that the range contains the end of the last wait.
    let (from_ms, to_ms) = (start.div_euclid(MS), end.div_euclid(MS) + 1);
    let attention = noticed.attention(Some(convoy.process_row), &convoy.during);
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .during(convoy.during.clone())
        .attention(attention)
        .subjects(case.process_subject(Some(convoy.process_row), None))
        .subjects(convoy.subjects(&waiters.waits))
        .delay(delay_ns, how)
        .remedy(match is_paging {
            true => format!(
                "Let {process} read its pages before it needs the lock, or from a faster disk: the finding \
                 about hard faults has the files"
            ),
            false => format!(
            "Make threads of {process} hold the lock for less time, and release it before they \
             read, write or compute. `laglab explain TRACE --thread {thread_id} --between \
             {from_ms}ms {to_ms}ms` shows what thread {thread_id} waited for"
            ),
        })
        .doubt(match case.is_linux() {
            true => {
                "A futex counts as a lock if its value is 2 while threads wait for it, as in glibc, Rust and Go. \
                 Other objects may have this value, too"
            }
            false => {
                "A trace shows that threads waited and what readied them, but not the object that they \
                 waited for: locks and condition variables look alike"
            }
        });
    if case.is_linux() {
        finding.sources = vec![LINUX_SOURCE];
    }
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
            if !within.contains(&at) || view.process_row.get(row) != Some(convoy.process_row) {
                continue;
            }
            sums.0 += 1;
            if let Some(ns) = view.duration_ns.get(row) {
                sums.1 = Some(sums.1.unwrap_or(0).saturating_add(ns));
            }
            let start = view.start_ns.get(row);
            let is_of_convoy = convoy.threads.contains(&view.thread_id[row]);
            let wait = start.filter(|_| is_of_convoy).map(|start| start..at);
            waits.extend(wait.and_then(|wait| overlap(&wait, &convoy.during)));
        }
    }
    let waits = union(waits);
    let gaps = &case.survey.suspend_gaps;
    let waited = waits
        .iter()
        .map(|wait| wait.end - wait.start - gaps.asleep_ns(wait));
    let selection = Selection::of(Table::HardFaults)
        .within("time_ns", within)
        .filter(Condition::is("process_row", convoy.process_row));
    let evidence = Evidence::of("Hard faults of the program in this time", selection)
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
