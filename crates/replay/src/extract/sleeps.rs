//! Requested durations of sleeps.
//!
//! A sleep ends at the first clock interrupt after the requested time. `T` is the time between the clock interrupts
//! that serve the process. If a sleep began at `s` and ended at the interrupt at `e`, the requested time is more than
//! `e - T - s` and at most `e - s`. If one length explains several sleeps of a thread, they are assumed to have it.

use std::num::NonZero;

use sim::replay::{Change, ClockInterrupt, Moment};

use super::machine::Facts;
use super::rows::Rows;
use super::threads::{WaitEnd, Waits};

/// Ticks of the clock per second, so that a tick is the unit of timer periods.
const TICKS: NonZero<u64> = NonZero::new(10_000_000).expect("not 0");
const TICK_NS: u64 = 100;
/// Maximum number of different lengths of the sleeps of a thread.
const MOST_LENGTHS: usize = 4;
/// Length that programs ask for most often: `Sleep(1)`.
const USUAL_NS: u64 = 1_000_000;
/// Units of the lengths that programs request, in nanoseconds. The length with the largest unit is the most likely.
const ROUND_NS: [u64; 7] = [
    1_000_000_000,
    100_000_000,
    10_000_000,
    5_000_000,
    1_000_000,
    500_000,
    100_000,
];

/// Requested durations of sleeps.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    /// Requested time of each wait of each thread, in nanoseconds. 0 if the wait is not a sleep.
    asked_ns: Vec<Vec<u64>>,
    /// Number of threads whose sleeps had many different lengths. These lengths are known only to within a clock tick.
    pub(super) varied: u64,
    /// Time of the first clock interrupt.
    pub(super) phase_ns: u64,
}

impl Sleeps {
    pub(super) fn asked_ns(&self, thread: usize, wait: usize) -> u64 {
        self.asked_ns[thread][wait]
    }
}

/// Finds the requested durations of all sleeps.
pub(super) fn ask(rows: &Rows, waits: &Waits, moments: &[Moment], facts: &Facts) -> Sleeps {
    let mut all: Vec<(u64, u64, u32, u32)> = Vec::new();
    for (thread, list) in (0..).zip(&waits.per_thread) {
        for (n, wait) in (0..).zip(list) {
            if let (WaitEnd::Clock, Some(wake)) = (wait.ended, wait.wake) {
                all.push((wait.out_ns, wake.at_ns, thread, n));
            }
        }
    }
    all.sort_unstable();
    let mut clock = ClockInterrupt::new(facts.windows(), TICKS, false);
    let mut sleeps = Sleeps {
        asked_ns: waits
            .per_thread
            .iter()
            .map(|list| vec![0; list.len()])
            .collect(),
        varied: 0,
        phase_ns: phase_ns(&all, clock.hardware_period()),
    };
    clock.set_phase(sleeps.phase_ns / TICK_NS);
    let mut requests = moments
        .iter()
        .filter_map(|moment| match moment.change {
            Change::Resolution(process, period) => Some((moment.at_ns, process, period)),
            _ => None,
        })
        .peekable();
    // Number of the wait, and lower and upper limit of the requested time, of each sleep of each thread.
    let mut bounds: Vec<Vec<(u32, u64, u64)>> = vec![Vec::new(); waits.per_thread.len()];
    for (out_ns, woken_ns, thread, n) in all {
        while let Some((at, process, period)) = requests.next_if(|(at, ..)| *at <= out_ns) {
            clock.request(at / TICK_NS, process, period);
        }
        let process = rows.threads[thread as usize].2;
        let period_ns = u64::from(clock.period_for(process)) * TICK_NS;
        let end_ns = clock.last_interrupt_ticks(woken_ns / TICK_NS) * TICK_NS;
        let end_ns = if end_ns < out_ns { woken_ns } else { end_ns };
        let high = end_ns - out_ns.min(end_ns);
        bounds[thread as usize].push((n, high.saturating_sub(period_ns), high));
    }
    for (thread, bounds) in bounds.iter().enumerate() {
        let lengths = lengths_of(bounds);
        sleeps.varied += u64::from(lengths.is_empty() && !bounds.is_empty());
        for (n, low, high) in bounds {
            let one = lengths
                .iter()
                .find(|range| range.0 < *high && *low < range.1);
            sleeps.asked_ns[thread][*n as usize] = match one {
                Some((low, high)) => round_within(*low, *high),
                None => low.midpoint(*high),
            };
        }
        // A sleep that lasts until the end of the recording is assumed to be as long as the thread's last sleep.
        let usual = bounds
            .last()
            .map(|(n, ..)| sleeps.asked_ns[thread][*n as usize]);
        for (n, wait) in waits.per_thread[thread].iter().enumerate() {
            if wait.ended == WaitEnd::Never {
                let at_least = rows.end_ns.saturating_sub(wait.out_ns);
                sleeps.asked_ns[thread][n] = usual.unwrap_or(0).max(at_least);
            }
        }
    }
    sleeps
}

/// Returns the lengths that explain all sleeps of a thread. Each length is given by its limits: it is greater than the
/// first, and at most the second. If more than [`MOST_LENGTHS`] are needed, returns no length.
fn lengths_of(bounds: &[(u32, u64, u64)]) -> Vec<(u64, u64)> {
    let mut lengths: Vec<(u64, u64)> = Vec::new();
    for (_, low, high) in bounds {
        let fits = |range: &(u64, u64)| range.0.max(*low) < range.1.min(*high);
        match lengths.iter().position(fits) {
            Some(at) => {
                let range = lengths[at];
                lengths[at] = (range.0.max(*low), range.1.min(*high));
            }
            None if lengths.len() == MOST_LENGTHS => return Vec::new(),
            None => lengths.push((*low, *high)),
        }
    }
    lengths
}

/// Returns the usual or roundest number above `low` and not above `high`.
fn round_within(low: u64, high: u64) -> u64 {
    if (low + 1..=high).contains(&USUAL_NS) {
        return USUAL_NS;
    }
    let multiple = |unit: &u64| {
        let most = high / unit * unit;
        (most > low && most > 0).then_some(most)
    };
    (ROUND_NS.iter().find_map(multiple)).unwrap_or_else(|| low.midpoint(high))
}

/// Returns the time of the first clock interrupt, if most sleeps end at the same place in the clock's period. Otherwise
/// returns 0.
fn phase_ns(sleeps: &[(u64, u64, u32, u32)], period: u32) -> u64 {
    const BIN_NS: u64 = 50_000;
    let period_ns = u64::from(period) * TICK_NS;
    let mut bins = vec![0_usize; (period_ns / BIN_NS + 1) as usize];
    for (_, woken_ns, ..) in sleeps {
        bins[(woken_ns % period_ns / BIN_NS) as usize] += 1;
    }
    let most = bins.iter().enumerate().max_by_key(|(_, count)| **count);
    match most {
        Some((bin, count)) if bin > 0 && count * 2 > sleeps.len() => {
            let inside = sleeps.iter().map(|(_, woken_ns, ..)| woken_ns % period_ns);
            let inside = inside.filter(|at| (at / BIN_NS) as usize == bin);
            inside.min().unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_lengths() {
        for (low, high, expected) in [
            (0, 1_200_000, 1_000_000),
            (9_000_000, 10_400_000, 10_000_000),
            (1_600_000, 1_900_000, 1_900_000),
            (1_610_000, 1_690_000, 1_650_000),
        ] {
            assert_eq!(round_within(low, high), expected);
        }
    }
}
