//! What happens to the machine at moments that the scenario names.

use std::io::{Seek, Write};

use super::thread::State;
use super::{Due, Model, ProcessId, Readier};
use crate::time::Time;
use crate::truth::Moment;

/// Most moments that the truth tells of.
const MOST_MOMENTS: usize = 100_000;

/// Something that happens at a moment, and perhaps again.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) what: What,
    pub(crate) every: Time,
    pub(crate) times: u32,
}

/// What happens, with names resolved.
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
                // GUI_THREAD_BOOST: a wake-up by input.
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

    /// Gives a process the focus: its threads' quanta and boosts grow, the last one's shrink.
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

    /// Keeps a process's threads from running: each stops as soon as it would run.
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

    /// Lets a frozen process's threads run again.
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

    /// A process comes from the background or goes there: its group's bias.
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

    /// The calling thread's process asks for a timer resolution, in 100 ns.
    pub(crate) fn request_resolution(&mut self, c: usize, resolution: Option<u32>) {
        let t = self.cpus[c].thread;
        let process = self.threads[t].process;
        let id = self.processes[process].id;
        self.clock.request(self.now, id, resolution);
        let ignored = self.clock.is_request_ignored(id);
        self.log_resolution(c, process, resolution, ignored);
        self.moment("resolution", Some(process), resolution.map(u64::from));
    }

    /// The machine sleeps: nothing happens until it resumes. Its processors are idle meanwhile:
    /// threads that ran are ready again.
    fn suspend_machine(&mut self, c: usize, length: Time) {
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

    /// The machine goes on where it stopped.
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
            // What ran was stopped with everything else.
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
