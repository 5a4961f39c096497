//! Looking for a packet again and again before sleeping for one.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::UdpOptions;
use crate::{Clock, Spin};

/// The longest that a thread spins for a packet before it sleeps for one: a thread of real-time
/// priority that never sleeps takes its CPU from everybody.
pub const LONGEST_SPIN: Duration = Duration::from_millis(1);

/// How long a receiver looks for a packet before it sleeps for one.
#[derive(Debug)]
pub(super) struct Spinning {
    time: Duration,
    /// When it last slept.
    awake_since: Instant,
}

impl Spinning {
    pub(super) fn of(options: &UdpOptions) -> Spinning {
        Spinning {
            time: options.spin.unwrap_or_default().min(LONGEST_SPIN),
            awake_since: Instant::now(),
        }
    }

    /// For another thread.
    pub(super) fn another(&self) -> Spinning {
        Spinning {
            time: self.time,
            awake_since: Instant::now(),
        }
    }

    /// Looks until something is there or the time is over; not at all if there is none to spin.
    pub(super) fn look<T>(
        &mut self,
        mut look: impl FnMut() -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        if self.time.is_zero() {
            return Ok(None);
        }
        // A thread that always finds a packet while it spins never sleeps by itself.
        if self.awake_since.elapsed() >= Spin::<Clock>::LONGEST {
            thread::sleep(Spin::<Clock>::REST);
            self.awake_since = Instant::now();
        }
        let started = Instant::now();
        loop {
            let found = look()?;
            if found.is_some() || started.elapsed() >= self.time {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
    }

    /// It has slept for a packet. Who does not spin has no clock read for that.
    pub(super) fn slept(&mut self) {
        if !self.time.is_zero() {
            self.awake_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spinning(time: Duration) -> Spinning {
        Spinning::of(&UdpOptions {
            spin: Some(time),
            ..UdpOptions::default()
        })
    }

    #[test]
    fn it_looks_until_something_is_there_or_the_time_is_over() {
        let found = || Ok(Some(1));
        assert_eq!(spinning(Duration::ZERO).look(found).unwrap(), None);
        assert_eq!(spinning(LONGEST_SPIN).look(found).unwrap(), Some(1));

        let begun = Instant::now();
        let nothing: Option<()> = spinning(10 * LONGEST_SPIN).look(|| Ok(None)).unwrap();
        assert_eq!(nothing, None);
        assert!(begun.elapsed() >= LONGEST_SPIN);
    }

    #[test]
    fn who_never_sleeps_rests() {
        let mut spinning = spinning(LONGEST_SPIN);
        let before = spinning.awake_since;
        thread::sleep(Spin::<Clock>::LONGEST);
        spinning.look(|| Ok(Some(()))).unwrap();
        assert!(spinning.awake_since >= before + Spin::<Clock>::LONGEST + Spin::<Clock>::REST);
    }
}
