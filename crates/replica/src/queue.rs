//! Simulation of a network link that sends writes one after the other.

use super::load::Load;

/// Result of the simulation.
pub(super) struct Queue {
    /// Time of each write in nanoseconds, from its start until it is sent. During this time, the write waits
    /// for earlier writes and is then on the wire.
    pub(super) waits_ns: Vec<i64>,
    /// Maximum number of bytes that were written but not yet sent.
    pub(super) backlog_bytes: u64,
}

/// Simulates sending the writes of a load, in order, over a link with the given bandwidth.
pub(super) fn send(load: &Load, bytes_per_s: f64) -> Queue {
    let mut waits_ns = Vec::with_capacity(load.writes().len());
    let mut backlog_bytes = 0.0f64;
    // Times count from the first write, because small numbers are exact in `f64`.
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

/// Returns the minimum bandwidth in bytes per second at which a log of `log_bytes` bytes never overflows. The
/// function uses bisection, with an accuracy of a millionth. Returns infinity if one write is larger than the
/// log.
pub(super) fn least_rate(load: &Load, log_bytes: u64) -> f64 {
    let fits = |rate: f64| send(load, rate).backlog_bytes <= log_bytes;
    let (mut low, mut high) = (0.0, 1.0);
    while !fits(high) {
        low = high;
        high *= 2.0;
        if high > 1e18 {
            return f64::INFINITY;
        }
    }
    while high - low > high * 1e-6 {
        let middle = (low + high) / 2.0;
        if fits(middle) {
            high = middle
        } else {
            low = middle
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
    use crate::Write;
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

    /// The expected values are computed by hand. At 1,000 bytes per second, 100 bytes take 100 ms. The second
    /// write begins 50 ms after the first write. The second write therefore waits 50 ms and needs 150 ms in
    /// total.
    #[test]
    fn writes_wait_for_those_before_them() {
        let queue = send(&load(&[(0, 100), (50, 100), (300, 100)]), 1_000.0);
        assert_eq!(queue.waits_ns, [100_000_000, 150_000_000, 100_000_000]);
        assert_eq!(queue.backlog_bytes, 150);
    }

    /// Compares the maximum backlog with a simple simulation that sends 10 bytes per millisecond.
    #[test]
    fn backlogs_match_a_draining_bucket() {
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

    /// The expected values are computed by hand. 300 bytes are written within 200 ms, and the log can hold
    /// 100 of these bytes. The link must therefore send 200 bytes in this time.
    #[test]
    fn the_least_bandwidth_is_that_of_the_busiest_time() {
        let load = load(&[(0, 100), (100, 100), (200, 100)]);
        assert!((least_rate(&load, 100) - 1_000.0).abs() < 6.0);
        assert_eq!(least_rate(&load, 300), 0.0);
        assert_eq!(least_rate(&load, 99), f64::INFINITY);
    }
}
