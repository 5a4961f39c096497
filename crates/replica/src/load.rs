//! Writes to a volume over time.

use serde::Serialize;
use views::Distribution;

use super::Percentiles;

/// A single write, or all writes in one sample of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Time in nanoseconds since a fixed moment, which is the same for all writes of a load.
    pub time_ns: i64,
    /// Total size of the writes in bytes.
    pub bytes: u64,
    /// Number of writes.
    pub count: u64,
    /// Latency of each write in nanoseconds, if known.
    pub latency_ns: Option<i64>,
}

/// Writes to a volume during a recording.
#[derive(Clone, Debug)]
pub struct Load {
    writes: Vec<Write>,
    start_ns: i64,
    end_ns: i64,
}

/// Numbers of bytes written within time ranges of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Burst {
    /// Length of the ranges, in nanoseconds.
    pub length_ns: i64,
    /// Percentiles of the number of bytes written in consecutive ranges of this length.
    pub bytes: Percentiles,
    /// Maximum number of bytes written in any range of this length, wherever the range starts.
    pub most_bytes: u64,
}

/// Lengths of the time ranges in nanoseconds: 10 ms to 1 minute.
const LENGTHS_NS: [i64; 5] = [
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
];

/// Maximum number of ranges of one length. A recording with more ranges gets no [`Burst`] of that length.
const MAX_RANGES: i64 = 10_000_000;

impl Load {
    /// Creates a load that was recorded from `start_ns` to `end_ns`. If a write is outside this range, it
    /// extends the range. A negative latency counts as unknown. An entry with a count of 0 is dropped.
    pub fn new(mut writes: Vec<Write>, start_ns: i64, end_ns: i64) -> Self {
        writes.retain(|write| write.count > 0);
        writes.sort_by_key(|write| write.time_ns);
        for write in &mut writes {
            write.latency_ns = write.latency_ns.filter(|ns| *ns >= 0);
        }
        let first = writes.first().map_or(start_ns, |write| write.time_ns);
        let last = writes.last().map_or(end_ns, |write| write.time_ns);
        Load {
            start_ns: start_ns.min(first),
            end_ns: end_ns.max(last).max(start_ns.min(first)),
            writes,
        }
    }

    /// Returns the writes in time order.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Returns the duration of the recording, in nanoseconds.
    pub fn watched_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Returns the number of writes.
    pub fn count(&self) -> u64 {
        self.writes
            .iter()
            .fold(0, |sum, write| sum.saturating_add(write.count))
    }

