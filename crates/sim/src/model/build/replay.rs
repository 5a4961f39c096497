//! Construction of a model that replays recorded work.

use std::rc::Rc;
use std::sync::Arc;

use super::{Builder, IDLE, build_error, frames};
use crate::log::{Recording, User};
use crate::model::cpu_set::CpuSet;
use crate::model::group::Group;
use crate::model::program::{Instruction, Op, Program};
use crate::model::replay::{FIRST_PROCESS, FIRST_THREAD, ReplayState};
use crate::model::{Model, ProcessLabel, RunError};
use crate::quantity::Nanoseconds;
use crate::replay::{Nowhere, Options, Workload};
use crate::scenario::{Amount, Document, Fault, Machine, Scheduler, Trouble};
use crate::time::{NEVER, Time};
use crate::windows::Windows;

/// Frequency of the model's clock during a replay, in ticks per second: that of the clock of Windows 10.
const CLOCK_HZ: u64 = 10_000_000;

/// Builds a model that replays a workload, which was checked.
pub(crate) fn build_replay(
    workload: &Arc<Workload>,
    options: &Options,
) -> Result<Model<Nowhere>, RunError> {
    let machine = &workload.machine;
    let document = Document {
        title: String::new(),
        about: String::new(),
        seed: 1,
        duration: Nanoseconds(workload.duration_ns),
        events: None,
        machine: Machine {
            windows: Windows::of_build(machine.build),
            server: machine.server,
            processors: machine.cpus,
            threads_per_core: machine.threads_per_core.max(1),
            nodes: machine.nodes.max(1),
            clock_hz: CLOCK_HZ,
            win32_priority_separation: machine.priority_separation,
            global_timer_requests: machine.global_timer_requests,
            ..Machine::default()
        },
        scheduler: Scheduler {
            timer_expiry: Nanoseconds(machine.timer_expiry_ns),
            short_slice: machine.short_slice_ns.map(Nanoseconds),
            ..Scheduler::default()
        },
        record: Recording {
            kernel: Vec::new(),
            stacks: Vec::new(),
            providers: Vec::new(),
            sampling_interval: 0,
            buffer_kib: 4,
            ..Recording::default()
        },
        trouble: Trouble::default(),
        groups: Vec::new(),
        processes: Vec::new(),
        disks: Vec::new(),
        nics: Vec::new(),
        devices: Vec::new(),
        flows: Vec::new(),
        actions: Vec::new(),
        windows: Vec::new(),
    };
    let mut builder = Builder::new(&document, 1).map_err(|fault| RunError::Stuck(fault.message))?;
    builder.recorded = Some(Arc::clone(workload));
    let base = builder.base;
    let mut model = builder.build(Nowhere::default()).map_err(build_error)?;

    let ticks = |ns: u64| base.ticks(ns);
    let start = |n: usize| match &options.starts {
        Some(starts) => starts.get(n).copied().flatten(),
        None => workload.interrupts[n].at_ns,
    };
    let mut order: Vec<(Time, u32)> = (0..workload.interrupts.len())
        .filter_map(|n| Some((ticks(start(n)?), n as u32)))
        .collect();
    order.sort_by_key(|(at, _)| *at);
    let measured = match &options.measured {
        Some(range) => ticks(range.start)..ticks(range.end),
        None => 0..NEVER,
    };
    let mut groups = vec![None; workload.processes.len()];
    for process in workload.ranked() {
        groups[process as usize] = model.processes[FIRST_PROCESS + process as usize].group;
    }
    model.recorded = ReplayState::new(workload, order, measured, groups);
    model.recorded.closed = options.closed;
    model.clock.set_phase(machine.clock_phase_ns / 100);
    Ok(model)
}

impl Builder<'_> {
    /// Adds the recorded processes, and a scheduling group for each process whose rank was recorded.
    pub(super) fn add_recorded_processes(&mut self, workload: &Workload) -> Result<(), Fault> {
        let ranked = workload.ranked();
        let mut groups = 0..;
        for (n, recorded) in workload.processes.iter().enumerate() {
            let group = if ranked.contains(&(n as u32)) {
                groups.next()
            } else {
                None
            };
            // Two recorded processes can have the same id, because Windows reuses ids. So each process gets a new id.
            let process = self.add_process(1_000 + n as u32, "", group, recorded.idle_class)?;
            debug_assert_eq!(process, FIRST_PROCESS + n);
            self.labels.processes.push(ProcessLabel {
                session: 1,
                command_line: String::new(),
                user: User::Person,
            });
        }
        Ok(())
    }

    /// Returns the scheduling groups of recorded processes. Their ranks change only when the recorded ranks did.
    pub(super) fn recorded_groups(workload: &Workload) -> Vec<Group> {
        let group = |_| Group {
            bias: 0,
            background: true,
            used: 0,
            // The used time never exceeds this budget, so the rank is always the bias.
            budget: NEVER / 4,
            step: 1,
            highest: u8::MAX,
            cap: None,
            rank: 0,
            held: Vec::new(),
        };
        workload.ranked().into_iter().map(group).collect()
    }

    pub(super) fn add_recorded_threads(&mut self, workload: &Workload) -> Result<(), Fault> {
        let body = self.body(None, vec![frames(&["ntoskrnl.exe!KiIdleLoop"])])?;
        let steps = Instruction {
            op: Op::Recorded,
            body: None,
            measure: None,
        };
        let program = Rc::new(Program(vec![steps]));
        let cpus = usize::from(workload.machine.cpus);
        for (n, thread) in workload.threads.iter().enumerate() {
            let process = FIRST_PROCESS + thread.process as usize;
            let id = FIRST_THREAD + n;
            let program = Rc::clone(&program);
            let t = self.add_thread(id as u32, process, thread.base_priority, body, program, "");
            debug_assert!(t == id && t != IDLE);
            let new = &mut self.threads[t];
            new.affinity = match &thread.affinity {
                None => CpuSet::first(cpus),
                Some(some) => some.iter().map(|cpu| usize::from(*cpu)).collect(),
            };
            new.ideal = usize::from(thread.ideal);
            new.last_cpu = usize::from(thread.first_cpu);
            if let Some(at) = thread.starts_ns {
                self.starts.push((t, Amount::Fixed(Nanoseconds(at))));
            }
        }
        Ok(())
    }
}
