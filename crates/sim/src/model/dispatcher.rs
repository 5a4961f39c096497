//! The dispatcher: which thread runs where.
//!
//! Rank goes before priority. A thread that becomes ready takes an idle processor if it may use
//! one; else it is compared with what its ideal processor runs, and only with that; else it queues.
//! A processor that would fall idle takes a thread from any queue. (Windows Internals, 7th edition,
//! part 1, chapter 4; `docs/scenarios.md` says what is known and what is ours.)

use std::io::{Seek, Write};

use super::thread::{Process, Queue, State};
use super::{Due, GroupId, IDLE, Model, Readier, ThreadId, Turn, Turns};
use crate::scenario::WaitReason;
use crate::time::NEVER;

/// The order in which threads run: rank, then priority. Smaller runs first.
pub(crate) type Key = u16;

/// After everything else.
const IDLE_KEY: Key = Key::MAX;

/// Threads of a processor that the scan for starving ones looks at, and boosts.
const SCANNED: usize = 16;
const BOOSTED: usize = 10;
const STARVATION_PRIORITY: u8 = 15;

/// First priority that no boost leads to or from.
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

    /// Makes a thread ready whose wait ended (or that begins), with the boost that its waker gives.
    pub(crate) fn ready(&mut self, t: ThreadId, boost: u8, by: Readier) {
        // It was paged out while the thread waited; one that begins has not.
        let thread = &mut self.threads[t];
        let paged_out = thread.switches > 0 && std::mem::take(&mut thread.stack_paged_out);
        if self.threads[t].watched {
            self.truth_waited(t, by);
        }
        self.boost(t, boost, by.cpu);
        self.log_ready(t, boost, paged_out, by);
        let thread = &mut self.threads[t];
        thread.ready_since = self.now;
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

    /// Raises the priority after a wait: by what ended it, and more in the foreground. Never into
    /// or within the real-time priorities.
    fn boost(&mut self, t: ThreadId, boost: u8, cpu: usize) {
        let separation = self.quantum.separation;
        let full = self.full_quantum(t);
        let thread = &mut self.threads[t];
        // From 14 on, a fresh quantum is given instead of a boost.
        if thread.quantum <= 0 || (14..REALTIME).contains(&thread.base) {
            thread.quantum = full;
        }
        if thread.base >= 14 {
            return;
        }
        let foreground = match self.processes[thread.process].foreground {
            true => separation,
            false => 0,
        };
        let boosted = (thread.base + boost + foreground).min(STARVATION_PRIORITY);
        if boosted > thread.priority {
            thread.foreground_boost = foreground.min(boosted - thread.base);
            thread.unusual_boost = boosted - thread.base - thread.foreground_boost;
            self.set_priority(cpu, t, boosted);
        }
    }

    /// A thread's quantum, in ticks of processor time.
    pub(crate) fn full_quantum(&self, t: ThreadId) -> i64 {
        self.turns
            .of(&self.processes[self.threads[t].process])
            .ticks
    }

    /// Changes a thread's priority, wherever it is.
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

    /// Finds a ready thread its place: an idle processor, its ideal one if it goes before what
    /// runs there, or a queue.
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

    /// The ideal processor, or the first that the thread may use.
    fn ideal(&self, t: ThreadId) -> usize {
        let thread = &self.threads[t];
        if thread.affinity.contains(thread.ideal) {
            thread.ideal
        } else {
            thread.affinity.lowest().unwrap_or(0)
        }
    }

    /// An idle processor for the thread: its ideal one, its last, this one, then one nearby.
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

    /// Whether its group's cap keeps the thread from running.
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

    /// Queues a ready thread: at a group's queue, the one that neighbours share, or its own
    /// processor's.
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

    /// Takes a ready thread out of its queue; false if it is in none.
    fn unqueue(&mut self, t: ThreadId) -> bool {
        let (queue, priority) = self.threads[t].queue;
        let found = self.queue(queue).remove(t, priority);
        self.ready_threads -= usize::from(found);
        found
    }

    /// The best of the processor's own queues.
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

    /// Takes a thread from the processor's own queues if one goes before `key` or level with it.
    pub(crate) fn take_at_least(&mut self, c: usize, key: Key) -> Option<ThreadId> {
        let (best, queue) = self.best(c)?;
        (best <= key).then(|| self.take(queue)).flatten()
    }

    /// The thread that the processor runs next: the one that stands by, the best of its queues,
    /// any that may run here, or none.
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

    /// Takes the best ready thread of other processors' queues that may run here, nearest first.
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

    /// Switches to `next`, or to whichever thread is due. The old thread's state is set already.
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
        if new != IDLE && self.threads[new].watched {
            self.truth_ran(new);
        }
        if let Some(group) = self.processes[self.threads[old].process].group {
            self.look_after(group);
        }
    }

    /// The processor's thread stops although it could go on: it is ready again.
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

    /// The processor's thread, and the one that stands by, make room for the idle thread.
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
        // It was not, if it idled and a thread stood by.
        self.idle.insert(c);
        for t in [Some(old).filter(|t| *t != IDLE), standby]
            .into_iter()
            .flatten()
        {
            self.enqueue(t, true);
        }
    }

    /// `next` goes before what runs.
    pub(crate) fn preempt(&mut self, c: usize, next: ThreadId) {
        let old = self.cpus[c].thread;
        if old != IDLE && self.threads[old].base >= REALTIME {
            self.threads[old].quantum = self.full_quantum(old);
        }
        self.switch_out_ready(c, next, WaitReason::WrPreempted, true);
    }

    /// A thread has used its quantum: it loses a level of its boost and makes room for an equal.
    pub(crate) fn end_quantum(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        self.threads[t].quantum = self.full_quantum(t);
        let thread = &mut self.threads[t];
        if thread.base < REALTIME && thread.priority > thread.base {
            // What the scan for starving threads gave goes at once, other boosts level by level.
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

    /// A thread has run for the short slice of current builds: it makes room for an equal, with
    /// the rest of its quantum left.
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

    /// The processors that run threads of a group.
    pub(crate) fn users_of(&self, group: GroupId) -> impl Iterator<Item = usize> {
        let of = |t: ThreadId| self.processes[self.threads[t].process].group;
        (0..self.cpus.len()).filter(move |c| of(self.cpus[*c].thread) == Some(group))
    }

    /// Brings a group's use and rank up to date: whether what runs of it is to be looked at again.
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

    /// A thread of a group stopped: the processors that run others of it have more time until its
    /// rank changes, or were left to look after it.
    fn look_after(&mut self, group: GroupId) {
        let users: Vec<usize> = self.users_of(group).collect();
        for c in users {
            self.advance(c);
            self.schedule(c);
        }
    }

    /// The rank of the running thread's group changed, or its cap is reached.
    pub(crate) fn rank_changed(&mut self, c: usize, group: GroupId) {
        let t = self.cpus[c].thread;
        if self.groups[group].is_capped() {
            self.groups[group].held.push(t);
            self.block(c, WaitReason::WrCpuRateControl);
        } else {
            self.yield_to_better(c);
        }
        // Other processors may run or queue threads of the group too.
        self.agenda.push(self.now, Due::Ranks);
    }

    /// What runs may no longer be what goes first: the rank or priority has changed for the worse.
    pub(crate) fn yield_to_better(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        if let Some(next) = self.take_at_least(c, self.key(t).saturating_sub(1)) {
            self.switch_out_ready(c, next, WaitReason::WrPreempted, true);
        }
    }

    /// A generation is over: the groups' use starts at zero again.
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

    /// Ranks have changed: any processor may have a better thread in its queues now.
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

    /// Once a second: threads that have been ready for very long get the highest priority that is
    /// not real-time, for a short quantum.
    pub(crate) fn scan_for_starving(&mut self) {
        let mut boosted = 0;
        for c in 0..self.cpus.len() {
            let shared =
                self.shared_by[c].filter(|shared| self.sharers[*shared].lowest() == Some(c));
            let groups: &[_] = match self.scheduler.starvation_scans_groups {
                true => &self.grouped[c],
                false => &[],
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

    /// A frozen process's thread stops.
    pub(crate) fn suspend(&mut self, c: usize) {
        let t = self.cpus[c].thread;
        self.threads[t].suspended = true;
        self.block(c, WaitReason::Suspended);
    }
}

impl Turns {
    /// The quantum of a process's threads.
    pub(crate) fn of(&self, process: &Process) -> Turn {
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
