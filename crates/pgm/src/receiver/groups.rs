//! Parity groups of a receive window: recovery of missing packets, and requests for parity.

use std::collections::HashMap;

use super::{
    request::{Request, Stage, Target},
    window::{Origin, ReceiveWindow, Slot, StoredPacket},
};
use crate::{
    Time,
    fec::{Code, Parity, recover},
    wire::{ParityParameters, Sqn},
};

/// Parity state of a session. It contains the code, and an entry for each group that was shortened or for
/// which parity was received or requested.
#[derive(Debug, Default)]
pub(super) struct Groups {
    session: Option<Session>,
    groups: HashMap<Sqn, Group>,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    code: &'static Code,
    parameters: ParityParameters,
    /// First sequence number after the closed groups. A group is closed when no more of its
    /// original packets are expected. Missing packets of closed groups must be requested.
    closed: Sqn,
}

#[derive(Debug, Default)]
struct Group {
    parity: Vec<(usize, Parity)>,
    request: Option<Request>,
    /// Number of packets in the group, if the group is shortened.
    size: Option<u32>,
}

impl Groups {
    pub(super) fn is_active(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the first packet of the group that contains `sqn`. Without parity, returns `sqn`.
    pub(super) fn start_of(&self, sqn: Sqn) -> Sqn {
        self.session
            .map_or(sqn, |session| sqn.group(session.parameters.group_size))
    }

    /// Returns the content of a parity request with the number `sqn`: the group and the number of requested
    /// parity packets. Returns `None` if the session has no parity.
    pub(super) fn parity_request(&self, sqn: Sqn) -> Option<(Sqn, u32)> {
        let size = self.session?.parameters.group_size;
        Some((sqn.group(size), sqn.index(size) + 1))
    }

    pub(super) fn request_mut(&mut self, group: Sqn) -> Option<&mut Request> {
        self.groups.get_mut(&group)?.request.as_mut()
    }
}

/// Received parity packet.
#[derive(Debug)]
pub(super) struct ParityPacket {
    /// Sequence number of the packet. It identifies the group and a position within the group.
    pub(super) sqn: Sqn,
    /// Factor in the index of the parity packet. The index is `times` × group size + the position
    /// of `sqn` in the group.
    pub(super) times: u32,
    pub(super) parity: Parity,
    pub(super) origin: Origin,
}

impl ReceiveWindow {
    /// Sets the parity parameters of the session. Later calls are ignored. The parameters are also ignored if
    /// the window is too small for two groups, because recovery needs whole groups in the window.
    pub(super) fn set_parity(&mut self, now: Time, parameters: ParityParameters) {
        let Some(code) = Code::for_group_size(parameters.group_size) else {
            return;
        };
        let is_useful = parameters.proactive || parameters.on_demand;
        let has_room = 2 * parameters.group_size <= self.config.window;
        if self.groups.session.is_some() || !is_useful || !has_room {
            return;
        }
        self.groups.session = Some(Session {
            code,
            parameters,
            closed: self.base,
        });
        for at in 0..self.slots.len() {
            let target = Target::Packet(self.base.plus(at as u32).0);
            if let Slot::Missing(request) = &mut self.slots[at] {
                self.timers.disarm(target, request);
                request.stage = Stage::Deferred;
            }
        }
        self.close(now, self.groups.start_of(self.lead));
    }

    /// Starts requests for the packets of new slots from `start` on. With parity, only packets of
    /// closed groups are requested.
    pub(super) fn request_new(&mut self, now: Time, start: Sqn) {
        let end = match self.groups.session {
            None => self.end(),
            Some(session) if start.is_before(session.closed) => session.closed,
            Some(_) => return,
        };
        self.request_range(now, start, end);
    }

    /// Starts the deferred requests for missing packets of a range. If the source offers parity on
    /// demand, requests parity for the groups that lie entirely in the window. Otherwise, requests
    /// the packets themselves.
    fn request_range(&mut self, now: Time, start: Sqn, end: Sqn) {
        if self.config.passive {
            return;
        }
        let expiry = self.back_off_end(now);
        let on_demand = self
            .groups
            .session
            .is_some_and(|session| session.parameters.on_demand);
        let from = if start.is_before(self.base) {
            0
        } else {
            start.since(self.base) as usize
        };
        let to = if end.is_before(self.base) {
            0
        } else {
            self.slots.len().min(end.since(self.base) as usize)
        };
        for at in from..to {
            let sqn = self.base.plus(at as u32);
            let group = self.groups.start_of(sqn);
            if !on_demand || group.is_before(self.base) {
                self.request_packet(at, expiry);
            } else if matches!(&self.slots[at], Slot::Missing(r) if r.stage == Stage::Deferred) {
                let entry = self.groups.groups.entry(group).or_default();
                if entry.request.is_none() {
                    let mut request = Request::deferred(now);
                    let target = Target::Group(group.0);
                    self.timers
                        .arm(target, &mut request, Stage::BackOff, expiry);
                    entry.request = Some(request);
                }
            }
        }
    }

