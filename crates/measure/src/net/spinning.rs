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
        while started.elapsed() < self.time {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            std::hint::spin_loop();
        }
        Ok(None)
    }

    /// It has slept for a packet.
    pub(super) fn slept(&mut self) {
        self.awake_since = Instant::now();
    }
}
