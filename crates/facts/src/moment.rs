//! Times that a user specifies.

use std::str::FromStr;

use wording::{DefaultUnit, parse_duration};

/// A time since the trace's start, or in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since the trace's start.
    SinceStart(i64),
    /// Nanoseconds since 1970-01-01 UTC.
    Utc(i128),
}

/// Error for a text that is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time since the start (1.5, 1.5s, 20ms, 7us, 100ns) or UTC (2024-05-01T12:00:00.5Z)"
)]
pub struct MomentError;

/// Error for a time in UTC if the trace does not state its time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the trace does not state its time of day; give a time since its start (1.5, 1.5s, 20ms, 7us, 100ns)"
)]
pub struct NoTimeOfDay;

impl Moment {
    /// Returns true if the moment is in UTC.
    pub fn is_utc(&self) -> bool {
        matches!(self, Moment::Utc(_))
    }

    /// Returns true if the moment is a negative time since the start of a trace.
    pub fn is_negative(&self) -> bool {
        matches!(self, Moment::SinceStart(ns) if *ns < 0)
    }

    /// Returns the time in nanoseconds since the start of a trace. `start_unix_ns` is the start in nanoseconds since
    /// 1970 UTC.
    ///
    /// # Errors
    /// Returns an error if the moment is in UTC and the start is unknown.
    pub fn since_start(self, start_unix_ns: Option<i64>) -> Result<i64, NoTimeOfDay> {
        match self {
            Moment::SinceStart(ns) => Ok(ns),
            Moment::Utc(unix_ns) => {
                let ns = unix_ns - i128::from(start_unix_ns.ok_or(NoTimeOfDay)?);
                Ok(i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }))
            }
        }
    }
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Moment, MomentError> {
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(Moment::Utc(time.as_nanosecond()));
        }
        // A time without an offset is in UTC, because traces contain only UTC times.
        if let Ok(time) = format!("{text}Z").parse::<jiff::Timestamp>() {
            return Ok(Moment::Utc(time.as_nanosecond()));
        }
        parse_duration(text, DefaultUnit::Seconds)
            .map(Moment::SinceStart)
            .ok_or(MomentError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact() {
        for (text, ns) in [
            ("1.5", 1_500_000_000),
            ("1.5s", 1_500_000_000),
            ("20ms", 20_000_000),
            ("7us", 7_000),
            ("100ns", 100),
            ("-0.1", -100_000_000),
            ("0.1234567899", 123_456_789),
            (".5", 500_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Moment::SinceStart(ns)), "{text}");
        }
        // 2020-07-29T00:07:00.5Z is 1,595,981,220.5 s after 1970.
        let utc = Moment::Utc(1_595_981_220_500_000_000);
        assert_eq!("2020-07-29T00:07:00.5Z".parse(), Ok(utc));
        assert_eq!("2020-07-29T00:07:00.5".parse(), Ok(utc));
        assert_eq!("2020-07-29T02:07:00.5+02:00".parse(), Ok(utc));
        for text in ["", "s", "1.5h", "now", "1e9", "99999999999999999999"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn utc_needs_the_time_of_day_of_the_start() {
        let utc = Moment::Utc(1_595_981_220_500_000_000);
        let start = Some(1_595_981_220_000_000_000);
        assert_eq!(utc.since_start(start), Ok(500_000_000));
        assert_eq!(utc.since_start(None), Err(NoTimeOfDay));
        assert_eq!(Moment::SinceStart(7).since_start(None), Ok(7));
    }
}
