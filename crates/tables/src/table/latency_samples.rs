//! `latency_samples`: samples of live probes.
//!
//! No trace has this table. `laglab measure` writes the table to a file. The table is read from this file.

use crate::column::{Named, Names, Nullable, Text};
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per sample of a live probe (`laglab measure`). The rows of a run are in order. Runs of
    /// different methods and settings alternate. No trace has this table. It comes from the file that `laglab
    /// measure … -o FILE.parquet` writes. Times are nanoseconds since the measurement's start.
    LatencySamples, LatencySamplesView = "latency_samples" sorted by start_ns
        title "Measured Latency"
    {
        /// Start of the sample.
        start_ns: Vec<i64> = "the probe's clock",
        /// Scheduled start of the sample. `start_ns` is later if the previous sample took long or the machine was
        /// busy. A program that must act at this time is late in the same way, so quantiles that ignore this
        /// delay hide stalls (coordinated omission).
        intended_start_ns: Vec<i64> = "the pacing",
        /// Latency of the sample. For a sleep, the latency is the time beyond the requested time. It is
        /// negative if the sleep ended early. For an operation, the latency is the duration. Unknown if the
        /// sample never ended or if the clock went backwards.
        latency_ns: Nullable<i64> = "the probe's clock",
        /// Probe: `sleep`, `files` or `net`.
        probe: Names<Probe> = "the command",
        /// Method of the probe. This is the system call or the kind of I/O.
        method: Text = "the probe",
        /// Setting of the run: scheduling, resolution, rate and other options, as text.
        setting: Text = "the command",
        /// Phase of the operation. Known only if the probe measures several phases.
        phase: Text = "the probe",
        /// Number of the run, counted from 0. Runs with the same number were measured directly after each
        /// other.
        run: Vec<u32> = "the plan",
        /// Number of the sample within its run, counted from 0.
        sequence: Vec<u64> = "the probe",
        /// Requested duration of a sleep.
        requested_ns: Nullable<i64> = "the command",
        /// Granularity of the system's timers at the start of the run. On Windows, this is the timer
        /// resolution. On Linux, this is the thread's timer slack. A sleep may end late by up to this time.
        resolution_ns: Nullable<i64> = "NtQueryTimerResolution; PR_GET_TIMERSLACK",
        /// Number of bytes read, written or sent.
        size_bytes: Nullable<u64> = "the command",
        /// Outcome: `done`, `lost`, `failed` or `clock_went_back`.
        outcome: Names<SampleOutcome> = "the probe",
    }
}

/// The rows are read from files of `laglab measure`.
impl Register for LatencySamples {
    const IS_IN_HEADERS: bool = true;
}

/// Kind of a live probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// Lateness of sleeps.
    Sleep,
    /// Duration of file operations.
    Files,
    /// Duration of packets' round trips.
    Net,
}

impl Named for Probe {
    const NAMES: &'static [&'static str] = &["sleep", "files", "net"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Outcome of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SampleOutcome {
    /// Success.
    #[default]
    Done,
    /// No reply in time.
    Lost,
    /// Error of the operating system.
    Failed,
    /// The clock showed an earlier time at the end than at the start.
    ClockWentBack,
}

impl Named for SampleOutcome {
    const NAMES: &'static [&'static str] = &["done", "lost", "failed", "clock_went_back"];

    fn code(self) -> i8 {
        self as i8
    }
}
