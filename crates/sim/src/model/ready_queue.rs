//! Ready threads: a list for each priority, and a bit mask of non-empty lists.

use std::collections::VecDeque;

use super::ThreadId;

/// Number of priorities, 0 to 31.
pub(crate) const PRIORITIES: usize = 32;

/// Ready threads by priority. Threads of the same priority leave the queue in the order in which
/// they arrived.
#[derive(Debug)]
pub(crate) struct ReadyQueue {
    /// Bit `p` is set if the list of priority `p` is not empty.
    summary: u32,
    lists: [VecDeque<ThreadId>; PRIORITIES],
}

impl ReadyQueue {
    pub(crate) fn new() -> ReadyQueue {
        ReadyQueue {
            summary: 0,
            lists: std::array::from_fn(|_| VecDeque::new()),
        }
    }

    /// Adds a thread at the end of its priority's list. If `first` is true, adds it at the front,
    /// as for a preempted thread.
    #[inline]
    pub(crate) fn push(&mut self, thread: ThreadId, priority: u8, first: bool) {
        let list = &mut self.lists[usize::from(priority)];
        if first {
            list.push_front(thread);
        } else {
            list.push_back(thread);
        }
        self.summary |= 1 << priority;
    }

    /// Returns the highest priority of a ready thread.
    #[inline]
    pub(crate) fn best(&self) -> Option<u8> {
        self.summary.checked_ilog2().map(|priority| priority as u8)
    }

    /// Takes the first thread of the highest priority.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<ThreadId> {
        let priority = self.best()?;
        let list = &mut self.lists[usize::from(priority)];
        let thread = list.pop_front();
        if list.is_empty() {
            self.summary &= !(1 << priority);
        }
        thread
    }

    /// Removes `thread`, which waits at `priority`. Returns false if it is absent.
    pub(crate) fn remove(&mut self, thread: ThreadId, priority: u8) -> bool {
        let list = &mut self.lists[usize::from(priority)];
        let Some(at) = list.iter().position(|t| *t == thread) else {
            return false;
        };
        list.remove(at);
        if list.is_empty() {
            self.summary &= !(1 << priority);
        }
        true
    }

    /// Returns the threads, highest priority first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ThreadId> {
        self.lists.iter().rev().flatten().copied()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.summary == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_first_and_in_turn() {
        let mut queue = ReadyQueue::new();
        for (thread, priority, first) in
            [(1, 8, false), (2, 8, false), (3, 15, false), (4, 8, true)]
        {
            queue.push(thread, priority, first);
        }
        assert_eq!(queue.iter().collect::<Vec<_>>(), [3, 4, 1, 2]);
        assert!(queue.remove(1, 8) && !queue.remove(1, 8));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [3, 4, 2]);
        assert!(queue.is_empty() && queue.best().is_none());
    }
}
