//! What receivers have asked for and not yet got.

use std::collections::VecDeque;

use crate::wire::Sqn;

/// Confirmations and repairs that wait, each in the order in which they were asked for.
///
/// Repairs are bounded by the window, since no packet and no group waits twice.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    confirmations: VecDeque<Confirmation>,
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

impl Repairs {
    /// Beyond so many confirmations that wait, NAKs are not confirmed: whoever sent them hears the
    /// repair or asks again.
    const MOST_CONFIRMATIONS: usize = 1024;

    /// Confirms a NAK, unless a confirmation of just the same waits already.
    pub(super) fn confirm(&mut self, confirmation: Confirmation) {
        if !confirmation.numbers.is_empty()
            && self.confirmations.len() < Self::MOST_CONFIRMATIONS
            && !self.confirmations.contains(&confirmation)
        {
            self.confirmations.push_back(confirmation);
        }
    }

    pub(super) fn has_confirmation(&self) -> bool {
        !self.confirmations.is_empty()
    }

    pub(super) fn next_confirmation(&mut self) -> Option<Confirmation> {
        self.confirmations.pop_front()
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
