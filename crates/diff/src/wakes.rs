//! Waits of programs for other programs, and for DPCs.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::Sum;
use crate::sums::{Slot, Sums};

/// Wait reasons of threads that have nothing to do: `DelayExecution`, `WrDelayExecution`, `WrQueue` and
/// `WrLpcReceive`. A longer wait for one of these reasons delays nothing.
pub(crate) const NOTHING_TO_DO: [u8; 4] = [4, 11, 15, 16];

/// Maximum number of pairs of a waiting program and its waker. Above this number, the pairs with the least time are
/// left out.
const MOST: usize = 10_000;

/// Program or DPC that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waker {
    /// A thread of the program whose row in [`Sums`] has this slot.
    Program(Slot),
    /// A DPC, of a device or a timer.
    Dpc,
}

/// Sums of the waits of each program, by the program or the DPCs that ended the waits. Waits of threads that had
/// nothing to do are left out.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    by_slot: FxHashMap<(Slot, Waker), Sum>,
    /// Waits by the names of both programs, in lower case. The waker is `None` for a DPC.
    pub(crate) named: BTreeMap<(String, Option<String>), Sum>,
}

impl Wakes {
    /// Adds a wait of `ns` nanoseconds. A wait is left out if its waker is unknown, or if the thread had nothing to do.
    pub(crate) fn add(&mut self, waiting: Slot, waker: Option<Waker>, reason: u8, ns: i64) {
        if let Some(waker) = waker.filter(|_| !NOTHING_TO_DO.contains(&reason)) {
            let sum = self.by_slot.entry((waiting, waker)).or_default();
            sum.add(1.0, ns as f64);
        }
    }

    /// Replaces the slots of programs by their names. Programs without a row are left out.
    pub(crate) fn name(&mut self, sums: &Sums) {
        let mut all: Vec<((Slot, Waker), Sum)> = self.by_slot.drain().collect();
        all.sort_by(|(_, a), (_, b)| b.ns.total_cmp(&a.ns));
        for ((waiting, waker), sum) in all.into_iter().take(MOST) {
            let name = |slot| sums.name(slot).map(str::to_lowercase);
            let waker = match waker {
                Waker::Program(slot) => name(slot).map(Some),
                Waker::Dpc => Some(None),
            };
            if let Some(pair) = name(waiting).zip(waker) {
                let named = self.named.entry(pair).or_default();
                named.add(sum.count, sum.ns);
            }
        }
    }
}
