//! The model: runs a scenario on a simulated machine, event by event.
//!
//! `agenda` orders future events. Each event changes processors (`processor`, `interrupt`), threads
//! (`dispatcher`, `program`) or devices (`disk`, `device`, `network`). `record` logs each change
//! when it happens and adds it to the truth. Randomness comes only from the scenario's
//! distributions, with a separate stream for each thread and device.

mod action;
mod agenda;
mod build;
mod cpu_set;
mod device;
mod disk;
mod dispatcher;
mod dotnet;
mod group;
mod interrupt;
mod lives;
mod network;
mod processor;
mod program;
mod ready_queue;
mod record;
mod replay;
mod thread;

use std::io::{Seek, Write};

use etl::write::WriteError;
use rules::quantum::Quantum;
use rules::topology::Processor as Place;

use crate::clock::ClockInterrupt;
use crate::log::{Log, Modules, StackId, User};
use crate::replay::WorkloadError;
use crate::scenario::Amount;
use crate::scenario::Scheduler;
use crate::time::{Time, TimeBase};
use crate::truth::Truth;
use action::Action;
use agenda::{Agenda, Due};
pub(crate) use build::{build, build_replay, check};
use cpu_set::CpuSet;
use device::Device;
use disk::Disk;
use group::Group;
use interrupt::Then;
use network::{Flow, Nic};
use processor::Processor;
use program::Object;
use ready_queue::ReadyQueue;
use thread::{Process, Thread};

/// Index of a thread. All processors share one idle thread.
pub(crate) type ThreadId = usize;
/// Index of a process.
pub(crate) type ProcessId = usize;
/// Index of a scheduling group.
pub(crate) type GroupId = usize;
/// Index of a routine in the truth.
pub(crate) type RoutineId = usize;
/// Index of a `Body`, a list of stacks.
pub(crate) type BodyId = usize;

/// Number of model events between two calls of `go_on`.
const STEP: u32 = 1 << 12;

/// Maximum number of future events, to limit memory.
const MOST_DUE: usize = 1 << 21;

/// Index of the idle thread. The index of its process is the same number.
pub(crate) const IDLE: ThreadId = 0;

/// Work that readies a thread: the thread, service routine or DPC that a processor executes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readier {
    pub(crate) cpu: usize,
    pub(crate) in_dpc: bool,
    pub(crate) body: BodyId,
}

/// A service routine or DPC, with its stack and its cost in processor time.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) routine: RoutineId,
    pub(crate) body: BodyId,
    pub(crate) cost: Amount,
}

/// Code of a thread or routine: a stack for each part of its work.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) parts: Vec<Site>,
}

/// A stack, and the address of its innermost frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) address: u64,
    pub(crate) stack: StackId,
}

/// A quantum, in units and in ticks of processor time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) units: u8,
    pub(crate) ticks: i64,
}

/// Quanta of threads: in the process with the focus, in other processes, and in processes of the
/// idle class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    pub(crate) foreground: Turn,
    pub(crate) background: Turn,
    pub(crate) idle: Turn,
}

/// State of the simulated machine and of the run.
pub(crate) struct Model<W> {
    now: Time,
    end: Time,
    most_events: u64,
    base: TimeBase,
    agenda: Agenda,
    clock: ClockInterrupt,
    log: Log<W>,
    truth: Truth,
    /// Reason why the model cannot continue.
    failure: Option<String>,

    topology: Vec<Place>,
    /// For each processor: the set of processors on the same core, including the processor itself.
    siblings: Vec<CpuSet>,
    /// For each processor: all processors, sorted by their distance from this processor.
    near: Vec<Vec<u16>>,
    cpus: Vec<Processor>,
    /// Set of processors that have nothing to run.
    idle: CpuSet,
    c_states: Vec<(Time, Time)>,

    scheduler: Scheduler,
    quantum: Quantum,
    turns: Turns,
    short_slice: Option<Time>,
    generation: Time,
    starvation_wait: Time,
    starvation_quantum: i64,
    ipi_delay: Time,
    timer_expiry: Time,
    local: Vec<ReadyQueue>,
    /// Queues that neighbouring processors share.
    shared: Vec<ReadyQueue>,
    /// For each processor: the index of its shared queue.
    shared_by: Vec<Option<usize>>,
    /// For each shared queue: the set of its processors.
    sharers: Vec<CpuSet>,
    /// For each processor: the queues of the scheduling groups, indexed by group.
    grouped: Vec<Vec<ReadyQueue>>,
    ready_threads: usize,

    threads: Vec<Thread>,
    processes: Vec<Process>,
    groups: Vec<Group>,
    objects: Vec<Object>,
    bodies: Vec<Body>,
    /// Code that runs in clock interrupts and inter-processor interrupts.
    clock_body: BodyId,
    /// Address of each routine.
    routines: Vec<u64>,
    disks: Vec<Disk>,
    nics: Vec<Nic>,
    devices: Vec<Device>,
    flows: Vec<Flow>,
    /// Index of the page file's name.
    page_file: u32,
    /// Key of each file in the log.
    file_keys: Vec<u64>,
    labels: Labels,
    actions: Vec<Action>,
    recorded: replay::ReplayState,
    focus: ProcessId,
    sampling: Option<Time>,
    suspended_until: Option<Time>,
    /// Time up to which the waits of watched threads are already attributed to causes in the truth.
    accounted: Time,
    frame: Vec<u8>,
}