    /// Closes the groups before `bound`, and requests their missing packets.
    fn close(&mut self, now: Time, bound: Sqn) {
        if let Some(session) = &mut self.groups.session
            && session.closed.is_before(bound)
        {
            let start = std::mem::replace(&mut session.closed, bound);
            self.request_range(now, start, bound);
        }
    }

    /// Closes the groups before the group of a received data packet. If the packet is the last packet of its
    /// group and no proactive parity follows, closes this group too.
    pub(super) fn on_data(&mut self, now: Time, sqn: Sqn) {
        let Some(session) = self.groups.session else {
            return;
        };
        let size = session.parameters.group_size;
        let is_over = !session.parameters.proactive && sqn.index(size) == size - 1;
        let bound = sqn.group(size).plus(if is_over { size } else { 0 });
        self.close(now, bound);
    }

    /// Handles an SPM of an idle source by requesting all missing packets. The packets of the
    /// incomplete last group are requested one by one, because that group has no parity.
    pub(super) fn on_idle_source(&mut self, now: Time) {
        let Some(session) = self.groups.session else {
            return;
        };
        let end = self.lead.plus(1);
        let complete = end.group(session.parameters.group_size);
        self.close(now, complete);
        if !self.config.passive {
            let expiry = self.back_off_end(now);
            for sqn in (0..end.since(complete)).map(|at| complete.plus(at)) {
                if let Some(at) = self.slot_of(sqn) {
                    self.request_packet(at, expiry);
                }
            }
        }
    }

    /// Stores a parity packet, and recovers missing packets of its group if possible.
    pub(super) fn insert_parity(&mut self, now: Time, packet: ParityPacket) {
        self.statistics.parity += 1;
        let Some(session) = self.groups.session else {
            return;
        };
        let size = session.parameters.group_size;
        let group = packet.sqn.group(size);
        if group.is_before(self.base) {
            return;
        }
        let last = self.shortened(group).unwrap_or(size) - 1;
        self.advance_lead(now, group.plus(last));
        let is_last = packet.origin == Origin::Repair || !session.parameters.proactive;
        self.close(now, group.plus(if is_last { size } else { 0 }));
        let index = u64::from(packet.times) * u64::from(size) + u64::from(packet.sqn.index(size));
        let is_possible = index < session.code.max_parity() as u64;
        let fits = self.slot_of(group.plus(last)).is_some();
        if !is_possible || !fits || self.bytes >= self.config.bytes {
            self.statistics.refused += 1;
            return;
        }
        if self.is_complete(group) {
            return;
        }
        let index = index as usize;
        let entry = self.groups.groups.entry(group).or_default();
        if entry.parity.iter().all(|(held, _)| *held != index) {
            self.bytes += packet.parity.payload.len();
            entry.parity.push((index, packet.parity));
            self.try_recover(now, group);
        }
    }

    /// Shortens the group of `sqn` from `size` packets to `packets` packets. The numbers after these packets
    /// are unused. A window that ignores parity also marks these numbers as unused.
    pub(super) fn shorten(&mut self, now: Time, sqn: Sqn, packets: u32, size: u32) {
        let group = sqn.group(size);
        let last = group.plus(size - 1);
        // A packet has passed if it is before the window. With parity, the window drops whole groups, so the
        // first packet of a group shows whether the group has passed. Without parity, the last packet shows it.
        let has_passed = if self.groups.is_active() {
            group.is_before(self.base)
        } else {
            last.is_before(self.base)
        };
        if packets == 0 || packets >= size || has_passed {
            return;
        }
        self.advance_lead(now, last);
        if self.groups.is_active() {
            if self.slot_of(last).is_none() {
                return;
            }
            self.groups.groups.entry(group).or_default().size = Some(packets);
        }
        for sqn in (packets..size).map(|at| group.plus(at)) {
            if let Some(at) = self.slot_of(sqn)
                && let Slot::Missing(request) = &self.slots[at]
            {
                self.timers.disarm(Target::Packet(sqn.0), request);
                self.slots[at] = Slot::Delivered(None);
                self.missing -= 1;
            }
        }
        self.try_recover(now, group);
    }

    fn shortened(&self, group: Sqn) -> Option<u32> {
        self.groups.groups.get(&group)?.size
    }

