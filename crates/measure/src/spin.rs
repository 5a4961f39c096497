//! Polling that cannot lock up the machine.

use std::time::Duration;

use crate::Now;

/// A polling loop that sleeps a little after each period of spinning.
///
/// A spinning real-time thread keeps all threads of lower priority from its CPU. This includes kernel threads
/// and, on a machine with one CPU, the programs of the user who wants to stop it. Linux reserves 5 % of each
/// second for other threads (`sched_rt_runtime_us`), but this reservation may be disabled. The number of
/// rests is reported, because a rest is visible in the measurement.
#[derive(Debug)]
pub struct Spin<'c, C> {
    clock: &'c C,
    since_ns: i64,
    rests: u64,
}

impl<'c, C: Now> Spin<'c, C> {
    /// Maximum time of spinning without a rest.
    pub const MAX_TIME: Duration = Duration::from_millis(50);

    /// Length of a rest.
    pub const REST: Duration = Duration::from_micros(500);

    /// Starts spinning.
    pub fn new(clock: &'c C) -> Spin<'c, C> {
        Spin {
            clock,
            since_ns: clock.now_ns(),
            rests: 0,
        }
    }

    /// Runs one turn of the loop. If a rest is due, the thread rests. Returns the time in nanoseconds.
    pub fn turn(&mut self) -> i64 {
        std::hint::spin_loop();
        let now_ns = self.clock.now_ns();
        if now_ns - self.since_ns < Self::MAX_TIME.as_nanos() as i64 {
            return now_ns;
        }
        std::thread::sleep(Self::REST);
        self.rests += 1;
        self.since_ns = self.clock.now_ns();
        self.since_ns
    }

    /// Restarts the period of spinning. Call it after the thread blocked, because blocking counts
    /// as a rest.
    pub fn has_blocked(&mut self) {
        self.since_ns = self.clock.now_ns();
    }

    /// Spins until the time `due_ns`. If a rest is due, this may take longer. Returns the time afterwards.
    pub fn until(&mut self, due_ns: i64) -> i64 {
        loop {
            let now_ns = self.turn();
            if now_ns >= due_ns {
                return now_ns;
            }
        }
    }

    /// Returns the number of rests.
    pub fn rests(&self) -> u64 {
        self.rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Clock that advances one millisecond with each reading.
    struct Slow(Cell<i64>);

    impl Now for Slow {
        fn now_ns(&self) -> i64 {
            self.0.set(self.0.get() + 1_000_000);
            self.0.get()
        }
    }

    #[test]
    fn it_rests_after_each_long_period_only() {
        let clock = Slow(Cell::new(0));
        let mut spin = Spin::new(&clock);
        spin.until(45_000_000);
        assert_eq!(spin.rests(), 0);
        spin.until(500_000_000);
        assert_eq!(spin.rests(), 9);

        let clock = Slow(Cell::new(0));
        let mut blocking = Spin::new(&clock);
        for _ in 0..500 {
            blocking.turn();
            blocking.has_blocked();
        }
        assert_eq!(blocking.rests(), 0);
    }
}
