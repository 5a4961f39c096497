//! The time that a report is about.

use std::ops::Range;

use crate::cli::Failure;
use crate::duration::{Plain, nanoseconds};

/// A stretch of the trace, as xperf's `-range T1 T2`.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TimeRange {
    /// Only what happened from T1 on and before T2, in µs since the trace's start (or 1.5s, 20ms)
    #[arg(
        long,
        num_args = 2,
        action = clap::ArgAction::Set,
        value_names = ["T1", "T2"],
        value_parser = |text: &str| nanoseconds(text, Plain::Microseconds)
            .ok_or("expected microseconds since the trace's start, or a time such as 1.5s or 20ms")
    )]
    range: Option<Vec<i64>>,
}

impl TimeRange {
    /// The range in nanoseconds since the trace's start.
    ///
    /// # Errors
    /// If no time is in it.
    pub(crate) fn get(&self) -> Result<Range<i64>, Failure> {
        match self.range.as_deref() {
            Some([from, to]) if from >= to => Err(Failure::Input(
                "--range: T1 is not before T2, so no time is between them".to_owned(),
            )),
            Some([from, to]) => Ok(*from..*to),
            _ => Ok(i64::MIN..i64::MAX),
        }
    }
}
