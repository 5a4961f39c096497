//! `latency_samples`: what live probes measured.
//!
//! No trace fills it. `laglab measure` makes it, and of a file that it was written to it is read
//! again.

use crate::column::{Named, Names, Nullable, Text};
use crate::schema::table;

table! {
    /// One row per sample of a live probe (`laglab measure`). Rows of a run are in order; runs of
    /// different methods and settings take turns. No trace has any: they come of the file that
    /// `laglab measure … -o FILE.parquet` writes. Times are nanoseconds since the measurement's
    /// start.
    LatencySamples, LatencySamplesView = "latency_samples" sorted by start_ns {
        /// When it began.
        start_ns: Vec<i64> = "the probe's clock",
        /// When it should have begun. What `start_ns` is later is the delay that whoever waits for
        /// a busy machine sees too; a percentile without it hides stalls (coordinated omission).
        intended_start_ns: Vec<i64> = "the pacing",
        /// How late it was: of a sleep the time beyond what was asked for, negative if it woke
        /// early; of an operation how long it took. Unknown if it never ended or the clock went
        /// back.
        latency_ns: Nullable<i64> = "the probe's clock",
        /// What was probed.
        probe: Names<Probe> = "the command",
        /// How: the call or way of input and output.
        method: Text = "the probe",
        /// Under what: scheduling, resolution, rate and whatever else was set, in words.
        setting: Text = "the command",
        /// The part of the operation, where a probe times several.
        phase: Text = "the probe",
        /// Number of the run, from 0. Runs of one number were next to each other in time.
        run: Vec<u32> = "the plan",
        /// Number of the sample in its run, from 0.
        sequence: Vec<u64> = "the probe",
        /// How long it was to sleep.
        requested_ns: Nullable<i64> = "the command",
        /// How finely the system's timers were set when the run began: on Windows their resolution,
        /// on Linux the thread's timer slack, by which a sleep may end later than asked for.
        resolution_ns: Nullable<i64> = "NtQueryTimerResolution; PR_GET_TIMERSLACK",
        /// Bytes read, written or sent.
        size_bytes: Nullable<u64> = "the command",
        /// How it ended.
        outcome: Names<SampleOutcome> = "the probe",
    }
}

/// What a live probe probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// How late sleeps end.
    Sleep,
    /// How long files take.
    Files,
    /// How long packets take.
    Net,
}

impl Named for Probe {
    const NAMES: &'static [&'static str] = &["sleep", "files", "net"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// How a sample ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SampleOutcome {
    /// As it should.
    #[default]
    Done,
    /// Nothing came back in time.
    Lost,
    /// The system refused.
    Failed,
    /// The clock showed less at its end than at its start.
    ClockWentBack,
}

impl Named for SampleOutcome {
    const NAMES: &'static [&'static str] = &["done", "lost", "failed", "clock_went_back"];

    fn code(self) -> i8 {
        self as i8
    }
}
