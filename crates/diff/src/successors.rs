//! Modules that replace other modules, such as another driver for the same device.

use wording::listed;

use crate::finding::{more_or_less, name, time_text};
use crate::{Change, Diff, Kind, PerWork, Sum, decompose};

/// Maximum ratio of the numbers of DPCs or ISRs of two modules. Above this ratio, one module does not seem to replace
/// the other.
const SAME_RATE: f64 = 2.0;

/// Part of a change, as a share of the change. A part of at least this share counts as the whole change.
const WHOLE: f64 = 0.95;

/// Returns true for each side on which the row has events.
fn sides_of(row: &Change) -> (bool, bool) {
    (row.before.count > 0.0, row.after.count > 0.0)
}

/// Returns the rows of the modules that replace the module of a row: one module is gone and others are new, or the
/// reverse. Only modules with about as many DPCs or ISRs count, because others belong to another device.
pub(crate) fn successors<'d>(change: &Change, changes: &'d [Change]) -> Vec<&'d Change> {
    let opposite = match sides_of(change) {
        (true, false) => (false, true),
        (false, true) => (true, false),
        _ => return Vec::new(),
    };
    let calls = |change: &Change| change.before.count.max(change.after.count);
    let replaces = |other: &&Change| {
        let ratio = calls(other) / calls(change);
        let is_similar = (1.0 / SAME_RATE..=SAME_RATE).contains(&ratio);
        other.kind == change.kind && other.differs() && sides_of(other) == opposite && is_similar
    };
    match change.kind {
        Kind::Dpc | Kind::Isr => changes.iter().filter(replaces).collect(),
        _ => Vec::new(),
    }
}

/// Returns a sentence about the modules that replace the module of a row, with the change of all of them together.
pub(crate) fn sentence(change: &Change, successors: &[&Change], work: Option<&PerWork>) -> String {
    let names = successors.iter().map(|successor| {
        let time = time_text(successor.before.ns.max(successor.after.ns));
        format!("{} ({time})", name(successor))
    });
    let all = || std::iter::once(change).chain(successors.iter().copied());
    let sum = |side: fn(&Change) -> Sum| Sum::total(&all().map(side).collect::<Vec<Sum>>());
    let (before, after) = (sum(|change| change.before), sum(|change| change.after));
    let (ns, parts) = (after.ns - before.ns, decompose(before, after));
    let cause = if parts.mean_ns / ns >= WHOLE {
        "all of it by mean, none by count"
    } else if parts.count_ns / ns >= WHOLE {
        "all of it by count, none by mean"
    } else {
        "partly by count, partly by mean"
    };
    let each = |sum: Sum| {
        let mean = sum.mean_ns().map_or("-".to_owned(), time_text);
        format!("{} × {mean}", crate::count_text(sum.count))
    };
    format!(
        "In return, {} {} {}: together {} {} {}, {cause} ({} before, {} after).",
        listed(names.collect::<Vec<_>>()),
        if successors.len() == 1 { "is" } else { "are" },
        if sides_of(change).0 { "new" } else { "gone" },
        time_text(ns.abs()),
        more_or_less(ns),
        work.map_or("per second".to_owned(), |work| format!("per {}", work.work)),
        each(before),
        each(after)
    )
}

/// Returns the shares of time before and after the change in rows of a kind that only one side has, without a replaced
/// module and its successors. Returns `None` if the shares are unknown.
pub(crate) fn unmatched(diff: &Diff, change: &Change) -> Option<[f64; 2]> {
    let of_kind = diff.unmatched.iter().find(|it| it.kind == change.kind)?;
    let rows = || diff.per_second.iter().filter(|it| it.kind == change.kind);
    let change = rows().find(|it| it.name == change.name)?;
    let others = successors(change, &diff.per_second);
    let replaced = || std::iter::once(change).chain(others.iter().copied());
    let rest = |share: f64, ns: fn(&Change) -> f64| {
        if others.is_empty() || share == 0.0 {
            return share;
        }
        // Rows that both sides have take the rest of the time.
        let matched: f64 = rows()
            .filter(|it| sides_of(it) == (true, true))
            .map(ns)
            .sum();
        let whole = (matched / (1.0 - share)).max(replaced().map(ns).sum());
        (share - replaced().map(ns).sum::<f64>() / whole).max(0.0)
    };
    Some([
        rest(of_kind.before, |it| it.before.ns),
        rest(of_kind.after, |it| it.after.ns),
    ])
}
