//! Construction of a model's processes and threads.

use std::rc::Rc;

use super::{Builder, IDLE_PROCESS, SYSTEM, SYSTEM_PID, frames, position, unknown};
use crate::log::User;
use crate::model::cpu_set::CpuSet;
use crate::model::dotnet::Runtime;
use crate::model::program::Program;
use crate::model::thread::{Process, Queue, State, Thread};
use crate::model::{BodyId, ProcessId, ProcessLabel, ThreadId};
use crate::random::Random;
use crate::scenario::{self, Account, Fault, Frames, PriorityClass, ThreadSpec, WaitReason};
use crate::windows::Windows;

impl Builder<'_> {
    /// Adds the Idle process, the System process, and the processes of the scenario.
    pub(super) fn add_processes(&mut self) -> Result<(), Fault> {
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
                let message = format!("process id {id} of {} is already used", spec.name);
                return Err(Fault::in_field("id", message).member("process", n));
            }
            if spec.focus && focused {
                let message = "only one process can have the `focus`, and an earlier one has it";
                return Err(Fault::in_field("focus", message).member("process", n));
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
                Fault::in_field("name", error.to_string()).member("process", n)
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

    pub(super) fn add_process(
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
            messages,
            runtime: Runtime::default(),
            threads: Vec::new(),
        });
        Ok(self.processes.len() - 1)
    }

    /// Returns the index of each process of the scenario, in the scenario's order.
    pub(super) fn spec_processes(&self) -> Vec<ProcessId> {
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

    pub(super) fn add_threads(&mut self) -> Result<(), Fault> {
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

    pub(super) fn add_spec_threads(
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

    /// Returns the ideal processor of a process's `nth` thread. Threads are spread over the cores,
    /// and the first logical processors of all cores are used before the second ones. The starting
    /// core depends on the process.
    pub(super) fn ideal(&self, process: ProcessId, nth: usize) -> usize {
        let places = self.topology.processors();
        let firsts = (0..places.len()).filter(|c| !places[*c].smt_sibling);
        let others = (0..places.len()).filter(|c| places[*c].smt_sibling);
        let order: Vec<usize> = firsts.chain(others).collect();
        order[(process * 3 + nth) % order.len()]
    }

    /// Returns the processors that a process's threads may use by default. Since Windows 11, these
    /// are all processors. Before, they are the processors of one processor group, and processes
    /// get the groups in turn ("Processor Groups", Windows documentation).
    pub(super) fn usual_affinity(&self, process: ProcessId) -> CpuSet {
        let places = self.topology.processors();
        let groups = 1 + places.iter().map(|place| place.group).max().unwrap_or(0);
        let own = (process % usize::from(groups)) as u16;
        let spans_groups = self.document.machine.windows >= Windows::Eleven23H2;
        (0..places.len())
            .filter(|c| spans_groups || places[*c].group == own)
            .collect()
    }

    pub(super) fn add_thread(
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

    /// Returns the next free id. Processes and threads share one sequence of ids, the multiples of
    /// 4.
    pub(super) fn new_id(&mut self) -> u32 {
        loop {
            self.next_id += 4;
            let id = self.next_id;
            if !self.document.processes.iter().any(|p| p.id == Some(id)) {
                return id;
            }
        }
    }

    /// Returns the id of the process that owns the code of a process's threads. Returns `None` for
    /// the System process, which runs only kernel code.
    pub(super) fn owner(&self, process: ProcessId) -> Option<u32> {
        (process > SYSTEM).then(|| self.processes[process].id)
    }
}
