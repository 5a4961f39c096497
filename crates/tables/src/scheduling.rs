//! State of the scheduler of Windows over time. The context switches and ready events of all CPUs are used to
//! make the runs of threads.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::recorded_times::{LATE_NS, RecordedTimes};
use crate::run::{Begin, Ready, Run, SwitchIn, SwitchOut};
use crate::schema::Rows;
use crate::stack_index::StackCursor;
use crate::table::context_switches::Switch;
use crate::table::ready_threads::ReadyEvent;
use crate::timed_values::TimedValues;
use crate::trackers::{KnownThread, ThreadIds, Trackers};
use crate::wait_kind::StackWait;
use crate::{CpuRuns, ReadyThreads};

/// Number of ended runs that are kept in a list. When the list has this many runs, all of them are moved into columns.
/// This number of runs fits into the first-level cache of a CPU. One context switch can end two runs, so the list
/// sometimes has one more run.
const RUNS_AT_ONCE: usize = 64;

/// State of a thread that ended (`KTHREAD_STATE`).
const TERMINATED: u8 = 4;

/// The state of CPUs and threads at the end of a slice of time.
#[derive(Debug)]
pub(crate) struct Scheduler {
    makes_runs: bool,
    fills_ready_threads: bool,
    /// Current run of each CPU; `None` before the first switch of the CPU.
    cpus: Vec<Option<CurrentRun>>,
    /// Index in `threads` of each thread, by thread id.
    indices: FxHashMap<u32, u32>,
    threads: Vec<Thread>,
    stacks: StackCursor,
    /// Runs that ended but were not moved into columns yet.
    ended: Vec<Run>,
    /// True if a run that ended in this slice was added after runs that ended later.
    is_unsorted: bool,
    /// Time of the last switch in earlier slices. All runs that ended before this time were already returned.
    returned_ns: i64,
    /// Times at which two context switches of a CPU contradict each other. The times are in ascending order.
    contradictions: Vec<i64>,
    /// Times of the first and the last context switch.
    switched_ns: Option<(i64, i64)>,
    recorded: RecordedTimes,
    /// Time range in which the trace has the context switches of all CPUs.
    complete: Range<i64>,
}

/// Current run of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentRun {
    start_ns: i64,
    /// The context switch that began the run; `None` if the run began before the CPU's first switch in the trace.
    switch_in: Option<SwitchIn>,
    begin: Begin,
}

/// State of a thread between its runs.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    known: KnownThread,
    /// Last switch-out of the thread.
    out: Option<SwitchOut>,
    /// The event that made the thread ready for its current or next run.
    ready: Option<Ready>,
    /// The event that made the thread ready for its next run, if the event came while the thread was still
    /// running. In this case, the wait of the thread ended before the wait began.
    next_ready: Option<Ready>,
    runs: bool,
    /// Start and CPU of the thread's last run.
    started: (i64, u16),
}

impl Scheduler {
    /// Creates the state at the start of a trace.
    ///
    /// A run can be in progress when the recording begins. Such a run starts at the first context switch of
    /// the trace. If the recorded time range of the run's CPU starts later, the run starts at the start of
    /// this range.
    pub(crate) fn new(
        recorded: RecordedTimes,
        makes_runs: bool,
        fills_ready_threads: bool,
    ) -> Scheduler {
        Scheduler {
            makes_runs,
            fills_ready_threads,
            cpus: Vec::new(),
            indices: FxHashMap::default(),
            threads: Vec::new(),
            stacks: StackCursor::default(),
            ended: Vec::new(),
            is_unsorted: false,
            returned_ns: i64::MIN,
            contradictions: Vec::new(),
            switched_ns: None,
            complete: recorded.complete_range(),
            recorded,
        }
    }

