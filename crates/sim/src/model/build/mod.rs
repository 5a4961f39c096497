//! Construction of a model from a scenario. Names become indices, durations become ticks, and
//! programs become flat lists of steps.

mod code;
mod devices;
mod processes;
mod programs;
mod replay;

use std::collections::BTreeMap;
use std::io::{Cursor, Seek, Write};
use std::num::NonZero;
use std::sync::Arc;

use rules::quantum::{IDLE_CLASS_UNITS, Quantum, Win32PrioritySeparation};
use rules::topology::Topology;

use super::action::{Action, What};
use super::agenda::Agenda;
use super::cpu_set::CpuSet;
use super::group::Group;
use super::program::Object;
use super::ready_queue::ReadyQueue;
use super::replay::ReplayState;
use super::thread::{Process, Thread};
use super::{Body, BodyId, IDLE, Labels, Model, ProcessId, RunError, ThreadId, Turn, Turns};
use crate::clock::{ClockInterrupt, DEFAULT_PERIOD};
use crate::log::{Computer, Cpu, Log, Modules};
use crate::quantity::Nanoseconds;
use crate::replay::Workload;
use crate::scenario::{self, Amount, Document, Fault, Frames, Name};
use crate::time::{NEVER, Time, TimeBase};
use crate::truth::{DiskSums, FlowSums, Gap, Measure, ProcessorTime, Truth, WaitSums, WindowSums};
use crate::windows::Windows;

/// Index of the Idle process. It has only one thread, which is the idle thread of all processors.
pub(crate) const IDLE_PROCESS: ProcessId = 0;
/// Index of the System process, which every machine has.
pub(crate) const SYSTEM: ProcessId = 1;
const SYSTEM_PID: u32 = 4;

/// Short time slice, as observed on build 26200: 1.736 ms, one ninth of a clock tick.
const SHORT_SLICE: Nanoseconds = Nanoseconds(1_736_000);

/// Time from the boot to the trace's start: one hour, in units of 100 ns.
const UP: u64 = 3_600 * 10_000_000;

pub(crate) use replay::build_replay;

/// Checks that a scenario can be built: its names exist and its values are consistent.
pub(crate) fn check(document: &Document) -> Result<(), Fault> {
    match Builder::new(document, document.seed)?.build(Cursor::new(Vec::new())) {
        Ok(_) => Ok(()),
        Err(BuildError::Fault(fault)) => Err(fault),
        Err(BuildError::Write(error)) => Err(Fault::in_field("record", error.to_string())),
    }
}

/// Builds a scenario's model, which logs to `out`.
pub(crate) fn build<W: Write + Seek>(
    document: &Document,
    seed: u64,
    out: W,
) -> Result<Model<W>, RunError> {
    let builder = Builder::new(document, seed).map_err(|fault| RunError::Stuck(fault.message))?;
    builder.build(out).map_err(build_error)
}

fn build_error(error: BuildError) -> RunError {
    match error {
        BuildError::Fault(fault) => RunError::Stuck(fault.message),
        BuildError::Write(error) => error.into(),
    }
}

enum BuildError {
    Fault(Fault),
    Write(etl::write::WriteError),
}

impl From<Fault> for BuildError {
    fn from(fault: Fault) -> BuildError {
        BuildError::Fault(fault)
    }
}

/// A model under construction.
struct Builder<'a> {
    document: &'a Document,
    /// Recorded work that the model replays instead of the scenario's programs.
    recorded: Option<Arc<Workload>>,
    seed: u64,
    base: TimeBase,
    topology: Topology,
    modules: Modules,
    bodies: Vec<Body>,
    by_frames: BTreeMap<(Option<u32>, Vec<Frames>), BodyId>,
    routines: Vec<u64>,
    labels: Labels,
    objects: Vec<Object>,
    by_name: BTreeMap<String, NamedObject>,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    starts: Vec<(ThreadId, Amount)>,
    flow_objects: Vec<usize>,
    measures: Vec<String>,
    next_id: u32,
}

/// A synchronisation object that programs refer to by name.
#[derive(Clone, Debug)]
struct NamedObject {
    index: usize,
    is_lock: bool,
    set: bool,
    awaited: bool,
    span: std::ops::Range<usize>,
}

