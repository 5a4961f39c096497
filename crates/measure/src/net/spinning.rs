//! Polling for a packet before sleeping.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::UdpOptions;
use crate::{Clock, Spin};

/// Maximum time that a thread polls for a packet before it sleeps. A real-time thread that never
/// sleeps takes its CPU from all other threads.
pub const MAX_SPIN: Duration = Duration::from_millis(1);

/// Polling of a receiver before it sleeps for a packet.
#[derive(Debug)]
pub(super) struct Spinning {
    time: Duration,
    /// Time of the thread's last sleep.
    awake_since: Instant,
}

impl Spinning {
    pub(super) fn new(options: &UdpOptions) -> Spinning {
        Spinning {
            time: options.spin.unwrap_or_default().min(MAX_SPIN),
            awake_since: Instant::now(),
        }
    }

    /// Returns an instance with the same polling time for another thread.
    pub(super) fn clone_handle(&self) -> Spinning {
        Spinning {
            time: self.time,
            awake_since: Instant::now(),
        }
    }

    /// Polls until `look` returns a value or the polling time is over. If the polling time is zero, this
    /// function does not poll.
    pub(super) fn look<T>(
        &mut self,
        mut look: impl FnMut() -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        if self.time.is_zero() {
            return Ok(None);
        }
        // A thread that always finds a packet while it polls would never sleep. Such a thread therefore
        // sleeps here for a short time.
        if self.awake_since.elapsed() >= Spin::<Clock>::MAX_TIME {
            thread::sleep(Spin::<Clock>::REST);
            self.awake_since = Instant::now();
        }
        let started = Instant::now();
        loop {
            let result = look()?;
            if result.is_some() || started.elapsed() >= self.time {
                return Ok(result);
            }
            std::hint::spin_loop();
        }
    }

    /// Notes that the thread slept. If polling is off, the clock is not read.
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
        Spinning::new(&UdpOptions {
            spin: Some(time),
            ..UdpOptions::default()
        })
    }

    #[test]
    fn it_polls_until_success_or_timeout() {
        let look_once = || Ok(Some(1));
        assert_eq!(spinning(Duration::ZERO).look(look_once).unwrap(), None);
        assert_eq!(spinning(MAX_SPIN).look(look_once).unwrap(), Some(1));

        let begun = Instant::now();
        let nothing: Option<()> = spinning(10 * MAX_SPIN).look(|| Ok(None)).unwrap();
        assert_eq!(nothing, None);
        assert!(begun.elapsed() >= MAX_SPIN);
    }

    #[test]
    fn a_thread_that_never_sleeps_rests() {
        let mut spinning = spinning(MAX_SPIN);
        let before = spinning.awake_since;
        thread::sleep(Spin::<Clock>::MAX_TIME);
        spinning.look(|| Ok(Some(()))).unwrap();
        assert!(spinning.awake_since >= before + Spin::<Clock>::MAX_TIME + Spin::<Clock>::REST);
    }
}
