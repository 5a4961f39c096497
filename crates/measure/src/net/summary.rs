//! Sentences about the fates of packets.

use std::collections::BTreeMap;

use wording::{counted, grouped, size};

use super::{Fates, Repairs, RoundTripReport, Tally};
use crate::{Group, SampleOutcome, short_time};

impl RoundTripReport {
    /// Returns sentences about the packets of each method and setting, and about the results of the
    /// peer (sockperf).
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for group in self.measurement.groups() {
            let of: Vec<&Fates> = (self.fates.iter())
                .filter(|fates| {
                    fates.method == group.first.method && fates.setting == group.first.setting
                })
                .collect();
            sentences.push(fates(&of, rate(&group)));
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
                match comparison.ratio.contains(1.0) {
                    true => format!(
                        "no significant difference of the medians (ratio {low:.2} to {high:.2})"
                    ),
                    false => format!(
                        "laglab's medians under the first setting are {low:.2} to {high:.2} times the medians \
                         of sockperf (95 % confidence)"
                    ),
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
            .filter(|of| of.outcome != SampleOutcome::Failed);
        let (Some(first), Some(last)) = (sent.next(), sent.next_back()) else {
            continue;
        };
        packets += sent.count() + 1;
        ns += last.start_ns - first.start_ns;
    }
    (ns > 0).then(|| packets as f64 * 1e9 / ns as f64)
}

fn fates(of: &[&Fates], rate: Option<f64>) -> String {
    let Some(first) = of.first() else {
        return String::new();
    };
    let sum = |count: fn(&Tally) -> u64| of.iter().map(|fates| count(&fates.tally)).sum::<u64>();
    // The sentence omits the number of returned packets, because every result table contains it.
    let mut sentence = format!(
        "{}, {}: {} sent{}, {} refused by the system, {}, {} out of order, {} foreign; receive buffer {}",
        first.method,
        first.setting,
        counted(sum(|tally| tally.sent), "packet", "packets"),
        rate.map_or(String::new(), |rate| format!(
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
    for (dscp, count) in of.iter().flat_map(|fates| &fates.seen_dscp) {
        *marks.entry(*dscp).or_default() += count;
    }
    for (dscp, count) in marks {
        sentence.push_str(&format!(
            "; {} of the returned packets reached the reflector with DSCP {dscp}",
            grouped(count)
        ));
    }
    let repairs = || of.iter().filter_map(|fates| fates.repairs);
    if repairs().next().is_some() {
        let sum = |count: fn(Repairs) -> u64| repairs().map(count).sum::<u64>();
        sentence.push_str(&format!(
            "; {} sent again, {} received after a repair request, {} lost",
            grouped(sum(|of| of.sent)),
            grouped(sum(|of| of.received)),
            grouped(sum(|of| of.lost)),
        ));
    }
    sentence.push('.');
    sentence
}
