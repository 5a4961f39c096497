//! Comparison of the rows of both sides, with tests of the role of chance.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use statistics::{multiple, welch};

use crate::sums::{Key, Row};
use crate::traffic::Traffic;
use crate::wakes::NOTHING_TO_DO;
use crate::{
    Change, Conclusion, Kind, PerWork, Recording, Sum, Unit, UnmatchedShare, Work, decompose,
};

/// Maximum share of wrong findings (false discovery rate).
pub(crate) const FALSE_SHARE: f64 = 0.05;

/// Minimum change that matters, in nanoseconds per second: 0.5 % of a CPU.
const LEAST_NS: f64 = 0.005e9;

/// Minimum change that matters, as a share of the larger time of the row.
pub(crate) const LEAST_SHARE: f64 = 0.1;

/// Minimum time of a row that may fill a CPU, in nanoseconds per second. If a row fills a CPU, its time stays the same
/// even if its work becomes cheaper.
const FILLS_CPU_NS: f64 = 0.5e9;

/// Share of a change of a routine's time. If the code of a module explains at least this share, the code is listed
/// before the routine that ran it.
pub(crate) const EXPLAINS: f64 = 0.8;

/// Minimum number of events of a row on each side. With fewer events, the mean times are not compared.
const LEAST_COUNT: f64 = 20.0;

/// Share of the row's time. If a recording has at least this much time in events without a name, a row that seems
/// absent may be hidden in this time.
const HIDDEN: f64 = 0.5;

/// Recordings of both sides, and the kinds of rows that all recordings have.
pub(crate) struct Matching<'r> {
    sides: [&'r [Recording]; 2],
    unit: Unit,
    kinds: BTreeSet<Kind>,
}

