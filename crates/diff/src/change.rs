//! Changes from one side to the other, and whether chance explains them.

use std::collections::BTreeSet;

use serde::Serialize;
use statistics::welch::{self, Neighbours};
use statistics::{Interval, multiple};

use crate::{Besides, Kind, Parts, Recording, Sum, decompose};

/// Differences between two recordings, or between the recordings of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Side before the change.
    pub before: Side,
    /// Side after the change.
    pub after: Side,
    /// Unit of evidence.
    pub unit: Unit,
    /// Differences of the machines and the recordings, of the first recording of each side.
    pub besides: Besides,
    /// Compared rows, per second: those that changed first, the greatest change first.
    pub per_second: Vec<Change>,
    /// Compared rows of DPCs and ISRs, per KiB of network traffic: those that changed first; `None` if a
    /// recording has no network traffic.
    pub per_network_kib: Option<Vec<Change>>,
}

/// Facts about one side.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Number of recordings.
    pub recordings: usize,
    /// Length of all recordings together, in seconds.
    pub seconds: f64,
    /// Number of units of evidence.
    pub units: usize,
    /// Network traffic in KiB per second; `None` if a recording has none, or did not record it.
    pub network_kib: Option<f64>,
    /// Number of lost events.
    pub lost_events: u64,
}

/// Unit of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Block of time of the only recording of each side. It tells whether the recordings differ.
    Block,
    /// Recording. It tells whether the sides differ by more than recordings of one side do.
    Recording,
}

impl Unit {
    /// Least number of units of a side for a conclusion.
    pub fn least(self) -> usize {
        match self {
            Unit::Block => 10,
            Unit::Recording => 3,
        }
    }

    fn neighbours(self) -> Neighbours {
        match self {
            Unit::Block => Neighbours::Dependent,
            Unit::Recording => Neighbours::Independent,
        }
    }
}

/// Row of both sides.
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
    /// Change of the time per unit in nanoseconds, with its 95 % interval; `None` with too few units of
    /// evidence.
    pub change: Option<Interval>,
    /// Parts of the change per unit.
    pub parts: Parts,
    /// Probability of such a change by chance, corrected for the number of rows (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// Smallest change of the time per unit that matters, in nanoseconds.
    pub matters_ns: f64,
    /// Conclusion.
    pub conclusion: Conclusion,
}

/// Conclusion about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The sides differ in this row.
    Differs,
    /// The change is too small to matter.
    TooSmall,
    /// Chance may explain the change.
    Chance,
    /// There are too few blocks or recordings to tell.
    TooFew,
}

impl Change {
    /// Returns the change of the time per unit, in nanoseconds.
    pub fn ns(&self) -> f64 {
        self.after.ns - self.before.ns
    }
}

/// Share of findings that may be wrong.
const FALSE_SHARE: f64 = 0.05;

/// Smallest change that matters, in nanoseconds per second: 0.5 % of a CPU.
const LEAST_NS: f64 = 0.005e9;

/// Smallest change that matters, as a share of the row.
const LEAST_SHARE: f64 = 0.1;

/// Share of a change that the code of a module must explain to come before it.
const EXPLAINS: f64 = 0.8;

/// Compares the recordings of two sides, of which each has at least one. With one recording on each side, its
/// blocks of time are the unit of evidence, otherwise the recordings are.
pub fn diff(before: &[Recording], after: &[Recording]) -> Diff {
    let unit = match (before, after) {
        ([_], [_]) => Unit::Block,
        _ => Unit::Recording,
    };
    let side = |of: &[Recording]| Side {
        recordings: of.len(),
        seconds: of.iter().map(|it| it.seconds).sum(),
        units: match unit {
            Unit::Block => of.iter().map(|it| it.blocks.count).sum(),
            Unit::Recording => of.len(),
        },
        network_kib: network_kib(of),
        lost_events: of.iter().map(|it| it.info.damage.events_lost).sum(),
    };
    let (old, new) = (side(before), side(after));
    let seconds = |of: &Recording, _: usize| of.blocks.length_ns as f64 / 1e9;
    let network = |of: &Recording, block: usize| of.network_kib[block];
    let sides = [before, after];
    let both = old.network_kib.zip(new.network_kib);
    Diff {
        unit,
        besides: match (before, after) {
            ([before, ..], [after, ..]) => Besides::of(before, after),
            _ => Besides::default(),
        },
        per_second: changes(sides, unit, seconds, LEAST_NS, |_| true),
        // A change per KiB matters if it matters at the smaller traffic.
        per_network_kib: both.map(|(old, new)| {
            let least_ns = LEAST_NS / old.min(new);
            changes(sides, unit, network, least_ns, Kind::is_in_interrupts)
        }),
        before: old,
        after: new,
    }
}

