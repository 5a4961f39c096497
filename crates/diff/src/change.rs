//! Changes from one recording to another, and the part of chance.

use std::collections::BTreeSet;

use serde::Serialize;
use statistics::{Interval, multiple, welch};

use crate::{Besides, Kind, Parts, Recording, Sum, decompose};

/// Differences between two recordings.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Length of the recording before the change, in seconds.
    pub seconds_before: f64,
    /// Length of the recording after the change, in seconds.
    pub seconds_after: f64,
    /// Network traffic before the change, in KiB per second; `None` if there was none or it was not recorded.
    pub network_kib_before: Option<f64>,
    /// Network traffic after the change, in KiB per second; `None` if there was none or it was not recorded.
    pub network_kib_after: Option<f64>,
    /// Number of events that each recording lost.
    pub lost_events: [u64; 2],
    /// Differences of the machines and the recordings.
    pub besides: Besides,
    /// Compared rows, per second: those that changed first, the greatest change first.
    pub per_second: Vec<Change>,
    /// Compared rows of DPCs and ISRs, per KiB of network traffic: those that changed first; `None` if a
    /// recording has no network traffic.
    pub per_network_kib: Option<Vec<Change>>,
    /// Number of blocks of time of the recording that has fewer.
    pub blocks: usize,
}

/// Row of both recordings.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Kind of the row.
    pub kind: Kind,
    /// Name of the program, module or disk.
    pub name: String,
    /// Count and time per unit before the change.
    pub before: Sum,
    /// Count and time per unit after the change.
    pub after: Sum,
    /// Change of the time per unit in nanoseconds, with its 95 % interval; `None` with fewer than ten blocks.
    pub change: Option<Interval>,
    /// Parts of the change per unit.
    pub parts: Parts,
    /// Probability of such a change by chance, corrected for the number of rows (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// Conclusion.
    pub conclusion: Conclusion,
}

/// Conclusion about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The recordings differ in this row.
    Differs,
    /// The change is too small to matter.
    TooSmall,
    /// Chance may explain the change.
    Chance,
    /// The recordings are too short to tell.
    TooShort,
}

impl Change {
    /// Returns the change of the time per unit, in nanoseconds.
    pub fn ns(&self) -> f64 {
        self.after.ns - self.before.ns
    }
}

/// Least number of blocks of a recording for a conclusion.
const LEAST_BLOCKS: usize = 10;

/// Share of findings that may be wrong.
const FALSE_SHARE: f64 = 0.05;

/// Smallest change that matters, in nanoseconds per second: 0.5 % of a CPU.
const LEAST_NS: f64 = 0.005e9;

/// Smallest change that matters, as a share of the row.
const LEAST_SHARE: f64 = 0.1;

/// Share of a change's time that the code within it must explain to be named first.
const EXPLAINS: f64 = 0.8;

/// Compares two recordings.
pub fn diff(before: &Recording, after: &Recording) -> Diff {
    let seconds = [before, after].map(|of| {
        let seconds = of.blocks.length_ns as f64 / 1e9;
        vec![seconds; of.blocks.count]
    });
    let network = [before, after].map(|of| of.network_kib.clone());
    let rate = |kib: &[f64], of: &Recording| {
        (!kib.is_empty()).then(|| kib.iter().sum::<f64>() / of.seconds)
    };
    let (old, new) = (rate(&network[0], before), rate(&network[1], after));
    Diff {
        seconds_before: before.seconds,
        seconds_after: after.seconds,
        network_kib_before: old,
        network_kib_after: new,
        lost_events: [before, after].map(|of| of.info.damage.events_lost),
        besides: Besides::of(before, after),
        per_second: changes([before, after], &seconds, LEAST_NS, |_| true),
        // A change per KiB matters if it matters at the smaller traffic.
        per_network_kib: old.zip(new).map(|(old, new)| {
            let least_ns = LEAST_NS / old.min(new);
            changes([before, after], &network, least_ns, Kind::is_in_interrupts)
        }),
        blocks: before.blocks.count.min(after.blocks.count),
    }
}

