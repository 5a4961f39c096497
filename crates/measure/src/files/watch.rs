//! Stopwatch for the phases of a run.

use crate::{Clock, Now};

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilesPhase {
    /// Phase that opens all files.
    Open,
    /// Phase that creates threads, queues, buffers and registrations.
    SetUp,
    /// Phase that submits reads and waits for them.
    Read,
    /// Phase that sums the bytes.
    Sum,
    /// Total of the four phases above.
    Total,
    /// A single read, from its submission until the program saw its completion. In a queue, this
    /// includes the wait for other reads.
    EachRead,
}

impl FilesPhase {
    /// Phases with one sample per run, in display order: the four phases and their total.
    pub const PARTS: [FilesPhase; 5] = [
        FilesPhase::Open,
        FilesPhase::SetUp,
        FilesPhase::Read,
        FilesPhase::Sum,
        FilesPhase::Total,
    ];

    /// Returns the name of the phase, as in [`Series::phase`](crate::Series::phase).
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

/// Duration of each phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) open_ns: i64,
    pub(super) set_up_ns: i64,
    pub(super) read_ns: i64,
    pub(super) sum_ns: i64,
}

impl Times {
    /// Returns the duration in nanoseconds of one of [`FilesPhase::PARTS`], or `None` for other phases.
    pub(super) fn duration_ns(&self, phase: FilesPhase) -> Option<i64> {
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

/// Start and completion time of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadTime {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

/// Stopwatch with laps.
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

    /// Returns the clock's time at the start or at the last lap.
    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Ends a lap. Returns the nanoseconds since the start or since the previous lap.
    pub(super) fn lap(&mut self) -> i64 {
        let now_ns = self.clock.now_ns();
        now_ns - std::mem::replace(&mut self.last_ns, now_ns)
    }
}
