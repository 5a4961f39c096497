//! Estimate of the costs of replicating a volume with Storage Replica.
//!
//! A [`Load`] contains the writes to a volume, either single writes or samples of counters. [`assess`]
//! simulates the transfer of the load over a [`Link`]. It computes the bandwidth and the log size that
//! replication needs. It also computes the latency that synchronous replication adds to each write. Finally,
//! it recommends a mode.
//!
//! With synchronous replication, a write is complete when both servers have it in their logs
//! (<https://learn.microsoft.com/windows-server/storage/storage-replica/storage-replica-overview>). The
//! estimate assumes that both logs are as fast as the measured writes. The added latency is therefore the sum
//! of the round trip, the time on the wire, and the wait for earlier writes.

mod counters;
mod load;
mod queue;

use serde::Serialize;
use views::Distribution;

pub use counters::{CountersError, read_counters};
pub use load::{Burst, Load, Write};

/// Maximum average round trip for synchronous replication, in nanoseconds
/// (<https://learn.microsoft.com/windows-server/storage/storage-replica/server-to-server-storage-replication>,
/// network requirements).
pub const ADVISED_ROUND_TRIP_NS: i64 = 5_000_000;

/// Maximum round trip that is accepted as input: 100 s.
const MAX_ROUND_TRIP_NS: i64 = 100_000_000_000;

/// One day in nanoseconds.
const DAY_NS: i64 = 86_400_000_000_000;

/// Network link between the two servers.
#[derive(Clone, Debug)]
pub struct Link {
    /// Measured round trips, in nanoseconds. The list needs at least one entry.
    pub round_trips_ns: Vec<i64>,
    /// Bandwidth in bytes per second, if known.
    pub bytes_per_s: Option<f64>,
}

/// Sizes of the replicated volume and its log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volume {
    /// Size of the volume in bytes, for the initial synchronisation.
    pub size_bytes: Option<u64>,
    /// Size of the log in bytes.
    pub log_bytes: Option<u64>,
}

/// Estimated costs of replication, with the recommended mode.
#[derive(Clone, Debug, Serialize)]
pub struct Assessment {
    /// Duration of the recording, in nanoseconds.
    pub watched_ns: i64,
    /// Number of writes.
    pub writes: u64,
    /// Total size of the writes, in bytes.
    pub bytes: u64,
    /// Average write rate, in bytes per second.
    pub mean_bytes_per_s: f64,
    /// Numbers of bytes written within time ranges of several lengths. There is one entry for each length.
    pub bursts: Vec<Burst>,
    /// Round trip times in nanoseconds.
    pub round_trip_ns: Percentiles,
    /// Average round trip in nanoseconds.
    pub mean_round_trip_ns: i64,
    /// Current write latency in nanoseconds. `None` if the latency was not recorded for every write.
    pub now_ns: Option<Percentiles>,
    /// Latency that synchronous replication adds to a write, in nanoseconds.
    pub added_ns: Percentiles,
    /// Write latency with synchronous replication, in nanoseconds. `None` if the current latency is unknown.
    pub then_ns: Option<Percentiles>,
    /// Effects of the bandwidth, if it is known.
    pub with_bandwidth: Option<WithBandwidth>,
    /// Effects of the log size, if it is given.
    pub with_log: Option<WithLog>,
    /// Recommended mode.
    pub verdict: Verdict,
    /// Reasons for the verdict.
    pub reasons: Vec<Reason>,
}

/// Effects of a link's bandwidth.
#[derive(Clone, Debug, Serialize)]
pub struct WithBandwidth {
    /// Bandwidth in bytes per second.
    pub bytes_per_s: f64,
    /// Average load divided by the bandwidth.
    pub utilisation: f64,
    /// Time in nanoseconds from the start of each write until it is sent. It includes the wait for earlier
    /// writes and the time on the wire.
    pub queue_ns: Percentiles,
    /// Maximum number of bytes that are written but not yet sent. With asynchronous replication, the log must
    /// have space for these bytes.
    pub backlog_bytes: u64,
    /// Duration of the initial synchronisation under this load, in seconds. `None` if the size of the volume
    /// is unknown or the load leaves no bandwidth.
    pub initial_sync_s: Option<f64>,
}

