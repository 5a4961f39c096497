//! What replicating a volume to another server would cost (Storage Replica).
//!
//! A [`Load`] is what was written to a volume, write by write or in samples of counters. [`assess`]
//! sends it over a [`Link`] in thought: what bandwidth and log it takes, what each write would wait for
//! when replication is synchronous, and what speaks for which mode.
//!
//! Synchronous replication completes a write when both servers have it in their logs
//! (<https://learn.microsoft.com/windows-server/storage/storage-replica/storage-replica-overview>). Taken
//! to be as quick as the writes that were measured are both logs; so what is added is the way there and
//! back, the time on the wire, and the wait for writes that are before it on the wire.

mod counters;
mod load;
mod percentiles;
mod queue;

use serde::Serialize;

pub use counters::{CountersError, read_counters};
pub use load::{Burst, Load, Write};
pub use percentiles::Percentiles;

/// Up to this average round trip, synchronous replication is advised, in nanoseconds
/// (<https://learn.microsoft.com/windows-server/storage/storage-replica/server-to-server-storage-replication>,
/// requirements of the network).
pub const ADVISED_ROUND_TRIP_NS: i64 = 5_000_000;

/// The way between both servers.
#[derive(Clone, Debug)]
pub struct Link {
    /// Measured round trips in nanoseconds; a single one stands for all.
    pub round_trips_ns: Vec<i64>,
    /// How much it carries, in bytes per second, if known.
    pub bytes_per_s: Option<f64>,
}

/// What is to be replicated, beside its load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volume {
    /// Its size in bytes, for the first synchronisation, if known.
    pub size_bytes: Option<u64>,
    /// The log's size in bytes, if chosen.
    pub log_bytes: Option<u64>,
}

