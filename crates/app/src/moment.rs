//! A moment as a user names it.

use std::str::FromStr;

use etl::Clock;

use crate::duration::{Plain, nanoseconds};

/// Since the trace's start, or in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nanoseconds since the trace's start.
    SinceStart(i64),
    /// Nanoseconds since 1970-01-01 UTC.
    Utc(i128),
}

impl Moment {
    /// Whether it is a moment of the calendar.
    #[cfg(feature = "sql")]
    pub(crate) fn is_utc(&self) -> bool {
        matches!(self, Moment::Utc(_))
    }

    /// Nanoseconds since the start of a trace with that clock.
    pub(crate) fn since_start(self, clock: &Clock) -> i64 {
        match self {
            Moment::SinceStart(ns) => ns,
            Moment::Utc(unix_ns) => {
                let ns = unix_ns - clock.to_unix_ns(clock.from_ns(0));
                i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(Moment::Utc(time.as_nanosecond()));
        }
        // Without an offset it is UTC too: a trace knows no other time.
        if let Ok(time) = format!("{text}Z").parse::<jiff::Timestamp>() {
            return Ok(Moment::Utc(time.as_nanosecond()));
        }
        nanoseconds(text, Plain::Seconds)
            .map(Moment::SinceStart)
            .ok_or_else(|| {
                "expected a time since the start (1.5, 1.5s, 20ms, 7us, 100ns) or UTC \
             (2024-05-01T12:00:00.5Z)"
                    .to_owned()
            })
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
}