/// Effects of a log size.
#[derive(Clone, Debug, Serialize)]
pub struct WithLog {
    /// Size of the log in bytes.
    pub bytes: u64,
    /// Minimum bandwidth in bytes per second at which the log never overflows under this load.
    pub needs_bytes_per_s: f64,
    /// Longest outage of the other server that the log can buffer at the average load, in seconds. `None` if
    /// there is no load.
    pub outage_s: Option<f64>,
    /// Shortest time in which the load would fill the log, in seconds. `None` if the log can hold the whole
    /// load.
    pub worst_outage_s: Option<f64>,
}

/// Percentiles of a distribution, computed by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: i64,
    /// Value that 90 % of the values do not exceed.
    pub p90: i64,
    /// Value that 99 % of the values do not exceed.
    pub p99: i64,
    /// Value that 99.9 % of the values do not exceed.
    pub p99_9: i64,
    /// Largest value.
    pub max: i64,
}

impl Percentiles {
    fn from_distribution(values: &Distribution) -> Self {
        let at = |share| values.quantile(share).unwrap_or(0);
        Percentiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: at(1.0),
        }
    }
}

/// Recommended mode of replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Synchronous replication is within Microsoft's advice.
    Synchronous,
    /// Asynchronous replication. The latest writes can be lost in a failure.
    Asynchronous,
    /// The link cannot carry the load in either mode.
    Neither,
}

/// Reason for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Reason {
    /// The average round trip is within Microsoft's advice (`ADVISED_ROUND_TRIP_NS`).
    RoundTripAdvised,
    /// The average round trip is longer than Microsoft advises.
    RoundTripTooLong,
    /// The average round trip is within Microsoft's advice, but at least 1 round trip in 100 is longer.
    RoundTripSometimesTooLong,
    /// The load exceeds the bandwidth.
    Overload,
    /// At least 1 write in 100 waits for the link longer than Microsoft's advice for a round trip.
    QueuesTooLong,
    /// The bandwidth is unknown, so the added latency does not include the time that writes wait for the
    /// link.
    BandwidthUnknown,
    /// The log would overflow, because the backlog is larger than the log.
    LogTooSmall,
    /// The recording is shorter than a day and may miss busier times.
    ShortWatch,
}

/// Reason why an assessment is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    /// The load has no writes.
    #[error("the recording has no writes to the volume")]
    NoWrites,
    /// A round trip is missing or out of range.
    #[error("invalid round trips: give at least one, each from 0 to 100 seconds")]
    RoundTrip,
    /// The bandwidth is not positive.
    #[error("invalid bandwidth: give a rate above 0")]
    Bandwidth,
}

/// Estimates the costs of replicating a load over a link.
///
/// # Errors
/// Returns an error if there are no writes, or if a value of `link` is out of range.
pub fn assess(load: &Load, link: &Link, volume: Volume) -> Result<Assessment, AssessError> {
    if load.count() == 0 {
        return Err(AssessError::NoWrites);
    }
    let in_range = |ns: &i64| (0..=MAX_ROUND_TRIP_NS).contains(ns);
    if link.round_trips_ns.is_empty() || !link.round_trips_ns.iter().all(in_range) {
        return Err(AssessError::RoundTrip);
    }
    if (link.bytes_per_s).is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return Err(AssessError::Bandwidth);
    }
    let trips = Distribution::new(link.round_trips_ns.iter().map(|ns| (*ns, 1)).collect());
    let total: i128 = link.round_trips_ns.iter().copied().map(i128::from).sum();
    let mean = total / link.round_trips_ns.len() as i128;
    let queue = link.bytes_per_s.map(|rate| queue::send(load, rate));
    let latencies = Latencies::new(load, queue.as_ref());
    let with_bandwidth = link.bytes_per_s.zip(queue).map(|(rate, queue)| {
        let left = rate - load.mean_bytes_per_s();
        WithBandwidth {
            bytes_per_s: rate,
            utilisation: load.mean_bytes_per_s() / rate,
            queue_ns: Percentiles::from_distribution(&latencies.wait),
            backlog_bytes: queue.backlog_bytes,
            initial_sync_s: (volume.size_bytes)
                .filter(|_| left > 0.0)
                .map(|size| size as f64 / left),
        }
    });
    let mut assessment = Assessment {
        watched_ns: load.watched_ns(),
        writes: load.count(),
        bytes: load.bytes(),
        mean_bytes_per_s: load.mean_bytes_per_s(),
        bursts: load.bursts(),
        round_trip_ns: Percentiles::from_distribution(&trips),
        mean_round_trip_ns: i64::try_from(mean).unwrap_or(i64::MAX),
        now_ns: latencies.now.as_ref().map(Percentiles::from_distribution),
        added_ns: Percentiles::from_distribution(&latencies.wait.plus(&trips)),
        then_ns: (latencies.now_and_wait)
            .map(|then| Percentiles::from_distribution(&then.plus(&trips))),
        with_bandwidth,
        with_log: volume.log_bytes.map(|bytes| WithLog::new(load, bytes)),
        verdict: Verdict::Neither,
        reasons: Vec::new(),
    };
    assessment.judge();
    Ok(assessment)
}

