//! The dispatcher: selects the threads that run on each processor.
//!
//! A thread of a scheduling group has a rank (see `group`). Ranks are compared first, and priorities only between equal
//! ranks. A thread that becomes ready takes an idle processor that it may use. If
//! no such processor is idle, the thread is compared only with the running thread of its ideal
//! processor: it preempts that thread or is queued. A processor that would become idle takes a
//! thread from any queue. (Source: Windows Internals, 7th edition, part 1, chapter 4;
//! `docs/scenarios.md` separates known rules from invented ones.)

use std::io::{Seek, Write};

use super::thread::{Process, Queue, State};
use super::{Due, GroupId, IDLE, Model, Readier, ThreadId, Turn, Turns};
use crate::scenario::WaitReason;
use crate::time::NEVER;

/// Sort key of threads: rank, then priority. Threads with smaller keys run first.
pub(crate) type Key = u16;

/// Key of the idle thread, greater than all others.
const IDLE_KEY: Key = Key::MAX;

/// Maximum number of ready threads that the starvation scan examines on each processor.
const SCANNED: usize = 16;
/// Maximum number of threads that one starvation scan boosts.
const BOOSTED: usize = 10;
const STARVATION_PRIORITY: u8 = 15;

/// Lowest real-time priority. A boost does not change a real-time priority, and it does not raise another
/// priority to real-time.
const REALTIME: u8 = 16;

impl<W: Write + Seek> Model<W> {
    #[inline]
    pub(crate) fn rank(&self, t: ThreadId) -> u8 {
        let group = self.processes[self.threads[t].process].group;
        group.map_or(0, |group| self.groups[group].rank)
    }

    #[inline]
    pub(crate) fn key(&self, t: ThreadId) -> Key {
        if t == IDLE {
            return IDLE_KEY;
        }
        key_of(self.rank(t), self.threads[t].priority)
    }

    /// Readies a thread that starts or whose wait ended. `boost` is the priority boost that its
    /// waker gives.
    pub(crate) fn ready(&mut self, t: ThreadId, boost: u8, by: Readier) {
        // The stack can be paged out only if the thread has run before.
        let thread = &mut self.threads[t];
        let paged_out = thread.switches > 0 && std::mem::take(&mut thread.stack_paged_out);
        if self.threads[t].watched {
            self.truth_waited(t, by);
        }
        self.boost(t, boost, by.cpu);
        self.log_ready(t, boost, paged_out, by);
        let thread = &mut self.threads[t];
        thread.ready_since = self.now;
        self.recorded_ready(t);
        if self.threads[t].watched {
            self.truth_ready(t);
        }
        if paged_out {
            self.threads[t].state = State::Transition;
            self.read_stack(by.cpu, t);
        } else {
            self.place(t, false, by.cpu);
        }
    }

    /// Raises a thread's priority after a wait by the waker's boost. If the process has the focus, also adds
    /// the foreground boost. A real-time priority is not changed, and a boosted priority stays below
    /// real-time.
    fn boost(&mut self, t: ThreadId, boost: u8, cpu: usize) {
        let separation = self.quantum.separation;
        let full = self.full_quantum(t);
        let thread = &mut self.threads[t];
        // At base priorities 14 and 15, a thread gets a full quantum instead of a boost.
        if thread.quantum <= 0 || (14..REALTIME).contains(&thread.base) {
            thread.quantum = full;
        }
        if thread.base >= 14 {
            return;
        }
        let foreground = if self.processes[thread.process].foreground {
            separation
        } else {
            0
        };
        let boosted = (thread.base + boost + foreground).min(STARVATION_PRIORITY);
        if boosted > thread.priority {
            thread.foreground_boost = foreground.min(boosted - thread.base);
            thread.unusual_boost = boosted - thread.base - thread.foreground_boost;
            self.set_priority(cpu, t, boosted);
        }
    }

    /// Returns the processor time of the full quantum of a thread, in ticks of the trace's clock.
    pub(crate) fn full_quantum(&self, t: ThreadId) -> i64 {
        self.turns
            .turn(&self.processes[self.threads[t].process])
            .ticks
    }

    /// Changes a thread's priority. The thread may be in any state.
    pub(crate) fn set_priority(&mut self, cpu: usize, t: ThreadId, priority: u8) {
        let old = self.threads[t].priority;
        if old == priority {
            return;
        }
        self.log_priority(cpu, t, old, priority);
        let queued = self.threads[t].state == State::Ready && self.unqueue(t);
        self.threads[t].priority = priority;
        if queued {
            self.place(t, false, cpu);
        }
    }

