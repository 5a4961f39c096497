//! Sentences about the fates of packets.

use std::collections::BTreeMap;

use wording::{counted, grouped, size};

use super::{Fates, Repairs, RoundTripReport, RunEnd, Tally};
use crate::{Group, SampleOutcome, Series, short_time};

impl RoundTripReport {
    /// Returns sentences about the packets of each method and setting, and about the results of the
    /// peer (sockperf).
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for group in self.measurement.groups() {
            let fates_of_group: Vec<&Fates> = (self.fates.iter())
                .filter(|fates| {
                    fates.method == group.first.method && fates.setting == group.first.setting
                })
                .collect();
            sentences.push(fates(&fates_of_group, &group));
            sentences.extend(overload(&fates_of_group, group.first));
        }
        let mut methods: Vec<&str> = self.peer.iter().map(|run| run.method.as_str()).collect();
        methods.sort_unstable();
        methods.dedup();
        sentences.extend(methods.into_iter().map(|method| self.peer(method)));
        sentences
    }

    /// Describes the peer's results for a method. The peer gets no scheduling requests, because the peer
    /// polls. With real-time priority, the peer would take a CPU from all other threads.
    fn peer(&self, method: &str) -> String {
        let runs = self.peer.iter().filter(|run| run.method == method);
        let (mut medians, mut tails, mut lost) = (Vec::new(), Vec::new(), 0);
        for run in runs {
            medians.push(run.trips.p50_ns);
            tails.push(run.trips.p99_ns);
            lost += run.trips.lost;
        }
        let middle = |values: &mut Vec<i64>| {
            values.sort_unstable();
            short_time(values[values.len() / 2])
        };
        let compared = match self.compared_to_peer(method) {
            Err(why) => format!("not compared: {why}"),
            Ok(comparison) => {
                let (low, high) = (comparison.ratio.low, comparison.ratio.high);
                if comparison.ratio.contains(1.0) {
                    format!(
                        "no significant difference of the medians (ratio {low:.2} to {high:.2})"
                    )
                } else {
                    format!(
                        "laglab's medians under the first setting are {low:.2} to {high:.2} times the medians \
                         of sockperf (95 % confidence)"
                    )
                }
            }
        };
        format!(
            "sockperf under default scheduling, compared with {method}, {}: median {}, p99 {} (of the median run), \
             {} lost; {compared}.",
            counted(medians.len() as u64, "run", "runs"),
            middle(&mut medians),
            middle(&mut tails),
            grouped(lost),
        )
    }
}

/// Returns the number of packets per second over all runs. Returns `None` if there are too few packets.
fn rate(group: &Group<'_>) -> Option<f64> {
    let (mut packets, mut ns) = (0, 0);
    for run in &group.runs {
        let mut sent = run
            .samples
            .iter()
            .filter(|sample| sample.outcome != SampleOutcome::Failed);
        let (Some(first), Some(last)) = (sent.next(), sent.next_back()) else {
            continue;
        };
        packets += sent.count() + 1;
        ns += last.start_ns - first.start_ns;
    }
    (ns > 0).then(|| packets as f64 * 1e9 / ns as f64)
}

/// Returns a sentence about a rate at which most packets did not return. Returns `None` if most packets returned, or if
/// the packets had no rate.
fn overload(runs: &[&Fates], series: &Series) -> Option<String> {
    let whole = runs.iter().filter(|run| run.ended == RunEnd::AsPlanned);
    let (planned, returned) = whole.fold((0, 0), |(planned, returned), run| {
        let tally = run.tally;
        (
            planned + tally.sent + tally.not_sent,
            returned + tally.returned,
        )
    });
    if returned * 2 >= planned {
        return None;
    }
    let per_second = 1_000_000_000 / series.interval_ns?.max(1) as u64;
    let bytes = series.size_bytes?;
    Some(format!(
        "{}, {}: most packets did not return. {} packets of {} bytes per second are {} bytes per second in each \
         direction, more than this machine or the network carries; choose a lower --rate or --size.",
        series.method,
        series.setting,
        grouped(per_second),
        grouped(bytes),
        grouped(per_second.saturating_mul(bytes)),
    ))
}

