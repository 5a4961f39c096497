//! Convoys: threads that hand a lock from one to the next.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, Named, StoreError, Table, WaitKind, linux_states};

use crate::thread_state::LOCKS;
use crate::thresholds::{
    CONVOY_HANDOVERS, CONVOY_THREADS, HUB_PERCENT, LOCK_HELD_NS, LOCK_WAIT_NS, is_share,
};
use crate::{Case, Subject};

/// Code of the wait reason `UserRequest`. Waits for mutexes and other objects that processes share have this reason.
const USER_REQUEST: u8 = 6;
/// Codes of the wait reasons of locks that processes may share.
const SHARED: [u8; 8] = {
    let [a, b, c, d, e, f, g] = LOCKS;
    [USER_REQUEST, a, b, c, d, e, f, g]
};

const COLUMNS: [&str; 12] = [
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
    "wait_kind",
    "wait_object",
];

/// Wait that another thread ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) process_row: u32,
    pub(super) thread_id: u32,
    pub(super) thread_row: Option<u32>,
    pub(super) by_thread_id: u32,
    pub(super) by_process_row: u32,
    pub(super) readied_ns: i64,
    pub(super) waits_ns: i64,
    /// Part of the wait during which the machine was not suspended, in nanoseconds.
    pub(super) awake_ns: i64,
    pub(super) reason: u8,
    /// Address of the lock. Only recordings of Linux have it.
    pub(super) lock: Option<u64>,
}

impl Wait {
    fn read(case: &Case<'_>, runs: &CpuRunsView<'_>, row: usize) -> Option<Wait> {
        let waits_ns = runs.waits_ns.get(row).filter(|ns| *ns >= LOCK_WAIT_NS)?;
        let readied_ns = runs.readied_ns.get(row)?;
        let silences = &case.survey.suspend_gaps;
        let asleep_ns = silences.asleep_ns(&(readied_ns.saturating_sub(waits_ns)..readied_ns));
        let lock = if case.is_linux() {
            let is_lock = runs.wait_kind.get(row) == Some(WaitKind::Lock.name());
            Some(runs.wait_object.get(row).filter(|_| is_lock)?)
        } else {
            None
        };
        let wait = Wait {
            waits_ns,
            awake_ns: Some(waits_ns - asleep_ns).filter(|ns| *ns >= LOCK_WAIT_NS)?,
            reason: runs
                .previous_wait_reason
                .get(row)
                .filter(|reason| reasons(case, true).contains(reason))?,
            lock,
            process_row: runs.process_row.get(row)?,
            thread_id: runs.thread_id[row],
            thread_row: runs.thread_row.get(row),
            by_thread_id: runs.readying_thread_id.get(row)?,
            by_process_row: runs.readying_process_row.get(row)?,
            readied_ns,
        };
        let is_handed = runs.readied_by_dpc.get(row) == Some(false);
        is_handed.then_some(wait)
    }

    pub(super) fn start_ns(&self) -> i64 {
        self.readied_ns - self.waits_ns
    }

    /// Returns true if the lock may be a lock of one process.
    fn is_of_one_process(&self, case: &Case<'_>) -> bool {
        self.process_row == self.by_process_row && reasons(case, false).contains(&self.reason)
    }
}

