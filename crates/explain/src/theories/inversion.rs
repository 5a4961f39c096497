//! Theory: real-time threads of Linux waited for locks that threads of lower priority held.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Order, Selection};
use tables::{PrioritiesView, StoreError, Table, WaitKind};

use crate::chain::path::{Runs, Thread};
use crate::chain::starved_threads::StarvedThreads;
use crate::chain::user_attention::is_asked;
use crate::thresholds::{
    CAUSE_PERCENT, DISRUPTIVE_NS, NOTICED_NS, STARVED_HOLDER_PERCENT, is_share,
};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, ThreadWaits, Unit,
    Wait, counted, duration,
};

/// Theory about locks that threads of lower priority held.
pub(crate) struct Inversion;

static ABOUT: About = About {
    id: "priority-inversion",
    name: "priority inversion",
    question: "Did real-time threads wait for locks that threads of lower priority held?",
    tables: &[Table::CpuRuns, Table::Priorities, Table::FutexWaits],
    sources: &[Source {
        title: "Linux manual: pthread_mutexattr_setprotocol(3p), futex(2)",
        url: Some("https://man7.org/linux/man-pages/man2/futex.2.html"),
    }],
};

/// Maximum time from the event that raises the priority of a lock's holder to the moment when the waiting thread leaves its
/// CPU, in nanoseconds.
const RAISED_BEFORE_NS: i64 = 1_000_000;
/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of waits of a thread that are examined, the longest first.
const EXAMINED: usize = 16;
/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

impl Theory for Inversion {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_scoped(&self) -> bool {
        true
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.survey.has_ready_events || case.survey.cpus.is_empty() {
            let what = "the recording does not show what readied threads";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let has_calls = case.table(Table::FutexWaits)?.rows() > 0;
        let raises = raises(case)?;
        let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
        let mut runs = Runs::new(case)?;
        let mut lock_waits: Vec<LockWaits<'_>> = Vec::new();
        for thread in &case.survey.threads {
            if is_asked(&case.scope, &scope_rows, thread) {
                let mut waits = Vec::new();
                for wait in thread.blocks.iter().take(EXAMINED) {
                    waits.extend(LockWait::new(case, &mut runs, has_calls, &raises, wait)?);
                }
                lock_waits.extend(LockWaits::new(case, thread, waits)?);
            }
        }
        if lock_waits.is_empty() {
            let which = if has_calls {
                ""
            } else {
                "; the recording has no calls that wait for locks, so it shows only locks whose holder got no \
                     CPU or inherited a priority"
            };
            let because = format!(
                "no real-time thread waited {} or longer for a lock that a thread of lower priority held{which}",
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        lock_waits.sort_by_key(|waited| Reverse(waited.delay_ns()));
        lock_waits.truncate(FINDINGS);
        Ok(Outcome::For(
            lock_waits.into_iter().map(|it| it.finding(case)).collect(),
        ))
    }
}

/// Time at which the kernel raised the priority of a thread that holds a lock, with the priority before and after it.
type Raise = (i64, i8, i8);

fn raises(case: &Case<'_>) -> Result<FxHashMap<u32, Vec<Raise>>, StoreError> {
    let mut raises: FxHashMap<u32, Vec<Raise>> = FxHashMap::default();
    let table = case.table(Table::Priorities)?;
    let columns = [
        "time_ns",
        "kind",
        "thread_id",
        "old_priority",
        "new_priority",
    ];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = PrioritiesView::new(&batch)?;
        for row in (0..view.len()).filter(|row| view.kind.get(*row) == Some("priority")) {
            let change = view.old_priority.get(row).zip(view.new_priority.get(row));
            if let Some((old, new)) = change.filter(|(old, new)| old < new) {
                let of_thread = raises.entry(view.thread_id[row]).or_default();
                of_thread.push((view.time_ns[row], old, new));
            }
        }
    }
    Ok(raises)
}

/// Wait of a real-time thread for a lock.
struct LockWait {
    range: Range<i64>,
    priority: i8,
    /// Id of the thread that ended the wait, and its own priority. It was the last thread that held the lock.
    holder: (u32, i8),
    /// Priority that the holder got from the waiting thread.
    raised_to: Option<i8>,
}

impl LockWait {
    /// Returns a wait if it was for a lock that a thread of lower priority held. Returns `None` for other waits.
    fn new(
        case: &Case<'_>,
        runs: &mut Runs<'_>,
        has_calls: bool,
        raises: &FxHashMap<u32, Vec<Raise>>,
        wait: &Wait,
    ) -> Result<Option<LockWait>, StoreError> {
        let is_by_fellow = wait.readied_by_dpc == Some(false)
            && wait.process_row.is_some()
            && wait.readying_process_row == wait.process_row;
        let priority = wait
            .priority
            .filter(|own| is_by_fellow && *own >= case.real_time_priority());
        let (Some(priority), Some(out_ns), Some(readied_ns), Some(by)) = (
            priority,
            wait.previous_out_ns,
            wait.readied_ns,
            wait.readying_thread_id,
        ) else {
            return Ok(None);
        };
        let holder = Thread {
            id: by,
            row: wait.readying_thread_row,
        };
        let range = out_ns..readied_ns;
        // The kernel raises the priority just before the waiting thread leaves its CPU. So the search starts
        // earlier.
        let since_ns = out_ns.saturating_sub(RAISED_BEFORE_NS);
        let raise = raises.get(&by).and_then(|of_thread| {
            let mut then = of_thread.iter();
            then.find(|(at_ns, ..)| (since_ns..readied_ns).contains(at_ns))
        });
        let own = match raise {
            Some((_, old, _)) => Some(*old),
            None => runs.until(holder, readied_ns)?.and_then(|run| run.priority),
        };
        let Some(own) = own.filter(|own| *own < priority) else {
            return Ok(None);
        };
        let is_lock = match has_calls {
            _ if raise.is_some() => true,
            true => wait.wait_kind == Some(WaitKind::Lock),
            // If calls that wait for locks are not recorded, the thread may have waited for a lock, or for work of the
            // other thread. If the other thread was ready without a CPU for most of the wait, the lack of CPU time is
            // the cause in both cases.
            false => {
                let starved =
                    StarvedThreads::read(case, of_wait(wait), std::slice::from_ref(&range))?;
                is_share(starved.ns, readied_ns - out_ns, CAUSE_PERCENT)
            }
        };
        Ok(is_lock.then_some(LockWait {
            range,
            priority,
            holder: (by, own),
            raised_to: raise.map(|(_, _, new)| *new),
        }))
    }
}

fn of_wait(wait: &Wait) -> Thread {
    Thread {
        id: wait.thread_id,
        row: wait.thread_row,
    }
}

/// Waits of a real-time thread for locks.
struct LockWaits<'c> {
    thread: &'c ThreadWaits,
    /// The longest wait comes first.
    waits: Vec<LockWait>,
    starved: StarvedThreads,
}

impl<'c> LockWaits<'c> {
    fn new(
        case: &Case<'_>,
        thread: &'c ThreadWaits,
        waits: Vec<LockWait>,
    ) -> Result<Option<LockWaits<'c>>, StoreError> {
        if waits.is_empty() {
            return Ok(None);
        }
        let of_thread = Thread {
            id: thread.thread_id,
            row: thread.thread_row,
        };
        let ranges: Vec<Range<i64>> = waits.iter().map(|held| held.range.clone()).collect();
        Ok(Some(LockWaits {
            thread,
            waits,
            starved: StarvedThreads::read(case, of_thread, &ranges)?,
        }))
    }

