//! State of threads and processes in the dispatcher.

use std::rc::Rc;

use super::cpu_set::CpuSet;
use super::program::Program;
use super::{BodyId, GroupId, ProcessId};
use crate::random::Random;
use crate::scenario::WaitReason;
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) group: Option<GroupId>,
    /// True for a process of the idle priority class, whose threads always get the shortest
    /// quantum.
    pub(crate) is_idle_class: bool,
    /// Start time of the process; `None` if it exists at the trace's start.
    pub(crate) starts: Option<Time>,
    /// True from the process's start to its end.
    pub(crate) alive: bool,
    /// True if the process has the focus, so that its threads get longer quanta and larger boosts.
    pub(crate) foreground: bool,
    /// Object that becomes signalled when a window of the process gets a message.
    pub(crate) messages: usize,
    /// .NET runtime of the process.
    pub(crate) runtime: super::dotnet::Runtime,
    pub(crate) threads: Vec<super::ThreadId>,
}

/// State of a thread, numbered as in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Initialized = 0,
    Ready = 1,
    Running = 2,
    Standby = 3,
    Terminated = 4,
    Waiting = 5,
    /// The thread's wait has ended, but its kernel stack is not in memory.
    Transition = 6,
}

/// Queue in which a ready thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Local(usize),
    Shared(usize),
    /// Queue of a scheduling group on a processor.
    Group(usize, GroupId),
}

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    pub(crate) process: ProcessId,
    pub(crate) base: u8,
    pub(crate) priority: u8,
    /// Foreground boost that is included in `priority`.
    pub(crate) foreground_boost: u8,
    /// Sum of the other boosts that are included in `priority`.
    pub(crate) unusual_boost: u8,
    pub(crate) affinity: CpuSet,
    pub(crate) ideal: usize,
    pub(crate) last_cpu: usize,
    pub(crate) state: State,
    /// Queue that contains the thread while the thread is ready, and the thread's priority in this queue.
    pub(crate) queue: (Queue, u8),
    /// Number of the thread's current wait. It changes when the wait ends, so that a timer of an
    /// earlier wait has no effect.
    pub(crate) wait: u32,
    pub(crate) waits_for: Option<usize>,
    pub(crate) wait_reason: WaitReason,
    /// Start of the thread's last wait.
    pub(crate) waiting_since: Time,
    /// Time at which the thread last became ready.
    pub(crate) ready_since: Time,
    /// Remaining processor time of the thread's quantum. It is negative if the quantum is used up and no
    /// clock interrupt has noticed this yet.
    pub(crate) quantum: i64,
    /// Processor time that the thread's current step still needs.
    pub(crate) burst: Time,
    /// Stack of the thread's current step.
    pub(crate) body: BodyId,
    /// Default stack, for steps without frames.
    pub(crate) home: BodyId,
    pub(crate) stack_paged_out: bool,
    /// True if the thread's process is frozen. The thread must stop before its next step.
    pub(crate) frozen: bool,
    /// True while the thread waits until its process is thawed.
    pub(crate) suspended: bool,

    pub(crate) program: Rc<Program>,
    pub(crate) next: usize,
    /// Remaining repetitions of the nested loops, innermost loop last.
    pub(crate) loops: Vec<u32>,
    /// End of the current timed loop: its end time, the index of the step after the loop, and the nesting
    /// depth of the loop.
    pub(crate) stop: Option<(Time, usize, usize)>,
    /// Step whose duration is measured now: the index of its name, and its start time.
    pub(crate) measuring: Option<(usize, Time)>,
    pub(crate) random: Random,

    pub(crate) watched: bool,
    /// Processor time used since the trace's start.
    pub(crate) cpu_time: Time,
    pub(crate) switches: u64,
}