    /// Processes the sorted events of the next slice, and returns the runs that end in the slice. Also fills
    /// columns of `ready_rows`: the columns about the thread that became ready, and the columns about the
    /// thread that made it ready. Row `i` of `ready_rows` belongs to event `i` of `readied`.
    pub(crate) fn join(
        &mut self,
        switches: &TimedValues<Switch>,
        readied: &TimedValues<ReadyEvent>,
        ready_rows: &mut ReadyThreads,
        trackers: &Trackers<'_>,
    ) -> CpuRuns {
        let mut runs = CpuRuns::default();
        if self.makes_runs {
            runs.reserve(switches.rows());
        }
        let mut switches = switches.0.iter().peekable();
        // Context switches at the time of the current ready event.
        let mut together: Vec<&(i64, Switch)> = Vec::new();
        for (time_ns, ready) in &readied.0 {
            for (at_ns, switch) in together.extract_if(.., |(at_ns, _)| at_ns < time_ns) {
                self.switch(*at_ns, switch, trackers);
            }
            while let Some((at_ns, switch)) = switches.next_if(|(at_ns, _)| at_ns < time_ns) {
                self.switch(*at_ns, switch, trackers);
                if self.ended.len() >= RUNS_AT_ONCE {
                    self.move_ended(&mut runs);
                }
            }
            while let Some(switch) = switches.next_if(|(at_ns, _)| at_ns == time_ns) {
                together.push(switch);
            }
            // These switches have the same time as the ready event. If a switch and the ready event are of the same
            // CPU, their order in the log decides. Otherwise, the ready event comes first.
            let is_before = |(_, switch): &mut &(i64, Switch)| {
                switch.cpu == ready.cpu && switch.place < ready.place
            };
            for (at_ns, switch) in together.extract_if(.., is_before) {
                self.switch(*at_ns, switch, trackers);
            }
            self.ready(*time_ns, ready, ready_rows, trackers);
        }
        for (at_ns, switch) in together.into_iter().chain(switches) {
            self.switch(*at_ns, switch, trackers);
            if self.ended.len() >= RUNS_AT_ONCE {
                self.move_ended(&mut runs);
            }
        }
        self.move_ended(&mut runs);
        if std::mem::take(&mut self.is_unsorted) {
            runs.sort();
        }
        self.returned_ns = self.switched_ns.map_or(i64::MIN, |(_, last)| last);
        runs
    }

    /// Returns the runs that are in progress at the end of the trace. They are in the order of CPUs.
    /// `last_ns` is the time of the trace's last event.
    pub(crate) fn finish(mut self, last_ns: i64, trackers: &Trackers<'_>) -> CpuRuns {
        let mut runs = CpuRuns::default();
        let last_switch_ns = self.switched_ns.map_or(last_ns, |(_, last)| last);
        let end_ns = self.recorded.until_ns(last_ns, last_switch_ns);
        for (cpu, running) in (0..).zip(std::mem::take(&mut self.cpus)) {
            if let Some(running) = running
                && let Some(switch_in) = running.switch_in
            {
                let thread = (switch_in.thread_id, switch_in.thread);
                let until_ns = self.recorded.end_ns(cpu).unwrap_or(end_ns);
                let end_ns = end_ns.min(until_ns).max(running.start_ns);
                let end_ns =
                    (self.recorded).shown_until_ns(cpu, thread.0, running.start_ns..end_ns);
                self.end_run(cpu, running, thread, end_ns, None, trackers);
            }
        }
        self.end_unswitched(end_ns, trackers);
        self.move_ended(&mut runs);
        runs
    }

    /// Adds the runs on CPUs that never switched threads. Such a run begins at the trace's first context
    /// switch. If the events of the CPU begin later, the run begins with these events. It lasts until the
    /// trace's end.
    fn end_unswitched(&mut self, end_ns: i64, trackers: &Trackers<'_>) {
        let Some((begin_ns, _)) = self.switched_ns else {
            return;
        };
        let unswitched: Vec<_> = self.recorded.unswitched().collect();
        for (cpu, thread_id, first_ns) in unswitched {
            let start_ns = begin_ns.max(first_ns.saturating_sub(LATE_NS));
            let until_ns = self.recorded.end_ns(cpu).unwrap_or(end_ns).min(end_ns);
            if start_ns < until_ns {
                let running = CurrentRun {
                    start_ns,
                    ..CurrentRun::default()
                };
                let thread = (thread_id, self.index(thread_id));
                self.end_run(cpu, running, thread, until_ns, None, trackers);
            }
        }
    }

    fn move_ended(&mut self, runs: &mut CpuRuns) {
        if self.makes_runs {
            runs.extend(&self.ended);
        }
        self.ended.clear();
    }

    /// Returns the index in `threads` of the thread with the id `thread_id`.
    #[inline]
    fn index(&mut self, thread_id: u32) -> u32 {
        let threads = &mut self.threads;
        *self.indices.entry(thread_id).or_insert_with(|| {
            threads.push(Thread::default());
            (threads.len() - 1) as u32
        })
    }