    /// Places a ready thread on an idle processor. If no processor is idle and the thread precedes the thread
    /// on its ideal processor, places it there. Otherwise, places it in a queue, at the front if `first` is
    /// true. `here` is the processor that executes this work.
    pub(crate) fn place(&mut self, t: ThreadId, first: bool, here: usize) {
        if let Some(c) = self.idle_processor(t, here) {
            return self.stand_by(c, t, here);
        }
        let ideal = self.ideal(t);
        let cpu = &self.cpus[ideal];
        let rival = cpu.standby.unwrap_or(cpu.thread);
        if !self.is_held(t) && self.key(t) < self.key(rival) {
            if let Some(displaced) = self.cpus[ideal].standby.take() {
                self.stand_by(ideal, t, here);
                return self.place(displaced, true, here);
            }
            return self.stand_by(ideal, t, here);
        }
        self.enqueue(t, first);
    }

    /// Returns the thread's ideal processor. If the thread's affinity excludes it, returns the
    /// first processor that the thread may use.
    fn ideal(&self, t: ThreadId) -> usize {
        let thread = &self.threads[t];
        if thread.affinity.contains(thread.ideal) {
            thread.ideal
        } else {
            thread.affinity.lowest().unwrap_or(0)
        }
    }

    /// Returns an idle processor for the thread. The order of preference is: the thread's ideal processor, the
    /// processor on which it ran last, the current processor (`here`), a processor on the node of the ideal processor
    /// (first those whose whole core is idle), any other processor.
    fn idle_processor(&self, t: ThreadId, here: usize) -> Option<usize> {
        let thread = &self.threads[t];
        let idle = self.idle.and(&thread.affinity);
        if idle.is_empty() || self.is_held(t) {
            return None;
        }
        let ideal = self.ideal(t);
        [ideal, thread.last_cpu, here]
            .into_iter()
            .find(|c| idle.contains(*c))
            .or_else(|| {
                let node = self.topology[ideal].node;
                let whole_core = |c: &usize| self.siblings[*c].is_within(&self.idle);
                let near = |c: &usize| self.topology[*c].node == node;
                idle.iter()
                    .find(|c| near(c) && whole_core(c))
                    .or_else(|| idle.iter().find(near))
                    .or_else(|| idle.lowest())
            })
    }

    /// Returns true if the cap of the thread's group prevents it from running.
    fn is_held(&self, t: ThreadId) -> bool {
        self.processes[self.threads[t].process]
            .group
            .is_some_and(|group| self.groups[group].is_capped())
    }

    pub(crate) fn stand_by(&mut self, c: usize, t: ThreadId, here: usize) {
        self.threads[t].state = State::Standby;
        self.threads[t].last_cpu = c;
        self.cpus[c].standby = Some(t);
        self.idle.remove(c);
        if c != here {
            self.poke(c);
        }
    }

    /// Queues a ready thread: in the queue of its scheduling group, in the queue that neighbouring
    /// processors share, or in the local queue of its ideal processor.
    fn enqueue(&mut self, t: ThreadId, first: bool) {
        let ideal = self.ideal(t);
        let thread = &self.threads[t];
        let queue = match self.processes[thread.process].group {
            Some(group) => Queue::Group(ideal, group),
            None => match self.shared_by[ideal] {
                Some(shared) if self.sharers[shared].is_within(&thread.affinity) => {
                    Queue::Shared(shared)
                }
                _ => Queue::Local(ideal),
            },
        };
        let priority = thread.priority;
        self.queue(queue).push(t, priority, first);
        let thread = &mut self.threads[t];
        thread.state = State::Ready;
        thread.queue = (queue, priority);
        self.ready_threads += 1;
    }

    fn queue(&mut self, queue: Queue) -> &mut super::ready_queue::ReadyQueue {
        match queue {
            Queue::Local(c) => &mut self.local[c],
            Queue::Shared(shared) => &mut self.shared[shared],
            Queue::Group(c, group) => &mut self.grouped[c][group],
        }
    }

    /// Removes a ready thread from its queue. Returns false if it is in no queue.
    fn unqueue(&mut self, t: ThreadId) -> bool {
        let (queue, priority) = self.threads[t].queue;
        let is_removed = self.queue(queue).remove(t, priority);
        self.ready_threads -= usize::from(is_removed);
        is_removed
    }