fn fates(runs: &[&Fates], group: &Group<'_>) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    let sum = |count: fn(&Tally) -> u64| runs.iter().map(|fates| count(&fates.tally)).sum::<u64>();
    // The sentence omits the number of returned packets, because every result table contains it.
    let mut sentence = format!(
        "{}, {}: {} sent{}, {} refused by the system, {}, {} out of order, {} foreign; receive buffer {}",
        first.method,
        first.setting,
        counted(sum(|tally| tally.sent), "packet", "packets"),
        rate(group).map_or(String::new(), |rate| format!(
            " ({} per second)",
            grouped(rate.round() as u64)
        )),
        grouped(sum(|tally| tally.not_sent)),
        counted(sum(|tally| tally.duplicates), "duplicate", "duplicates"),
        grouped(sum(|tally| tally.reordered)),
        grouped(sum(|tally| tally.strangers)),
        (first.receive_buffer).map_or("unknown".to_owned(), |bytes| size(bytes as u64)),
    );
    let mut marks: BTreeMap<u8, u64> = BTreeMap::new();
    for (dscp, count) in runs.iter().flat_map(|fates| &fates.seen_dscp) {
        *marks.entry(*dscp).or_default() += count;
    }
    for (dscp, count) in marks {
        sentence.push_str(&format!(
            "; {} of the returned packets reached the reflector with DSCP {dscp}",
            grouped(count)
        ));
    }
    let repairs = || runs.iter().filter_map(|fates| fates.repairs);
    if repairs().next().is_some() {
        let sum = |count: fn(Repairs) -> u64| repairs().map(count).sum::<u64>();
        sentence.push_str(&format!(
            "; in packets of the transport, several for a large packet: {} sent again, {} received after a repair \
             request, {} lost",
            grouped(sum(|tally| tally.sent)),
            grouped(sum(|tally| tally.received)),
            grouped(sum(|tally| tally.lost)),
        ));
    }
    sentence.push('.');
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probe;

    fn fates_of(tally: Tally, ended: RunEnd) -> Fates {
        Fates {
            method: "pgm 10000/s".to_owned(),
            setting: "usual".to_owned(),
            run: 0,
            tally,
            seen_dscp: Vec::new(),
            receive_buffer: None,
            ended,
            reflected: None,
            repairs: Some(Repairs {
                lost: 389_574,
                ..Repairs::default()
            }),
        }
    }

    #[test]
    fn a_rate_that_loses_most_packets_is_told_in_bytes_with_the_option_that_lowers_it() {
        let series = Series {
            interval_ns: Some(100_000),
            size_bytes: Some(65_000),
            ..Series::new(Probe::Net, "pgm 10000/s", "usual", 0)
        };
        let tally = |returned| Tally {
            sent: 10_000,
            returned,
            lost: 10_000 - returned,
            ..Tally::default()
        };
        let said = |returned, ended| overload(&[&fates_of(tally(returned), ended)], &series);
        let sentence = said(423, RunEnd::AsPlanned).unwrap();
        assert!(
            sentence.contains("650,000,000 bytes per second"),
            "{sentence}"
        );
        assert!(sentence.contains("--rate"), "{sentence}");
        assert_eq!(said(9_000, RunEnd::AsPlanned), None);
        // The packets after the end of a dead reflector say nothing about the rate.
        assert_eq!(said(423, RunEnd::Silent), None);
    }

    #[test]
    fn lost_parts_are_not_called_lost_packets() {
        let series = Series::new(Probe::Net, "pgm 10000/s", "usual", 0);
        let group = Group {
            first: &series,
            runs: vec![&series],
        };
        let run = fates_of(Tally::default(), RunEnd::AsPlanned);
        let sentence = fates(&[&run], &group);
        let parts = sentence.split_once("several for a large packet").unwrap().1;
        assert!(parts.contains("389,574 lost"), "{sentence}");
    }
}
