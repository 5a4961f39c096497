//! What receivers have asked for and not yet got.

use std::{collections::VecDeque, time::Duration};

use crate::{Time, wire::Sqn};

/// Confirmations and repairs that wait, each in the order in which they were asked for.
///
/// Repairs are bounded by the window, since no packet and no group waits twice.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    confirmations: VecDeque<Confirmation>,
    /// What was confirmed lately, and when.
    confirmed: VecDeque<(Time, Confirmation)>,
    repairs: VecDeque<Repair>,
}

/// A NAK that is to be confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Confirmation {
    pub(super) parity: bool,
    /// At most one more than a list can have, since they come from one NAK.
    pub(super) numbers: Vec<Sqn>,
}

/// A repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// The packet again.
    Original(Sqn),
    /// More parity of the group that begins so.
    Parity(Sqn),
}

impl Confirmation {
    /// Whether it says all that another does.
    fn says(&self, other: &Confirmation) -> bool {
        let numbers = &other.numbers;
        self.parity == other.parity
            && self.numbers.len() >= numbers.len()
            && numbers.iter().all(|sqn| self.numbers.contains(sqn))
    }
}

impl Repairs {
    /// Beyond so many confirmations that wait, NAKs are not confirmed: whoever sent them hears the
    /// repair or asks again.
    const MOST_CONFIRMATIONS: usize = 1024;

    /// For so long a confirmation is not repeated. All receivers hear it, and NAKs that come so soon
    /// after it were under way: of a hundred receivers that ask at once one confirmation is enough.
    const DAMPING: Duration = Duration::from_millis(1);

    /// So many of the latest confirmations are remembered for that.
    const MOST_CONFIRMED: usize = 64;

    /// Confirms a NAK, unless one that says it waits already or has just gone.
    pub(super) fn confirm(&mut self, now: Time, confirmation: Confirmation) {
        let waits = self.confirmations.iter();
        let gone = self.confirmed.iter();
        let gone = gone.filter(|(at, _)| now < at.plus(Self::DAMPING));
        let mut said = waits.chain(gone.map(|(_, gone)| gone));
        if !confirmation.numbers.is_empty()
            && self.confirmations.len() < Self::MOST_CONFIRMATIONS
            && !said.any(|said| said.says(&confirmation))
        {
            self.confirmations.push_back(confirmation);
        }
    }

    pub(super) fn has_confirmation(&self) -> bool {
        !self.confirmations.is_empty()
    }

    pub(super) fn next_confirmation(&mut self, now: Time) -> Option<&Confirmation> {
        let next = self.confirmations.pop_front()?;
        if self.confirmed.len() == Self::MOST_CONFIRMED {
            self.confirmed.pop_front();
        }
        self.confirmed.push_back((now, next));
        self.confirmed.back().map(|(_, next)| next)
    }

    pub(super) fn push(&mut self, repair: Repair) {
        self.repairs.push_back(repair);
    }

    pub(super) fn push_front(&mut self, repair: Repair) {
        self.repairs.push_front(repair);
    }

    pub(super) fn has_repair(&self) -> bool {
        !self.repairs.is_empty()
    }

    pub(super) fn next_repair(&mut self) -> Option<Repair> {
        self.repairs.pop_front()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
