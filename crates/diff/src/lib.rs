//! Differences between recordings before a change and recordings after it.
//!
//! A *side* is all recordings before the change, or all recordings after it.
//!
//! [`Recording`] sums a trace by program, module, function, wait, disk and file, in blocks of time. [`diff`] matches
//! the rows of both sides by names, because ids and addresses change with each boot. It separates real changes from
//! changes that chance explains. Each [`Finding`] has a sentence, its causes, and queries that return its numbers from
//! both traces. [`OtherDifferences`] lists other differences: the build of Windows, drivers, recorded events, and lost events.
//!
//! One recording on each side can show only that the two recordings differ. To show that a change of the machine is the
//! reason, more recordings are needed.

mod blocks;
mod change;
mod compare;
mod decomposition;
mod distribution;
mod doubts;
mod dpc_code;
mod finding;
mod functions;
mod interrupts;
mod latency;
mod moved_interrupts;
mod other_differences;
mod picture;
mod picture_flame;
mod picture_histogram;
mod picture_rows;
mod picture_strips;
mod picture_waits;
mod query;
mod recording;
mod requests;
mod rows;
mod runs;
mod samples;
mod stacks;
mod successors;
mod sums;
mod throughput;
mod traffic;
mod wait_code;
mod wakes;
mod work;

pub use change::{
    Change, Conclusion, Diff, PerWork, Side, Unit, UnmatchedShare, conclude_alone, diff,
};
pub use decomposition::{Parts, decompose};
pub use finding::{Finding, Proof, When, count_text, rate_text};
pub use latency::{Interval as LatencyInterval, Latency, LatencyPart, NoPath, PathTimes};
pub use other_differences::{Difference, Driver, OtherDifferences};
pub use picture::{BesidesRow, ComparedFinding, ComparedSide, Comparison, Source};
pub use picture_flame::{ComparedFlame, SampledCode};
pub use picture_histogram::{BackToBack, Durations, QuantileShift, ShiftUnit};
pub use picture_rows::{ComparedRow, ComparedRows, Step, Waterfall};
pub use picture_strips::{CpuStrip, CpuStrips, CpuWork, Strips};
pub use picture_waits::{WaitEdge, Waits};
pub use recording::{ReadOptions, Recording};
pub use rows::{Kind, Sum};
pub use stacks::{Call, Root, Tree};
pub use statistics::Interval;
pub use work::Work;
