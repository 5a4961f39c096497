//! Actions that the scenario performs at given times.

use std::io::{Seek, Write};

use super::thread::State;
use super::{Due, Model, ProcessId, Readier};
use crate::time::Time;
use crate::truth::Moment;

/// Maximum number of moments that the truth lists.
const MOST_MOMENTS: usize = 100_000;

/// An action that happens at a given time and may repeat.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) what: What,
    pub(crate) every: Time,
    pub(crate) times: u32,
}

/// Kind of action, with names replaced by indices.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Set(usize),
    Key(u32),
    Focus(ProcessId),
    Freeze(ProcessId),
    Thaw(ProcessId),
    Background(ProcessId, bool),
    Visible(ProcessId, bool),
    Suspend(Time),
    Mark(String),
}

impl<W: Write + Seek> Model<W> {
    pub(crate) fn act(&mut self, c: usize, action: usize, by: Readier) {
        let Action { what, every, times } = self.actions[action].clone();
        if times > 1 {
            self.actions[action].times -= 1;
            self.agenda
                .push(self.now + every, Due::Action(action as u16));
        }
        match what {
            What::Set(object) => self.set_object(object, 1, by),
            What::Key(code) => {
                self.log_key(c, code);
                self.moment("key", None, Some(code.into()));
                let messages = self.processes[self.focus].messages;
                // The priority boost is 2 (`GUI_THREAD_BOOST`), because input wakes the thread.
                self.set_object(messages, 2, by);
            }
            What::Focus(process) => self.focus(c, process),
            What::Freeze(process) => self.freeze(c, process),
            What::Thaw(process) => self.thaw(c, process),
            What::Background(process, is) => self.set_background(process, is),
            What::Visible(process, is) => {
                let id = self.processes[process].id;
                let period = self.clock.hardware_period();
                self.clock.set_visible(self.now, id, is);
                if self.clock.hardware_period() != period {
                    self.log_period(c);
                }
                let what = if is { "visible" } else { "occluded" };
                self.moment(what, Some(process), None);
            }
            What::Suspend(length) => self.suspend_machine(c, length),
            What::Mark(text) => self.log_mark(c, &text),
        }
    }

    pub(crate) fn moment(
        &mut self,
        what: &'static str,
        process: Option<ProcessId>,
        value: Option<u64>,
    ) {
        if self.truth.moments.len() == MOST_MOMENTS {
            self.truth.moments_left_out += 1;
            return;
        }
        self.truth.moments.push(Moment {
            time: self.now,
            what,
            process,
            value,
        });
    }

    /// Gives a process the focus. The quanta and boosts of its threads grow. The quanta and boosts of the threads of
    /// the process that had the focus shrink.
    pub(crate) fn focus(&mut self, c: usize, process: ProcessId) {
        let old = std::mem::replace(&mut self.focus, process);
        if old == process {
            return;
        }
        self.processes[old].foreground = false;
        self.processes[process].foreground = true;
        for changed in [old, process] {
            for i in 0..self.processes[changed].threads.len() {
                let t = self.processes[changed].threads[i];
                self.threads[t].quantum = self.full_quantum(t);
            }
        }
        self.log_focus(c, old, process);
        self.moment("focus", Some(process), None);
    }

    /// Freezes a process. Each thread of the process stops the next time it would run.
    pub(crate) fn freeze(&mut self, c: usize, process: ProcessId) {
        self.log_freeze(c, process, true);
        self.moment("freeze", Some(process), None);
        for i in 0..self.processes[process].threads.len() {
            let t = self.processes[process].threads[i];
            self.threads[t].frozen = true;
            if let State::Running = self.threads[t].state {
                let on = self.threads[t].last_cpu;
                if on != c {
                    self.poke(on);
                }
            }
        }
    }

    /// Thaws a process, so that its threads can run again.
    pub(crate) fn thaw(&mut self, c: usize, process: ProcessId) {
        self.log_freeze(c, process, false);
        self.moment("thaw", Some(process), None);
        let by = self.readier(c);
        for i in 0..self.processes[process].threads.len() {
            let t = self.processes[process].threads[i];
            let thread = &mut self.threads[t];
            thread.frozen = false;
            if thread.state == State::Waiting && std::mem::take(&mut thread.suspended) {
                self.ready(t, 0, by);
            }
        }
    }

    /// Moves a process to or from the background. This changes the rank bias of its scheduling
    /// group.
    pub(crate) fn set_background(&mut self, process: ProcessId, is: bool) {
        let Some(group) = self.processes[process].group else {
            return;
        };
        let what = if is { "background" } else { "foreground" };
        self.moment(what, Some(process), None);
        self.groups[group].background = is;
        if self.groups[group].update() {
            self.agenda.push(self.now, Due::Ranks);
        }
    }

    /// Requests a timer resolution, in units of 100 ns, for the process of the running thread.
    pub(crate) fn request_resolution(&mut self, c: usize, resolution: Option<u32>) {
        let t = self.cpus[c].thread;
        let process = self.threads[t].process;
        let id = self.processes[process].id;
        self.clock.request(self.now, id, resolution);
        let ignored = self.clock.is_request_ignored(id);
        self.log_resolution(c, process, resolution, ignored);
        self.moment("resolution", Some(process), resolution.map(u64::from));
    }

    /// Suspends the machine: no event happens until it resumes. Processors become idle, and running
    /// threads become ready.
    pub(crate) fn suspend_machine(&mut self, c: usize, length: Time) {
        self.log_power(c, true);
        self.moment("suspend", None, None);
        for c in 0..self.cpus.len() {
            self.advance(c);
            self.go_idle(c);
        }
        let until = self.now + length;
        self.suspended_until = Some(until);
        self.agenda.push(until, Due::Resume);
    }

    /// Resumes the machine.
    pub(crate) fn resume(&mut self) {
        self.suspended_until = None;
        self.log_power(0, false);
        self.moment("resume", None, None);
        for c in 0..self.cpus.len() {
            let cpu = &mut self.cpus[c];
            let slept = self.now - cpu.since;
            self.truth.processors[c].idle += slept;
            cpu.since = self.now;
            cpu.idle_since = cpu.idle_since.max(self.now);
            // Running routines stopped during the sleep, so their start moves by its duration.
            for work in &mut cpu.running {
                work.began += slept;
            }
            let next = self.select(c);
            if next != super::IDLE {
                self.stand_by(c, next, c);
                self.wake(c);
            }
            self.settle(c);
        }
    }
}