/// Names that only the log and the truth use.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    pub(crate) processes: Vec<ProcessLabel>,
    /// Process and name of each service.
    pub(crate) services: Vec<(ProcessId, String)>,
    pub(crate) threads: Vec<String>,
    /// `module!function` of each routine.
    pub(crate) routines: Vec<String>,
    /// `module!function` of each part of each body.
    pub(crate) parts: Vec<Vec<String>>,
    pub(crate) flows: Vec<String>,
    pub(crate) files: Vec<String>,
}

/// Session, command line and user of a process. Only the log uses them.
#[derive(Debug)]
pub(crate) struct ProcessLabel {
    pub(crate) session: u32,
    pub(crate) command_line: String,
    pub(crate) user: User,
}

/// Result of a run.
pub(crate) struct Outcome<W> {
    pub(crate) out: W,
    pub(crate) sections: crate::truth::Sections,
    pub(crate) events: u64,
    pub(crate) counts: Vec<(&'static str, u64)>,
    pub(crate) lost: u64,
    pub(crate) modules: Modules,
}

/// Error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The caller cancelled the simulation.
    #[error("the simulation was cancelled")]
    Stopped,
    /// The scenario or the replay cannot continue.
    #[error("the simulation cannot continue: {0}")]
    Stuck(String),
    /// The workload of a replay is wrong.
    #[error("cannot replay the workload: {0}")]
    Workload(#[from] WorkloadError),
}

impl<W: Write + Seek> Model<W> {
    /// Runs the scenario to its end.
    pub(crate) fn run(
        mut self,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Outcome<W>, RunError> {
        self.start();
        self.run_to_end(go_on)?;
        self.record_end()
    }

    fn run_to_end(&mut self, go_on: &mut dyn FnMut(f64) -> bool) -> Result<(), RunError> {
        for c in 0..self.cpus.len() {
            // No thread runs yet, so all processors go to sleep.
            self.settle(c);
        }
        let mut happened: u32 = 0;
        while let Some((time, due)) = self.agenda.pop() {
            if time >= self.end {
                break;
            }
            if let Some(until) = self.suspended_until
                && due != Due::Resume
                && time < until
            {
                self.agenda.push(until, due);
                continue;
            }
            if time > self.now {
                self.account(time);
                self.now = time;
            }
            self.happen(due);
            happened = happened.wrapping_add(1);
            if happened.is_multiple_of(STEP) {
                if !go_on(self.done()) {
                    return Err(RunError::Stopped);
                }
                self.spend(STEP as usize);
                if self.agenda.len() > MOST_DUE {
                    self.stop_with(format!(
                        "more than {MOST_DUE} events are pending at {} s; let time-outs, answers or \
                         interrupts be shorter or less frequent",
                        self.base.ns(self.now) / 1_000_000_000
                    ));
                }
            }
            if self.log.failed() || self.failure.is_some() {
                break;
            }
            if self.log.events() >= self.most_events {
                self.end = self.now;
                break;
            }
        }
        if let Some(why) = self.failure.take() {
            return Err(RunError::Stuck(why));
        }
        self.account(self.end);
        self.now = self.end;
        for c in 0..self.cpus.len() {
            self.advance(c);
        }
        Ok(())
    }

    /// Returns the share of the run that is complete: the larger of the shares of time and of
    /// events.
    fn done(&self) -> f64 {
        let time = self.now as f64 / self.end as f64;
        let events = self.log.events() as f64 / self.most_events as f64;
        time.max(events).min(1.0)
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Processor(c) => {
                let c = usize::from(c);
                // The entry is outdated if the time at which the processor next needs attention has changed.
                if self.cpus[c].next == self.now {
                    self.cpus[c].next = crate::time::NEVER;
                    self.advance(c);
                    self.settle(c);
                }
            }
            Due::Poke(c) => {
                let c = usize::from(c);
                self.advance(c);
                self.wake(c);
                self.settle(c);
            }
            Due::DpcTick(c) => {
                let c = usize::from(c);
                self.advance(c);
                self.wake(c);
                self.cpus[c].dpcs_requested = true;
                self.settle(c);
            }
            Due::Sample(c) => self.sample(usize::from(c)),
            Due::Timer(t, wait) => {
                if self.threads[t].wait == wait {
                    self.clock_work(self.threads[t].last_cpu, Then::Timer(t, wait));
                }
            }
            Due::Arrival(flow) => self.flow_arrives(usize::from(flow)),
            Due::Answer(flow, bytes) => self.answer_arrives(usize::from(flow), bytes),
            Due::Moderated(nic, queue) => {
                let (nic, queue) = (usize::from(nic), usize::from(queue));
                self.nics[nic].queues[queue].moderated = false;
                self.nic_interrupts(nic, queue);
            }
            Due::DiskDone(disk) => self.disk_ready(usize::from(disk)),
            Due::Device(device) => self.device_interrupts(usize::from(device)),
            Due::Action(action) => self.clock_work(0, Then::Action(usize::from(action))),
            Due::Generation => {
                self.new_generation();
                self.agenda.push(self.now + self.generation, due);
            }
            Due::StarvationScan => {
                self.scan_for_starving();
                self.agenda
                    .push(self.now + self.base.ticks(1_000_000_000), due);
            }
            Due::ProcessStart(p) => self.process_starts(usize::from(p)),
            Due::ThreadStart(t) => self.thread_starts(t),
            Due::Ranks => self.compare_all(),
            Due::Skew(cpu, ahead) => self.log.skew(cpu, ahead),
            Due::Resume => self.resume(),
            Due::Recorded => self.recorded_interrupt(),
            Due::Requested(interrupt) => self.recorded_parts(interrupt),
            Due::After(t, wait) => self.recorded_after(t, wait),
            Due::Moment => self.recorded_moment(),
            Due::Measure => self.measure(),
        }
    }

    pub(crate) fn stop_with(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }
}
