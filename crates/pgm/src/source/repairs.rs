//! Confirmations and repairs that a source still has to send.

use std::{collections::VecDeque, time::Duration};

use crate::{Time, wire::Sqn};

/// Confirmations and repairs that a source still has to send, both in the order of the requests. No packet or
/// group is queued twice, so the window limits the number of repairs.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    confirmations: VecDeque<Confirmation>,
    /// Recent confirmations and their times.
    confirmed: VecDeque<(Time, Confirmation)>,
    repairs: VecDeque<Repair>,
}

/// Confirmation of a NAK.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Confirmation {
    pub(super) parity: bool,
    /// Confirmed sequence numbers. They come from one NAK. There is therefore at most one number more than a
    /// NAK list holds.
    pub(super) numbers: Vec<Sqn>,
}

/// Repair that a receiver requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// The packet with this number, sent again.
    Original(Sqn),
    /// More parity of the group whose first packet has this number.
    Parity(Sqn),
}

impl Confirmation {
    /// Returns true if this confirmation contains all numbers of another confirmation.
    fn says(&self, other: &Confirmation) -> bool {
        let numbers = &other.numbers;
        self.parity == other.parity
            && self.numbers.len() >= numbers.len()
            && numbers.iter().all(|sqn| self.numbers.contains(sqn))
    }
}

impl Repairs {
    /// Maximum number of pending confirmations. Further NAKs are not confirmed. The receivers that sent them
    /// get the repair or repeat the request.
    const MAX_CONFIRMATIONS: usize = 1024;

    /// Time for which a confirmation is not repeated. All receivers get the first confirmation. NAKs that
    /// arrive within this time were already on their way. One confirmation is therefore enough for a hundred
    /// receivers.
    const DAMPING: Duration = Duration::from_millis(1);

    /// Maximum number of recent confirmations that are remembered.
    const MAX_CONFIRMED: usize = 64;

    /// Queues the confirmation of a NAK, unless another confirmation with the same numbers is
    /// queued or was just sent.
    pub(super) fn confirm(&mut self, now: Time, confirmation: Confirmation) {
        let waits = self.confirmations.iter();
        let gone = self.confirmed.iter();
        let gone = gone.filter(|(at, _)| now < at.plus(Self::DAMPING));
        let mut said = waits.chain(gone.map(|(_, gone)| gone));
        if !confirmation.numbers.is_empty()
            && self.confirmations.len() < Self::MAX_CONFIRMATIONS
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
        if self.confirmed.len() == Self::MAX_CONFIRMED {
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