impl<'a> Builder<'a> {
    fn new(document: &'a Document, seed: u64) -> Result<Builder<'a>, Fault> {
        let machine = &document.machine;
        let group_size = u8::try_from(machine.group_size).unwrap_or(u8::MAX);
        let topology = Topology::new(
            machine.processors.into(),
            machine.threads_per_core.into(),
            machine.nodes,
            group_size,
        )
        .map_err(|e| Fault::in_field(e.field(), e.to_string()).inside("machine"))?;
        Ok(Builder {
            document,
            recorded: None,
            seed,
            base: TimeBase::new(machine.clock_hz, machine.cpu_mhz),
            topology,
            modules: Modules::new(machine.windows),
            bodies: Vec::new(),
            by_frames: BTreeMap::new(),
            routines: Vec::new(),
            labels: Labels::default(),
            objects: Vec::new(),
            by_name: BTreeMap::new(),
            processes: Vec::new(),
            threads: Vec::new(),
            starts: Vec::new(),
            flow_objects: Vec::new(),
            measures: Vec::new(),
            next_id: 64,
        })
    }

    fn build<W: Write + Seek>(mut self, out: W) -> Result<Model<W>, BuildError> {
        let document = self.document;
        let machine = &document.machine;
        let base = self.base;
        let end = base.ticks(document.duration.0).max(1);

        let clock_body = self.add_work()?;
        let cpus = self.processors()?;
        let disks = self.disks()?;
        let nics = self.nics()?;
        let flows = self.flows(&nics)?;
        let devices = self.devices()?;
        let groups = self.groups()?;
        let actions = self.actions()?;
        let windows = self.windows(end)?;
        self.check_objects()?;

        let quantum =
            Win32PrioritySeparation(machine.win32_priority_separation).decode(machine.server);
        let turns = self.turns(quantum);
        for thread in &mut self.threads {
            thread.quantum = turns.turn(&self.processes[thread.process]).ticks;
        }
        let scheduler = document.scheduler.clone();

        let count = self.topology.processors().len();
        let topology = self.topology.processors().to_vec();
        let siblings = siblings(&topology);
        let near = (0..count).map(|c| nearest_first(&topology, c)).collect();
        let (shared_by, sharers) = shared_queues(machine.windows, &topology);

        let computer = self.computer();
        let clock = self.clock();
        let focus = self.processes.iter().position(|p| p.foreground);
        let short_slice = self.short_slice();
        let sampling = self.sampling();
        let truth = self.truth(windows, flows.len(), disks.len());
        let page_file = self.file(r"C:\pagefile.sys");
        let log =
            Log::new(out, computer, &document.record, self.modules).map_err(BuildError::Write)?;
        let mut model = Model {
            now: 0,
            end,
            most_events: document.events.unwrap_or(u64::MAX),
            base,
            agenda: Agenda::default(),
            clock,
            log,
            truth,
            failure: None,
            siblings,
            near,
            idle: CpuSet::first(count),
            c_states: (machine.c_states.iter())
                .map(|state| (base.ticks(state.residency.0), base.ticks(state.latency.0)))
                .collect(),
            quantum,
            turns,
            short_slice,
            generation: base.ticks(scheduler.generation.0).max(1),
            starvation_wait: base.ticks(scheduler.starvation_wait.0),
            starvation_quantum: turn(3, base).ticks * i64::from(scheduler.starvation_ticks),
            ipi_delay: base.ticks(scheduler.ipi_delay.0),
            timer_expiry: base.ticks(scheduler.timer_expiry.0).max(1),
            scheduler,
            local: (0..count).map(|_| ReadyQueue::new()).collect(),
            shared: (0..sharers.len()).map(|_| ReadyQueue::new()).collect(),
            shared_by,
            sharers,
            grouped: (0..count)
                .map(|_| groups.iter().map(|_| ReadyQueue::new()).collect())
                .collect(),
            ready_threads: 0,
            topology,
            cpus,
            threads: self.threads,
            processes: self.processes,
            groups,
            objects: self.objects,
            bodies: self.bodies,
            clock_body,
            routines: self.routines,
            disks,
            nics,
            devices,
            flows,
            page_file,
            file_keys: Vec::new(),
            labels: self.labels,
            actions,
            recorded: ReplayState::default(),
            focus: focus.unwrap_or(SYSTEM),
            sampling,
            suspended_until: None,
            accounted: 0,
            frame: Vec::new(),
        };
        model.plan(document, &self.starts);
        Ok(model)
    }

    /// Adds the processes, their threads and the objects of the flows. Returns the stacks of the clock interrupt.
    fn add_work(&mut self) -> Result<BodyId, Fault> {
        let document = self.document;
        self.add_processes()?;
        if let Some(workload) = self.recorded.clone() {
            self.add_recorded_processes(&workload)?;
        }
        for _ in &document.flows {
            let object = self.object(u32::MAX, 0);
            self.flow_objects.push(object);
        }
        let clock_body = self.clock_body()?;
        self.add_threads()?;
        if let Some(workload) = self.recorded.clone() {
            self.add_recorded_threads(&workload)?;
        }
        Ok(clock_body)
    }

    /// Adds the code of the clock interrupt, and returns its stacks.
    fn clock_body(&mut self) -> Result<BodyId, Fault> {
        let stack = frames(&["ntoskrnl.exe!KiTimerExpiration", "ntoskrnl.exe!KiIdleLoop"]);
        let body = self.body(None, vec![stack])?;
        self.routine("ntoskrnl.exe!KiTimerExpiration")?;
        Ok(body)
    }

    fn turns(&self, quantum: Quantum) -> Turns {
        let turn = |units| turn(units, self.base);
        Turns {
            foreground: turn(quantum.foreground_units),
            background: turn(quantum.background_units),
            idle: turn(IDLE_CLASS_UNITS),
        }
    }

    /// Returns the length of a short time slice in ticks; `None` if this Windows has no short time slices.
    fn short_slice(&self) -> Option<Time> {
        let is_default = self.document.machine.windows >= Windows::Eleven25H2;
        let slice = self.document.scheduler.short_slice;
        let slice = slice.or_else(|| is_default.then_some(SHORT_SLICE));
        slice.map(|slice| self.base.ticks(slice.0).max(1))
    }

    /// Returns the sampling interval in ticks; `None` if the machine takes no samples.
    fn sampling(&self) -> Option<Time> {
        let interval = u64::from(self.document.record.sampling_interval);
        (interval > 0).then(|| self.base.ticks(interval * 100).max(1))
    }

    /// Checks that the scenario's steps both set and await each named object.
    fn check_objects(&self) -> Result<(), Fault> {
        for (name, object) in &self.by_name {
            let what = if object.is_lock { "lock" } else { "object" };
            let message = match (object.set, object.awaited) {
                (true, true) => continue,
                (true, false) => format!("nothing waits for the {what} `{name}`"),
                (false, _) => format!("nothing sets the {what} `{name}`"),
            };
            return Err(Fault::new(object.span.clone(), message));
        }
        Ok(())
    }

    fn computer(&self) -> Computer {
        let machine = &self.document.machine;
        let places = self.topology.processors().iter();
        Computer {
            windows: machine.windows,
            server: machine.server,
            name: machine.name.clone(),
            cpus: places
                .map(|place| Cpu {
                    group: place.group,
                    number: place.number,
                    core: place.core,
                    node: place.node,
                })
                .collect(),
            cpu_mhz: machine.cpu_mhz,
            memory_mib: 16_384,
            frequency: machine.clock_hz,
            start: machine.start,
            boot: machine.start.saturating_sub(UP),
        }
    }

    fn clock(&self) -> ClockInterrupt {
        let machine = &self.document.machine;
        let mut clock = ClockInterrupt::new(
            machine.windows,
            NonZero::new(machine.clock_hz).unwrap_or(NonZero::<u64>::MIN),
            machine.global_timer_requests,
        );
        for (spec, process) in self.document.processes.iter().zip(self.spec_processes()) {
            if spec.ignores_occlusion {
                clock.set_always_honoured(0, self.processes[process].id, true);
            }
        }
        clock
    }

    fn truth(&mut self, windows: Vec<WindowSums>, flows: usize, disks: usize) -> Truth {
        let mut truth = Truth {
            processors: vec![ProcessorTime::default(); self.topology.processors().len()],
            windows,
            measures: self.measures.drain(..).map(Measure::new).collect(),
            flows: vec![FlowSums::default(); flows],
            disks: vec![DiskSums::default(); disks],
            samples: vec![0; self.processes.len()],
            ..Truth::default()
        };
        for (t, thread) in self.threads.iter().enumerate().filter(|(_, t)| t.watched) {
            truth.watched.insert(t, WaitSums::default());
            truth.gaps.insert(thread.process, Gap::default());
        }
        truth
    }

    fn groups(&self) -> Result<Vec<Group>, Fault> {
        if let Some(workload) = &self.recorded {
            return Ok(Builder::recorded_groups(workload));
        }
        let scheduler = &self.document.scheduler;
        let weights: u32 = self.document.groups.iter().map(|g| g.weight).sum();
        let weights = u64::from((weights + scheduler.ungrouped_weight).max(1));
        let count = self.topology.processors().len() as u64;
        let generation = self.base.ticks(scheduler.generation.0).max(1) * count;
        let mut groups = Vec::new();
        for group in &self.document.groups {
            let cap = (group.rate_cap).map(|share| (generation as f64 * share.get()) as Time);
            let mut new = Group {
                bias: group.bias,
                background: group.background,
                used: 0,
                budget: generation * u64::from(group.weight) / weights,
                step: self.base.ticks(scheduler.rank_step.0).max(1),
                highest: scheduler.highest_rank,
                cap,
                rank: 0,
                held: Vec::new(),
            };
            new.update();
            groups.push(new);
        }
        Ok(groups)
    }

    fn actions(&mut self) -> Result<Vec<Action>, Fault> {
        let mut actions = Vec::new();
        for action in &self.document.actions {
            let what = match &action.what {
                scenario::What::Set(name) => {
                    What::Set(self.named(name, false, |object| object.set = true)?)
                }
                scenario::What::Key(code) => What::Key(*code),
                scenario::What::Focus(name) => What::Focus(self.process(name)?),
                scenario::What::Freeze(name) => What::Freeze(self.process(name)?),
                scenario::What::Thaw(name) => What::Thaw(self.process(name)?),
                scenario::What::Background(name) => What::Background(self.process(name)?, true),
                scenario::What::Foreground(name) => What::Background(self.process(name)?, false),
                scenario::What::Occlude(name) => What::Visible(self.process(name)?, false),
                scenario::What::Show(name) => What::Visible(self.process(name)?, true),
                scenario::What::Suspend(length) => What::Suspend(self.base.ticks(length.0)),
                scenario::What::Mark(text) => What::Mark(text.clone()),
            };
            actions.push(Action {
                what,
                every: self.base.ticks(action.every.0),
                times: action.times,
            });
        }
        Ok(actions)
    }

    fn windows(&self, end: Time) -> Result<Vec<WindowSums>, Fault> {
        let window = |name: &str, from, to| WindowSums {
            name: name.to_owned(),
            from,
            to,
            routines: BTreeMap::new(),
            parts: BTreeMap::new(),
            processes: vec![0; self.processes.len()],
            priorities: BTreeMap::new(),
        };
        let mut windows = vec![window("trace", 0, NEVER)];
        for (n, said) in self.document.windows.iter().enumerate() {
            let (from, to) = (self.base.ticks(said.from.0), self.base.ticks(said.to.0));
            if from >= end && from < to {
                // The time range is left out if the trace ends before it. The trace can be shorter than the scenario.
                continue;
            }
            if from >= to {
                let message = format!("window `{}` contains no part of the trace", said.name);
                return Err(Fault::in_field("to", message).member("window", n));
            }
            windows.push(window(&said.name, from, to));
        }
        Ok(windows)
    }
}

fn frames(frames: &[&str]) -> Frames {
    Frames(frames.iter().map(|frame| (*frame).to_owned()).collect())
}

fn position<T>(list: &[T], name: &Name, name_of: impl Fn(&T) -> &String) -> Option<usize> {
    list.iter().position(|item| name_of(item) == name.get_ref())
}

fn unknown(what: &str, name: &Name) -> Fault {
    Fault::new(
        name.span(),
        format!("there is no {what} `{}`", name.get_ref()),
    )
}

/// Returns a quantum of `units`. 3 units are a nominal clock tick (15.625 ms), even if the current period of
/// the clock is different.
fn turn(units: u8, base: TimeBase) -> Turn {
    let ns = u64::from(units) * u64::from(DEFAULT_PERIOD) * 100 / 3;
    Turn {
        units,
        ticks: base.ticks(ns) as i64,
    }
}

/// Returns the processors of each processor's core.
fn siblings(topology: &[rules::topology::Processor]) -> Vec<CpuSet> {
    let all = 0..topology.len();
    (topology.iter())
        .map(|place| {
            all.clone()
                .filter(|other| topology[*other].core == place.core)
                .collect()
        })
        .collect()
}

/// Returns all processors sorted by their distance from the processor `from`: first the processors of the
/// same core, then the processors of the same node, then the other processors.
fn nearest_first(topology: &[rules::topology::Processor], from: usize) -> Vec<u16> {
    let mut all: Vec<usize> = (0..topology.len()).collect();
    let here = topology[from];
    all.sort_by_key(|c| {
        let place = topology[*c];
        let after = (c + topology.len() - from) % topology.len();
        (place.node != here.node, place.core != here.core, after)
    });
    all.into_iter().map(|c| c as u16).collect()
}

/// Returns the index of each processor's shared queue, and the set of processors of each shared queue. Since
/// Windows 8, up to four neighbouring processors share a queue. It contains threads that may run on all of
/// these processors (Windows Internals, 7th edition, part 1, chapter 4).
fn shared_queues(
    windows: Windows,
    topology: &[rules::topology::Processor],
) -> (Vec<Option<usize>>, Vec<CpuSet>) {
    if windows == Windows::Seven {
        return (vec![None; topology.len()], Vec::new());
    }
    let mut keys = Vec::new();
    let mut sharers: Vec<CpuSet> = Vec::new();
    let mut shared_by = Vec::new();
    for (c, place) in topology.iter().enumerate() {
        let key = (place.group, place.node, place.number / 4);
        let at = keys
            .iter()
            .position(|other| *other == key)
            .unwrap_or_else(|| {
                keys.push(key);
                sharers.push(CpuSet::default());
                keys.len() - 1
            });
        sharers[at].insert(c);
        shared_by.push(Some(at));
    }
    (shared_by, sharers)
}

/// The idle thread is added before all other threads, so its index must be 0.
const _: () = assert!(IDLE == 0);
