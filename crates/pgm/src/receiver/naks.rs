//! Requests of one window go through their stages.

use super::{
    request::{NakContent, Request, Stage, Target},
    window::{ReceiveWindow, Slot},
};
use crate::{
    Time,
    wire::{NakList, Sqn},
};

/// What somebody else said of something missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Another receiver has asked for it.
    Request,
    /// The source has confirmed that.
    Confirmation,
}

/// How much is done in one go.
const MOST_DUE: usize = 256;

impl ReceiveWindow {
    /// Moves requests on whose stage has ended, and gives the next NAK that is to be sent. Without
    /// anybody to be sent to, requests count as if they had been lost on their way.
    pub(super) fn next_nak(&mut self, now: Time, can_be_sent: bool) -> Option<NakContent> {
        loop {
            let due = self.timers.due(now, MOST_DUE);
            if due.is_empty() {
                return None;
            }
            let again = self.back_off_end(now);
            let mut packets = Vec::new();
            let mut groups = Vec::new();
            for target in due {
                if self.stage(target) != Some(Stage::BackOff) {
                    self.ask_again(target, again);
                } else if let Target::Packet(sqn) = target {
                    packets.push((target, Sqn(sqn)));
                } else if let Target::Group(group) = target {
                    groups.push((target, self.parity_wanted(Sqn(group))));
                }
            }
            let parity = packets.is_empty();
            let mut asked = if parity { groups } else { packets };
            asked.truncate(1 + NakList::MOST);
            if !can_be_sent {
                for (target, _) in &asked {
                    self.set_stage(*target, Stage::AwaitsConfirmation, now);
                }
                continue;
            }
            asked.sort_by_key(|(_, sqn)| sqn.since(self.base));
            let mut numbers = Vec::with_capacity(asked.len());
            for (target, sqn) in asked {
                self.set_stage(target, Stage::AwaitsConfirmation, now);
                numbers.push(sqn);
            }
            if !numbers.is_empty() {
                return Some(NakContent { parity, numbers });
            }
        }
    }

    /// Somebody else asked for something, or the source confirmed it.
    pub(super) fn heard(&mut self, now: Time, sqn: Sqn, parity: bool, heard: Heard) {
        let target = if parity {
            let Some((group, count)) = self.groups.wish(sqn) else {
                return;
            };
            if self.wanted_of(group).is_none_or(|wanted| wanted > count) {
                return;
            }
            Target::Group(group.0)
        } else {
            // The source has it, so it has sent everything before it. But a number that there is no
            // room for says nothing.
            if heard == Heard::Confirmation
                && sqn.since(self.base) < self.config.window
                && self.slot_of(sqn).is_none()
            {
                self.advance_lead(now, sqn);
            }
            Target::Packet(sqn.0)
        };
        match (heard, self.stage(target)) {
            (_, None | Some(Stage::Deferred)) => {}
            (Heard::Confirmation, Some(_)) | (Heard::Request, Some(Stage::AwaitsRepair)) => {
                self.set_stage(target, Stage::AwaitsRepair, now);
            }
            (Heard::Request, Some(_)) => self.set_stage(target, Stage::AwaitsConfirmation, now),
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

    /// Waits for an answer: each time in vain twice as long, so that what was lost on its way is asked for
    /// again at once, and a source that is slow not more and more often.
    fn set_stage(&mut self, target: Target, stage: Stage, now: Time) {
        const MOST_DOUBLINGS: u16 = 4;
        let Some(request) = self.request_mut(target).copied() else {
            return;
        };
        let (wait, in_vain) = match stage {
            Stage::AwaitsRepair => (self.config.repair, request.unrepaired),
            _ => (self.config.confirmation, request.unconfirmed),
        };
        let wait = wait.saturating_mul(1 << in_vain.min(MOST_DOUBLINGS));
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

    /// A confirmation or repair has not come in time: back off again, or give up.
    fn ask_again(&mut self, target: Target, expiry: Time) {
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
