//! What became of packets, in sentences.

use std::collections::BTreeMap;

use super::{Fates, Repairs, RoundTripReport, Tally};
use crate::{Group, SampleOutcome, Verdict, short_time};

impl RoundTripReport {
    /// For each method and setting what became of its packets, and what the peer measured beside.
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
        let mut methods: Vec<&str> = self.peer.iter().map(|run| run.beside.as_str()).collect();
        methods.sort_unstable();
        methods.dedup();
        sentences.extend(methods.into_iter().map(|method| self.peer(method)));
        sentences
    }

    /// What the peer measured beside a method. It asks nothing of the scheduler: one that spins and has
    /// real-time priority would take a CPU from everybody.
    fn peer(&self, method: &str) -> String {
        let runs = self.peer.iter().filter(|run| run.beside == method);
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
                match comparison.verdict() {
                    Verdict::NoneShown => {
                        format!("no difference of our medians to its shown ({low:.2} to {high:.2})")
                    }
                    _ => format!(
                        "our medians under the first setting are {low:.2} to {high:.2} of its (95 % \
                         confidence)"
                    ),
                }
            }
        };
        format!(
            "sockperf under usual scheduling beside {method}, {} runs: median {}, p99 {} (the middle of the runs), {lost} \
             lost; {compared}.",
            medians.len(),
            middle(&mut medians),
            middle(&mut tails),
        )
    }
}

/// How many packets a second were sent, all runs together; none of too few.
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
    // How many did not come back is in every table of results.
    let mut sentence = format!(
        "{}, {}: {} packets sent{}, {} refused by the system, {} doubled, {} out of order, {} of \
         strangers; receive buffer {}",
        first.method,
        first.setting,
        sum(|tally| tally.sent),
        rate.map_or(String::new(), |rate| format!(" ({rate:.0} a second)")),
        sum(|tally| tally.not_sent),
        sum(|tally| tally.duplicates),
        sum(|tally| tally.reordered),
        sum(|tally| tally.strangers),
        (first.receive_buffer).map_or("unknown".to_owned(), |bytes| format!("{bytes} bytes")),
    );
    let mut marks: BTreeMap<u8, u64> = BTreeMap::new();
    for (dscp, count) in of.iter().flat_map(|fates| &fates.seen_dscp) {
        *marks.entry(*dscp).or_default() += count;
    }
    for (dscp, count) in marks {
        sentence.push_str(&format!(
            "; {count} of those back reached the reflector with DSCP {dscp}"
        ));
    }
    let repairs = || of.iter().filter_map(|fates| fates.repairs);
    if repairs().next().is_some() {
        let sum = |count: fn(Repairs) -> u64| repairs().map(count).sum::<u64>();
        sentence.push_str(&format!(
            "; {} sent again, {} came again, {} lost for good",
            sum(|of| of.sent),
            sum(|of| of.received),
            sum(|of| of.lost),
        ));
    }
    sentence.push('.');
    sentence
}
