//! Asking for what is missing (RFC 3208 section 6.3): the stages of a request and their timers.

use std::collections::BTreeSet;

use crate::{Time, wire::Sqn};

/// What is asked for. Of those due at the same time, the lower number goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Packet(u32),
    /// Parity of the group that begins so.
    Group(u32),
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is asked for: its group's parity may still come, or parity is asked for instead.
    Deferred,
    /// Waits a random time, since another receiver may ask.
    BackOff,
    /// Was asked for, by this receiver or another.
    AwaitsConfirmation,
    /// Was confirmed.
    AwaitsRepair,
}

/// Something missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) stage: Stage,
    /// When the stage ends; of no meaning while deferred.
    expiry: Time,
    /// Requests that were not confirmed.
    pub(super) unconfirmed: u16,
    /// Confirmations that no repair followed.
    pub(super) unrepaired: u16,
    /// Since when it is missing.
    pub(super) since: Time,
}

impl Request {
    pub(super) fn deferred(now: Time) -> Self {
        Self {
            stage: Stage::Deferred,
            expiry: Time::default(),
            unconfirmed: 0,
            unrepaired: 0,
            since: now,
        }
    }
}

/// The timers of all requests that have one.
#[derive(Debug, Default)]
pub(super) struct RequestTimers {
    by_time: BTreeSet<(Time, Target)>,
}

impl RequestTimers {
    /// Moves a request to a stage with a timer.
    pub(super) fn arm(
        &mut self,
        target: Target,
        request: &mut Request,
        stage: Stage,
        expiry: Time,
    ) {
        self.disarm(target, request);
        request.stage = stage;
        request.expiry = expiry;
        self.by_time.insert((expiry, target));
    }

    /// Forgets a request's timer, if it has one.
    pub(super) fn disarm(&mut self, target: Target, request: &Request) {
        if request.stage != Stage::Deferred {
            self.by_time.remove(&(request.expiry, target));
        }
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Up to `most` targets whose stage has ended, the oldest first.
    pub(super) fn due(&self, now: Time, most: usize) -> Vec<Target> {
        let last = (now, Target::Group(u32::MAX));
        let due = self.by_time.range(..=last).take(most);
        due.map(|(_, target)| *target).collect()
    }
}

/// What one NAK asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NakContent {
    pub(super) parity: bool,
    /// At least one, at most one more than a list can have.
    pub(super) numbers: Vec<Sqn>,
}