/// What replication would be like.
#[derive(Clone, Debug, Serialize)]
pub struct Assessment {
    /// For how long it was watched, in nanoseconds.
    pub watched_ns: i64,
    /// How many writes there were.
    pub writes: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// Bytes per second on average.
    pub mean_bytes_per_s: f64,
    /// How much is written within stretches of time of several lengths.
    pub bursts: Vec<Burst>,
    /// Round trips in nanoseconds.
    pub round_trip_ns: Percentiles,
    /// Their average.
    pub mean_round_trip_ns: i64,
    /// How long writes take now, if that was recorded, in nanoseconds.
    pub now_ns: Option<Percentiles>,
    /// How much longer they would take synchronously, in nanoseconds.
    pub added_ns: Percentiles,
    /// How long they would take then.
    pub then_ns: Option<Percentiles>,
    /// What the link's bandwidth means, if it is known.
    pub with_bandwidth: Option<WithBandwidth>,
    /// What the log's size means, if it is chosen.
    pub with_log: Option<WithLog>,
    /// What is advised.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// What a link of known bandwidth does to the load.
#[derive(Clone, Debug, Serialize)]
pub struct WithBandwidth {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// The share of it that the load takes on average.
    pub utilisation: f64,
    /// How long writes wait for others and are on the wire, in nanoseconds.
    pub queue_ns: Percentiles,
    /// The most bytes that were written but not yet sent: what an asynchronous log has to hold.
    pub backlog_bytes: u64,
    /// How long the first synchronisation takes with the load going on, in seconds; unknown without the
    /// volume's size, or if nothing of the bandwidth is left.
    pub initial_sync_s: Option<f64>,
}

/// What a log of chosen size is good for.
#[derive(Clone, Debug, Serialize)]
pub struct WithLog {
    /// Bytes.
    pub bytes: u64,
    /// The least bandwidth with which it never overflows under this load, in bytes per second.
    pub needs_bytes_per_s: f64,
    /// How long the other server may be away at the average load, in seconds; unknown if nothing is
    /// written.
    pub outage_s: Option<f64>,
    /// How soon it was full at the busiest time, in seconds; unknown if all that was watched fits.
    pub worst_outage_s: Option<f64>,
}

/// What is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Synchronous replication is within what is advised.
    Synchronous,
    /// Asynchronous replication; what was written last can be lost.
    Asynchronous,
    /// The link does not carry the load at all.
    Neither,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Reason {
    /// The average round trip is within the advice.
    RoundTripAdvised,
    /// It is not.
    RoundTripTooLong,
    /// It is, but one in 100 is not.
    RoundTripSometimesTooLong,
    /// More is written than the link carries.
    Overload,
    /// One write in 100 waits for longer for the link than a round trip may take.
    QueuesTooLong,
    /// The bandwidth is not known, so waits for the link are not in what is added.
    BandwidthUnknown,
    /// The log would overflow.
    LogTooSmall,
    /// Less than a day was watched: busier times may not have been among it.
    ShortWatch,
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    /// There is no load.
    #[error("no writes to the volume were recorded, so there is nothing to assess")]
    NoWrites,
    /// No round trip.
    #[error("it takes at least one round trip, of 0 to 100 seconds each")]
    NoRoundTrip,
    /// Bandwidth that is none.
    #[error("a bandwidth must be above 0")]
    NoBandwidth,
}

/// A day in nanoseconds.
const DAY_NS: i64 = 86_400_000_000_000;

/// What replicating such a load over such a link would be like.
///
/// # Errors
/// If there is nothing to assess, or the link is impossible.
pub fn assess(load: &Load, link: &Link, volume: Volume) -> Result<Assessment, AssessError> {
    if load.count() == 0 {
        return Err(AssessError::NoWrites);
    }
    let possible = |ns: &i64| (0..=100_000_000_000).contains(ns);
    if link.round_trips_ns.is_empty() || !link.round_trips_ns.iter().all(possible) {
        return Err(AssessError::NoRoundTrip);
    }
    if link
        .bytes_per_s
        .is_some_and(|rate| !rate.is_finite() || rate <= 0.0)
    {
        return Err(AssessError::NoBandwidth);
    }
    let trips: Vec<(i64, u64)> = link.round_trips_ns.iter().map(|ns| (*ns, 1)).collect();
    let round_trip_ns = Percentiles::of(trips.clone());
    let total: i128 = link.round_trips_ns.iter().copied().map(i128::from).sum();
    let mean_round_trip_ns = i64::try_from(total / trips.len() as i128).unwrap_or(i64::MAX);

    let mean = load.mean_bytes_per_s();
    let queue = link.bytes_per_s.map(|rate| queue::send(load, rate));
    let waits: Vec<i64> = match &queue {
        Some(queue) => queue.waits_ns.clone(),
        None => vec![0; load.writes().len()],
    };
    let weights = || load.writes().iter().map(|write| write.count);
    let waits: Vec<(i64, u64)> = waits.into_iter().zip(weights()).collect();
    let now: Option<Vec<(i64, u64)>> = (load.writes().iter())
        .map(|write| Some((write.latency_ns?, write.count)))
        .collect();
    let then = now.as_ref().map(|now| -> Vec<(i64, u64)> {
        let both = now.iter().zip(&waits);
        both.map(|((now, count), (wait, _))| (now.saturating_add(*wait), *count))
            .collect()
    });

    let with_bandwidth = link.bytes_per_s.zip(queue.as_ref()).map(|(rate, queue)| {
        let left = rate - mean;
        WithBandwidth {
            bytes_per_s: rate,
            utilisation: mean / rate,
            queue_ns: Percentiles::of(waits.clone()),
            backlog_bytes: queue.backlog_bytes,
            initial_sync_s: (volume.size_bytes)
                .filter(|_| left > 0.0)
                .map(|size| size as f64 / left),
        }
    });
    let with_log = volume.log_bytes.map(|bytes| WithLog {
        bytes,
        needs_bytes_per_s: queue::least_rate(load, bytes),
        outage_s: (mean > 0.0).then(|| bytes as f64 / mean),
        worst_outage_s: load.soonest_ns(bytes).map(|ns| ns as f64 / 1e9),
    });

    let mut reasons = Vec::new();
    let overload = with_bandwidth
        .as_ref()
        .is_some_and(|with| with.utilisation >= 1.0);
    let queues = with_bandwidth
        .as_ref()
        .is_some_and(|with| with.queue_ns.p99 > ADVISED_ROUND_TRIP_NS);
    let far = mean_round_trip_ns > ADVISED_ROUND_TRIP_NS;
    reasons.extend(overload.then_some(Reason::Overload));
    reasons.push(match far {
        true => Reason::RoundTripTooLong,
        false if round_trip_ns.p99 > ADVISED_ROUND_TRIP_NS => Reason::RoundTripSometimesTooLong,
        false => Reason::RoundTripAdvised,
    });
    reasons.extend((queues && !overload).then_some(Reason::QueuesTooLong));
    reasons.extend(queue.is_none().then_some(Reason::BandwidthUnknown));
    let overflows = with_log
        .as_ref()
        .zip(queue.as_ref())
        .is_some_and(|(log, queue)| queue.backlog_bytes > log.bytes);
    reasons.extend(overflows.then_some(Reason::LogTooSmall));
    reasons.extend((load.watched_ns() < DAY_NS).then_some(Reason::ShortWatch));

    Ok(Assessment {
        watched_ns: load.watched_ns(),
        writes: load.count(),
        bytes: load.bytes(),
        mean_bytes_per_s: mean,
        bursts: load.bursts(),
        round_trip_ns,
        mean_round_trip_ns,
        now_ns: now.map(Percentiles::of),
        added_ns: Percentiles::of_sums(waits, trips.clone()),
        then_ns: then.map(|then| Percentiles::of_sums(then, trips)),
        with_bandwidth,
        with_log,
        verdict: match (overload, far || queues) {
            (true, _) => Verdict::Neither,
            (false, true) => Verdict::Asynchronous,
            (false, false) => Verdict::Synchronous,
        },
        reasons,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1_000 * MS;

    /// For 10 s, every 100 ms a write of 100,000 bytes that takes 1 ms.
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

    /// By hand: 1 MB/s over 10 MB/s; each write is on the wire for 10 ms and meets no other.
    #[test]
    fn a_steady_load_over_a_wide_link() {
        let volume = Volume {
            size_bytes: Some(9_000_000_000),
            log_bytes: Some(5_000_000),
        };
        let found = assess(&steady(), &link(&[2], Some(1e7)), volume).unwrap();
        assert_eq!((found.writes, found.bytes), (100, 10_000_000));
        assert_eq!(found.mean_bytes_per_s, 1e6);
        assert_eq!((found.added_ns.p50, found.added_ns.max), (12 * MS, 12 * MS));
        assert_eq!(found.then_ns.unwrap().p99, 13 * MS);
        let with = found.with_bandwidth.unwrap();
        assert_eq!(
            (with.backlog_bytes, with.initial_sync_s),
            (100_000, Some(1_000.0))
        );
        let log = found.with_log.unwrap();
        assert_eq!(log.outage_s, Some(5.0));
        // 50 writes fill it, the 50th of which is 4.9 s after the first.
        assert_eq!(log.worst_outage_s, Some(4.9));
        assert_eq!(found.verdict, Verdict::Asynchronous);
        assert!(found.reasons.contains(&Reason::QueuesTooLong));
    }

    #[test]
    fn the_average_decides_and_percentiles_are_told_beside_it() {
        let fast = Some(1e9);
        let verdict = |trips: &[i64], rate| {
            let found = assess(&steady(), &link(trips, rate), Volume::default()).unwrap();
            (found.verdict, found.reasons[0])
        };
        assert_eq!(
            verdict(&[5], fast),
            (Verdict::Synchronous, Reason::RoundTripAdvised)
        );
        assert_eq!(
            verdict(&[6], fast),
            (Verdict::Asynchronous, Reason::RoundTripTooLong)
        );
        // On average 3.6 ms, and one in five takes 14.
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
    fn what_is_unknown_is_not_made_up() {
        let mut writes = steady().writes().to_vec();
        writes[3].latency_ns = None;
        let load = Load::new(writes, 0, 10 * S);
        let found = assess(&load, &link(&[2], None), Volume::default()).unwrap();
        assert!(found.now_ns.is_none() && found.then_ns.is_none());
        assert!(found.with_bandwidth.is_none() && found.with_log.is_none());
        assert!(found.reasons.contains(&Reason::BandwidthUnknown));
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