/// Distributions of the latencies of writes. The latency of each `Write` is weighted by the number of writes
/// that it contains.
struct Latencies {
    /// Time that writes wait for the link and are on the wire.
    wait: Distribution,
    /// Current latency. `None` if the latency of at least one write is unknown.
    now: Option<Distribution>,
    /// Sum of the current latency and the wait of the same write.
    now_and_wait: Option<Distribution>,
}

impl Latencies {
    fn new(load: &Load, queue: Option<&queue::Queue>) -> Self {
        let wait = |place: usize| queue.map_or(0, |queue| queue.waits_ns[place]);
        let writes = || load.writes().iter().enumerate();
        let with_latency = |latency: &dyn Fn(usize, i64) -> i64| -> Option<Distribution> {
            let weighted = |(place, write): (usize, &Write)| {
                Some((latency(place, write.latency_ns?), write.count))
            };
            let weighted: Option<Vec<_>> = writes().map(weighted).collect();
            weighted.map(Distribution::new)
        };
        let waits = writes().map(|(place, write)| (wait(place), write.count));
        Self {
            wait: Distribution::new(waits.collect()),
            now: with_latency(&|_, now| now),
            now_and_wait: with_latency(&|place, now| now.saturating_add(wait(place))),
        }
    }
}

impl WithLog {
    fn new(load: &Load, bytes: u64) -> Self {
        let mean = load.mean_bytes_per_s();
        Self {
            bytes,
            needs_bytes_per_s: queue::least_rate(load, bytes),
            outage_s: (mean > 0.0).then(|| bytes as f64 / mean),
            worst_outage_s: load.fill_time_ns(bytes).map(|ns| ns as f64 / 1e9),
        }
    }
}

