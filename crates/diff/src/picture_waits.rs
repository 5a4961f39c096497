//! Programs that waited for each other, before and after the change.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;

use crate::picture::{Source, is_recorded};
use crate::{Kind, Sum};

/// Waits of programs for each other. Waits of threads that had nothing to do are left out.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Waits {
    /// Pairs of programs. The greatest change is first.
    pub edges: Vec<WaitEdge>,
    /// Number of pairs with smaller changes that are left out.
    pub omitted: usize,
}

/// Waits of the program `waiting` that threads of the program `waker` ended, or that DPCs ended. Times and numbers are
/// per second of the recordings.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct WaitEdge {
    /// Program that waited.
    pub waiting: String,
    /// Program whose thread ended the waits; `None` for DPCs of devices and timers.
    pub waker: Option<String>,
    /// Time of the waits before the change, in nanoseconds.
    pub before_ns: f64,
    /// Number of waits before the change.
    pub before_count: f64,
    /// Time of the waits after the change, in nanoseconds.
    pub after_ns: f64,
    /// Number of waits after the change.
    pub after_count: f64,
}

/// Maximum number of pairs.
const MOST: usize = 60;

/// Least change that is shown, in nanoseconds per second.
const LEAST_NS: f64 = 10_000.0;

/// Returns the waits; `None` if a trace did not record them.
pub(crate) fn waits(sides: [&[Source<'_>]; 2]) -> Option<Waits> {
    if !is_recorded(sides, Kind::Wait) {
        return None;
    }
    let mut all: BTreeMap<&(String, Option<String>), [Sum; 2]> = BTreeMap::new();
    for (number, side) in sides.into_iter().enumerate() {
        let seconds: f64 = side.iter().map(|source| source.recording.seconds).sum();
        for (pair, sum) in side.iter().flat_map(|source| &source.recording.wakes.named) {
            let sums = all.entry(pair).or_default();
            let sum = sum.per(seconds);
            sums[number].add(sum.count, sum.ns);
        }
    }
    // Programs are matched by their names in lower case, and shown with their recorded names.
    let shown = |name: &String| {
        let key = (Kind::Program, name.clone());
        let mut rows = sides.into_iter().flatten();
        let row = rows.find_map(|source| source.recording.rows.named.get(&key));
        row.map_or_else(|| name.clone(), |row| row.name.clone())
    };
    let changed = |[before, after]: &[Sum; 2]| (after.ns - before.ns).abs();
    let mut pairs: Vec<_> = all.into_iter().collect();
    pairs.retain(|(_, sums)| changed(sums) >= LEAST_NS);
    pairs.sort_by(|(_, a), (_, b)| changed(b).total_cmp(&changed(a)));
    let edges = pairs.iter().take(MOST);
    let edges = edges.map(|((waiting, waker), [before, after])| WaitEdge {
        waiting: shown(waiting),
        waker: waker.as_ref().map(shown),
        before_ns: before.ns,
        before_count: before.count,
        after_ns: after.ns,
        after_count: after.count,
    });
    Some(Waits {
        edges: edges.collect(),
        omitted: pairs.len().saturating_sub(MOST),
    })
}