    /// Returns the number of missing packets of a group, and the number of absent packets. Absent packets are
    /// the missing packets and the packets that were given up. Parity must replace all absent packets.
    fn missing_and_absent(&self, group: Sqn) -> (usize, usize) {
        let size = self.groups.session.map_or(0, |s| s.parameters.group_size);
        let size = self.shortened(group).unwrap_or(size);
        let (mut missing, mut absent) = (0, 0);
        for at in 0..size {
            match self.slot_of(group.plus(at)).map(|at| &self.slots[at]) {
                Some(Slot::Held(_) | Slot::Delivered(Some(_))) => {}
                Some(Slot::Lost | Slot::Delivered(None)) => absent += 1,
                Some(Slot::Missing(_)) | None => {
                    missing += 1;
                    absent += 1;
                }
            }
        }
        (missing, absent)
    }

    fn is_complete(&self, group: Sqn) -> bool {
        self.missing_and_absent(group).0 == 0
    }

    /// Returns the number of parity packets that a group still needs. Returns `None` if no parity was
    /// requested for the group.
    pub(super) fn parity_needed(&self, group: Sqn) -> Option<u32> {
        let entry = self.groups.groups.get(&group)?;
        entry.request.as_ref()?;
        let (_, absent) = self.missing_and_absent(group);
        Some(absent.saturating_sub(entry.parity.len()) as u32)
    }

    /// Returns the sequence number for a request of the parity that a group still needs. The position of this
    /// number in the group is the number of needed parity packets minus one.
    pub(super) fn parity_request_number(&self, group: Sqn) -> Sqn {
        group.plus(self.parity_needed(group).unwrap_or(1).max(1) - 1)
    }

    /// Recovers the missing packets of the group of `sqn` if enough parity was received.
    pub(super) fn try_recover(&mut self, now: Time, sqn: Sqn) {
        let Some(session) = self.groups.session else {
            return;
        };
        let group = self.groups.start_of(sqn);
        let Some(entry) = self.groups.groups.get(&group) else {
            return;
        };
        let (missing, absent) = self.missing_and_absent(group);
        if missing > 0 && entry.parity.len() >= absent {
            let size = entry.size.unwrap_or(session.parameters.group_size);
            let members: Vec<_> = (0..size)
                .map(|at| match &self.slots[self.slot_of(group.plus(at))?] {
                    Slot::Held(piece) | Slot::Delivered(Some(piece)) => Some(piece.member()),
                    _ => None,
                })
                .collect();
            let parity: Vec<_> = entry.parity.iter().map(|(index, p)| (*index, p)).collect();
            match recover(session.code, &members, &parity) {
                Some(found) => {
                    for found in found {
                        let sqn = group.plus(found.index as u32);
                        let piece = StoredPacket {
                            payload: found.payload.into(),
                            fragment: found.fragment,
                        };
                        if let Some(at) = self.slot_of(sqn)
                            && matches!(self.slots[at], Slot::Missing(_))
                        {
                            self.fill(now, at, piece, Origin::Parity);
                        }
                    }
                }
                None => self.drop_parity(group),
            }
        }
        self.forget_complete_group(group);
    }

    /// Drops the parity of a group, because the parity contradicts the data or other parity.
    fn drop_parity(&mut self, group: Sqn) {
        if let Some(entry) = self.groups.groups.get_mut(&group) {
            self.statistics.contradictory += entry.parity.len() as u64;
            for (_, parity) in entry.parity.drain(..) {
                self.bytes -= parity.payload.len();
            }
        }
    }

    /// Ends the request for the group of `sqn` and drops its parity, if no packet of the group is
    /// missing.
    pub(super) fn forget_complete_group(&mut self, sqn: Sqn) {
        let group = self.groups.start_of(sqn);
        if self.groups.groups.contains_key(&group)
            && self.is_complete(group)
            && let Some(entry) = self.groups.groups.get_mut(&group)
        {
            if let Some(request) = entry.request.take() {
                self.timers.disarm(Target::Group(group.0), &request);
            }
            for (_, parity) in entry.parity.drain(..) {
                self.bytes -= parity.payload.len();
            }
        }
    }

    /// Marks the missing packets of a group as lost.
    pub(super) fn lose_group(&mut self, group: Sqn) {
        let size = self.groups.session.map_or(0, |s| s.parameters.group_size);
        for sqn in (0..size).map(|at| group.plus(at)) {
            if let Some(at) = self.slot_of(sqn) {
                self.lose(at);
            }
        }
        self.drop_groups(|other| other == group);
    }

    /// Drops the groups before the window, because all their packets were delivered or given up.
    pub(super) fn drop_delivered_groups(&mut self) {
        let base = self.base;
        self.drop_groups(|group| group.is_before(base));
    }

    pub(super) fn drop_all_groups(&mut self) {
        self.drop_groups(|_| true);
    }

    fn drop_groups(&mut self, is_over: impl Fn(Sqn) -> bool) {
        let over = self.groups.groups.extract_if(|group, _| is_over(*group));
        for (group, entry) in over {
            if let Some(request) = entry.request {
                self.timers.disarm(Target::Group(group.0), &request);
            }
            for (_, parity) in entry.parity {
                self.bytes -= parity.payload.len();
            }
        }
    }
}
