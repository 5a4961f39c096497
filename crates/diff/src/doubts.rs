//! Doubts about a finding.

use wording::size;

use crate::successors::unmatched;
use crate::{Change, Conclusion, Diff, Kind, PerWork, Recording, Work, rate_text};

/// Share of time in rows that only one side has. From this share on, the finding has a doubt about these
/// rows.
const UNMATCHED: f64 = 0.05;

/// Ratio of the bytes per transfer of both sides. From this ratio on, a finding has a doubt about the different sizes.
const OTHER_SIZE: f64 = 1.05;

/// Returns the doubts about the finding of one change.
pub(crate) fn of_finding(
    diff: &Diff,
    change: &Change,
    work: Option<&PerWork>,
    sides: [&[Recording]; 2],
) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some([before, after]) = unmatched(diff, change)
        && before.max(after) > UNMATCHED
    {
        doubts.push(format!(
            "{:.0} % of the time before and {:.0} % of the time after the change is in rows that only one \
             side has",
            before * 100.0,
            after * 100.0
        ));
    }
    if work.is_none()
        && change.kind.is_in_interrupts()
        && let Some(work) = diff.per_work.as_ref().filter(|work| work.differs())
        && let Some(per_unit) = diff.per_unit(change)
    {
        let what = match per_unit.conclusion {
            Conclusion::Differs | Conclusion::MeanDiffers => "this time differs, too",
            Conclusion::TooSmall => "the change of this time is too small to matter",
            Conclusion::Chance => "chance may explain the change of this time",
            _ => "it is unknown whether this time differs",
        };
        doubts.push(format!(
            "The work differs: {} before and {} after. Per {}, {what}",
            rate_text(&work.work, work.before),
            rate_text(&work.work, work.after),
            work.work
        ));
    }
    if work.is_some_and(|work| work.differs() && !work.is_asked) {
        let mut per_second = diff.per_second.iter();
        let same = per_second.find(|it| (it.kind, &it.name) == (change.kind, &change.name));
        if same.is_some_and(|it| !it.differs()) {
            doubts.push(
                "The time per second in this row may be unchanged. If the row does not depend on this work, nothing \
                 changed"
                    .to_owned(),
            );
        }
    }
    if work.is_some_and(|work| work.work == Work::Transfers) {
        doubts.extend(other_sizes(sides));
    }
    if matches!(change.kind, Kind::Wait | Kind::WaitCode) {
        doubts.push(
            "A thread that has nothing to do waits, too: longer waits need not be a delay"
                .to_owned(),
        );
    }
    doubts
}

/// Returns a doubt if the sends and receives of both sides do not have about the same number of bytes.
fn other_sizes(sides: [&[Recording]; 2]) -> Option<String> {
    let sum = |side: &[Recording], work: &Work| -> f64 {
        let all = side.iter().filter_map(|recording| recording.work.get(work));
        all.flatten().sum()
    };
    let bytes = |side| 1024.0 * sum(side, &Work::NetworkKib) / sum(side, &Work::Transfers);
    let [before, after] = sides.map(bytes);
    let (ratio, when) = if after > before {
        (after / before, "after")
    } else {
        (before / after, "before")
    };
    // If one side has only transfers without bytes, their ratio is unknown.
    (ratio > OTHER_SIZE && ratio.is_finite()).then(|| {
        let [before, after] = [before, after].map(|bytes| size(bytes.round() as u64));
        format!(
            "A send or receive has {ratio:.1} times as many bytes {when} the change: {before} before and {after} after. \
             Compare the times per KiB, too (--per network-kib)"
        )
    })
}

impl Diff {
    /// Returns the change per unit of work for a change per second. Returns `None` if the row does not depend on the
    /// work.
    pub(crate) fn per_unit(&self, change: &Change) -> Option<&Change> {
        let mut changes = self.per_work.as_ref()?.changes.iter();
        changes.find(|candidate| {
            (candidate.kind, &candidate.name) == (change.kind, &change.name)
                && candidate.conclusion != Conclusion::Unrelated
        })
    }
}
