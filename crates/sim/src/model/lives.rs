//! Start and end of the trace, of processes, and of threads.

use std::io::{Seek, Write};

use super::build::{IDLE_PROCESS, SYSTEM};
use super::record::nt_path;
use super::thread::State;
use super::{Due, IDLE, Labels, Model, Outcome, ProcessId, Readier, RunError, ThreadId};
use crate::log::{EventKind, Life, Process, Service, Thread, Who};
use crate::scenario::{Amount, Document};
use crate::time::Time;
use crate::truth::{Names, ThreadSums};

/// Id of the thread of the System process that creates processes and reads kernel stacks from the
/// page file.
pub(crate) const SYSTEM_THREAD: u32 = 8;

impl<W: Write + Seek> Model<W> {
    /// Schedules all events that no other event causes, such as starts of threads and actions of
    /// the scenario.
    pub(crate) fn plan(&mut self, document: &Document, starts: &[(ThreadId, Amount)]) {
        self.file_keys = (0..self.labels.files.len())
            .map(|file| self.log.file(&nt_path(&self.labels.files[file])))
            .collect();
        for (tag, (p, name)) in self.labels.services.iter().enumerate() {
            self.log.service(Service {
                process: self.processes[*p].id,
                tag: tag as u32 + 1,
                name: name.clone(),
                display_name: name.clone(),
                image: self.processes[*p].name.clone(),
            });
        }
        for (p, process) in self.processes.iter().enumerate() {
            if let Some(at) = process.starts {
                self.agenda.push(at, Due::ProcessStart(p as u16));
            }
        }
        for (t, start) in starts {
            let ns = start.sample(&mut self.threads[*t].random).0;
            let process = self.processes[self.threads[*t].process].starts.unwrap_or(0);
            let at = self.base.ticks(ns).max(process);
            self.agenda.push(at, Due::ThreadStart(*t));
        }
        for device in 0..self.devices.len() {
            self.device_next(device);
        }
        for flow in 0..self.flows.len() {
            self.flow_next(flow);
            let bytes = self.flows[flow].bytes;
            for block in 0..self.flows[flow].window {
                // The blocks arrive one tick apart, like blocks that arrive over a link.
                let at = self.flow_begin(document, flow) + Time::from(block);
                self.agenda.push(at, Due::Answer(flow as u16, bytes));
            }
        }
        for (action, said) in document.actions.iter().enumerate() {
            self.agenda
                .push(self.base.ticks(said.time.0), Due::Action(action as u16));
        }
        if let Some(interval) = self
            .sampling
            .filter(|_| self.log.records(EventKind::Sample))
        {
            let cpus = self.cpus.len() as Time;
            for c in 0..cpus {
                // Each processor starts sampling at a different time.
                self.agenda
                    .push(interval + interval * c / cpus, Due::Sample(c as u16));
            }
        }
        if !self.groups.is_empty() {
            self.agenda.push(self.generation, Due::Generation);
        }
        self.agenda
            .push(self.base.ticks(1_000_000_000), Due::StarvationScan);
        for loss in &document.trouble.lose {
            let time = self.base.ticks(loss.from.0)..self.base.ticks(loss.to.0);
            self.log.lose(time, loss.cpus.as_deref());
        }
        for skew in &document.trouble.skew {
            let ahead = self.base.ticks(skew.ahead.0);
            self.agenda
                .push(self.base.ticks(skew.from.0), Due::Skew(skew.cpu, ahead));
        }
    }

    fn flow_begin(&self, document: &Document, flow: usize) -> Time {
        self.base.ticks(document.flows[flow].from.0).max(1)
    }

    /// Logs the rundown of the processes and threads that exist at the trace's start.
    pub(crate) fn start(&mut self) {
        for p in 0..self.processes.len() {
            if self.processes[p].starts.is_none() {
                self.log_process(p, Life::RundownStart, Who::NO_THREAD);
            }
        }
        for t in IDLE + 1..self.threads.len() {
            if self.processes[self.threads[t].process].starts.is_none() {
                self.log_thread(t, Life::RundownStart, Who::NO_THREAD);
            }
        }
    }

    /// Starts a process, created by the System process.
    pub(crate) fn process_starts(&mut self, p: ProcessId) {
        self.processes[p].alive = true;
        let by = Who {
            process: self.processes[SYSTEM].id,
            thread: SYSTEM_THREAD,
        };
        self.log_process(p, Life::Start, by);
    }