    /// Returns the key of the best thread in the processor's local, shared and group queues, and
    /// the queue that contains the thread.
    fn best(&self, c: usize) -> Option<(Key, Queue)> {
        let mut best: Option<(Key, Queue)> = None;
        let mut consider = |key: Option<Key>, queue: Queue| {
            if let Some(key) = key
                && best.is_none_or(|(other, _)| key < other)
            {
                best = Some((key, queue));
            }
        };
        let unranked = |queue: &super::ready_queue::ReadyQueue| queue.best().map(|p| key_of(0, p));
        consider(unranked(&self.local[c]), Queue::Local(c));
        if let Some(shared) = self.shared_by[c] {
            consider(unranked(&self.shared[shared]), Queue::Shared(shared));
        }
        for (group, queue) in self.grouped[c].iter().enumerate() {
            let state = &self.groups[group];
            if !state.is_capped() {
                let key = queue.best().map(|p| key_of(state.rank, p));
                consider(key, Queue::Group(c, group));
            }
        }
        best
    }

    fn take(&mut self, queue: Queue) -> Option<ThreadId> {
        let t = self.queue(queue).pop();
        self.ready_threads -= usize::from(t.is_some());
        t
    }

    /// Takes the best thread from the processor's local, shared and group queues. Returns `None` if the
    /// thread's key is greater than `key`.
    pub(crate) fn take_at_least(&mut self, c: usize, key: Key) -> Option<ThreadId> {
        let (best, queue) = self.best(c)?;
        (best <= key).then(|| self.take(queue)).flatten()
    }

    /// Returns the thread that the processor runs next. It is the standby thread or the best thread in the
    /// processor's queues. If there is neither, it is a thread from the queues of another processor, or the
    /// idle thread.
    pub(crate) fn select(&mut self, c: usize) -> ThreadId {
        if let Some(standby) = self.cpus[c].standby.take() {
            let key = self.key(standby);
            return match self.best(c) {
                Some((best, queue)) if best < key => match self.take(queue) {
                    Some(better) => {
                        self.place(standby, true, c);
                        better
                    }
                    None => standby,
                },
                _ => standby,
            };
        }
        if self.ready_threads == 0 {
            return IDLE;
        }
        match self.best(c) {
            Some((_, queue)) => self.take(queue).unwrap_or(IDLE),
            None => self.steal(c).unwrap_or(IDLE),
        }
    }

    /// Takes the best ready thread that may run on `c` from the queues of other processors. If several
    /// threads are equally good, takes the thread from the nearest processor.
    fn steal(&mut self, c: usize) -> Option<ThreadId> {
        let mut best: Option<(Key, ThreadId)> = None;
        for other in self.near[c].iter().map(|c| usize::from(*c)) {
            let queues = std::iter::once(&self.local[other])
                .chain(self.shared_by[other].map(|shared| &self.shared[shared]))
                .chain(&self.grouped[other]);
            for queue in queues.filter(|queue| !queue.is_empty()) {
                let fits = queue
                    .iter()
                    .find(|t| self.threads[*t].affinity.contains(c) && !self.is_held(*t));
                if let Some(t) = fits {
                    let key = self.key(t);
                    if best.is_none_or(|(other, _)| key < other) {
                        best = Some((key, t));
                    }
                }
            }
        }
        let (_, t) = best?;
        self.unqueue(t).then_some(t)
    }

    /// Switches to `next`. If `next` is `None`, switches to the thread that `select` returns. The caller has
    /// already set the state of the old thread.
    pub(crate) fn switch(&mut self, c: usize, next: Option<ThreadId>, reason: WaitReason) {
        let old = self.cpus[c].thread;
        let new = next.unwrap_or_else(|| self.select(c));
        let cpu = &mut self.cpus[c];
        cpu.thread = new;
        cpu.slice_end = match self.short_slice {
            Some(slice) if new != IDLE => self.now + slice,
            _ => NEVER,
        };
        if new == IDLE {
            self.idle.insert(c);
        } else {
            self.idle.remove(c);
            let thread = &mut self.threads[new];
            thread.state = State::Running;
            thread.last_cpu = c;
            thread.switches += 1;
        }
        self.log_switch(c, new, old, reason);
        self.recorded_ran(new);
        if new != IDLE && self.threads[new].watched {
            self.truth_ran(new);
        }
        if let Some(group) = self.processes[self.threads[old].process].group {
            self.look_after(group);
        }
    }

