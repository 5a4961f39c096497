//! A stopwatch of the parts of a run.

use crate::{Clock, Now};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Opening every file.
    Open,
    /// Threads, queues, buffers and registrations.
    SetUp,
    /// Submitting reads and waiting for them.
    Read,
    /// Adding up the bytes.
    Sum,
    /// All of them together.
    Total,
}

impl Phase {
    /// All of them, in the order they are shown.
    pub const ALL: [Phase; 5] = [
        Phase::Open,
        Phase::SetUp,
        Phase::Read,
        Phase::Sum,
        Phase::Total,
    ];

    /// Its name, as [`Series::phase`](crate::Series::phase) has it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Open => "open",
            Phase::SetUp => "set up",
            Phase::Read => "read",
            Phase::Sum => "sum",
            Phase::Total => "total",
        }
    }
}

/// How long each part took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) open_ns: i64,
    pub(super) set_up_ns: i64,
    pub(super) read_ns: i64,
    pub(super) sum_ns: i64,
}

impl Times {
    pub(super) fn of(&self, phase: Phase) -> i64 {
        match phase {
            Phase::Open => self.open_ns,
            Phase::SetUp => self.set_up_ns,
            Phase::Read => self.read_ns,
            Phase::Sum => self.sum_ns,
            Phase::Total => self.open_ns + self.set_up_ns + self.read_ns + self.sum_ns,
        }
    }
}

/// Gives the time since it was last asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch<'c> {
    clock: &'c Clock,
    last_ns: i64,
}

impl<'c> Watch<'c> {
    pub(super) fn start(clock: &'c Clock) -> Watch<'c> {
        Watch {
            clock,
            last_ns: clock.now_ns(),
        }
    }

    /// Nanoseconds since it was started or last asked.
    pub(super) fn lap(&mut self) -> i64 {
        let now_ns = self.clock.now_ns();
        now_ns - std::mem::replace(&mut self.last_ns, now_ns)
    }
}