    /// Starts a thread's program. If its process started during the trace, the thread is new and
    /// its start is logged.
    pub(crate) fn thread_starts(&mut self, t: ThreadId) {
        let c = self.threads[t].last_cpu;
        self.advance(c);
        if self.processes[self.threads[t].process].starts.is_some() {
            self.log_thread(t, Life::Start, self.who(self.cpus[c].thread));
        }
        let by = Readier {
            cpu: c,
            in_dpc: false,
            body: self.clock_body,
        };
        self.threads[t].state = State::Waiting;
        self.end_wait(t, 0, by);
        self.wake(c);
        self.settle(c);
        if self.now < self.cpus[c].awake_at {
            self.agenda.push(self.cpus[c].awake_at, Due::Poke(c as u16));
        }
    }

    /// Logs the rundown at the trace's end and returns the results.
    pub(crate) fn record_end(mut self) -> Result<Outcome<W>, RunError> {
        let end = self.end;
        for t in IDLE + 1..self.threads.len() {
            let thread = &self.threads[t];
            let is_there =
                self.processes[thread.process].alive && thread.state != State::Terminated;
            if is_there {
                self.log_thread(t, Life::RundownEnd, Who::NO_THREAD);
            }
        }
        for p in 0..self.processes.len() {
            if self.processes[p].alive {
                self.log_process(p, Life::RundownEnd, Who::NO_THREAD);
            }
        }
        for gap in self.truth.gaps.values_mut() {
            gap.end_at(end);
        }
        let modules = self.log.modules().clone();
        let finished = self.log.finish(end)?;
        let Labels {
            threads: names,
            routines,
            flows,
            ..
        } = &self.labels;
        let threads = self.threads.iter().zip(names);
        let names = Names {
            base: self.base,
            end,
            processes: (self.processes.iter())
                .map(|process| (process.id, process.name.as_str()))
                .collect(),
            threads: threads
                .map(|(thread, name)| ThreadSums {
                    id: thread.id,
                    process: thread.process,
                    name,
                    cpu: thread.cpu_time,
                    switches: thread.switches,
                })
                .collect(),
            routines,
            flows,
            disks: self.disks.iter().map(|disk| disk.number).collect(),
            parts: &self.labels.parts,
            quantum: self.quantum,
            units: (self.processes.iter().skip(SYSTEM))
                .map(|process| self.turns.turn(process).units)
                .collect(),
        };
        Ok(Outcome {
            sections: self.truth.sections(&names),
            out: finished.out,
            events: finished.events,
            lost: finished.lost,
            counts: finished.counts,
            modules,
        })
    }

    /// Logs an event in the life of a process and its images.
    fn log_process(&mut self, p: ProcessId, life: Life, by: Who) {
        let process = &self.processes[p];
        let label = &self.labels.processes[p];
        let facts = Process {
            id: process.id,
            parent: match p {
                IDLE_PROCESS | SYSTEM => 0,
                _ => self.processes[SYSTEM].id,
            },
            session: label.session,
            user: label.user,
            image: &process.name,
            command_line: &label.command_line,
            package: "",
        };
        self.log.process(0, self.now, life, &facts, by);
        if p != SYSTEM {
            // The kernel's images are logged for process 0 only.
            self.log.images(0, self.now, life, process.id, by);
        }
    }

    fn log_thread(&mut self, t: ThreadId, life: Life, by: Who) {
        let thread = &self.threads[t];
        let place = self.topology[thread.ideal];
        let first = self
            .topology
            .iter()
            .position(|other| other.group == place.group);
        let tag = self
            .labels
            .services
            .iter()
            .position(|(p, _)| *p == thread.process);
        let facts = Thread {
            who: self.who(t),
            base_priority: thread.base,
            affinity: thread.affinity.mask(first.unwrap_or(0), 64),
            start_address: self.bodies[thread.home].parts[0].address,
            service_tag: tag.map_or(0, |tag| tag as u32 + 1),
            name: &self.labels.threads[t],
        };
        let cpu = if by == Who::NO_THREAD {
            0
        } else {
            thread.last_cpu
        };
        self.log.thread(cpu as u16, self.now, life, &facts, by);
    }

    /// Ends a thread. If it is the last thread of its process, the process ends too.
    pub(crate) fn thread_ends(&mut self, c: usize, t: ThreadId) {
        let by = self.who(self.cpus[c].thread);
        self.log_thread(t, Life::End, by);
        let p = self.threads[t].process;
        let has_ended = |t: &ThreadId| self.threads[*t].state == State::Terminated;
        if p != SYSTEM && self.processes[p].threads.iter().all(has_ended) {
            self.processes[p].alive = false;
            let id = self.processes[p].id;
            self.clock.end_process(self.now, id);
            self.log_process(p, Life::End, by);
        }
    }
}
