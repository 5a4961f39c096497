//! Writes on a link, one after the other.

use super::load::Load;

/// What sending a load does.
pub(super) struct Queue {
    /// How long each write waits and is on the wire, in nanoseconds.
    pub(super) waits_ns: Vec<i64>,
    /// The most bytes that were written and not yet sent.
    pub(super) backlog_bytes: u64,
}

/// Sends a load in its order over a link of so many bytes per second.
pub(super) fn send(load: &Load, bytes_per_s: f64) -> Queue {
    let mut waits_ns = Vec::with_capacity(load.writes().len());
    let mut backlog_bytes = 0.0f64;
    // Since the first write, which keeps the numbers small enough to be exact.
    let start = load.writes().first().map_or(0, |write| write.time_ns);
    let mut free_at = 0.0f64;
    for write in load.writes() {
        let now = write.time_ns.saturating_sub(start) as f64;
        free_at = free_at.max(now) + write.bytes as f64 / bytes_per_s * 1e9;
        let wait = free_at - now;
        waits_ns.push(wait.round() as i64);
        backlog_bytes = backlog_bytes.max(wait * bytes_per_s / 1e9);
    }
    Queue {
        waits_ns,
        backlog_bytes: backlog_bytes.round() as u64,
    }
}

/// The least bytes per second with which a log of such a size never overflows: the steepest of all
/// stretches of the load that have more than it holds. Found by halving, to a millionth.
pub(super) fn least_rate(load: &Load, log_bytes: u64) -> f64 {
    let fits = |rate: f64| send(load, rate).backlog_bytes <= log_bytes;
    let (mut low, mut high) = (0.0, 1.0);
    while !fits(high) {
        low = high;
        high *= 2.0;
        if high > 1e18 {
            // A single write that the log does not hold.
            return f64::INFINITY;
        }
    }
    while high - low > high * 1e-6 {
        let middle = (low + high) / 2.0;
        match fits(middle) {
            true => high = middle,
            false => low = middle,
        }
        if high < 1e-3 {
            return 0.0;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::Write;
    use testdata::Rng;

    fn load(writes: &[(i64, u64)]) -> Load {
        let write = |&(ms, bytes): &(i64, u64)| Write {
            time_ns: ms * 1_000_000,
            bytes,
            count: 1,
            latency_ns: None,
        };
        Load::new(writes.iter().map(write).collect(), 0, 0)
    }

    /// By hand, at 1,000 bytes per second: 100 bytes take 100 ms.
    #[test]
    fn writes_wait_for_those_before_them() {
        let queue = send(&load(&[(0, 100), (50, 100), (300, 100)]), 1_000.0);
        assert_eq!(queue.waits_ns, [100_000_000, 150_000_000, 100_000_000]);
        assert_eq!(queue.backlog_bytes, 150);
    }

    /// Against a backlog that is drained second by thousandth of a second.
    #[test]
    fn backlogs_are_those_of_a_bucket_that_is_drained() {
        let mut rng = Rng(4);
        for _ in 0..50 {
            let writes: Vec<(i64, u64)> = (0..100)
                .map(|_| (rng.below(2_000) as i64, rng.below(500) as u64))
                .collect();
            let load = load(&writes);
            let (mut bucket, mut most) = (0u64, 0);
            for ms in 0..2_000 {
                bucket += writes
                    .iter()
                    .filter(|write| write.0 == ms)
                    .map(|write| write.1)
                    .sum::<u64>();
                most = most.max(bucket);
                bucket = bucket.saturating_sub(10);
            }
            assert_eq!(send(&load, 10_000.0).backlog_bytes, most);
        }
    }

    /// By hand: 300 bytes within 200 ms, of which 100 may be in the log, leave 200 to be sent by then.
    #[test]
    fn the_least_bandwidth_is_that_of_the_steepest_stretch() {
        let load = load(&[(0, 100), (100, 100), (200, 100)]);
        assert!((least_rate(&load, 100) - 1_000.0).abs() < 6.0);
        assert_eq!(least_rate(&load, 300), 0.0);
        assert_eq!(least_rate(&load, 99), f64::INFINITY);
    }
}