    /// Switches to `next`. The old thread stays ready and is placed again.
    pub(crate) fn switch_out_ready(
        &mut self,
        c: usize,
        next: ThreadId,
        reason: WaitReason,
        first: bool,
    ) {
        let old = self.cpus[c].thread;
        if old == IDLE {
            return self.switch(c, Some(next), reason);
        }
        let thread = &mut self.threads[old];
        thread.state = State::Ready;
        thread.ready_since = self.now;
        thread.waiting_since = self.now;
        if thread.watched {
            self.truth_ready(old);
        }
        self.switch(c, Some(next), reason);
        self.place(old, first, c);
    }

    /// Replaces the processor's thread and its standby thread by the idle thread, and puts both threads into queues.
    pub(crate) fn go_idle(&mut self, c: usize) {
        let standby = self.cpus[c].standby.take();
        let old = self.cpus[c].thread;
        if old != IDLE {
            let thread = &mut self.threads[old];
            thread.ready_since = self.now;
            thread.waiting_since = self.now;
            if thread.watched {
                self.truth_ready(old);
            }
            self.threads[old].state = State::Ready;
            self.switch(c, Some(IDLE), WaitReason::WrPreempted);
        }
        // If the processor ran the idle thread and had a standby thread, `stand_by` has removed the processor from
        // the idle processors.
        self.idle.insert(c);
        for t in [Some(old).filter(|t| *t != IDLE), standby]
            .into_iter()
            .flatten()
        {
            self.enqueue(t, true);
        }
    }

    /// Preempts the running thread in favour of `next`.
    pub(crate) fn preempt(&mut self, c: usize, next: ThreadId) {
        let old = self.cpus[c].thread;
        if old != IDLE && self.threads[old].base >= REALTIME {
            self.threads[old].quantum = self.full_quantum(old);
        }
        self.switch_out_ready(c, next, WaitReason::WrPreempted, true);
    }

    /// Ends the running thread's quantum. The thread gets a new quantum and loses one level of its boost. It then
    /// yields to the best ready thread of the processor's queues, if the key of that thread is not greater.
    pub(crate) fn end_quantum(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        self.threads[t].quantum = self.full_quantum(t);
        let thread = &mut self.threads[t];
        if thread.base < REALTIME && thread.priority > thread.base {
            // A starvation boost ends completely. Other boosts lose one level.
            let boost = thread.priority - thread.base;
            let starved = thread.foreground_boost + thread.unusual_boost < boost;
            let left = if starved { 0 } else { boost - 1 };
            thread.unusual_boost = left.saturating_sub(thread.foreground_boost);
            thread.foreground_boost = left - thread.unusual_boost;
            let priority = thread.base + left;
            self.set_priority(c, t, priority);
        }
        match self.take_at_least(c, self.key(t)) {
            Some(next) => self.switch_out_ready(c, next, WaitReason::WrQuantumEnd, false),
            None => {
                if let Some(slice) = self.short_slice {
                    self.cpus[c].slice_end = self.now + slice;
                }
            }
        }
    }

    /// Ends the thread's short time slice. Only current builds of Windows have this time slice. The thread keeps the
    /// rest of its quantum. It yields to the best ready thread of the processor's queues, if the key of that thread is
    /// not greater. Otherwise, a new time slice starts.
    pub(crate) fn end_slice(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        match self.take_at_least(c, self.key(t)) {
            Some(next) => self.switch_out_ready(c, next, WaitReason::WrQuantumEnd, false),
            None => {
                let slice = self.short_slice.unwrap_or(NEVER - self.now);
                self.cpus[c].slice_end = self.now + slice;
            }
        }
    }

    /// Returns the processors that run threads of a scheduling group.
    pub(crate) fn users_of(&self, group: GroupId) -> impl Iterator<Item = usize> {
        let group_of = |t: ThreadId| self.processes[self.threads[t].process].group;
        (0..self.cpus.len()).filter(move |c| group_of(self.cpus[*c].thread) == Some(group))
    }

    /// Updates the used time and the rank of a group. Returns true if the group's running threads
    /// must be checked again.
    pub(crate) fn group_changed(&mut self, group: GroupId) -> bool {
        for c in 0..self.cpus.len() {
            let process = self.threads[self.cpus[c].thread].process;
            if self.processes[process].group == Some(group) {
                self.advance(c);
            }
        }
        let group = &mut self.groups[group];
        group.update() || group.is_capped()
    }

