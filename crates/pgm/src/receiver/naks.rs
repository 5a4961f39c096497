//! Progress of the requests for the missing packets of a receive window.

use super::{
    request::{NakContent, Request, Stage, Target},
    window::{ReceiveWindow, Slot},
};
use crate::{
    Time,
    wire::{NakList, Sqn},
};

/// Message about a missing packet that another member of the session sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerMessage {
    /// Another receiver requested the packet (NAK).
    Request,
    /// The source confirmed a request for the packet (NCF).
    Confirmation,
}

/// Maximum number of expired timers handled in one round.
const MAX_DUE: usize = 256;

impl ReceiveWindow {
    /// Moves requests whose stage has ended to their next stage. Returns the content of the next
    /// NAK to send, with at most `most` sequence numbers.
    pub(super) fn next_nak(&mut self, now: Time, most: usize) -> Option<NakContent> {
        loop {
            let due = self.timers.due(now, MAX_DUE);
            if due.is_empty() {
                return None;
            }
            let again = self.back_off_end(now);
            let mut packets = Vec::new();
            let mut groups = Vec::new();
            for target in due {
                if self.stage(target) != Some(Stage::BackOff) {
                    self.retry(target, again);
                } else if let Target::Packet(sqn) = target {
                    packets.push((target, Sqn(sqn)));
                } else if let Target::Group(group) = target {
                    groups.push((target, self.parity_request_number(Sqn(group))));
                }
            }
            let parity = packets.is_empty();
            let mut requests = if parity { groups } else { packets };
            requests.truncate(most.clamp(1, 1 + NakList::MAX));
            requests.sort_by_key(|(_, sqn)| sqn.since(self.base));
            let mut numbers = Vec::with_capacity(requests.len());
            for (target, sqn) in requests {
                self.set_stage(target, Stage::AwaitsConfirmation, now);
                numbers.push(sqn);
            }
            if !numbers.is_empty() {
                return Some(NakContent { parity, numbers });
            }
        }
    }

    /// Handles a request that another receiver sent, or a confirmation that the source sent.
    pub(super) fn heard(&mut self, now: Time, sqn: Sqn, parity: bool, heard: PeerMessage) {
        let target = if parity {
            let Some((group, count)) = self.groups.parity_request(sqn) else {
                return;
            };
            if self
                .parity_needed(group)
                .is_none_or(|wanted| wanted > count)
            {
                return;
            }
            Target::Group(group.0)
        } else {
            // The source confirms only packets that it has sent, so it has also sent all earlier packets.
            // Numbers outside of the window are ignored.
            if heard == PeerMessage::Confirmation
                && sqn.since(self.base) < self.config.window
                && self.slot_of(sqn).is_none()
            {
                self.advance_lead(now, sqn);
            }
            Target::Packet(sqn.0)
        };
        match (heard, self.stage(target)) {
            (_, None | Some(Stage::Deferred)) => {}
            (PeerMessage::Confirmation, Some(_))
            | (PeerMessage::Request, Some(Stage::AwaitsRepair)) => {
                self.set_stage(target, Stage::AwaitsRepair, now);
            }
            (PeerMessage::Request, Some(_)) => {
                self.set_stage(target, Stage::AwaitsConfirmation, now)
            }
        }
    }

    fn request_mut(&mut self, target: Target) -> Option<&mut Request> {
        match target {
            Target::Packet(sqn) => match self.slot_of(Sqn(sqn)).map(|at| &mut self.slots[at]) {
                Some(Slot::Missing(request)) => Some(request),
                _ => None,
            },
            Target::Group(group) => self.groups.request_mut(Sqn(group)),
        }
    }

    fn stage(&mut self, target: Target) -> Option<Stage> {
        self.request_mut(target).map(|request| request.stage)
    }

    /// Starts to wait for a confirmation or a repair. The time doubles with each failed attempt. A lost
    /// request is therefore repeated soon, but a slow source does not get more and more requests.
    fn set_stage(&mut self, target: Target, stage: Stage, now: Time) {
        const MAX_DOUBLINGS: u16 = 4;
        let Some(request) = self.request_mut(target).copied() else {
            return;
        };
        let (wait, in_vain) = match stage {
            Stage::AwaitsRepair => (self.config.repair, request.unrepaired),
            _ => (self.config.confirmation, request.unconfirmed),
        };
        let wait = wait.saturating_mul(1 << in_vain.min(MAX_DOUBLINGS));
        self.arm(target, stage, now.plus(wait));
    }

    fn arm(&mut self, target: Target, stage: Stage, expiry: Time) {
        let Some(mut request) = self.request_mut(target).copied() else {
            return;
        };
        self.timers.arm(target, &mut request, stage, expiry);
        if let Some(kept) = self.request_mut(target) {
            *kept = request;
        }
    }

    /// Handles a confirmation or repair that did not arrive in time: repeats the request, or gives
    /// up after too many attempts.
    fn retry(&mut self, target: Target, expiry: Time) {
        let (most_unconfirmed, most_unrepaired) =
            (self.config.confirmation_retries, self.config.repair_retries);
        let Some(request) = self.request_mut(target) else {
            return;
        };
        match request.stage {
            Stage::AwaitsRepair => request.unrepaired += 1,
            _ => request.unconfirmed += 1,
        }
        if request.unconfirmed < most_unconfirmed && request.unrepaired < most_unrepaired {
            self.arm(target, Stage::BackOff, expiry);
            return;
        }
        match target {
            Target::Packet(sqn) => {
                if let Some(at) = self.slot_of(Sqn(sqn)) {
                    self.lose(at);
                }
            }
            Target::Group(group) => self.lose_group(Sqn(group)),
        }
    }
}
