//! Threads that repeat recorded steps, and the interrupts that were recorded with them.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{Seek, Write};
use std::ops::Range;
use std::sync::Arc;

use super::build::SYSTEM;
use super::interrupt::{Kind, Then, Work};
use super::thread::State;
use super::{Due, IDLE, Model, ProcessId, Readier, RunError, ThreadId};
use crate::replay::{
    Change, Part, PartKind, ProcessorUse, ReplayResult, Step, Wait, Wake, Workload,
};
use crate::scenario::WaitReason;
use crate::time::{NEVER, Time};

/// Index of the first recorded process. The Idle and System processes of the model precede it.
pub(crate) const FIRST_PROCESS: ProcessId = SYSTEM + 1;
/// Index of the first recorded thread. The idle thread precedes it.
pub(crate) const FIRST_THREAD: ThreadId = IDLE + 1;

/// Minimum limit of the work of a replay, in events and steps.
const MOST_WORK: u64 = 1 << 27;
/// Minimum limit of the number of waits that ended before they began.
const MOST_EARLY: usize = 1 << 16;

/// State of the replay of recorded work. It is empty if the model runs a scenario.
#[derive(Debug, Default)]
pub(crate) struct ReplayState {
    pub(crate) workload: Arc<Workload>,
    /// Start and index of the interrupts that have a start, sorted by start.
    pub(crate) order: Vec<(Time, u32)>,
    pub(crate) next_interrupt: usize,
    pub(crate) next_moment: usize,
    pub(crate) threads: Vec<Progress>,
    /// Times at which the disks have served all requests.
    pub(crate) disks: Vec<Time>,
    /// For each interrupt that a disk request causes: the repetition in which the thread made the request.
    pub(crate) laps: Vec<u64>,
    /// Scheduling group of each process.
    pub(crate) groups: Vec<Option<usize>>,
    pub(crate) measured: Range<Time>,
    /// True if waits for interrupts last as long as recorded.
    pub(crate) closed: bool,
    /// Work that the replay may still do, in events and steps. `None` means that there is no limit.
    work_left: Option<u64>,
    /// Number of waits of all threads that ended before they began.
    early: usize,
    /// Maximum of `early`.
    most_early: usize,
}

/// Progress of a recorded thread.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    next: usize,
    /// Number of waits that began.
    waits: u64,
    /// Number of waits in one repetition of the steps.
    waits_of_lap: u64,
    /// Number of times that the steps began again.
    laps: u64,
    /// Numbers of waits that were ended before they began.
    early: BTreeSet<u64>,
    /// End of the last wait, until the next wait begins.
    readied: Option<Time>,
    /// Processor time before the measured time.
    unmeasured: Time,
    used: ProcessorUse,
}

impl ReplayState {
    pub(crate) fn new(
        workload: &Arc<Workload>,
        order: Vec<(Time, u32)>,
        measured: Range<Time>,
        groups: Vec<Option<usize>>,
    ) -> ReplayState {
        let disks = workload.requests.iter().map(|request| request.disk + 1);
        let steps = workload.threads.iter().map(|thread| thread.steps.len());
        let parts = workload
            .interrupts
            .iter()
            .flat_map(|interrupt| &interrupt.parts);
        let items = steps.sum::<usize>() + parts.map(|part| 1 + part.wakes.len()).sum::<usize>();
        ReplayState {
            order,
            next_interrupt: 0,
            next_moment: 0,
            threads: (workload.threads.iter())
                .map(|thread| Progress {
                    waits_of_lap: (thread.steps.iter())
                        // The wait in which the thread was at the start does not repeat.
                        .skip(thread.first_repeated())
                        .filter(|step| matches!(step, Step::Wait(_)))
                        .count() as u64,
                    ..Progress::default()
                })
                .collect(),
            disks: vec![0; disks.max().unwrap_or(0) as usize],
            laps: vec![0; workload.interrupts.len()],
            groups,
            measured,
            closed: false,
            work_left: Some(MOST_WORK + 64 * items as u64),
            early: 0,
            most_early: MOST_EARLY + 4 * items,
            workload: Arc::clone(workload),
        }
    }
}