    /// Computes again when the processors that run threads of a group need attention. This function is called after a
    /// thread of the group stopped. Fewer threads now use the remaining time of the group, so this time lasts longer.
    /// The processor of the stopped thread no longer checks the remaining time, so the other processors must check it.
    fn look_after(&mut self, group: GroupId) {
        let users: Vec<usize> = self.users_of(group).collect();
        for c in users {
            self.advance(c);
            self.schedule(c);
        }
    }

    /// Reacts to a change of the running thread's group: the group has another rank, or it has reached its
    /// cap.
    pub(crate) fn rank_changed(&mut self, c: usize, group: GroupId) {
        let t = self.cpus[c].thread;
        if self.groups[group].is_capped() {
            self.groups[group].held.push(t);
            self.block(c, WaitReason::WrCpuRateControl);
        } else {
            self.yield_to_better(c);
        }
        // Other processors must be checked too, because they may run or queue threads of the group.
        self.agenda.push(self.now, Due::Ranks);
    }

    /// Yields to a better thread in the queues. Called after the rank or the priority of the running thread
    /// became worse.
    pub(crate) fn yield_to_better(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        if let Some(next) = self.take_at_least(c, self.key(t).saturating_sub(1)) {
            self.switch_out_ready(c, next, WaitReason::WrPreempted, true);
        }
    }

    /// Starts a new generation of the scheduling groups. Their used time becomes zero, and the
    /// threads that a cap held back become ready.
    pub(crate) fn new_generation(&mut self) {
        let running: Vec<usize> = (0..self.cpus.len()).collect();
        for c in running {
            self.advance(c);
        }
        for group in 0..self.groups.len() {
            self.groups[group].used = 0;
            self.groups[group].update();
            for t in std::mem::take(&mut self.groups[group].held) {
                let by = self.readier(self.threads[t].last_cpu);
                self.ready(t, 0, by);
            }
        }
        self.compare_all();
    }

    /// Checks all processors. Called after ranks changed, because queues may now contain better threads than
    /// the running threads.
    pub(crate) fn compare_all(&mut self) {
        for c in 0..self.cpus.len() {
            let cpu = &self.cpus[c];
            let runs = cpu.standby.unwrap_or(cpu.thread);
            let key = self.key(runs);
            if let Some(next) = self.take_at_least(c, key.saturating_sub(1)) {
                if let Some(displaced) = self.cpus[c].standby.take() {
                    self.stand_by(c, next, c);
                    self.place(displaced, true, c);
                } else {
                    self.stand_by(c, next, c);
                }
            }
            self.advance(c);
            if self.cpus[c].standby.is_some() {
                self.wake(c);
            }
            self.settle(c);
        }
    }

    /// Boosts threads that have been ready for a long time to priority 15, the highest below
    /// real-time, for a short quantum. Runs once a second.
    pub(crate) fn scan_for_starving(&mut self) {
        let mut boosted = 0;
        for c in 0..self.cpus.len() {
            let shared =
                self.shared_by[c].filter(|shared| self.sharers[*shared].lowest() == Some(c));
            let groups: &[_] = if self.scheduler.starvation_scans_groups {
                &self.grouped[c]
            } else {
                &[]
            };
            let starving: Vec<ThreadId> = std::iter::once(&self.local[c])
                .chain(shared.map(|shared| &self.shared[shared]))
                .chain(groups)
                .flat_map(super::ready_queue::ReadyQueue::iter)
                .take(SCANNED)
                .filter(|t| {
                    let thread = &self.threads[*t];
                    (1..STARVATION_PRIORITY).contains(&thread.priority)
                        && self.now - thread.ready_since >= self.starvation_wait
                })
                .collect();
            for t in starving {
                if boosted == BOOSTED {
                    return;
                }
                boosted += 1;
                self.log_starvation_boost(c, t);
                self.threads[t].quantum = self.starvation_quantum;
                self.set_priority(c, t, STARVATION_PRIORITY);
                self.poke(self.threads[t].last_cpu);
            }
        }
    }

    /// Stops the processor's thread because its process is frozen.
    pub(crate) fn suspend(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        self.threads[t].suspended = true;
        self.block(c, WaitReason::Suspended);
    }
}

impl Turns {
    /// Returns the quantum of a process's threads.
    pub(crate) fn turn(&self, process: &Process) -> Turn {
        if process.is_idle_class {
            self.idle
        } else if process.foreground {
            self.foreground
        } else {
            self.background
        }
    }
}

fn key_of(rank: u8, priority: u8) -> Key {
    Key::from(rank) << 5 | Key::from(31 - priority)
}
