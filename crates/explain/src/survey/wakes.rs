//! Times when threads were readied and when they ran. Each time is by the clock of the CPU that
//! recorded it.

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{CpuRunsView, ReadyThreadsView, StoreError, Table};

use super::Complete;
use crate::Reader;
use crate::thread_state::WAITING;

/// A moment by the clock of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Nanoseconds since the trace's start.
    pub(super) ns: i64,
    /// CPU whose clock shows this time.
    pub(super) cpu: u16,
}

/// Times when a thread was readied, and when it ran after a wait.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    pub(super) thread_id: u32,
    /// Times when the thread was readied, by the clock of the readying CPU.
    pub(super) readied: Vec<Moment>,
    /// Starts of the thread's runs, by the clock of the CPU on which it ran.
    pub(super) ran: Vec<Moment>,
    /// Ends of the runs in `ran`, in the same order.
    pub(super) ended: Vec<Moment>,
}

/// Maximum number of moments kept in memory.
const KEPT: usize = 1 << 18;

/// Reads the times when threads were readied and when they ran. Skips times at which a CPU is not recorded.
/// If there are too many moments, the threads that wake most often are dropped. In the result, the threads that wake
/// rarely come first, because their runs are the easiest to assign to events.
pub(super) fn read(reader: &Reader<'_>, complete: &Complete) -> Result<Vec<Wakes>, StoreError> {
    let mut wakes = LimitedWakes::new(KEPT);
    let readied = reader.table(Table::ReadyThreads)?;
    for batch in reader.batches(
        &readied,
        i64::MIN..i64::MAX,
        &["time_ns", "cpu", "thread_id"],
    ) {
        let batch = batch?;
        let view = ReadyThreadsView::new(&batch)?;
        for row in 0..view.len() {
            let (ns, cpu) = (view.time_ns[row], view.cpu[row]);
            if let Some(wakes) =
                (wakes.thread(view.thread_id[row])).filter(|_| complete.holds(ns, ns))
            {
                wakes.readied.push(Moment { ns, cpu });
            }
        }
    }
    let runs = reader.table(Table::CpuRuns)?;
    let columns = ["start_ns", "end_ns", "cpu", "thread_id", "previous_state"];
    for batch in reader.batches(&runs, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            // The state before a thread's first run is unknown. It counts as waiting, because most
            // threads waited.
            let state = view.previous_state.get(row);
            let (start_ns, end_ns, cpu) = (view.start_ns[row], view.end_ns[row], view.cpu[row]);
            if view.thread_id[row] == 0
                || state.is_some_and(|state| state != WAITING)
                || !complete.holds(start_ns, start_ns)
            {
                continue;
            }
            if let Some(wakes) = wakes.thread(view.thread_id[row]) {
                wakes.ran.push(Moment { ns: start_ns, cpu });
                wakes.ended.push(Moment { ns: end_ns, cpu });
            }
        }
    }
    Ok(wakes.finish())
}

/// Wakes of those threads that fit in memory.
struct LimitedWakes {
    room: usize,
    moments: usize,
    threads: FxHashMap<u32, Wakes>,
    /// Ids of the threads that were dropped.
    left_out: FxHashSet<u32>,
}

impl LimitedWakes {
    fn new(room: usize) -> LimitedWakes {
        LimitedWakes {
            room,
            moments: 0,
            threads: FxHashMap::default(),
            left_out: FxHashSet::default(),
        }
    }

    /// Returns the entry of a thread to which one more moment can be added; `None` if the thread
    /// was dropped.
    fn thread(&mut self, thread_id: u32) -> Option<&mut Wakes> {
        if self.moments >= self.room {
            self.make_room();
        }
        if self.left_out.contains(&thread_id) {
            return None;
        }
        self.moments += 1;
        let wakes = self.threads.entry(thread_id).or_default();
        wakes.thread_id = thread_id;
        Some(wakes)
    }

    /// Drops the threads that wake most often until half of the memory is free.
    fn make_room(&mut self) {
        let threads = self.threads.values();
        let mut most: Vec<(usize, u32)> = threads.map(|w| (w.len(), w.thread_id)).collect();
        most.sort_unstable();
        while self.moments > self.room / 2 {
            let Some((moments, thread_id)) = most.pop() else {
                break;
            };
            self.threads.remove(&thread_id);
            self.left_out.insert(thread_id);
            self.moments -= moments;
        }
    }

    fn finish(self) -> Vec<Wakes> {
        let threads = self.threads.into_values();
        let mut threads: Vec<Wakes> = threads
            .filter(|wakes| !wakes.readied.is_empty() && !wakes.ran.is_empty())
            .collect();
        threads.sort_unstable_by_key(|wakes| (wakes.len(), wakes.thread_id));
        threads
    }
}

impl Wakes {
    fn len(&self) -> usize {
        self.readied.len() + self.ran.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_wake_most_often_are_left_out() {
        let mut wakes = LimitedWakes::new(100);
        for ns in 0..1_000 {
            for (thread_id, every) in [(8, 2), (12, 50), (16, 100)] {
                if ns % every == 0
                    && let Some(wakes) = wakes.thread(thread_id)
                {
                    wakes.readied.push(Moment { ns, cpu: 0 });
                }
                if ns % every == 1
                    && let Some(wakes) = wakes.thread(thread_id)
                {
                    wakes.ran.push(Moment { ns, cpu: 1 });
                }
            }
        }
        let threads = wakes.finish();
        let wakes: Vec<(u32, usize)> = threads.iter().map(|w| (w.thread_id, w.len())).collect();
        assert_eq!(wakes, [(16, 20), (12, 40)]);
    }
}