    fn delay_ns(&self) -> i64 {
        let lengths = self.waits.iter().map(|held| &held.range);
        lengths.map(|range| range.end - range.start).sum()
    }

    fn finding(self, case: &Case<'_>) -> Finding {
        let thread = self.thread;
        let process = case.process(thread.process_row, thread.process_id);
        let (delay_ns, longest) = (self.delay_ns(), &self.waits[0]);
        let (holder, own) = longest.holder;
        let mut sentence = format!(
            "Thread {} of {process}, {}, waited {} for a lock, {} in total. {}thread {holder}, {}, held it.",
            thread.thread_id,
            case.priority_words(longest.priority),
            counted(self.waits.len() as u64, "time", "times"),
            duration(delay_ns),
            match self.waits.len() {
                1 => "Probably ",
                _ => "In the longest of these waits, probably ",
            },
            case.priority_words(own),
        );
        let is_inverted = is_share(self.starved.ns, delay_ns, STARVED_HOLDER_PERCENT);
        if is_inverted {
            let who = self.starved.who_ran(case);
            let who = who.map_or(String::new(), |who| format!(", while {who} ran"));
            sentence += &format!(
                " For {} of this, the holder was ready and got no CPU{who}: a priority inversion.",
                duration(self.starved.ns)
            );
        }
        if let Some(raised_to) = longest.raised_to {
            sentence += &format!(
                " The kernel gave the holder {} for this time (priority inheritance).",
                case.priority_words(raised_to)
            );
        }
        let severity = match delay_ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let start = self.waits.iter().map(|held| held.range.start).min();
        let end = self.waits.iter().map(|held| held.range.end).max();
        let evidence = self.evidence();
        let finding = Finding::new(&ABOUT, severity, sentence)
            .subjects([Subject::Thread {
                id: thread.thread_id,
                row: thread.thread_row,
                process_row: thread.process_row,
            }])
            .subjects(case.process_subject(thread.process_row, thread.process_id))
            .during(start.unwrap_or(0)..end.unwrap_or(0))
            .delay(delay_ns, format!("of thread {} of {process}", thread.thread_id))
            .with(evidence)
            .remedy(if is_inverted && longest.raised_to.is_none() {
                format!(
                    "Let {process} use locks with priority inheritance (PTHREAD_PRIO_INHERIT): then the holder gets the \
                     priority of the thread that waits"
                )
            } else {
                format!(
                    "Let the threads of {process} hold the lock for less time, or let its real-time thread do without \
                     it (a queue without locks)"
                )
            })
            .doubt(
                "The holder is the thread that ended the wait. If the lock passed through several threads, it is the \
                 last of them",
            );
        self.starved
            .evidence
            .into_iter()
            .fold(finding, Finding::with)
    }

    /// Returns evidence with the runs after the waits.
    fn evidence(&self) -> Evidence {
        let ends: Vec<i64> = self.waits.iter().map(|held| held.range.end).collect();
        let selection = Selection::new(Table::CpuRuns)
            .filter(Condition::is("thread_id", self.thread.thread_id))
            .filter(Condition::is_one_of("readied_ns", &ends))
            .order(&[
                Order::descending("waits_ns"),
                Order::ascending("readied_ns"),
            ])
            .limit(SHOWN);
        let evidence = Evidence::from_selection("Runs after its waits for locks", selection)
            .stored("previous_out_ns", "waited from", Unit::Moment)
            .stored("waits_ns", "for", Unit::Duration)
            .stored("readying_thread_id", "until thread", Unit::None)
            .stored("readied_ns", "released it at", Unit::Moment);
        self.waits
            .iter()
            .take(SHOWN)
            .fold(evidence, |evidence, held| {
                evidence.row([
                    Some(held.range.start.into()),
                    Some((held.range.end - held.range.start).into()),
                    Some(held.holder.0.into()),
                    Some(held.range.end.into()),
                ])
            })
    }
}