impl<W: Write + Seek> Model<W> {
    /// Runs recorded work to its end.
    pub(crate) fn replay(
        mut self,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<ReplayResult, RunError> {
        self.begin_recorded();
        self.run_to_end(go_on)?;
        let measured = self.recorded.measured.clone();
        if measured.end >= self.end {
            self.measure();
        }
        Ok(ReplayResult {
            threads: (self.recorded.threads.into_iter())
                .map(|progress| progress.used)
                .collect(),
        })
    }

    fn begin_recorded(&mut self) {
        let workload = Arc::clone(&self.recorded.workload);
        for (n, thread) in workload.threads.iter().enumerate() {
            if thread.starts_ns.is_none() {
                // The thread is in the middle of its first step, which is a wait.
                let progress = &mut self.recorded.threads[n];
                (progress.next, progress.waits) = (1, 1);
                self.threads[FIRST_THREAD + n].state = State::Waiting;
            }
        }
        if let Some((at, _)) = self.recorded.order.first() {
            self.agenda.push(*at, Due::Recorded);
        }
        if let Some(moment) = workload.moments.first() {
            self.agenda.push(self.base.ticks(moment.at_ns), Due::Moment);
        }
        let Range { start, end } = self.recorded.measured;
        for at in [start, end] {
            if at > 0 && at < self.end {
                self.agenda.push(at, Due::Measure);
            }
        }
    }

    /// Executes steps of a recorded thread until a step needs processor time or waits. Returns true if the thread
    /// can execute its next step at once.
    pub(crate) fn recorded_steps(&mut self, c: usize) -> bool {
        let t = self.cpus[c].thread;
        self.threads[t].next = 0;
        let n = t - FIRST_THREAD;
        let workload = Arc::clone(&self.recorded.workload);
        let thread = &workload.threads[n];
        loop {
            let progress = &mut self.recorded.threads[n];
            let Some(step) = thread.steps.get(progress.next) else {
                let needs_time = |step: &Step| matches!(step, Step::Run(ns) if *ns > 0);
                if !thread.repeats || !thread.steps.iter().any(needs_time) {
                    // Nothing more was recorded.
                    self.recorded_pause(t);
                    return self.block(c, WaitReason::UserRequest);
                }
                progress.next = thread.first_repeated();
                progress.laps += 1;
                self.spend(thread.steps.len());
                continue;
            };
            progress.next += 1;
            match step {
                Step::Run(0) => {}
                Step::Run(ns) => {
                    self.threads[t].burst = self.base.ticks(*ns).max(1);
                    return false;
                }
                Step::Wake(wake) => {
                    let lap = progress.laps;
                    let by = self.readier(c);
                    self.recorded_wake(*wake, lap, by);
                }
                Step::Base(priority) => {
                    if !self.set_base_priority(c, *priority) {
                        return false;
                    }
                }
                Step::Wait(wait) => {
                    let number = progress.waits;
                    progress.waits += 1;
                    if !progress.early.is_empty() && progress.early.remove(&number) {
                        self.recorded.early -= 1;
                        continue;
                    }
                    return self.recorded_wait(c, *wait);
                }
                Step::Exit => {
                    self.recorded_pause(t);
                    self.threads[t].state = State::Terminated;
                    self.switch(c, None, WaitReason::WrTerminated);
                    return false;
                }
            }
        }
    }

    fn recorded_wait(&mut self, c: usize, wait: Wait) -> bool {
        let t = self.cpus[c].thread;
        match wait {
            Wait::Event(ns) if self.recorded.closed => self.recorded_lasts(t, ns),
            Wait::Wake | Wait::Event(_) => {}
            Wait::Sleep(ns) => self.set_timer(t, self.base.ticks(ns)),
            Wait::After(ns) => self.recorded_lasts(t, ns),
            Wait::Disk(request) => {
                let disk_request = self.recorded.workload.requests[request as usize];
                let lap = self.recorded.threads[t - FIRST_THREAD].laps;
                self.recorded.laps[disk_request.interrupt as usize] = lap;
                let free = &mut self.recorded.disks[disk_request.disk as usize];
                *free = ((*free).max(self.now))
                    .saturating_add(self.base.ticks(disk_request.service_ns));
                let done = (*free).max(self.now + 1);
                self.agenda
                    .push(done, Due::Requested(disk_request.interrupt));
            }
        }
        self.recorded_pause(t);
        self.block(c, WaitReason::UserRequest)
    }

    /// Schedules the end of a wait that lasts for a fixed time.
    fn recorded_lasts(&mut self, t: ThreadId, ns: u64) {
        let number = self.threads[t].wait;
        let at = self.now + self.base.ticks(ns).max(1);
        self.agenda.push(at, Due::After(t, number));
    }

    /// Ends a wait of a recorded thread. If the wait has not begun, it will take no time. If it has already ended, the
    /// wake has no effect.
    fn recorded_wake(&mut self, wake: Wake, lap: u64, by: Readier) {
        let n = wake.thread as usize;
        let recorded = &self.recorded.workload.threads[n];
        // The wait in which the thread was at the start does not repeat, and `first_repeated` is 1 for this thread.
        if lap > 0 && (!recorded.repeats || (wake.wait as usize) < recorded.first_repeated()) {
            return;
        }
        let progress = &mut self.recorded.threads[n];
        let number = u64::from(wake.wait) + lap * progress.waits_of_lap;
        let t = FIRST_THREAD + n;
        let thread = &self.threads[t];
        if number >= progress.waits {
            self.recorded.early += usize::from(progress.early.insert(number));
            let most = self.recorded.most_early;
            if self.recorded.early > most {
                self.stop_with(format!(
                    "more than {most} waits ended before they began: threads run far ahead of the threads that they \
                     wake; replay a shorter time range, or with smaller changes"
                ));
            }
        } else if number + 1 == progress.waits
            && thread.state == State::Waiting
            && !thread.suspended
        {
            self.end_wait(t, wake.boost, by);
        }
    }

    /// Starts the recorded interrupt that is due, and schedules the next one.
    pub(crate) fn recorded_interrupt(&mut self) {
        let at = self.recorded.next_interrupt;
        self.recorded.next_interrupt += 1;
        if let Some((next, _)) = self.recorded.order.get(at + 1) {
            self.agenda.push(*next, Due::Recorded);
        }
        if let Some((_, interrupt)) = self.recorded.order.get(at) {
            self.recorded_parts(*interrupt);
        }
    }

    /// Starts a recorded interrupt: performs its parts until a part takes time. A part that takes no time only wakes
    /// threads.
    pub(crate) fn recorded_parts(&mut self, interrupt: u32) {
        let workload = Arc::clone(&self.recorded.workload);
        let recorded = &workload.interrupts[interrupt as usize];
        let c = usize::from(recorded.cpu);
        let by = Readier {
            cpu: c,
            in_dpc: true,
            body: self.clock_body,
        };
        for (part, now) in (0..).zip(&recorded.parts) {
            self.advance(c);
            self.wake(c);
            if now.ns > 0 {
                // At the recorded start of a routine, the processor has already woken.
                self.cpus[c].awake_at = self.now;
                let work = self.recorded_work(interrupt, part, now);
                return self.interrupt(c, work);
            }
            self.recorded_wakes(interrupt, part, by);
            self.settle(c);
            self.attend(c);
        }
    }

    /// Returns the execution of a part of a recorded interrupt.
    fn recorded_work(&self, interrupt: u32, part: u32, recorded_part: &Part) -> Work {
        let kind = match recorded_part.kind {
            PartKind::Dpc => Kind::Dpc,
            PartKind::Isr(vector) => Kind::MessageIsr(vector, 0),
        };
        let then = Then::Recorded(interrupt, part);
        Work::new(
            kind,
            0,
            self.clock_body,
            self.base.ticks(recorded_part.ns),
            then,
        )
    }

    /// Ends a part of a recorded interrupt: wakes threads, and continues with the next part.
    pub(crate) fn recorded_part_ends(&mut self, interrupt: u32, part: u32, by: Readier) {
        self.recorded_wakes(interrupt, part, by);
        let workload = Arc::clone(&self.recorded.workload);
        let recorded = &workload.interrupts[interrupt as usize];
        let Some(next) = recorded.parts.get(part as usize + 1) else {
            return;
        };
        let work = self.recorded_work(interrupt, part + 1, next);
        // The caller, `settle`, starts the work that is pending.
        let pending = &mut self.cpus[by.cpu].pending;
        let at = pending.partition_point(|other| other.level > work.level);
        pending.insert(at, work);
    }

    fn recorded_wakes(&mut self, interrupt: u32, part: u32, by: Readier) {
        let workload = Arc::clone(&self.recorded.workload);
        let lap = self.recorded.laps[interrupt as usize];
        let recorded = &workload.interrupts[interrupt as usize];
        let wakes = &recorded.parts[part as usize].wakes;
        self.spend(1 + wakes.len());
        for wake in wakes {
            let is_first =
                wake.wait == 0 && workload.threads[wake.thread as usize].starts_ns.is_none();
            if !self.recorded.closed || recorded.at_ns.is_none() || is_first {
                self.recorded_wake(*wake, lap, by);
            }
        }
    }

    /// Ends a wait that lasts for a fixed time.
    pub(crate) fn recorded_after(&mut self, t: ThreadId, wait: u32) {
        if self.threads[t].wait != wait {
            return;
        }
        let c = self.threads[t].last_cpu;
        self.advance(c);
        let by = Readier {
            cpu: c,
            in_dpc: true,
            body: self.clock_body,
        };
        self.end_wait(t, 0, by);
        self.wake(c);
        self.settle(c);
        self.attend(c);
    }

    /// Performs the change of the machine that is due, and schedules the next one.
    pub(crate) fn recorded_moment(&mut self) {
        let workload = Arc::clone(&self.recorded.workload);
        let at = self.recorded.next_moment;
        self.recorded.next_moment += 1;
        if let Some(next) = workload.moments.get(at + 1) {
            self.agenda.push(self.base.ticks(next.at_ns), Due::Moment);
        }
        let Some(moment) = workload.moments.get(at) else {
            return;
        };
        let process = |index: u32| FIRST_PROCESS + index as usize;
        match moment.change {
            Change::Focus(of) => self.focus(0, of.map_or(SYSTEM, process)),
            Change::Freeze(of) => self.freeze(0, process(of)),
            Change::Thaw(of) => {
                self.thaw(0, process(of));
                for c in 0..self.cpus.len() {
                    self.advance(c);
                    self.wake(c);
                    self.settle(c);
                    self.attend(c);
                }
            }
            Change::Rank(of, rank) => {
                if let Some(group) = self.recorded.groups[of as usize] {
                    self.groups[group].bias = rank;
                    if self.groups[group].update() {
                        self.agenda.push(self.now, Due::Ranks);
                    }
                }
            }
            Change::Resolution(of, period) => {
                let id = self.processes[process(of)].id;
                self.clock.request(self.now, id, period);
            }
            Change::Suspend(ns) => self.suspend_machine(0, self.base.ticks(ns)),
        }
    }

    /// Records the end of a wait of a recorded thread. The start of a thread ends no wait. A freeze does not end the
    /// response to the wait before it.
    #[inline]
    pub(crate) fn recorded_ready(&mut self, t: ThreadId) {
        if let Some(progress) = self.recorded.threads.get_mut(t.wrapping_sub(FIRST_THREAD))
            && progress.waits > 0
        {
            progress.readied = progress.readied.or(Some(self.now));
        }
    }

    /// Records that a recorded thread begins to run, and the time for which it was ready. The recording does not have
    /// this time for the first run of a thread that did not wait before.
    #[inline]
    pub(crate) fn recorded_ran(&mut self, t: ThreadId) {
        let n = t.wrapping_sub(FIRST_THREAD);
        let Some(progress) = self.recorded.threads.get_mut(n) else {
            return;
        };
        let is_known =
            self.threads[t].switches > 1 || self.recorded.workload.threads[n].starts_ns.is_none();
        if is_known && self.recorded.measured.contains(&self.now) {
            let since = self.threads[t].ready_since;
            (progress.used.ready_ns).push(self.base.ns_between(since, self.now));
        }
    }

    /// Records that a recorded thread waits or ends. This completes its response to the last wake.
    fn recorded_pause(&mut self, t: ThreadId) {
        let progress = &mut self.recorded.threads[t - FIRST_THREAD];
        if let Some(since) = progress.readied.take()
            && self.recorded.measured.contains(&self.now)
        {
            (progress.used.response_ns).push(self.base.ns_between(since, self.now));
        }
    }

    /// Begins or ends the measurement. At its end, open waits for a processor and open responses count up to now.
    pub(crate) fn measure(&mut self) {
        for c in 0..self.cpus.len() {
            self.advance(c);
        }
        let ends = self.now >= self.recorded.measured.end || self.now >= self.end;
        let (now, base) = (self.now, self.base);
        let until_now = |since: Time| (since < now).then(|| base.ns_between(since, now));
        for (n, progress) in self.recorded.threads.iter_mut().enumerate() {
            let thread = &self.threads[FIRST_THREAD + n];
            if !ends {
                progress.unmeasured = thread.cpu_time;
                continue;
            }
            let used = &mut progress.used;
            used.cpu_ns = base.ns(thread.cpu_time - progress.unmeasured);
            if matches!(thread.state, State::Ready | State::Standby) {
                used.ready_ns.extend(until_now(thread.ready_since));
            }
            (used.response_ns).extend(progress.readied.and_then(until_now));
        }
    }

    /// Counts work of a replay. Stops the model if the work exceeds the limit, because a small workload can repeat its
    /// steps for hours.
    pub(crate) fn spend(&mut self, work: usize) {
        let Some(left) = &mut self.recorded.work_left else {
            return;
        };
        *left = left.saturating_sub(work as u64);
        if *left == 0 {
            self.stop_with(
                "threads and interrupts repeat much more work than was recorded; replay a shorter time range, or with \
                 smaller changes"
                    .to_owned(),
            );
        }
    }

    /// Makes a processor look for work as soon as it has woken.
    fn attend(&mut self, c: usize) {
        let awake_at = self.cpus[c].awake_at;
        if self.now < awake_at && awake_at != NEVER {
            self.agenda.push(awake_at, Due::Poke(c as u16));
        }
    }
}
