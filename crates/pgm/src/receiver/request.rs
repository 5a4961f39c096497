//! Requests for missing packets (RFC 3208 section 6.3): stages and timers.

use std::collections::BTreeSet;

use crate::{Time, wire::Sqn};

/// Item that a request asks for: a packet or parity. If several packets are due at the same time,
/// the lowest number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Packet(u32),
    /// Parity of the group whose first packet has this number.
    Group(u32),
}

/// Stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not requested yet, because parity of the group may still arrive or is requested instead.
    Deferred,
    /// Waiting for a random time, because another receiver may send the request first.
    BackOff,
    /// Requested by this receiver or another one, but not confirmed by the source yet.
    AwaitsConfirmation,
    /// Confirmed by the source, but not repaired yet.
    AwaitsRepair,
}

/// A request for a missing packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) stage: Stage,
    /// Time at which the stage ends. The time has no meaning while the request is deferred.
    expiry: Time,
    /// Number of requests that the source did not confirm in time.
    pub(super) unconfirmed: u16,
    /// Number of confirmations without a repair in time.
    pub(super) unrepaired: u16,
    /// Time since which the packet is missing.
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

/// Timers of all requests.
#[derive(Debug, Default)]
pub(super) struct RequestTimers {
    by_time: BTreeSet<(Time, Target)>,
}

impl RequestTimers {
    /// Moves a request to `stage`, and sets its timer to `expiry`.
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

    /// Removes the timer of a request, if it has one.
    pub(super) fn disarm(&mut self, target: Target, request: &Request) {
        if request.stage != Stage::Deferred {
            self.by_time.remove(&(request.expiry, target));
        }
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// Returns up to `most` targets whose stage has ended, the oldest first.
    pub(super) fn due(&self, now: Time, most: usize) -> Vec<Target> {
        let last = (now, Target::Group(u32::MAX));
        let due = self.by_time.range(..=last).take(most);
        due.map(|(_, target)| *target).collect()
    }
}

/// Content of a NAK packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NakContent {
    pub(super) parity: bool,
    /// Requested sequence numbers. There is at least one number. There is at most one number more than a NAK
    /// list holds, because the first number precedes the list.
    pub(super) numbers: Vec<Sqn>,
}