    fn ready(
        &mut self,
        time_ns: i64,
        readied: &ReadyEvent,
        rows: &mut ReadyThreads,
        trackers: &Trackers<'_>,
    ) {
        let ReadyEvent { cpu, thread_id, .. } = *readied;
        let index = self.index(thread_id);
        let thread = &mut self.threads[index as usize];
        let ids = thread.known.ids_at(trackers, thread_id, time_ns);
        let running = self.cpus.get(usize::from(cpu)).copied().flatten();
        let running = running.and_then(|running| running.switch_in);
        let running = running.map(|switch_in| (switch_in.thread_id, switch_in.thread));
        // If the event itself names its thread, it is right also after a switch that the kernel did not log, and before
        // the first switch of the CPU.
        let recorded = (readied.recorded_by).map(|thread_id| (thread_id, self.index(thread_id)));
        let running = recorded.or(running);
        let by = running.map(|(thread_id, _)| thread_id);
        let by_ids = running.map(|(thread_id, index)| {
            let thread = &mut self.threads[index as usize];
            thread.known.ids_at(trackers, thread_id, time_ns)
        });
        let by_ids = by_ids.unwrap_or_default();
        let stacks = trackers.stacks;
        let stack_id = by.and_then(|by| stacks.at(&mut self.stacks, time_ns, by, cpu));
        if self.fills_ready_threads {
            rows.thread_row.push(ids.thread_row);
            rows.process_id.push(ids.process_id);
            rows.process_row.push(ids.process_row);
            rows.readying_thread_id.push(by);
            rows.readying_thread_row.push(by_ids.thread_row);
            rows.readying_process_id.push(by_ids.process_id);
            rows.readying_process_row.push(by_ids.process_row);
            rows.stack_id.push(stack_id);
        }
        let ready = Some(Ready {
            time_ns,
            cpu,
            by,
            by_ids,
            by_dpc: readied.by_dpc,
            of_windows: readied.of_windows,
            stack_id,
        });
        let thread = &mut self.threads[index as usize];
        // The event may belong to a run that began at the same time on another CPU, whose switches were processed first. The
        // thread had waited before this run, so that something must have readied it.
        let is_late = thread.started.0 == time_ns && thread.started.1 != cpu;
        let waited = |out: Option<SwitchOut>| out.is_some_and(|out| out.waits());
        if thread.runs {
            if is_late && thread.ready.is_none() && waited(thread.out) {
                thread.ready = ready
            } else {
                thread.next_ready = ready
            }
            return;
        }
        let last = if is_late { RUNS_AT_ONCE } else { 0 };
        let mut ended = self.ended.iter_mut().rev().take(last);
        let is_of_event = |run: &&mut Run| {
            run.thread_id == thread_id
                && run.start_ns == time_ns
                && run.ready.is_none()
                && waited(run.before)
        };
        match ended.find(is_of_event) {
            Some(run) => run.ready = ready,
            None => thread.ready = ready,
        }
    }