/// Returns the wait reasons of locks of one process, or of locks that processes may share. On Linux, a signal can
/// interrupt the wait for a lock, so the recorded state is `INTERRUPTIBLE`.
pub(super) fn reasons(case: &Case<'_>, is_shared: bool) -> &'static [u8] {
    match (case.is_linux(), is_shared) {
        (true, _) => &[linux_states::INTERRUPTIBLE],
        (false, false) => &LOCKS,
        (false, true) => &SHARED,
    }
}

/// Threads that handed a lock from one to the next.
pub(super) struct Convoy {
    /// Rows of the threads' processes. If there are several, the processes share the lock.
    pub(super) processes: BTreeSet<u32>,
    pub(super) lock: Option<u64>,
    /// Number of handovers to or from each thread.
    threads: FxHashMap<u32, u64>,
    /// Number of handovers.
    times: u64,
    /// Number of handovers between threads of different processes.
    between: u64,
    /// Time range from the start of the first wait to the end of the last wait.
    pub(super) during: Range<i64>,
}

impl Convoy {
    /// Creates a convoy with a first handover.
    fn new(wait: &Wait) -> Convoy {
        let mut convoy = Convoy {
            processes: BTreeSet::from([wait.by_process_row]),
            lock: wait.lock,
            threads: FxHashMap::default(),
            times: 0,
            between: 0,
            during: wait.start_ns()..wait.readied_ns,
        };
        convoy.add(wait);
        convoy
    }

    fn add(&mut self, wait: &Wait) {
        self.processes.insert(wait.process_row);
        self.times += 1;
        self.between += u64::from(wait.process_row != wait.by_process_row);
        for thread in [wait.thread_id, wait.by_thread_id] {
            *self.threads.entry(thread).or_default() += 1;
        }
        self.during.start = self.during.start.min(wait.start_ns());
        self.during.end = self.during.end.max(wait.readied_ns);
    }

    pub(super) fn is_shared(&self) -> bool {
        self.processes.len() > 1
    }

    /// Returns true if the wait belongs to the convoy.
    pub(super) fn has(&self, case: &Case<'_>, wait: &Wait) -> bool {
        let is_within = self.during.start < wait.readied_ns && wait.readied_ns <= self.during.end;
        is_within
            && wait.lock == self.lock
            && if self.is_shared() {
                [wait.thread_id, wait.by_thread_id]
                    .iter()
                    .all(|id| self.threads.contains_key(id))
            } else {
                wait.is_of_one_process(case) && self.processes.contains(&wait.process_row)
            }
    }

    /// Returns true if one thread takes part in most handovers: it gives work to the others, and no lock is handed over.
    pub(super) fn has_hub(&self) -> bool {
        let most = self.threads.values().max().copied().unwrap_or(0);
        is_share(most as i64, self.times as i64, HUB_PERCENT)
    }

    /// Returns true if the convoy is long enough for a finding. Threads of several processes also have to get the lock
    /// twice on average: a call that passes through several processes looks like a convoy, but each of them gets it once.
    pub(super) fn is_long(&self) -> bool {
        let threads = self.threads.len();
        threads >= CONVOY_THREADS
            && self.times >= CONVOY_HANDOVERS
            && (!self.is_shared() || self.times >= 2 * threads as u64)
    }

    /// Returns the ids of the threads, in order.
    pub(super) fn thread_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.threads.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Returns true if the thread gave or got the lock.
    pub(super) fn has_thread(&self, id: u32) -> bool {
        self.threads.contains_key(&id)
    }

    /// Returns the threads of the convoy as subjects, in the order of their ids.
    pub(super) fn subjects(&self, waits: &[Wait]) -> Vec<Subject> {
        let rows: FxHashMap<u32, (Option<u32>, u32)> = waits
            .iter()
            .map(|wait| (wait.thread_id, (wait.thread_row, wait.process_row)))
            .collect();
        let only = self.processes.first().filter(|_| !self.is_shared());
        let subjects = self.thread_ids().into_iter().map(|id| Subject::Thread {
            id,
            row: rows.get(&id).and_then(|(row, _)| *row),
            process_row: rows.get(&id).map(|(_, row)| *row).or(only.copied()),
        });
        subjects.collect()
    }
}

/// Returns true if a thread that got a lock at one moment may have released it at another.
fn may_hold(case: &Case<'_>, got_ns: i64, released_ns: i64) -> bool {
    let asleep_ns = (case.survey.suspend_gaps).asleep_ns(&(got_ns..released_ns));
    released_ns - got_ns - asleep_ns <= LOCK_HELD_NS
}

/// Follows locks from thread to thread, in the order of time. Returns the convoys with two or more handovers. `lock`
/// returns the lock that a thread gave or got with a wait; `is_next` returns true if the second handover may follow the
/// first.
fn follow<'w, L: Eq + Hash>(
    case: &Case<'_>,
    waits: impl Iterator<Item = &'w Wait>,
    lock: impl Fn(&Wait, u32) -> L,
    is_next: impl Fn(&Wait, &Wait) -> bool,
) -> Vec<Convoy> {
    let mut convoys: Vec<Convoy> = Vec::new();
    // For each lock: its last handover, and the index of its convoy. Most handovers have no successor, so that a convoy
    // is made for the second one.
    let mut got: FxHashMap<L, (&Wait, Option<usize>)> = FxHashMap::default();
    for wait in waits {
        let before = got.get_mut(&lock(wait, wait.by_thread_id));
        let before = before.filter(|(before, _)| {
            may_hold(case, before.readied_ns, wait.readied_ns) && is_next(before, wait)
        });
        let convoy = before.map(|(before, convoy)| {
            let convoy = *convoy.get_or_insert_with(|| {
                convoys.push(Convoy::new(before));
                convoys.len() - 1
            });
            convoys[convoy].add(wait);
            convoy
        });
        got.insert(lock(wait, wait.thread_id), (wait, convoy));
    }
    convoys
}