    /// Returns the total size of the writes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.writes
            .iter()
            .fold(0, |sum, write| sum.saturating_add(write.bytes))
    }

    /// Returns the average write rate in bytes per second. If the duration of the recording is 0, it counts
    /// as one second.
    pub(super) fn mean_bytes_per_s(&self) -> f64 {
        let seconds = self.watched_ns() as f64 / 1e9;
        self.bytes() as f64 / if seconds > 0.0 { seconds } else { 1.0 }
    }

    /// Returns a burst for each length in `LENGTHS_NS`. Lengths that exceed the recording are left out. Lengths that
    /// would divide the recording into more than `MAX_RANGES` ranges are left out too.
    pub(super) fn bursts(&self) -> Vec<Burst> {
        let fits =
            |length: &i64| *length <= self.watched_ns() && self.watched_ns() / length <= MAX_RANGES;
        let lengths = LENGTHS_NS.into_iter().filter(fits);
        lengths
            .map(|length_ns| Burst {
                length_ns,
                bytes: self.bytes_in_ranges(length_ns),
                most_bytes: self.most_within(length_ns),
            })
            .collect()
    }

    /// Returns percentiles of the number of bytes in consecutive ranges.
    fn bytes_in_ranges(&self, length_ns: i64) -> Percentiles {
        let ranges = (self.watched_ns() / length_ns).max(1) as usize;
        let mut sums = vec![0u64; ranges];
        for write in &self.writes {
            let place = (write.time_ns.saturating_sub(self.start_ns) / length_ns) as usize;
            if let Some(sum) = sums.get_mut(place) {
                *sum = sum.saturating_add(write.bytes);
            }
        }
        let clamp = |sum: u64| (i64::try_from(sum).unwrap_or(i64::MAX), 1);
        Percentiles::from_distribution(&Distribution::new(sums.into_iter().map(clamp).collect()))
    }

    /// Returns the maximum number of bytes in any range of `length_ns`. A range includes its start, but not its
    /// end.
    fn most_within(&self, length_ns: i64) -> u64 {
        let (mut first, mut sum, mut most) = (0, 0u64, 0);
        for write in &self.writes {
            sum = sum.saturating_add(write.bytes);
            while write.time_ns.saturating_sub(self.writes[first].time_ns) >= length_ns {
                sum = sum.saturating_sub(self.writes[first].bytes);
                first += 1;
            }
            most = most.max(sum);
        }
        most
    }

    /// Returns the shortest time in nanoseconds in which `bytes` bytes were written. Returns `None` if the
    /// load has fewer bytes.
    pub(super) fn fill_time_ns(&self, bytes: u64) -> Option<i64> {
        let (mut first, mut sum, mut shortest) = (0, 0u64, None::<i64>);
        for write in &self.writes {
            sum = sum.saturating_add(write.bytes);
            while sum >= bytes && self.writes[first].time_ns <= write.time_ns {
                let took = write.time_ns.saturating_sub(self.writes[first].time_ns);
                shortest = Some(shortest.map_or(took, |shortest| shortest.min(took)));
                if first + 1 == self.writes.len() || sum - self.writes[first].bytes < bytes {
                    break;
                }
                sum -= self.writes[first].bytes;
                first += 1;
            }
        }
        shortest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    fn random(rng: &mut Rng) -> Load {
        let writes = (0..200).map(|_| Write {
            time_ns: rng.below(3_000_000_000) as i64,
            bytes: rng.below(10_000) as u64,
            count: 1,
            latency_ns: None,
        });
        Load::new(writes.collect(), 0, 3_000_000_000)
    }

    /// Compares the results with a simple search over all ranges that begin with a write.
    #[test]
    fn bursts_and_fill_times_match_a_plain_search() {
        let mut rng = Rng(11);
        for _ in 0..50 {
            let load = random(&mut rng);
            let writes = load.writes();
            let within = |from: &Write, length: i64| -> u64 {
                let in_it =
                    |write: &&Write| (from.time_ns..from.time_ns + length).contains(&write.time_ns);
                writes.iter().filter(in_it).map(|write| write.bytes).sum()
            };
            for burst in load.bursts() {
                let most = writes
                    .iter()
                    .map(|from| within(from, burst.length_ns))
                    .max();
                assert_eq!(Some(burst.most_bytes), most);
            }
            let bytes = 1 + rng.below(100_000) as u64;
            let shortest = (0..writes.len()).filter_map(|first| {
                let mut sum = 0;
                let full = writes[first..].iter().find(|write| {
                    sum += write.bytes;
                    sum >= bytes
                })?;
                Some(full.time_ns - writes[first].time_ns)
            });
            assert_eq!(load.fill_time_ns(bytes), shortest.min());
        }
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let odd = |time_ns| Write {
            time_ns,
            bytes: u64::MAX,
            count: 1,
            latency_ns: Some(-1),
        };
        let load = Load::new(vec![odd(i64::MAX), odd(i64::MIN), odd(0)], 5, -5);
        assert_eq!(load.bytes(), u64::MAX);
        assert_eq!(load.watched_ns(), i64::MAX);
        assert!(load.bursts().is_empty());
        assert_eq!(load.writes()[0].latency_ns, None);
        assert_eq!(load.fill_time_ns(1), Some(0));
    }
}
