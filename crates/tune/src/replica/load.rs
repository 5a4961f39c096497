//! What was written, and when.

use serde::Serialize;

use super::percentiles::Percentiles;

/// A write, or several that a counter saw together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// When, in nanoseconds since some moment.
    pub time_ns: i64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// How many.
    pub count: u64,
    /// How long each took, if known, in nanoseconds.
    pub latency_ns: Option<i64>,
}

/// What was written to a volume while it was watched.
#[derive(Clone, Debug)]
pub struct Load {
    writes: Vec<Write>,
    start_ns: i64,
    end_ns: i64,
}

/// How much is written within stretches of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Burst {
    /// The length, in nanoseconds.
    pub length_ns: i64,
    /// Bytes in stretches of it, one after the other.
    pub bytes: Percentiles,
    /// The most in any stretch of it, wherever it begins.
    pub most_bytes: u64,
}

/// 10 ms to a minute.
const LENGTHS_NS: [i64; 5] = [
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
];

/// So many stretches of one length at most; of more, bursts of that length are left out.
const MOST_STRETCHES: i64 = 10_000_000;

impl Load {
    /// Writes from `start_ns` to `end_ns`; such as are outside widen it, and one with a negative latency
    /// has an unknown one.
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

    /// The writes, by time.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// For how long it was watched, in nanoseconds.
    pub fn watched_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// How many writes there were.
    pub fn count(&self) -> u64 {
        self.writes
            .iter()
            .fold(0, |sum, write| sum.saturating_add(write.count))
    }

    /// How many bytes they had.
    pub fn bytes(&self) -> u64 {
        self.writes
            .iter()
            .fold(0, |sum, write| sum.saturating_add(write.bytes))
    }

    /// Bytes per second on average; of a load without length, of its bytes within a second.
    pub(super) fn mean_bytes_per_s(&self) -> f64 {
        let seconds = self.watched_ns() as f64 / 1e9;
        self.bytes() as f64 / if seconds > 0.0 { seconds } else { 1.0 }
    }

    /// How much is written within stretches of several lengths, as far as it was watched for so long.
    pub(super) fn bursts(&self) -> Vec<Burst> {
        let fits = |length: &i64| {
            *length <= self.watched_ns() && self.watched_ns() / length <= MOST_STRETCHES
        };
        let lengths = LENGTHS_NS.into_iter().filter(fits);
        lengths
            .map(|length_ns| Burst {
                length_ns,
                bytes: self.stretches(length_ns),
                most_bytes: self.most_within(length_ns),
            })
            .collect()
    }

    /// Bytes of whole stretches one after the other.
    fn stretches(&self, length_ns: i64) -> Percentiles {
        let stretches = (self.watched_ns() / length_ns).max(1) as usize;
        let mut sums = vec![0u64; stretches];
        for write in &self.writes {
            let place = (write.time_ns.saturating_sub(self.start_ns) / length_ns) as usize;
            if let Some(sum) = sums.get_mut(place) {
                *sum = sum.saturating_add(write.bytes);
            }
        }
        let clamp = |sum: u64| (i64::try_from(sum).unwrap_or(i64::MAX), 1);
        Percentiles::of(sums.into_iter().map(clamp).collect())
    }

    /// The most bytes within less than a length.
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

    /// In how short a time so many bytes were written; none if fewer were in all.
    pub(super) fn soonest_ns(&self, bytes: u64) -> Option<i64> {
        let (mut first, mut sum, mut soonest) = (0, 0u64, None::<i64>);
        for write in &self.writes {
            sum = sum.saturating_add(write.bytes);
            while sum >= bytes && self.writes[first].time_ns <= write.time_ns {
                let took = write.time_ns.saturating_sub(self.writes[first].time_ns);
                soonest = Some(soonest.map_or(took, |soonest| soonest.min(took)));
                if first + 1 == self.writes.len() || sum - self.writes[first].bytes < bytes {
                    break;
                }
                sum -= self.writes[first].bytes;
                first += 1;
            }
        }
        soonest
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

    /// Against a look at every stretch that begins with a write.
    #[test]
    fn the_most_within_a_stretch_and_the_soonest_are_those_of_a_plain_search() {
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
            let soonest = (0..writes.len()).filter_map(|first| {
                let mut sum = 0;
                let full = writes[first..].iter().find(|write| {
                    sum += write.bytes;
                    sum >= bytes
                })?;
                Some(full.time_ns - writes[first].time_ns)
            });
            assert_eq!(load.soonest_ns(bytes), soonest.min());
        }
    }

    #[test]
    fn odd_times_do_no_harm() {
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
        assert_eq!(load.soonest_ns(1), Some(0));
    }
}