impl Assessment {
    /// Sets the verdict and its reasons from the other fields.
    fn judge(&mut self) {
        let link = self.with_bandwidth.as_ref();
        let overload = link.is_some_and(|link| link.utilisation >= 1.0);
        let queues = link.is_some_and(|link| link.queue_ns.p99 > ADVISED_ROUND_TRIP_NS);
        let far = self.mean_round_trip_ns > ADVISED_ROUND_TRIP_NS;
        let sometimes_far = self.round_trip_ns.p99 > ADVISED_ROUND_TRIP_NS;
        let overflows = (self.with_log.as_ref().zip(link))
            .is_some_and(|(log, link)| link.backlog_bytes > log.bytes);
        let round_trip = match (far, sometimes_far) {
            (true, _) => Reason::RoundTripTooLong,
            (false, true) => Reason::RoundTripSometimesTooLong,
            (false, false) => Reason::RoundTripAdvised,
        };
        let reasons = [
            (overload, Reason::Overload),
            (true, round_trip),
            (queues && !overload, Reason::QueuesTooLong),
            (link.is_none(), Reason::BandwidthUnknown),
            (overflows, Reason::LogTooSmall),
            (self.watched_ns < DAY_NS, Reason::ShortWatch),
        ];
        let reasons = reasons.into_iter().filter(|(applies, _)| *applies);
        self.reasons = reasons.map(|(_, reason)| reason).collect();
        self.verdict = match (overload, far || queues) {
            (true, _) => Verdict::Neither,
            (false, true) => Verdict::Asynchronous,
            (false, false) => Verdict::Synchronous,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1_000 * MS;

    /// Returns a load of 10 s: a write of 100,000 bytes every 100 ms, each with a latency of 1 ms.
    fn steady() -> Load {
        let write = |n: i64| Write {
            time_ns: n * 100 * MS,
            bytes: 100_000,
            count: 1,
            latency_ns: Some(MS),
        };
        Load::new((0..100).map(write).collect(), 0, 10 * S)
    }

    fn link(round_trips_ms: &[i64], bytes_per_s: Option<f64>) -> Link {
        Link {
            round_trips_ns: round_trips_ms.iter().map(|ms| ms * MS).collect(),
            bytes_per_s,
        }
    }

    /// The expected values are computed by hand. The load is 1 MB/s and the link carries 10 MB/s. Each write
    /// is therefore on the wire for 10 ms and does not wait for another write.
    #[test]
    fn a_steady_load_over_a_wide_link() {
        let volume = Volume {
            size_bytes: Some(9_000_000_000),
            log_bytes: Some(5_000_000),
        };
        let assessment = assess(&steady(), &link(&[2], Some(1e7)), volume).unwrap();
        assert_eq!((assessment.writes, assessment.bytes), (100, 10_000_000));
        assert_eq!(assessment.mean_bytes_per_s, 1e6);
        assert_eq!(
            (assessment.added_ns.p50, assessment.added_ns.max),
            (12 * MS, 12 * MS)
        );
        assert_eq!(assessment.then_ns.unwrap().p99, 13 * MS);
        let with = assessment.with_bandwidth.unwrap();
        assert_eq!(
            (with.backlog_bytes, with.initial_sync_s),
            (100_000, Some(1_000.0))
        );
        let log = assessment.with_log.unwrap();
        assert_eq!(log.outage_s, Some(5.0));
        // 50 writes fill the log. The 50th write is 4.9 s after the first.
        assert_eq!(log.worst_outage_s, Some(4.9));
        assert_eq!(assessment.verdict, Verdict::Asynchronous);
        assert!(assessment.reasons.contains(&Reason::QueuesTooLong));
    }

    #[test]
    fn the_average_round_trip_decides_and_percentiles_are_reported() {
        let fast = Some(1e9);
        let verdict = |trips: &[i64], rate| {
            let assessment = assess(&steady(), &link(trips, rate), Volume::default()).unwrap();
            (assessment.verdict, assessment.reasons[0])
        };
        assert_eq!(
            verdict(&[5], fast),
            (Verdict::Synchronous, Reason::RoundTripAdvised)
        );
        assert_eq!(
            verdict(&[6], fast),
            (Verdict::Asynchronous, Reason::RoundTripTooLong)
        );
        // The average is 3.6 ms, but 1 round trip in 5 takes 14 ms.
        assert_eq!(
            verdict(&[1, 1, 1, 1, 14], fast),
            (Verdict::Synchronous, Reason::RoundTripSometimesTooLong)
        );
        assert_eq!(
            verdict(&[1], Some(9e5)),
            (Verdict::Neither, Reason::Overload)
        );
    }

    #[test]
    fn unknown_latency_and_bandwidth_stay_unknown() {
        let mut writes = steady().writes().to_vec();
        writes[3].latency_ns = None;
        let load = Load::new(writes, 0, 10 * S);
        let assessment = assess(&load, &link(&[2], None), Volume::default()).unwrap();
        assert!(assessment.now_ns.is_none() && assessment.then_ns.is_none());
        assert!(assessment.with_bandwidth.is_none() && assessment.with_log.is_none());
        assert!(assessment.reasons.contains(&Reason::BandwidthUnknown));
        let nothing = Load::new(Vec::new(), 0, S);
        let error = assess(&nothing, &link(&[2], None), Volume::default());
        assert_eq!(error.err(), Some(AssessError::NoWrites));
        for impossible in [
            link(&[], None),
            link(&[-1], None),
            link(&[1], Some(0.0)),
            link(&[1], Some(f64::NAN)),
        ] {
            assert!(assess(&steady(), &impossible, Volume::default()).is_err());
        }
    }
}