/// Compares the rows of some kinds per unit of work. `work` is the work in each block of both recordings.
/// Changes below `least_ns` per unit are too small to matter.
fn changes(
    sides: [&Recording; 2],
    work: &[Vec<f64>; 2],
    least_ns: f64,
    is_asked: impl Fn(Kind) -> bool,
) -> Vec<Change> {
    let [before, after] = sides;
    let keys: BTreeSet<_> = before.rows.keys().chain(after.rows.keys()).collect();
    let is_in_both = |kind| before.recorded.contains(kind) && after.recorded.contains(kind);
    let compared = (keys.into_iter()).filter(|(kind, _)| is_in_both(kind) && is_asked(*kind));
    let compared = compared.map(|key| {
        let rates = |of: &Recording, work: &[f64]| match of.rows.get(key) {
            Some(row) => Rates::of(&row.blocks, work),
            None => Rates::of(&vec![Sum::default(); of.blocks.count], work),
        };
        let row = before.rows.get(key).or(after.rows.get(key));
        let name = row.map_or("", |row| &row.name);
        change(
            key.0,
            name,
            &rates(before, &work[0]),
            &rates(after, &work[1]),
        )
    });
    let mut changes: Vec<Change> = compared.collect();
    conclude(&mut changes, least_ns);
    changes
}

/// Count and time of a row per unit of work.
struct Rates {
    whole: Sum,
    /// Time per unit, one value for each block. Its mean is that of `whole`, and it varies only as much as the
    /// time does that the work does not explain (linearised ratio of sums).
    blocks: Vec<f64>,
}

impl Rates {
    fn of(blocks: &[Sum], work: &[f64]) -> Rates {
        let mut whole = Sum::default();
        blocks.iter().for_each(|sum| whole.add(sum.count, sum.ns));
        let all_work: f64 = work.iter().sum();
        let mean_work = all_work / work.len() as f64;
        let whole = whole.per(all_work);
        let both = blocks.iter().zip(work);
        Rates {
            whole,
            blocks: (both.map(|(sum, work)| whole.ns + (sum.ns - whole.ns * work) / mean_work))
                .collect(),
        }
    }
}

/// Compares one row. The conclusion follows later.
fn change(kind: Kind, name: &str, before: &Rates, after: &Rates) -> Change {
    let is_long = before.blocks.len().min(after.blocks.len()) >= LEAST_BLOCKS;
    let tested = welch::compare(&before.blocks, &after.blocks).filter(|_| is_long);
    Change {
        kind,
        name: name.to_owned(),
        before: before.whole,
        after: after.whole,
        change: tested.map(|it| it.difference),
        parts: decompose(before.whole, after.whole),
        adjusted_p: tested.map(|it| it.p),
        conclusion: Conclusion::TooShort,
    }
}

/// Corrects the probabilities, draws the conclusions and sorts the changes.
fn conclude(changes: &mut [Change], least_ns: f64) {
    let tested = (changes.iter_mut()).filter(|change| change.adjusted_p.is_some());
    let mut tested: Vec<&mut Change> = tested.collect();
    let p: Vec<f64> = tested.iter().filter_map(|it| it.adjusted_p).collect();
    for (change, p) in tested.iter_mut().zip(multiple::benjamini_hochberg(&p)) {
        change.adjusted_p = Some(p);
        let greater = change.before.ns.max(change.after.ns);
        let matters = change.ns().abs() >= least_ns.max(LEAST_SHARE * greater);
        change.conclusion = match matters {
            false => Conclusion::TooSmall,
            true if p <= FALSE_SHARE => Conclusion::Differs,
            true => Conclusion::Chance,
        };
    }
    changes.sort_by(|a, b| {
        let differs = |of: &Change| of.conclusion != Conclusion::Differs;
        (differs(a).cmp(&differs(b))).then_with(|| weight(b).total_cmp(&weight(a)))
    });
}

/// Returns the size of a change for the order. A sample of code tells more than the routine or program that
/// ran it, so code comes first if it explains most of the same time.
fn weight(change: &Change) -> f64 {
    let is_code = matches!(change.kind, Kind::InterruptCode | Kind::ThreadCode);
    let size = change.ns().abs();
    if is_code { size / EXPLAINS } else { size }
}
