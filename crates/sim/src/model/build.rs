//! From a scenario to a model: names become indices, durations ticks, programs flat lists.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Cursor, Seek, Write};
use std::num::NonZero;
use std::rc::Rc;

use super::action::{Action, What};
use super::agenda::Agenda;
use super::cpu_set::CpuSet;
use super::device::{Device, Pace};
use super::disk::Disk;
use super::group::Group;
use super::interrupt::MAX_PARTS;
use super::network::{Flow, Layer, Nic, NicQueue, peer_address};
use super::processor::Processor;
use super::program::{Instruction, Object, Op, Program};
use super::ready_queue::ReadyQueue;
use super::thread::{Process, Queue, State, Thread};
use super::{
    Body, BodyId, IDLE, Labels, Model, ProcessId, ProcessLabel, RoutineId, RunError, Site, Source,
    ThreadId, Turn, Turns,
};
use crate::clock::{ClockInterrupt, DEFAULT_PERIOD};
use crate::flow::Flow as Tuple;
use crate::log::{Computer, Cpu, DiskAction, Log, Modules, User};
use crate::quantity::Nanoseconds;
use crate::quantum::{IDLE_CLASS_UNITS, Win32PrioritySeparation};
use crate::random::Random;
use crate::rss::four_tuple_hash;
use crate::scenario::{
    self, Account, Amount, Document, Fault, Frames, Name, PriorityClass, Routine, Step, ThreadSpec,
    Verb, WaitReason,
};
use crate::time::{NEVER, Time, TimeBase};
use crate::topology::Topology;
use crate::truth::{DiskSums, FlowSums, Gap, ProcessorTime, Truth, Watched, WindowSums};
use crate::windows::Windows;

/// Process 0 is the Idle process, whose only thread is every processor's idle thread.
pub(crate) const IDLE_PROCESS: ProcessId = 0;
/// The System process, which every machine has.
pub(crate) const SYSTEM: ProcessId = 1;
const SYSTEM_PID: u32 = 4;

/// The short slice seen on build 26200: 1.736 ms, one ninth of a clock tick.
const SHORT_SLICE: Nanoseconds = Nanoseconds(1_736_000);

/// How long the machine has been up when the trace begins: an hour, in 100 ns.
const UP: u64 = 3_600 * 10_000_000;

/// Whether a scenario can be built: what it names is there, and it makes sense.
pub(crate) fn check(document: &Document) -> Result<(), Fault> {
    match Builder::new(document, document.seed)?.build(Cursor::new(Vec::new())) {
        Ok(_) => Ok(()),
        Err(BuildError::Fault(fault)) => Err(fault),
        Err(BuildError::Write(error)) => Err(Fault::of("record", error.to_string())),
    }
}