    fn switch(&mut self, time_ns: i64, switch: &Switch, trackers: &Trackers<'_>) {
        let cpu = switch.cpu;
        let (old, new) = (switch.old_thread_id, switch.new_thread_id);
        let out = SwitchOut {
            time_ns,
            cpu,
            priority: switch.old_priority,
            state: switch.old_state,
            wait_reason: switch.old_wait_reason,
            wait_mode: switch.old_wait_mode,
            futex: switch.futex,
            rank: switch.old_rank,
            remaining_quantum: switch.old_remaining_quantum,
            ideal_processor: switch.old_ideal_processor,
        };
        let running = self.running(cpu, old, time_ns);
        let running = self.after_missing_switch(time_ns, running, switch, trackers);
        let planned = running.switch_in.map(|s| (s.thread_id, s.thread));
        let old_index = match planned {
            Some((thread_id, index)) if thread_id == old => index,
            _ => self.index(old),
        };
        if let Some((_, planned)) = planned.filter(|(planned, _)| *planned != old) {
            let run = running.start_ns..time_ns;
            if self.recorded.may_skip_switch(cpu, run) {
                // The switch from this thread is missing. So the thread ran, but the end of its run is unknown. The
                // time is not added to `contradictions`: a third thread can have run unseen only if two consecutive
                // switches are missing.
                self.leave_unseen(planned);
            } else {
                // The thread that the last switch named did not run on this CPU. Its pending ready
                // event is kept.
                let thread = &mut self.threads[planned as usize];
                thread.runs = false;
                thread.ready = thread.next_ready.take().or(thread.ready);
                self.contradictions.push(time_ns);
            }
        }
        let old_ids = self.end_run(cpu, running, (old, old_index), time_ns, Some(out), trackers);
        if old != 0 {
            let thread = &mut self.threads[old_index as usize];
            // A thread that ended never runs again. The next thread with its id has no earlier run.
            thread.out = Some(out).filter(|out| out.state != TERMINATED);
            thread.ready = thread.next_ready.take();
            thread.runs = false;
        }
        let new_index = self.index(new);
        if new != 0 {
            let thread = &mut self.threads[new_index as usize];
            thread.runs = true;
            thread.started = (time_ns, cpu);
        }
        let stack_id = trackers.stacks.at(&mut self.stacks, time_ns, new, cpu);
        let switch_in = Some(SwitchIn {
            thread_id: new,
            thread: new_index,
            previous_thread_id: old,
            previous_process_row: old_ids.process_row,
            priority: switch.new_priority,
            nice: switch.new_nice,
            priority_decrement: switch.new_priority_decrement,
            wait_ticks: switch.new_wait_time.filter(|_| new != 0),
            qos: switch.new_qos,
            previous_c_state: switch.previous_c_state,
            stack_id,
            stack_wait: trackers.stack_wait(stack_id),
        });
        self.cpus[usize::from(cpu)] = Some(CurrentRun {
            start_ns: time_ns,
            switch_in,
            begin: Begin::Switch,
        });
    }

    /// Adds a missing switch to the thread that `switch` switches out. The true time of the missing switch is unknown. If
    /// an event made the thread ready after the CPU's last switch, the time of this event is used, although the switch
    /// may have been later. Otherwise, if the idle thread ran, the time of the first event that shows the thread on the
    /// CPU is used, although the switch was earlier. Ends the run of the thread that ran before the missing switch, and
    /// returns the run of the other thread. Returns `running` if no switch is missing, or if there is no event with a
    /// usable time.
    fn after_missing_switch(
        &mut self,
        time_ns: i64,
        running: CurrentRun,
        switch: &Switch,
        trackers: &Trackers<'_>,
    ) -> CurrentRun {
        let (cpu, old) = (switch.cpu, switch.old_thread_id);
        let before = (running.switch_in).filter(|before| before.thread_id != old);
        let run = running.start_ns..time_ns;
        let Some(before) = before.filter(|_| old != 0 && self.recorded.may_skip_switch(cpu, run))
        else {
            return running;
        };
        let old_index = self.index(old);
        let thread = self.threads[old_index as usize];
        let is_after_idle = before.thread_id == 0;
        // A thread that lost its CPU can run before it is woken.
        let may_run = thread.out.is_some_and(|out| !out.waits());
        let ready = thread.ready.filter(|_| is_after_idle || !may_run);
        let woken = ready.map(|ready| (ready.time_ns, Begin::Wake));
        let seen_for = switch.seen_for_ns.filter(|_| is_after_idle);
        let seen = seen_for.map(|ns| (time_ns.saturating_sub_unsigned(ns.get()), Begin::Sight));
        let from_ns = running.start_ns.max(self.returned_ns);
        let is_possible = |(at, _): &(i64, Begin)| !thread.runs && *at >= from_ns;
        let start = woken.filter(is_possible).or(seen.filter(is_possible));
        let Some((start_ns, begin)) = start else {
            return running;
        };
        self.is_unsorted = true;
        let ended = (before.thread_id, before.thread);
        let ids = self.end_run(cpu, running, ended, start_ns, None, trackers);
        self.leave_unseen(before.thread);
        CurrentRun {
            start_ns,
            switch_in: Some(SwitchIn {
                thread_id: old,
                thread: old_index,
                previous_thread_id: before.thread_id,
                previous_process_row: ids.process_row,
                priority: switch.old_priority,
                nice: switch.old_nice,
                priority_decrement: None,
                wait_ticks: None,
                qos: None,
                previous_c_state: None,
                stack_id: None,
                stack_wait: StackWait::Silent,
            }),
            begin,
        }
    }

