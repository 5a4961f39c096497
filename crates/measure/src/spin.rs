//! Spinning that cannot lock the machine.

use std::time::Duration;

use crate::Now;

/// A loop that polls, within bounds: after each stretch of spinning it sleeps a little.
///
/// A real-time thread that spins keeps everything of lower priority from its CPU, the kernel's own
/// threads too, and on a machine of one CPU whoever could stop it. Linux' own guard (5 % of each
/// second, `sched_rt_runtime_us`) may be off; this one is not. How often it rested is said, since a
/// rest is seen in what is measured.
#[derive(Debug)]
pub struct Spin<'c, C> {
    clock: &'c C,
    since_ns: i64,
    rests: u64,
}

impl<'c, C: Now> Spin<'c, C> {
    /// The longest stretch of spinning.
    pub const LONGEST: Duration = Duration::from_millis(50);

    /// The rest after it.
    pub const REST: Duration = Duration::from_micros(500);

    /// Begins to spin now.
    pub fn new(clock: &'c C) -> Spin<'c, C> {
        Spin {
            clock,
            since_ns: clock.now_ns(),
            rests: 0,
        }
    }

    /// One turn of the loop. Gives the time.
    pub fn turn(&mut self) -> i64 {
        std::hint::spin_loop();
        let now_ns = self.clock.now_ns();
        if now_ns - self.since_ns < Self::LONGEST.as_nanos() as i64 {
            return now_ns;
        }
        std::thread::sleep(Self::REST);
        self.rests += 1;
        self.since_ns = self.clock.now_ns();
        self.since_ns
    }

    /// What was waited for has come; the thread blocks now, and the next stretch is a new one.
    pub fn has_blocked(&mut self) {
        self.since_ns = self.clock.now_ns();
    }

    /// Spins until that time, or until after it where it had to rest. Gives the time.
    pub fn until(&mut self, due_ns: i64) -> i64 {
        loop {
            let now_ns = self.turn();
            if now_ns >= due_ns {
                return now_ns;
            }
        }
    }

    /// How often it rested.
    pub fn rests(&self) -> u64 {
        self.rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Each reading takes a millisecond.
    struct Slow(Cell<i64>);

    impl Now for Slow {
        fn now_ns(&self) -> i64 {
            self.0.set(self.0.get() + 1_000_000);
            self.0.get()
        }
    }

    #[test]
    fn it_rests_after_each_long_stretch_and_only_then() {
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