/// Returns the convoys of single processes. If the trace does not show which lock a thread got, the thread stands for it.
pub(super) fn convoys(case: &Case<'_>, waits: &[Wait]) -> Vec<Convoy> {
    let waits = waits.iter().filter(|wait| wait.is_of_one_process(case));
    let lock = |wait: &Wait, thread: u32| (wait.process_row, wait.lock.unwrap_or(thread.into()));
    joined(follow(case, waits, lock, |_, _| true))
}

/// Joins convoys that overlap in time and have a thread and the lock in common: one thread held the lock for longer than
/// `LOCK_HELD_NS`.
fn joined(mut convoys: Vec<Convoy>) -> Vec<Convoy> {
    convoys.sort_by_key(|convoy| (convoy.processes.first().copied(), convoy.during.start));
    let mut joined: Vec<Convoy> = Vec::new();
    for convoy in convoys {
        match joined.last_mut() {
            Some(last)
                if last.processes == convoy.processes
                    && last.lock == convoy.lock
                    && convoy.during.start < last.during.end
                    && convoy
                        .threads
                        .keys()
                        .any(|id| last.threads.contains_key(id)) =>
            {
                last.times += convoy.times;
                for (thread, times) in convoy.threads {
                    *last.threads.entry(thread).or_default() += times;
                }
                last.during.end = last.during.end.max(convoy.during.end);
            }
            _ => joined.push(convoy),
        }
    }
    joined
}

/// Returns the convoys of several processes. The trace does not name the locks, and threads of different processes often
/// wake each other for other reasons. So the next thread has to wait already when the thread before gets the lock, as in
/// the queue of a lock.
pub(super) fn shared_convoys(case: &Case<'_>, waits: &[Wait]) -> Vec<Convoy> {
    let is_queued = |before: &Wait, next: &Wait| next.start_ns() < before.readied_ns;
    let mut convoys = follow(case, waits.iter(), |_, thread| thread, is_queued);
    // Handovers within a process belong to the convoys of this process.
    convoys.retain(|convoy| 2 * convoy.between >= convoy.times);
    convoys
}

/// Calls `each` for every wait for a lock whose next run ended in the range. The table is read in chunks, so `each`
/// may also be called for waits outside of the range.
pub(super) fn each_wait(
    case: &Case<'_>,
    range: Range<i64>,
    mut each: impl FnMut(Wait),
) -> Result<(), StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    for batch in case.batches(&runs, range, &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        (0..view.len())
            .filter_map(|row| Wait::read(case, &view, row))
            .for_each(&mut each);
    }
    Ok(())
}