impl<'r> Matching<'r> {
    pub(crate) fn new(sides: [&'r [Recording]; 2], unit: Unit) -> Matching<'r> {
        let all = || sides.into_iter().flatten();
        let is_in_all = |kind: &Kind| all().all(|recording| recording.recorded.contains(kind));
        let mut kinds: BTreeSet<Kind> = Kind::ALL.into_iter().filter(is_in_all).collect();
        // If a recording has no DPCs or ISRs, their time is part of the time of the interrupted threads. The times of
        // threads are then not comparable.
        let differs = |kind| {
            let mut all = all().map(|recording| recording.recorded.contains(&kind));
            let first = all.next();
            all.any(|has| Some(has) != first)
        };
        if [Kind::Dpc, Kind::Isr].into_iter().any(differs) {
            kinds.retain(|kind| !kind.is_own_time());
        }
        Matching { sides, unit, kinds }
    }

    /// Compares all rows per second.
    pub(crate) fn per_second(&self) -> Vec<Change> {
        let seconds = |recording: &Recording| {
            vec![recording.seconds / recording.blocks.count as f64; recording.blocks.count]
        };
        self.changes(seconds, LEAST_NS, |_, _| true)
    }

    /// Compares rows per unit of work. Returns `None` if a recording has no work of this kind. `per_second` has the
    /// changes of the rows per second.
    pub(crate) fn per_work(&self, asked: Option<&Work>, per_second: &[Change]) -> Option<PerWork> {
        let work = asked.unwrap_or(&Work::NetworkKib);
        let [before, after] = self.sides.map(|side| {
            let amounts = side.iter().map(|recording| recording.work.get(work));
            let amounts: Option<Vec<&Vec<f64>>> = amounts.collect();
            let seconds: f64 = side.iter().map(|recording| recording.seconds).sum();
            amounts.map(|all| all.into_iter().flatten().sum::<f64>() / seconds)
        });
        let (before, after) = before.zip(after)?;
        let amounts = |recording: &Recording| recording.work.get(work).cloned().unwrap_or_default();
        // Minimum change per unit of work. A change matters if it matters on the side with less work, so the smaller
        // amount of work is used.
        let least_ns = LEAST_NS / before.min(after);
        // If the user requested no unit, only times that depend on the traffic are divided by the traffic. Otherwise,
        // less traffic would look like a higher cost of everything that runs at a constant rate.
        let traffic = asked.is_none().then(|| Traffic::new(self.sides));
        let is_asked = |(kind, name): &(Kind, String), row: &Row| {
            (traffic.as_ref()).is_none_or(|traffic| traffic.has(*kind, name, &row.key))
        };
        let mut per_work = PerWork {
            work: work.clone(),
            is_asked: asked.is_some(),
            before,
            after,
            changes: self.changes(amounts, least_ns, is_asked),
        };
        if per_work.differs() {
            let same = per_second.iter().filter(|change| is_same(change));
            let same: BTreeSet<_> = same.map(|change| (change.kind, &change.name)).collect();
            for change in &mut per_work.changes {
                if same.contains(&(change.kind, &change.name)) {
                    change.conclusion = Conclusion::Unrelated;
                }
            }
            sort(&mut per_work.changes);
        }
        Some(per_work)
    }

    /// Returns true if the row can be compared. Its name must mean the same in all recordings, and a recording without
    /// the row must really have no time for it.
    fn is_comparable(&self, (kind, name): &(Kind, String), row: &Row) -> bool {
        let all = || self.sides.into_iter().flatten();
        let key = (*kind, name.clone());
        let rate = |recording: &Recording, ns: f64| ns / recording.seconds;
        let own = |recording: &Recording| {
            let row = recording.rows.named.get(&key);
            row.map(|row| rate(recording, Sum::total(&row.blocks).ns))
        };
        let greatest = all().filter_map(own).fold(0.0, f64::max);
        // A row that seems absent may be hidden: its time may be part of the time without a name.
        let is_known = |recording: &Recording| {
            let rest = [&recording.rows.unnamed, &recording.rows.joined].map(|rest| rest.get(kind));
            let rest: f64 = rest.into_iter().flatten().map(|sum| sum.ns).sum();
            own(recording).is_some() || rate(recording, rest) < HIDDEN * greatest
        };
        let has_same_symbols = row.key.symbols_of().is_none_or(|module| {
            let named = all().any(|recording| recording.symbols.named.contains(module));
            let unnamed = all().any(|recording| recording.symbols.unnamed.contains(module));
            !(named && unnamed)
        });
        self.kinds.contains(kind) && has_same_symbols && all().all(is_known)
    }

    /// Compares the rows for which `is_asked` returns true per unit of work. `work` returns the work in each block of
    /// a recording. Changes below `least_ns` per unit of work are too small to matter.
    fn changes(
        &self,
        work: impl Fn(&Recording) -> Vec<f64>,
        least_ns: f64,
        is_asked: impl Fn(&(Kind, String), &Row) -> bool,
    ) -> Vec<Change> {
        let all = || self.sides.into_iter().flatten();
        let keys: BTreeSet<_> = all()
            .flat_map(|recording| recording.rows.named.keys())
            .collect();
        let works = self
            .sides
            .map(|side| side.iter().map(&work).collect::<Vec<_>>());
        let mut changes = Vec::new();
        for key in keys {
            let Some(row) = all().find_map(|recording| recording.rows.named.get(key)) else {
                continue;
            };
            if !is_asked(key, row) || !self.is_comparable(key, row) {
                continue;
            }
            let rates = |side: usize| {
                let each = self.sides[side].iter().zip(&works[side]);
                let each = each.map(|(recording, work)| match recording.rows.named.get(key) {
                    Some(row) => Rates::new(&row.blocks, work),
                    None => Rates::new(&vec![Sum::default(); work.len()], work),
                });
                Rates::of_side(each.collect(), self.unit)
            };
            let rates = [rates(0), rates(1)];
            let mut change = change(key.0, &row.name, &row.key, self.unit, &rates);
            change.matters_ns = change.matters_ns.max(least_ns);
            changes.push(change);
        }
        conclude(&mut changes);
        changes
    }

    /// Returns for each kind the share of time in rows that have no counterpart on the other side.
    pub(crate) fn unmatched(&self) -> Vec<UnmatchedShare> {
        let share = |kind: Kind, side: [&[Recording]; 2]| {
            let [own, others] = side;
            let (mut all, mut matched) = (0.0, 0.0);
            for of in own {
                all += of.rows.of_kind(kind).0;
                for ((_, name), row) in of.rows.named_of_kind(kind) {
                    let key = (kind, name.clone());
                    let is_there = others
                        .iter()
                        .any(|recording| recording.rows.named.contains_key(&key));
                    if is_there && self.is_comparable(&key, row) {
                        matched += Sum::total(&row.blocks).ns;
                    }
                }
            }
            (all > 0.0).then(|| (1.0 - matched / all).clamp(0.0, 1.0))
        };
        let [before, after] = self.sides;
        let kinds = self.kinds.iter().filter_map(|kind| {
            Some(UnmatchedShare {
                kind: *kind,
                before: share(*kind, [before, after])?,
                after: share(*kind, [after, before])?,
            })
        });
        kinds.collect()
    }
}

/// Count and time of a row per unit of work.
struct Rates {
    whole: Sum,
    /// Number of events, not divided by the work.
    count: f64,
    /// Time per unit of work, one value for each unit of evidence.
    units: Vec<f64>,
    /// Mean time of an event, one value for each unit of evidence. Empty if a recording has no events.
    means: Vec<f64>,
}

impl Rates {
    fn new(blocks: &[Sum], work: &[f64]) -> Rates {
        let whole = Sum::total(blocks);
        let counts: Vec<f64> = blocks.iter().map(|sum| sum.count).collect();
        Rates {
            whole: whole.per(work.iter().sum()),
            count: whole.count,
            units: linearised(blocks, work),
            means: if whole.count > 0.0 {
                linearised(blocks, &counts)
            } else {
                Vec::new()
            },
        }
    }

    /// Joins the rates of the recordings of one side.
    fn of_side(mut recordings: Vec<Rates>, unit: Unit) -> Rates {
        if unit == Unit::Block
            && let Some(only) = recordings.pop()
        {
            return only;
        }
        let wholes: Vec<Sum> = recordings.iter().map(|recording| recording.whole).collect();
        let means: Option<Vec<f64>> = wholes.iter().map(|whole| whole.mean_ns()).collect();
        Rates {
            whole: Sum::total(&wholes).per(recordings.len() as f64),
            count: recordings.iter().map(|recording| recording.count).sum(),
            units: wholes.iter().map(|whole| whole.ns).collect(),
            means: means.unwrap_or_default(),
        }
    }
}

/// Returns one linearised value for each block: `ratio + (time - ratio * work) / mean_work`, where `ratio` is
/// the total time divided by the total work. The mean of these values is `ratio`. The values differ only by
/// the time that the work of their block does not explain.
fn linearised(blocks: &[Sum], work: &[f64]) -> Vec<f64> {
    let all_work: f64 = work.iter().sum();
    let mean_work = all_work / work.len() as f64;
    let ratio = Sum::total(blocks).ns / all_work;
    let both = blocks.iter().zip(work);
    both.map(|(sum, work)| ratio + (sum.ns - ratio * work) / mean_work)
        .collect()
}

/// Compares one row. `conclude` sets the conclusion later.
fn change(kind: Kind, name: &str, key: &Key, unit: Unit, rates: &[Rates; 2]) -> Change {
    let [before, after] = rates;
    let test = |before: &[f64], after: &[f64]| {
        let are_enough = before.len().min(after.len()) >= unit.min_count();
        welch::compare(before, after, unit.neighbours()).filter(|_| are_enough)
    };
    let tested = test(&before.units, &after.units);
    // For the row of a CPU, the mean time has no meaning, because it mixes long DPCs and short service
    // routines.
    let is_mixed = kind.is_sampled() || kind == Kind::Cpu;
    let has_mean = !is_mixed && before.count.min(after.count) >= LEAST_COUNT;
    let mean = test(&before.means, &after.means).filter(|_| has_mean);
    Change {
        kind,
        name: name.to_owned(),
        key: key.clone(),
        before: before.whole,
        after: after.whole,
        change: tested.map(|it| it.difference),
        parts: decompose(before.whole, after.whole),
        p: tested.map(|it| it.p),
        adjusted_p: tested.map(|it| it.p),
        matters_ns: LEAST_SHARE * before.whole.ns.max(after.whole.ns),
        mean_change: mean.map(|it| it.difference),
        mean_p: mean.map(|it| it.p),
        adjusted_mean_p: mean.map(|it| it.p),
        conclusion: Conclusion::TooFew,
        is_exchanged: false,
    }
}

/// Corrects the probabilities, draws the conclusions and sorts the changes.
pub(crate) fn conclude(changes: &mut [Change]) {
    let all = changes.iter_mut();
    let mut all: Vec<&mut f64> = all
        .flat_map(|change| [&mut change.adjusted_p, &mut change.adjusted_mean_p])
        .flatten()
        .collect();
    let corrected: Vec<f64> = all.iter().map(|p| **p).collect();
    let corrected = multiple::benjamini_hochberg(&corrected);
    for (p, corrected) in all.iter_mut().zip(corrected) {
        **p = corrected;
    }
    for change in changes.iter_mut() {
        let Some(p) = change.adjusted_p else {
            continue;
        };
        let greater = |before: f64, after: f64| before.max(after) * LEAST_SHARE;
        let matters = change.ns().abs() >= change.matters_ns;
        let mean_matters = || {
            let means = change.before.mean_ns().zip(change.after.mean_ns());
            let is_other = means.is_some_and(|(a, b)| (b - a).abs() >= greater(a, b));
            is_other && change.parts.mean_ns.abs() >= change.matters_ns
        };
        let mean_differs = change.adjusted_mean_p.is_some_and(|p| p <= FALSE_SHARE);
        change.conclusion = match matters {
            true if p <= FALSE_SHARE => Conclusion::Differs,
            _ if mean_differs && mean_matters() => Conclusion::MeanDiffers,
            true => Conclusion::Chance,
            // If a trace is compared with itself, each change is exactly 0. Such a change is too small, even if the
            // times scatter so much that the confidence interval is wide.
            false if change.ns() != 0.0 && change.may_matter() => Conclusion::MayMatter,
            false => Conclusion::TooSmall,
        };
    }
    sort(changes);
}

/// Marks sampled code that was exchanged, and sorts changes by descending importance.
fn sort(changes: &mut [Change]) {
    // Sum of the changes of the differing rows, in nanoseconds, by kind and by direction. The direction is true if the
    // time grew.
    let mut differing: BTreeMap<(Kind, bool), f64> = BTreeMap::new();
    for of in changes.iter() {
        if of.conclusion == Conclusion::Differs && of.ns() != 0.0 {
            *differing.entry((of.kind, of.ns() > 0.0)).or_default() += of.ns().abs();
        }
    }
    for change in changes.iter_mut() {
        let exact: &[Kind] = match change.kind {
            Kind::InterruptCode => &[Kind::Dpc, Kind::Isr],
            Kind::ThreadCode => &[Kind::Program],
            _ => &[],
        };
        let has_exact = differing.keys().any(|(kind, _)| exact.contains(kind));
        let opposite_ns = differing.get(&(change.kind, change.ns() < 0.0));
        let has_opposite = opposite_ns.is_some_and(|ns| *ns > (1.0 - EXPLAINS) * change.ns().abs());
        change.is_exchanged = has_exact && has_opposite && change.ns() != 0.0;
    }
    changes.sort_by(order);
}

/// Returns true if the data shows that the count and time of a row per second are about the same on both sides.
fn is_same(change: &Change) -> bool {
    let (before, after) = (change.before, change.after);
    let has_same_count =
        change.kind.is_sampled() || (after.count / before.count - 1.0).abs() < LEAST_SHARE;
    before.ns.max(after.ns) < FILLS_CPU_NS && has_same_count && change.is_within(LEAST_SHARE)
}

/// Orders changes by descending importance.
fn order(a: &Change, b: &Change) -> Ordering {
    (class(a).cmp(&class(b))).then_with(|| weight(b).total_cmp(&weight(a)))
}

/// Returns the rank of a change for sorting. The most important rank is 0.
/// - Changes of the time come before changes of the mean time.
/// - Among changes of the time, used resources come first. Sampled code that was exchanged follows, because a row that
///   is not sampled has the net change. Then come sums by CPU and sums of waits. Details come last, with waits of
///   threads that have nothing to do.
/// - Among changes of the mean time, details come last.
///
/// A detail is a row that divides another row, such as a thread of a program.
pub(crate) fn class(change: &Change) -> u8 {
    let is_idle = matches!(change.key, Key::Wait(_, reason) if NOTHING_TO_DO.contains(&reason));
    match change.conclusion {
        Conclusion::Differs if change.kind.is_detail() || is_idle => 3,
        Conclusion::Differs if matches!(change.kind, Kind::Cpu | Kind::Wait) => 2,
        Conclusion::Differs if change.is_exchanged => 1,
        Conclusion::Differs => 0,
        Conclusion::MeanDiffers if change.kind.is_detail() => 5,
        Conclusion::MeanDiffers => 4,
        _ => 6,
    }
}

/// Returns the size of a change for sorting. Sampled code explains more than the routine that ran the code. The size of
/// sampled code is therefore increased, so that the code comes before the routine if it explains at least the share
/// `EXPLAINS` of the routine's time.
pub(crate) fn weight(change: &Change) -> f64 {
    let size = match change.conclusion {
        Conclusion::MeanDiffers => change.parts.mean_ns.abs(),
        _ => change.ns().abs(),
    };
    match change.kind {
        Kind::InterruptCode | Kind::InterruptFunction => size / EXPLAINS,
        _ => size,
    }
}