    /// Forgets when a thread left its CPU, because the switch from the thread is missing.
    fn leave_unseen(&mut self, index: u32) {
        let thread = &mut self.threads[index as usize];
        thread.runs = false;
        thread.ready = thread.next_ready.take();
        thread.out = None;
    }

    /// Returns the current run of a CPU that switches away from the thread `old` at `time_ns`.
    fn running(&mut self, cpu: u16, old: u32, time_ns: i64) -> CurrentRun {
        if self.cpus.len() <= usize::from(cpu) {
            self.cpus.resize(usize::from(cpu) + 1, None);
        }
        let (begin_ns, last_ns) = self.switched_ns.get_or_insert((time_ns, time_ns));
        *last_ns = time_ns;
        let begin_ns = *begin_ns;
        self.cpus[usize::from(cpu)].unwrap_or_else(|| {
            let from_ns = self.recorded.begin_ns(cpu).unwrap_or(begin_ns);
            let start_ns = begin_ns.max(from_ns).min(time_ns);
            CurrentRun {
                start_ns: self.recorded.shown_from_ns(cpu, old, start_ns..time_ns),
                ..CurrentRun::default()
            }
        })
    }

    /// Ends the run of a thread. The thread is given by its id and its index in `threads`. Returns the
    /// thread's identity.
    fn end_run(
        &mut self,
        cpu: u16,
        running: CurrentRun,
        (thread_id, index): (u32, u32),
        end_ns: i64,
        after: Option<SwitchOut>,
        trackers: &Trackers<'_>,
    ) -> ThreadIds {
        let CurrentRun {
            start_ns,
            switch_in,
            begin,
        } = running;
        let thread = &mut self.threads[index as usize];
        let is_planned = switch_in.is_some_and(|switch_in| switch_in.thread_id == thread_id);
        // The switch to the thread is missing, so the thread may have started after the last switch of the CPU.
        let known_ns = if is_planned { start_ns } else { end_ns };
        let ids = thread.known.ids_at(trackers, thread_id, known_ns);
        let born_ns = trackers.thread_start_ns(ids.thread_row);
        let born_late = born_ns.filter(|born_ns| !is_planned && *born_ns > start_ns);
        let (start_ns, begin) = match born_late {
            Some(born_ns) => (born_ns.min(end_ns), Begin::Birth),
            None => (start_ns, begin),
        };
        // The time before a run is unknown in two cases. In the first case, the run began before the trace.
        // In the second case, the run belongs to an idle thread, because all idle threads have the same id.
        let is_known = switch_in.is_some() && thread_id != 0;
        // If the last switch of an ended thread is missing, the next thread with its id still has the state of the ended
        // thread.
        let is_of_earlier = |ns: i64| born_ns.is_some_and(|born_ns| ns < born_ns);
        if thread.out.is_some_and(|out| is_of_earlier(out.time_ns)) {
            thread.out = None;
            thread.ready = thread.ready.filter(|ready| !is_of_earlier(ready.time_ns));
        }
        let before = thread.out.filter(|out| is_known && out.time_ns <= start_ns);
        let ready = thread.ready;
        let mut run = Run {
            cpu,
            thread_id,
            ids,
            start_ns,
            end_ns,
            switch_in,
            before,
            ready: ready.filter(|ready| is_known && ready.time_ns <= start_ns),
            after,
            ran_unseen: false,
            begin,
        };
        let is_other = switch_in.is_some_and(|switch_in| switch_in.thread_id != thread_id);
        run.ran_unseen = is_other && self.recorded.may_skip_switch(cpu, start_ns..end_ns)
            || self.may_have_run_unseen(&run);
        self.ended.push(run);
        ids
    }

    /// Returns true if the trace may lack runs of the thread between its last switch-out and this run. There
    /// are two possible reasons: context switches contradict each other, or a CPU was not recorded.
    fn may_have_run_unseen(&self, run: &Run) -> bool {
        let before = run.before.map(|out| out.time_ns);
        let Some(from) = before.or_else(|| run.ready_since()) else {
            return false;
        };
        if from < self.complete.start || self.complete.end < run.start_ns {
            return true;
        }
        let after = self.contradictions.partition_point(|at| *at <= from);
        let contradiction = self.contradictions.get(after);
        contradiction.is_some_and(|at| *at <= run.start_ns)
    }
}