/// Builds a scenario's model, which logs to `out`.
pub(crate) fn build<W: Write + Seek>(
    document: &Document,
    seed: u64,
    out: W,
) -> Result<Model<W>, RunError> {
    let stuck = |fault: Fault| RunError::Stuck(fault.message);
    let builder = Builder::new(document, seed).map_err(stuck)?;
    builder.build(out).map_err(|error| match error {
        BuildError::Fault(fault) => stuck(fault),
        BuildError::Write(error) => error.into(),
    })
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

/// A model in the making.
struct Builder<'a> {
    document: &'a Document,
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

/// An object that programs name.
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
        .map_err(|e| Fault::of(e.field(), e.to_string()).inside("machine"))?;
        Ok(Builder {
            document,
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

        self.add_processes()?;
        for _ in &document.flows {
            let object = self.object(u32::MAX, 0);
            self.flow_objects.push(object);
        }
        let clock_body = self.body(
            None,
            vec![frames(&[
                "ntoskrnl.exe!KiTimerExpiration",
                "ntoskrnl.exe!KiIdleLoop",
            ])],
        )?;
        self.routine("ntoskrnl.exe!KiTimerExpiration")?;
        self.add_threads()?;
        let cpus = self.processors()?;
        let disks = self.disks()?;
        let nics = self.nics()?;
        let flows = self.flows(&nics)?;
        let devices = self.devices()?;
        let groups = self.groups(end)?;
        let actions = self.actions()?;
        let windows = self.windows(end)?;
        for (name, object) in &self.by_name {
            let what = if object.is_lock { "lock" } else { "object" };
            let message = match (object.set, object.awaited) {
                (true, true) => continue,
                (true, false) => format!("nothing waits for the {what} `{name}`"),
                (false, _) => format!("nothing sets the {what} `{name}`"),
            };
            return Err(Fault::new(object.span.clone(), message).into());
        }

        let quantum =
            Win32PrioritySeparation(machine.win32_priority_separation).decode(machine.server);
        let turn = |units: u8| {
            // 3 units are one nominal clock tick, whatever the clock's period is now.
            let ns = u64::from(units) * u64::from(DEFAULT_PERIOD) * 100 / 3;
            Turn {
                units,
                ticks: base.ticks(ns) as i64,
            }
        };
        let turns = Turns {
            foreground: turn(quantum.foreground_units),
            background: turn(quantum.background_units),
            idle: turn(IDLE_CLASS_UNITS),
        };
        for thread in &mut self.threads {
            thread.quantum = turns.of(&self.processes[thread.process]).ticks;
        }
        let scheduler = document.scheduler.clone();
        let short_slice = scheduler
            .short_slice
            .or((machine.windows >= Windows::Eleven25H2).then_some(SHORT_SLICE));

        let count = self.topology.processors().len();
        let topology = self.topology.processors().to_vec();
        let siblings = (0..count)
            .map(|c| {
                (0..count)
                    .filter(|o| topology[*o].core == topology[c].core)
                    .collect()
            })
            .collect();
        let near = (0..count).map(|c| nearest_first(&topology, c)).collect();
        let (shared_by, sharers) = shared_queues(machine.windows, &topology);

        let computer = Computer {
            windows: machine.windows,
            server: machine.server,
            name: machine.name.clone(),
            cpus: topology
                .iter()
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
        };
        let mut clock = ClockInterrupt::new(
            machine.windows,
            NonZero::new(machine.clock_hz).unwrap_or(NonZero::<u64>::MIN),
            machine.global_timer_requests,
        );
        for (spec, process) in document.processes.iter().zip(self.spec_processes()) {
            if spec.ignores_occlusion {
                clock.set_always_honoured(0, self.processes[process].id, true);
            }
        }
        let focus = self.processes.iter().position(|p| p.foreground);
        let mut truth = Truth {
            processors: vec![ProcessorTime::default(); count],
            windows,
            measures: (self.measures.iter())
                .map(|name| (name.clone(), Vec::new(), 0))
                .collect(),
            flows: vec![FlowSums::default(); flows.len()],
            disks: vec![DiskSums::default(); disks.len()],
            samples: vec![0; self.processes.len()],
            ..Truth::default()
        };
        for (t, thread) in self.threads.iter().enumerate().filter(|(_, t)| t.watched) {
            truth.watched.insert(t, Watched::default());
            truth.gaps.insert(thread.process, Gap::default());
        }
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
            short_slice: short_slice.map(|slice| base.ticks(slice.0).max(1)),
            generation: base.ticks(scheduler.generation.0).max(1),
            starvation_wait: base.ticks(scheduler.starvation_wait.0),
            starvation_quantum: turn(3).ticks * i64::from(scheduler.starvation_ticks),
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
            focus: focus.unwrap_or(SYSTEM),
            sampling: Some(document.record.sampling_interval)
                .filter(|interval| *interval > 0)
                .map(|interval| base.ticks(u64::from(interval) * 100).max(1)),
            suspended_until: None,
            accounted: 0,
            frame: Vec::new(),
        };
        model.plan(document, &self.starts);
        Ok(model)
    }

    /// The Idle and System processes, and the scenario's.
    fn add_processes(&mut self) -> Result<(), Fault> {
        self.add_process(IDLE_PROCESS as u32, "Idle", None, false)?;
        self.add_process(SYSTEM_PID, "System", None, false)?;
        self.labels.processes = [u32::MAX, 0]
            .map(|session| ProcessLabel {
                session,
                command_line: String::new(),
                user: User::LocalSystem,
            })
            .into();
        let mut focused = false;
        for (n, spec) in self.document.processes.iter().enumerate() {
            let group = match &spec.group {
                None => None,
                Some(name) => Some(
                    position(&self.document.groups, name, |g| &g.name)
                        .ok_or_else(|| unknown("group", name))?,
                ),
            };
            if spec.name == "System" {
                continue;
            }
            let id = match spec.id {
                Some(id) => id,
                None => self.new_id(),
            };
            if self.processes.iter().any(|process| process.id == id) {
                let message = format!("process id {id} of {} is another's already", spec.name);
                return Err(Fault::of("id", message).member("process", n));
            }
            if spec.focus && focused {
                let message = "only one process can have the `focus`, and one before has it";
                return Err(Fault::of("focus", message).member("process", n));
            }
            focused |= spec.focus;
            let is_idle = spec.class == PriorityClass::Idle;
            let process = self.add_process(id, &spec.name, group, is_idle)?;
            self.processes[process].foreground = spec.focus;
            self.processes[process].starts = spec.start.map(|at| self.base.ticks(at.0));
            self.processes[process].alive = spec.start.is_none();
            self.labels.processes.push(ProcessLabel {
                session: spec.session,
                command_line: spec.command_line.clone().unwrap_or_default(),
                user: match spec.user {
                    Account::Person => User::Person,
                    Account::System => User::LocalSystem,
                    Account::LocalService => User::LocalService,
                    Account::NetworkService => User::NetworkService,
                },
            });
            let map = |error: crate::log::FrameError| {
                Fault::of("name", error.to_string()).member("process", n)
            };
            self.modules.map(Some(id), &spec.name).map_err(map)?;
            self.modules.map(Some(id), "ntdll.dll").map_err(map)?;
            if let Some(name) = &spec.service {
                self.labels.services.push((process, name.clone()));
            }
            if let Some(path) = &spec.path {
                self.modules
                    .set_path(Some(id), &spec.name, path)
                    .map_err(map)?;
            }
        }
        Ok(())
    }

    fn add_process(
        &mut self,
        id: u32,
        name: &str,
        group: Option<usize>,
        is_idle_class: bool,
    ) -> Result<ProcessId, Fault> {
        let messages = self.object(u32::MAX, 0);
        self.processes.push(Process {
            id,
            name: name.to_owned(),
            group,
            is_idle_class,
            starts: None,
            alive: true,
            foreground: false,
            frozen: false,
            messages,
            threads: Vec::new(),
        });
        Ok(self.processes.len() - 1)
    }

    /// The process of each of the scenario's, in its order.
    fn spec_processes(&self) -> Vec<ProcessId> {
        let mut next = SYSTEM;
        let process = |spec: &scenario::Process| {
            if spec.name == "System" {
                return SYSTEM;
            }
            next += 1;
            next
        };
        self.document.processes.iter().map(process).collect()
    }

    fn add_threads(&mut self) -> Result<(), Fault> {
        let idle_body = self.body(None, vec![frames(&["ntoskrnl.exe!KiIdleLoop"])])?;
        let program = Rc::new(Program::default());
        self.add_thread(0, IDLE_PROCESS, 0, idle_body, program, "Idle");
        let specs = self.document.processes.iter().zip(self.spec_processes());
        for (p, (spec, process)) in specs.enumerate() {
            for (n, thread) in spec.threads.iter().enumerate() {
                self.add_spec_threads(spec, process, thread)
                    .map_err(|fault| fault.member("thread", n).member("process", p))?;
            }
        }
        Ok(())
    }

    fn add_spec_threads(
        &mut self,
        spec: &scenario::Process,
        process: ProcessId,
        thread: &ThreadSpec,
    ) -> Result<(), Fault> {
        let priority = thread.priority.unwrap_or(spec.class.base());
        let affinity = match &thread.affinity {
            None => self.usual_affinity(process),
            Some(cpus) => cpus.iter().map(|cpu| usize::from(*cpu)).collect(),
        };
        let owner = self.owner(process);
        let home = match thread.frames.0.is_empty() {
            true if owner.is_none() => frames(&["ntoskrnl.exe!PspSystemThreadStartup"]),
            true => Frames(vec![
                format!("{}!main", spec.name),
                "ntdll.dll!RtlUserThreadStart".into(),
            ]),
            false => thread.frames.clone(),
        };
        let home_body = self.body(owner, vec![home.clone()])?;
        let mut program = Program::default();
        self.compile(
            process,
            &home,
            ("program", &thread.program),
            false,
            &mut program,
        )?;
        let program = Rc::new(program);
        for n in 0..thread.count {
            let id = self.new_id();
            let t = self.add_thread(
                id,
                process,
                priority,
                home_body,
                Rc::clone(&program),
                &thread.name,
            );
            let place = self.ideal(process, self.processes[process].threads.len() - 1);
            let named = format!("thread {} {} {} {n}", spec.name, thread.name, self.seed);
            let new = &mut self.threads[t];
            new.affinity = affinity;
            new.ideal = thread.ideal.map_or(place, usize::from);
            new.last_cpu = new.ideal;
            new.watched = thread.watch;
            new.stack_paged_out = thread.stack_paged_out;
            new.random = Random::new(self.seed, &named);
            self.starts.push((t, thread.start));
        }
        Ok(())
    }

    /// Ideal processors of a process's threads go from core to core, first threads of a core
    /// before its others, from a core that differs by process.
    fn ideal(&self, process: ProcessId, nth: usize) -> usize {
        let places = self.topology.processors();
        let firsts = (0..places.len()).filter(|c| !places[*c].smt_sibling);
        let others = (0..places.len()).filter(|c| places[*c].smt_sibling);
        let order: Vec<usize> = firsts.chain(others).collect();
        order[(process * 3 + nth) % order.len()]
    }

    /// The processors that a process's threads may use: since Windows 11 all of them, before that
    /// those of one processor group, which processes get in turn ("Processor Groups", Windows
    /// documentation).
    fn usual_affinity(&self, process: ProcessId) -> CpuSet {
        let places = self.topology.processors();
        let groups = 1 + places.iter().map(|place| place.group).max().unwrap_or(0);
        let own = (process % usize::from(groups)) as u16;
        let spans_groups = self.document.machine.windows >= Windows::Eleven23H2;
        (0..places.len())
            .filter(|c| spans_groups || places[*c].group == own)
            .collect()
    }

    fn add_thread(
        &mut self,
        id: u32,
        process: ProcessId,
        priority: u8,
        home: BodyId,
        program: Rc<Program>,
        name: &str,
    ) -> ThreadId {
        let t = self.threads.len();
        self.threads.push(Thread {
            id,
            process,
            base: priority,
            priority,
            foreground_boost: 0,
            unusual_boost: 0,
            affinity: CpuSet::default(),
            ideal: 0,
            last_cpu: 0,
            state: State::Initialized,
            queue: (Queue::Local(0), 0),
            wait: 0,
            waits_for: None,
            wait_reason: WaitReason::Executive,
            waiting_since: 0,
            ready_since: 0,
            quantum: 0,
            burst: 0,
            body: home,
            home,
            stack_paged_out: false,
            frozen: false,
            suspended: false,
            program,
            next: 0,
            loops: Vec::new(),
            stop: None,
            measuring: None,
            random: Random::new(self.seed, name),
            watched: false,
            cpu_time: 0,
            switches: 0,
        });
        self.labels.threads.push(name.to_owned());
        self.processes[process].threads.push(t);
        t
    }

    /// Ids of processes and threads are of one sequence of multiples of 4.
    fn new_id(&mut self) -> u32 {
        loop {
            self.next_id += 4;
            let id = self.next_id;
            if !self.document.processes.iter().any(|p| p.id == Some(id)) {
                return id;
            }
        }
    }

    /// Whose code a process's threads run: none but the kernel's in the System process.
    fn owner(&self, process: ProcessId) -> Option<u32> {
        (process > SYSTEM).then(|| self.processes[process].id)
    }

    // Programs.

    /// Compiles the steps of a field.
    fn compile(
        &mut self,
        process: ProcessId,
        home: &Frames,
        (field, steps): (&str, &[Step]),
        in_timed_loop: bool,
        program: &mut Program,
    ) -> Result<(), Fault> {
        for (n, step) in steps.iter().enumerate() {
            self.compile_step(process, home, step, in_timed_loop, program)
                .map_err(|fault| fault.member(field, n))?;
        }
        Ok(())
    }

    fn compile_step(
        &mut self,
        process: ProcessId,
        home: &Frames,
        step: &Step,
        in_timed_loop: bool,
        program: &mut Program,
    ) -> Result<(), Fault> {
        {
            let body = match step.frames.0.is_empty() {
                true => None,
                false => {
                    let stack = step.frames.0.iter().chain(&home.0).cloned().collect();
                    Some(self.body(self.owner(process), vec![Frames(stack)])?)
                }
            };
            let measure = step.measure.as_ref().map(|name| {
                let known = self.measures.iter().position(|other| other == name);
                known.unwrap_or_else(|| {
                    self.measures.push(name.clone());
                    self.measures.len() - 1
                })
            });
            let mut push = |op| {
                program.0.push(Instruction { op, body, measure });
            };
            match &step.verb {
                Verb::Run(amount) => push(Op::Run(*amount)),
                Verb::Sleep(amount) => push(Op::Sleep(*amount)),
                Verb::Until(moment) => push(Op::Until(self.base.ticks(moment.0))),
                Verb::Wait {
                    object,
                    timeout,
                    reason,
                } => {
                    let object = self.named(object, false, |object| object.awaited = true)?;
                    push(Op::Wait {
                        object,
                        timeout: *timeout,
                        reason: *reason,
                    });
                }
                Verb::Set { object, boost } => {
                    let object = self.named(object, false, |object| object.set = true)?;
                    push(Op::Set {
                        object,
                        boost: *boost,
                    });
                }
                Verb::Acquire { lock, reason } => {
                    let lock = self.named(lock, true, |lock| lock.awaited = true)?;
                    push(Op::Acquire {
                        lock,
                        reason: *reason,
                    });
                }
                Verb::Release(lock) => {
                    let lock = self.named(lock, true, |lock| lock.set = true)?;
                    push(Op::Release(lock));
                }
                Verb::Transfer {
                    write,
                    bytes,
                    disk,
                    file,
                } => {
                    let disk = self.disk(*disk)?;
                    let file = file.as_ref().map_or(0, |file| self.file(file));
                    push(Op::Transfer {
                        action: match write {
                            true => DiskAction::Write,
                            false => DiskAction::Read,
                        },
                        bytes: bytes.0 as u32,
                        disk,
                        file,
                    });
                }
                Verb::Flush(disk) => push(Op::Transfer {
                    action: DiskAction::Flush,
                    bytes: 0,
                    disk: self.disk(*disk)?,
                    file: 0,
                }),
                Verb::Fault { bytes, disk, file } => {
                    let disk = self.disk(*disk)?;
                    let file = self.file(file);
                    let bytes = bytes.0 as u32;
                    push(Op::Fault { bytes, disk, file });
                    push(Op::FaultDone { bytes, file });
                }
                Verb::Send { flow, bytes } => {
                    let flow = self.flow(flow)?;
                    let default = self.document.flows[flow].bytes.0;
                    let bytes = bytes.map_or(default, |bytes| bytes.0) as u32;
                    push(Op::Send { flow });
                    push(Op::Sent { flow, bytes });
                }
                Verb::Receive(flow) => {
                    let flow = self.flow(flow)?;
                    push(Op::Wait {
                        object: self.flow_objects[flow],
                        timeout: None,
                        reason: WaitReason::WrQueue,
                    });
                }
                Verb::Reply(flow) => push(Op::Reply(self.flow(flow)?)),
                Verb::Message => push(Op::Wait {
                    object: self.processes[process].messages,
                    timeout: None,
                    reason: WaitReason::WrUserRequest,
                }),
                Verb::Post(other) => push(Op::Set {
                    object: self.processes[self.process(other)?].messages,
                    boost: 2,
                }),
                Verb::Resolution(resolution) => {
                    let units = resolution.map(|ns| u32::try_from(ns.0 / 100).unwrap_or(u32::MAX));
                    push(Op::Resolution(units));
                }
                Verb::Background(is) => push(Op::Background(*is)),
                Verb::Focus(other) => push(Op::Focus(self.process(other)?)),
                Verb::Freeze(other) => push(Op::Freeze(self.process(other)?)),
                Verb::Thaw(other) => push(Op::Thaw(self.process(other)?)),
                Verb::Priority(priority) => push(Op::Priority(*priority)),
                Verb::Mark(text) => push(Op::Mark(text.clone())),
                Verb::Yield => push(Op::Yield),
                Verb::Exit => push(Op::Exit),
                Verb::Repeat { times, stop, steps } => {
                    if stop.is_some() && in_timed_loop {
                        let message = "a loop with a `stop` cannot be inside another one";
                        return Err(Fault::of("stop", message));
                    }
                    let start = program.0.len();
                    program.0.push(Instruction {
                        op: Op::Exit,
                        body: None,
                        measure: None,
                    });
                    let timed = in_timed_loop || stop.is_some();
                    let field = if times.is_some() { "steps" } else { "forever" };
                    self.compile(process, home, (field, steps), timed, program)?;
                    program.0.push(Instruction {
                        op: Op::Again(start + 1),
                        body: None,
                        measure: None,
                    });
                    program.0[start].op = Op::Loop {
                        times: *times,
                        stop: stop.map(|stop| self.base.ticks(stop.0)),
                        end: program.0.len(),
                    };
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, limit: u32, count: u32) -> usize {
        self.objects.push(Object {
            count,
            limit,
            waiters: VecDeque::new(),
        });
        self.objects.len() - 1
    }

    fn named(
        &mut self,
        name: &Name,
        is_lock: bool,
        used: impl FnOnce(&mut NamedObject),
    ) -> Result<usize, Fault> {
        if !self.by_name.contains_key(name.get_ref()) {
            let index = self.object(1, u32::from(is_lock));
            let object = NamedObject {
                index,
                is_lock,
                set: false,
                awaited: false,
                span: name.span(),
            };
            self.by_name.insert(name.get_ref().clone(), object);
        }
        match self.by_name.get_mut(name.get_ref()) {
            Some(object) if object.is_lock == is_lock => {
                used(object);
                Ok(object.index)
            }
            _ => Err(Fault::new(
                name.span(),
                format!("`{}` is a lock here and none there", name.get_ref()),
            )),
        }
    }

    fn process(&self, name: &Name) -> Result<ProcessId, Fault> {
        let process = self
            .processes
            .iter()
            .position(|p| p.name == *name.get_ref());
        process.ok_or_else(|| unknown("process", name))
    }

    fn flow(&self, name: &Name) -> Result<usize, Fault> {
        position(&self.document.flows, name, |f| &f.name).ok_or_else(|| unknown("flow", name))
    }

    fn disk(&self, number: u32) -> Result<usize, Fault> {
        let disk = self.document.disks.iter().position(|d| d.number == number);
        disk.ok_or_else(|| Fault::of("disk", format!("there is no disk {number}: say `[[disk]]`")))
    }

    /// The index of a file's name, from 1.
    fn file(&mut self, name: &str) -> u32 {
        let known = self.labels.files.iter().position(|file| file == name);
        let at = known.unwrap_or_else(|| {
            self.labels.files.push(name.to_owned());
            self.labels.files.len() - 1
        });
        at as u32 + 1
    }

    // Code.

    /// Where some parts of work are on the stack.
    fn body(&mut self, owner: Option<u32>, parts: Vec<Frames>) -> Result<BodyId, Fault> {
        let key = (owner, parts);
        if let Some(body) = self.by_frames.get(&key) {
            return Ok(*body);
        }
        let mut sites = Vec::new();
        for Frames(frames) in &key.1 {
            let addresses: Result<Vec<u64>, _> = frames
                .iter()
                .map(|frame| self.modules.frame(owner, frame))
                .collect();
            let addresses = addresses.map_err(|e| Fault::of("in", e.to_string()))?;
            sites.push(Site {
                address: addresses.first().copied().unwrap_or(0),
                stack: self.modules.stack(&addresses),
            });
        }
        self.bodies.push(Body { parts: sites });
        let innermost = |frames: &Frames| frames.0.first().cloned().unwrap_or_default();
        self.labels
            .parts
            .push(key.1.iter().map(innermost).collect());
        self.by_frames.insert(key, self.bodies.len() - 1);
        Ok(self.bodies.len() - 1)
    }

    /// A routine of the kernel.
    fn routine(&mut self, name: &str) -> Result<RoutineId, Fault> {
        if let Some(known) = self.labels.routines.iter().position(|other| other == name) {
            return Ok(known);
        }
        let address = self.modules.function(None, name);
        self.routines
            .push(address.map_err(|e| Fault::of("in", e.to_string()))?);
        self.labels.routines.push(name.to_owned());
        Ok(self.routines.len() - 1)
    }

    /// A routine as a scenario describes it: its outermost frame is what Windows calls.
    fn source(&mut self, routine: &Routine, caller: &str) -> Result<Source, Fault> {
        let outermost = routine.frames.0.last();
        let name = outermost.ok_or_else(|| Fault::of("in", "a routine names its frames: `in`"))?;
        let routine_id = self.routine(name)?;
        let stack = routine.frames.0.iter().cloned();
        let stack = stack.chain([format!("ntoskrnl.exe!{caller}")]).collect();
        Ok(Source {
            routine: routine_id,
            body: self.body(None, vec![Frames(stack)])?,
            cost: routine.cost,
        })
    }

    fn isr(&mut self, routine: &Routine) -> Result<Source, Fault> {
        self.source(routine, "KiInterruptDispatch")
    }

    fn dpc(&mut self, routine: &Routine) -> Result<Source, Fault> {
        self.source(routine, "KiExecuteAllDpcs")
    }

    // Devices.

    fn processors(&mut self) -> Result<Vec<Processor>, Fault> {
        let threaded = self.document.devices.iter().any(|device| device.threaded);
        let mut cpus = Vec::new();
        for c in 0..self.topology.processors().len() {
            let mut cpu = Processor::new();
            if threaded {
                cpu.dpc_object = self.object(1, 0);
                self.add_dpc_thread(c, cpu.dpc_object)?;
            }
            cpus.push(cpu);
        }
        Ok(cpus)
    }

    /// Threaded DPCs run in a thread of each processor at the highest priority.
    fn add_dpc_thread(&mut self, c: usize, object: usize) -> Result<(), Fault> {
        let home = frames(&[
            "ntoskrnl.exe!KiExecuteDpc",
            "ntoskrnl.exe!PspSystemThreadStartup",
        ]);
        let body = self.body(None, vec![home])?;
        let ops = [
            Op::Loop {
                times: None,
                stop: None,
                end: 4,
            },
            Op::Wait {
                object,
                timeout: None,
                reason: WaitReason::Executive,
            },
            Op::ThreadedDpc(c),
            Op::Again(1),
        ];
        let program = Program(
            ops.into_iter()
                .map(|op| Instruction {
                    op,
                    body: None,
                    measure: None,
                })
                .collect(),
        );
        let id = self.new_id();
        let t = self.add_thread(id, SYSTEM, 31, body, Rc::new(program), "DPC thread");
        let thread = &mut self.threads[t];
        thread.affinity = [c].into_iter().collect();
        thread.ideal = c;
        thread.last_cpu = c;
        self.starts.push((t, Amount::Fixed(Nanoseconds(0))));
        Ok(())
    }

    fn disks(&mut self) -> Result<Vec<Disk>, Fault> {
        let mut disks = Vec::new();
        for (n, disk) in self.document.disks.iter().enumerate() {
            let at = |field| move |fault: Fault| fault.inside(field).member("disk", n);
            disks.push(Disk {
                number: disk.number,
                queue_depth: disk.queue_depth as usize,
                service: disk.service,
                bytes_per_second: disk.bytes_per_second.0,
                isr: self.isr(&disk.isr).map_err(at("isr"))?,
                dpc: self.dpc(&disk.dpc).map_err(at("dpc"))?,
                cpu: disk.cpu.into(),
                random: Random::new(self.seed, &format!("disk {}", disk.number)),
                waiting: VecDeque::new(),
                served: Vec::new(),
                link_free: 0,
                position: 1 << 30,
                transfers: 0,
            });
        }
        Ok(disks)
    }

    fn nics(&mut self) -> Result<Vec<Nic>, Fault> {
        let mut nics = Vec::new();
        for (n, nic) in self.document.nics.iter().enumerate() {
            let at = |fault: Fault| fault.member("nic", n);
            if nic.layers.is_empty() || nic.layers.len() > MAX_PARTS {
                let message = format!(
                    "adapter `{}`: its DPC has 1 to {MAX_PARTS} `layer`s, not {}",
                    nic.name,
                    nic.layers.len()
                );
                return Err(at(Fault::of("layer", message)));
            }
            for (l, layer) in nic.layers.iter().enumerate() {
                if layer.frames.0.is_empty() {
                    let fault = Fault::of("in", "a layer names its frames: `in`");
                    return Err(at(fault.member("layer", l)));
                }
            }
            let cpus = nic
                .rss
                .processors(&self.topology)
                .map_err(|e| at(Fault::of("rss", format!("adapter `{}`: {e}", nic.name))))?;
            let stacks = nic.layers.iter().map(|layer| {
                let stack = layer.frames.0.iter().cloned();
                Frames(
                    stack
                        .chain(["ntoskrnl.exe!KiExecuteAllDpcs".into()])
                        .collect(),
                )
            });
            let in_layer = |fault: Fault| at(fault.inside("layer"));
            let body = self.body(None, stacks.collect()).map_err(in_layer)?;
            let first = nic.layers[0].frames.0.last().cloned().unwrap_or_default();
            nics.push(Nic {
                isr: (self.isr(&nic.isr)).map_err(|fault| at(fault.inside("isr")))?,
                dpc_routine: self.routine(&first).map_err(in_layer)?,
                dpc_body: body,
                layers: (nic.layers.iter())
                    .map(|layer| Layer {
                        per_dpc: layer.per_dpc,
                        per_packet: layer.per_packet,
                        per_kib: layer.per_kib,
                    })
                    .collect(),
                moderation: self.base.ticks(nic.moderation.0),
                coalesce: nic.coalesce,
                queues: cpus
                    .into_iter()
                    .map(|cpu| NicQueue {
                        cpu,
                        waiting: VecDeque::new(),
                        in_hand: Vec::new(),
                        busy: false,
                        may_interrupt: 0,
                        moderated: false,
                    })
                    .collect(),
                random: Random::new(self.seed, &format!("nic {}", nic.name)),
            });
        }
        Ok(nics)
    }

    fn flows(&mut self, nics: &[Nic]) -> Result<Vec<Flow>, Fault> {
        let mut flows = Vec::new();
        for (at, flow) in self.document.flows.iter().enumerate() {
            let nic = position(&self.document.nics, &flow.nic, |n| &n.name)
                .ok_or_else(|| unknown("adapter", &flow.nic))?;
            let wrong = |message: String| Fault::of("nic", message).member("flow", at);
            let table = self.document.nics[nic]
                .rss
                .indirection_table(&self.topology)
                .map_err(|e| wrong(e.to_string()))?;
            let mut queues = Vec::new();
            for peer in 0..flow.peers {
                let from = peer_address(flow.remote, peer);
                let tuple = Tuple::new(from, flow.local).map_err(|e| wrong(e.to_string()))?;
                let cpu = table.processor_for(four_tuple_hash(&tuple));
                let queue = nics[nic].queues.iter().position(|queue| queue.cpu == cpu);
                queues.push(queue.unwrap_or(0));
            }
            let process = match &flow.process {
                Some(name) => self.process(name)?,
                None => SYSTEM,
            };
            let pace = self.pace(flow.every, flow.count, flow.from, flow.to);
            flows.push(Flow {
                nic,
                process,
                tcp: flow.tcp,
                local: flow.local,
                remote: flow.remote,
                queues,
                bytes: flow.bytes.0 as u32,
                packets: flow.packets,
                pace,
                window: flow.window.unwrap_or(0),
                echo: flow.echo,
                delay: flow.delay,
                think: flow.think,
                loss: flow.loss.map_or(0.0, |loss| loss.get()),
                dscp: flow.dscp,
                bleached: flow.bleached,
                send_cost: flow.send_cost,
                arrived: self.flow_objects[at],
                random: Random::new(self.seed, &format!("flow {}", flow.name)),
                sequence: 0,
            });
            self.labels.flows.push(flow.name.clone());
        }
        Ok(flows)
    }

    fn devices(&mut self) -> Result<Vec<Device>, Fault> {
        let mut devices = Vec::new();
        for (at, device) in self.document.devices.iter().enumerate() {
            let in_device =
                |field: &'static str| move |fault: Fault| fault.inside(field).member("device", at);
            let Some(pace) = self.pace(device.every, device.count, device.from, device.to) else {
                continue;
            };
            let isr = device.isr.as_ref().map(|isr| self.isr(isr)).transpose();
            let isr = isr.map_err(in_device("isr"))?;
            let dpc = device.dpc.as_ref().map(|dpc| self.dpc(dpc)).transpose();
            let dpc = dpc.map_err(in_device("dpc"))?;
            let sets = match &device.sets {
                Some(name) => Some(self.named(name, false, |object| object.set = true)?),
                None => None,
            };
            let random = |what: &str| Random::new(self.seed, &format!("{what} {}", device.name));
            devices.push(Device {
                pace,
                cpus: device.cpus.iter().map(|cpu| usize::from(*cpu)).collect(),
                line: device.line,
                vector: 0xB0 + (at % 0x20) as u16,
                isr,
                dpc,
                importance: device.importance,
                target: device.target.map(usize::from),
                threaded: device.threaded,
                timer: device.timer,
                sets,
                when: random("device"),
                isr_random: random("isr"),
                dpc_random: random("dpc"),
                turn: 0,
            });
        }
        Ok(devices)
    }

    fn pace(
        &self,
        every: Option<Amount>,
        count: Option<u64>,
        from: Nanoseconds,
        to: Option<Nanoseconds>,
    ) -> Option<Pace> {
        let every = match count {
            Some(_) => Amount::Fixed(Nanoseconds(0)),
            None => every?,
        };
        Some(Pace {
            from: self.base.ticks(from.0),
            to: self.base.ticks(to.unwrap_or(self.document.duration).0),
            every,
            count,
            done: 0,
        })
    }

    fn groups(&self, _end: Time) -> Result<Vec<Group>, Fault> {
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
            use scenario::What as Said;
            let what = match &action.what {
                Said::Set(name) => What::Set(self.named(name, false, |object| object.set = true)?),
                Said::Key(code) => What::Key(*code),
                Said::Focus(name) => What::Focus(self.process(name)?),
                Said::Freeze(name) => What::Freeze(self.process(name)?),
                Said::Thaw(name) => What::Thaw(self.process(name)?),
                Said::Background(name) => What::Background(self.process(name)?, true),
                Said::Foreground(name) => What::Background(self.process(name)?, false),
                Said::Occlude(name) => What::Visible(self.process(name)?, false),
                Said::Show(name) => What::Visible(self.process(name)?, true),
                Said::Suspend(length) => What::Suspend(self.base.ticks(length.0)),
                Said::Mark(text) => What::Mark(text.clone()),
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
            if from >= to || from >= end {
                let message = format!("window `{}` holds nothing of the trace", said.name);
                return Err(Fault::of("to", message).member("window", n));
            }
            windows.push(window(&said.name, from, to));
        }
        Ok(windows)
    }
}

fn frames(frames: &[&str]) -> Frames {
    Frames(frames.iter().map(|frame| (*frame).to_owned()).collect())
}

fn position<T>(list: &[T], name: &Name, of: impl Fn(&T) -> &String) -> Option<usize> {
    list.iter().position(|item| of(item) == name.get_ref())
}

fn unknown(what: &str, name: &Name) -> Fault {
    Fault::new(
        name.span(),
        format!("there is no {what} `{}`", name.get_ref()),
    )
}

/// The machine's processors by their distance from one: core, node, the rest.
fn nearest_first(topology: &[crate::topology::Processor], from: usize) -> Vec<u16> {
    let mut all: Vec<usize> = (0..topology.len()).collect();
    let here = topology[from];
    all.sort_by_key(|c| {
        let place = topology[*c];
        let after = (c + topology.len() - from) % topology.len();
        (place.node != here.node, place.core != here.core, after)
    });
    all.into_iter().map(|c| c as u16).collect()
}

/// Since Windows 8, up to four neighbouring processors share a queue for threads that may run on
/// all of them (Windows Internals, 7th edition, part 1, chapter 4).
fn shared_queues(
    windows: Windows,
    topology: &[crate::topology::Processor],
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

/// The idle thread's index is fixed.
const _: () = assert!(IDLE == 0);
