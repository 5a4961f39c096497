//! A stopwatch of the parts of a run.

use crate::{Clock, Now};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilesPhase {
    /// Opening every file.
    Open,
    /// Threads, queues, buffers and registrations.
    SetUp,
    /// Submitting reads and waiting for them.
    Read,
    /// Adding up the bytes.
    Sum,
    /// All of these together.
    Total,
    /// Not a part of its own: every single read, from when it was asked for until it was seen to be
    /// complete. In a queue that is also the time it waited for others.
    EachRead,
}

impl FilesPhase {
    /// The parts and their total, in the order they are shown: one sample a run.
    pub const PARTS: [FilesPhase; 5] = [
        FilesPhase::Open,
        FilesPhase::SetUp,
        FilesPhase::Read,
        FilesPhase::Sum,
        FilesPhase::Total,
    ];

    /// Its name, as [`Series::phase`](crate::Series::phase) has it.
    pub fn name(self) -> &'static str {
        match self {
            FilesPhase::Open => "open",
            FilesPhase::SetUp => "set up",
            FilesPhase::Read => "read",
            FilesPhase::Sum => "sum",
            FilesPhase::Total => "total",
            FilesPhase::EachRead => "each read",
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
    /// How long one of [`FilesPhase::PARTS`] took; none of what is no part.
    pub(super) fn of(&self, phase: FilesPhase) -> Option<i64> {
        match phase {
            FilesPhase::Open => Some(self.open_ns),
            FilesPhase::SetUp => Some(self.set_up_ns),
            FilesPhase::Read => Some(self.read_ns),
            FilesPhase::Sum => Some(self.sum_ns),
            FilesPhase::Total => Some(self.open_ns + self.set_up_ns + self.read_ns + self.sum_ns),
            FilesPhase::EachRead => None,
        }
    }
}

/// When a read was asked for and when it was seen to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadTime {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
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

    /// When it was started or last asked, by its clock.
    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Nanoseconds since it was started or last asked.
    pub(super) fn lap(&mut self) -> i64 {
        let now_ns = self.clock.now_ns();
        now_ns - std::mem::replace(&mut self.last_ns, now_ns)
    }
}
