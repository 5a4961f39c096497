//! Threads and processes as the dispatcher sees them.

use std::rc::Rc;

use super::cpu_set::CpuSet;
use super::program::Program;
use super::{BodyId, GroupId, ProcessId};
use crate::random::Random;
use crate::scenario::WaitReason;
use crate::time::Time;

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) group: Option<GroupId>,
    /// Threads of the idle class always get the shortest quantum.
    pub(crate) is_idle_class: bool,
    /// When it begins, if it is not there from the start on.
    pub(crate) starts: Option<Time>,
    /// It has begun and not ended.
    pub(crate) alive: bool,
    /// Has the focus: longer quanta and larger boosts.
    pub(crate) foreground: bool,
    /// Object that a message to its windows sets.
    pub(crate) messages: usize,
    pub(crate) threads: Vec<super::ThreadId>,
}

/// What a thread is doing, in the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Initialized = 0,
    Ready = 1,
    Running = 2,
    Standby = 3,
    Terminated = 4,
    Waiting = 5,
    /// Ready, but its kernel stack is not in memory.
    Transition = 6,
}

/// Which queue a ready thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Local(usize),
    Shared(usize),
    /// A processor's queue of a scheduling group.
    Group(usize, GroupId),
}

/// A thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    pub(crate) process: ProcessId,
    pub(crate) base: u8,
    pub(crate) priority: u8,
    /// How much of the priority is due to the focus, and how much to other boosts.
    pub(crate) foreground_boost: u8,
    pub(crate) unusual_boost: u8,
    pub(crate) affinity: CpuSet,
    pub(crate) ideal: usize,
    pub(crate) last_cpu: usize,
    pub(crate) state: State,
    /// Where it is ready, and at what priority.
    pub(crate) queue: (Queue, u8),
    /// Its place among those that wait for an object or a time; changes when the wait ends.
    pub(crate) wait: u32,
    pub(crate) waits_for: Option<usize>,
    pub(crate) wait_reason: WaitReason,
    /// When it last began to wait, and when it was last made ready.
    pub(crate) waiting_since: Time,
    pub(crate) ready_since: Time,
    /// Processor time left of its quantum; below zero when the clock has not looked yet.
    pub(crate) quantum: i64,
    /// Processor time that its present step still needs.
    pub(crate) burst: Time,
    /// What its stack shows.
    pub(crate) body: BodyId,
    /// The thread's own frames, for steps that name none.
    pub(crate) home: BodyId,
    pub(crate) stack_paged_out: bool,
    /// Its process is frozen: it must stop before it does anything else.
    pub(crate) frozen: bool,
    /// It waits for its process to be thawed.
    pub(crate) suspended: bool,

    pub(crate) program: Rc<Program>,
    pub(crate) next: usize,
    /// Repetitions left of the loops that it is in.
    pub(crate) loops: Vec<u32>,
    /// A moment at which the loop that it is in ends, and the step behind it.
    /// Its depth among the loops comes last.
    pub(crate) stop: Option<(Time, usize, usize)>,
    /// A measured step: its name's index, and when it began.
    pub(crate) measuring: Option<(usize, Time)>,
    pub(crate) random: Random,

    pub(crate) watched: bool,
    /// Processor time used since the trace began.
    pub(crate) cpu_time: Time,
    pub(crate) switches: u64,
}