/// Returns the KiB per second of all recordings of a side; `None` if one has no network traffic.
fn network_kib(side: &[Recording]) -> Option<f64> {
    let has_traffic = |of: &Recording| !of.network_kib.is_empty();
    let kib: f64 = side.iter().flat_map(|of| &of.network_kib).sum();
    let seconds: f64 = side.iter().map(|of| of.seconds).sum();
    side.iter().all(has_traffic).then(|| kib / seconds)
}

/// Compares the rows of some kinds per unit of work. `work` returns the work in a block of a recording.
/// Changes below `least_ns` per unit of work are too small to matter.
fn changes(
    sides: [&[Recording]; 2],
    unit: Unit,
    work: impl Fn(&Recording, usize) -> f64,
    least_ns: f64,
    is_asked: impl Fn(Kind) -> bool,
) -> Vec<Change> {
    let all = || sides.into_iter().flatten();
    let keys: BTreeSet<_> = all().flat_map(|of| of.rows.keys()).collect();
    let is_in_all = |kind| all().all(|of| of.recorded.contains(kind));
    let compared = (keys.into_iter()).filter(|(kind, _)| is_in_all(kind) && is_asked(*kind));
    let works = sides.map(|side| {
        let each = side.iter().map(|of| {
            let blocks = 0..of.blocks.count;
            blocks.map(|block| work(of, block)).collect()
        });
        each.collect::<Vec<Vec<f64>>>()
    });
    let compared = compared.map(|key| {
        let rates = |side: usize| {
            let each = sides[side].iter().zip(&works[side]);
            let each = each.map(|(of, work)| match of.rows.get(key) {
                Some(row) => Rates::of(&row.blocks, work),
                None => Rates::of(&vec![Sum::default(); work.len()], work),
            });
            Rates::of_side(each.collect())
        };
        let row = all().find_map(|of| of.rows.get(key));
        let name = row.map_or("", |row| &row.name);
        change(key.0, name, unit, &[rates(0), rates(1)], least_ns)
    });
    let mut changes: Vec<Change> = compared.collect();
    conclude(&mut changes);
    changes
}

/// Count and time of a row per unit of work.
struct Rates {
    whole: Sum,
    /// Time per unit of work, one value for each unit of evidence. Blocks are linearised (ratio of sums): their
    /// mean is that of `whole`, and only what their work does not explain makes them differ.
    units: Vec<f64>,
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
            units: (both.map(|(sum, work)| whole.ns + (sum.ns - whole.ns * work) / mean_work))
                .collect(),
        }
    }

    /// Joins the rates of a side's recordings. Each of several recordings counts as one unit of evidence.
    fn of_side(mut recordings: Vec<Rates>) -> Rates {
        if recordings.len() == 1
            && let Some(only) = recordings.pop()
        {
            return only;
        }
        let mut whole = Sum::default();
        (recordings.iter()).for_each(|of| whole.add(of.whole.count, of.whole.ns));
        Rates {
            whole: whole.per(recordings.len() as f64),
            units: recordings.iter().map(|of| of.whole.ns).collect(),
        }
    }
}

/// Compares one row. The conclusion follows later.
fn change(kind: Kind, name: &str, unit: Unit, rates: &[Rates; 2], least_ns: f64) -> Change {
    let [before, after] = rates;
    let are_enough = before.units.len().min(after.units.len()) >= unit.least();
    let tested = welch::compare(&before.units, &after.units, unit.neighbours());
    let tested = tested.filter(|_| are_enough);
    Change {
        kind,
        name: name.to_owned(),
        before: before.whole,
        after: after.whole,
        change: tested.map(|it| it.difference),
        parts: decompose(before.whole, after.whole),
        adjusted_p: tested.map(|it| it.p),
        matters_ns: least_ns.max(LEAST_SHARE * before.whole.ns.max(after.whole.ns)),
        conclusion: Conclusion::TooFew,
    }
}

/// Corrects the probabilities, draws the conclusions and sorts the changes.
fn conclude(changes: &mut [Change]) {
    let tested = (changes.iter_mut()).filter(|change| change.adjusted_p.is_some());
    let mut tested: Vec<&mut Change> = tested.collect();
    let p: Vec<f64> = tested.iter().filter_map(|it| it.adjusted_p).collect();
    for (change, p) in tested.iter_mut().zip(multiple::benjamini_hochberg(&p)) {
        change.adjusted_p = Some(p);
        let matters = change.ns().abs() >= change.matters_ns;
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

/// Returns the size of a change for the order. Sampled code tells more than the routine or program that ran it,
/// so code comes first if it explains most of the same time.
fn weight(change: &Change) -> f64 {
    let size = change.ns().abs();
    match change.kind.is_sampled() {
        true => size / EXPLAINS,
        false => size,
    }
}
