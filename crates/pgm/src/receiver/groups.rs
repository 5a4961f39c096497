//! Parity of one window's groups: what is missing is made of it, or more of it is asked for.

use std::collections::HashMap;

use super::{
    request::{Request, Stage, Target},
    window::{How, Piece, ReceiveWindow, Slot},
};
use crate::{
    Time,
    fec::{Code, Parity, recover},
    wire::{ParityParameters, Sqn},
};

/// The session's code, and the groups that have parity, are asked for or are shortened.
#[derive(Debug, Default)]
pub(super) struct Groups {
    session: Option<Session>,
    groups: HashMap<Sqn, Group>,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    code: &'static Code,
    parameters: ParityParameters,
    /// Nothing before this comes of itself any more: what is missing there is asked for.
    closed: Sqn,
}

#[derive(Debug, Default)]
struct Group {
    parity: Vec<(usize, Parity)>,
    request: Option<Request>,
    /// How many packets it has, if not as many as others.
    size: Option<u32>,
}

impl Groups {
    pub(super) fn is_active(&self) -> bool {
        self.session.is_some()
    }

    /// The first packet of the group that `sqn` is in; `sqn` itself without parity.
    pub(super) fn start_of(&self, sqn: Sqn) -> Sqn {
        self.session
            .map_or(sqn, |session| sqn.group(session.parameters.group_size))
    }

    /// The group and the count of a request for parity.
    pub(super) fn wish(&self, sqn: Sqn) -> Option<(Sqn, u32)> {
        let size = self.session?.parameters.group_size;
        Some((sqn.group(size), sqn.index(size) + 1))
    }

    pub(super) fn request_mut(&mut self, group: Sqn) -> Option<&mut Request> {
        self.groups.get_mut(&group)?.request.as_mut()
    }
}

/// What a parity packet is.
#[derive(Debug)]
pub(super) struct ParityPacket {
    /// Its number: in the group that it is about.
    pub(super) sqn: Sqn,
    /// How many times the group's size is to be added to its index.
    pub(super) times: u32,
    pub(super) parity: Parity,
    pub(super) how: How,
}

impl ReceiveWindow {
    /// The source has told its parameters. They hold for the session: later ones change nothing. A
    /// window too small for two groups does without parity, since whole groups stay in it.
    pub(super) fn set_parity(&mut self, now: Time, parameters: ParityParameters) {
        let Some(code) = Code::of(parameters.group_size) else {
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

    /// Slots from `start` on are new: begins to ask for what will not come of itself.
    pub(super) fn ask_for_new(&mut self, now: Time, start: Sqn) {
        let end = match self.groups.session {
            None => self.end(),
            Some(session) if start.is_before(session.closed) => session.closed,
            Some(_) => return,
        };
        self.ask_for(now, start, end);
    }

    /// Begins to ask for what is missing and deferred in a range: for parity of groups that are all in
    /// the window, where the source gives it, else for packets.
    fn ask_for(&mut self, now: Time, start: Sqn, end: Sqn) {
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
                self.ask_for_packet(at, expiry);
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

    /// Nothing before `bound` comes of itself any more.
    fn close(&mut self, now: Time, bound: Sqn) {
        if let Some(session) = &mut self.groups.session
            && session.closed.is_before(bound)
        {
            let start = std::mem::replace(&mut session.closed, bound);
            self.ask_for(now, start, bound);
        }
    }

    /// Data came: groups before its own are over; its own is after its last packet, unless parity
    /// follows.
    pub(super) fn data_came(&mut self, now: Time, sqn: Sqn) {
        let Some(session) = self.groups.session else {
            return;
        };
        let size = session.parameters.group_size;
        let is_over = !session.parameters.proactive && sqn.index(size) == size - 1;
        let bound = sqn.group(size).plus(if is_over { size } else { 0 });
        self.close(now, bound);
    }

    /// The source says that it has sent nothing new: what is missing will not come of itself, and the
    /// last group, which is not complete, has no parity.
    pub(super) fn source_is_idle(&mut self, now: Time) {
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
                    self.ask_for_packet(at, expiry);
                }
            }
        }
    }

    /// Takes a parity packet.
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
        let is_last = packet.how == How::Repair || !session.parameters.proactive;
        self.close(now, group.plus(if is_last { size } else { 0 }));
        let index = u64::from(packet.times) * u64::from(size) + u64::from(packet.sqn.index(size));
        let is_possible = index < session.code.most_parity() as u64;
        let fits = self.slot_of(group.plus(last)).is_some();
        if !is_possible || !fits || self.bytes >= self.config.bytes {
            self.statistics.refused += 1;
            return;
        }
        if self.is_settled(group) {
            return;
        }
        let index = index as usize;
        let entry = self.groups.groups.entry(group).or_default();
        if entry.parity.iter().all(|(held, _)| *held != index) {
            self.bytes += packet.parity.payload.len();
            entry.parity.push((index, packet.parity));
            self.group_changed(now, group);
        }
    }

    /// A group of usually `size` has only so many packets; the numbers after them are not used. That holds
    /// for a window that does without parity, too.
    pub(super) fn shorten(&mut self, now: Time, sqn: Sqn, packets: u32, size: u32) {
        let group = sqn.group(size);
        let last = group.plus(size - 1);
        // With parity, groups are dropped as a whole.
        let has_passed = match self.groups.is_active() {
            true => group.is_before(self.base),
            false => last.is_before(self.base),
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
                self.slots[at] = Slot::Taken(None);
                self.missing -= 1;
            }
        }
        self.group_changed(now, group);
    }

    fn shortened(&self, group: Sqn) -> Option<u32> {
        self.groups.groups.get(&group)?.size
    }

    /// How many packets of a group are missing, and how many are not there at all: parity must
    /// replace what was given up, too, before it can replace anything.
    fn missing_and_absent(&self, group: Sqn) -> (usize, usize) {
        let size = self.groups.session.map_or(0, |s| s.parameters.group_size);
        let size = self.shortened(group).unwrap_or(size);
        let (mut missing, mut absent) = (0, 0);
        for at in 0..size {
            match self.slot_of(group.plus(at)).map(|at| &self.slots[at]) {
                Some(Slot::Held(_) | Slot::Taken(Some(_))) => {}
                Some(Slot::Lost | Slot::Taken(None)) => absent += 1,
                Some(Slot::Missing(_)) | None => {
                    missing += 1;
                    absent += 1;
                }
            }
        }
        (missing, absent)
    }

    fn is_settled(&self, group: Sqn) -> bool {
        self.missing_and_absent(group).0 == 0
    }

    /// How many parity packets a group that is asked for still wants.
    pub(super) fn wanted_of(&self, group: Sqn) -> Option<u32> {
        let entry = self.groups.groups.get(&group)?;
        entry.request.as_ref()?;
        let (_, absent) = self.missing_and_absent(group);
        Some(absent.saturating_sub(entry.parity.len()) as u32)
    }

    /// The number that asks for the parity that a group wants.
    pub(super) fn parity_wanted(&self, group: Sqn) -> Sqn {
        group.plus(self.wanted_of(group).unwrap_or(1).max(1) - 1)
    }

    /// Packets or parity came: makes what is missing of them, if they suffice.
    pub(super) fn group_changed(&mut self, now: Time, sqn: Sqn) {
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
                    Slot::Held(piece) | Slot::Taken(Some(piece)) => Some(piece.member()),
                    _ => None,
                })
                .collect();
            let parity: Vec<_> = entry.parity.iter().map(|(index, p)| (*index, p)).collect();
            match recover(session.code, &members, &parity) {
                Some(found) => {
                    for found in found {
                        let sqn = group.plus(found.index as u32);
                        let piece = Piece {
                            payload: found.payload.into(),
                            fragment: found.fragment,
                        };
                        if let Some(at) = self.slot_of(sqn)
                            && matches!(self.slots[at], Slot::Missing(_))
                        {
                            self.fill(now, at, piece, How::Parity);
                        }
                    }
                }
                None => self.forget_parity(group),
            }
        }
        self.forget_settled_group(group);
    }

    /// Parity that contradicts itself or the data is dropped; better may come.
    fn forget_parity(&mut self, group: Sqn) {
        if let Some(entry) = self.groups.groups.get_mut(&group) {
            self.statistics.contradictory += entry.parity.len() as u64;
            for (_, parity) in entry.parity.drain(..) {
                self.bytes -= parity.payload.len();
            }
        }
    }

    /// Asks no more for a group of which nothing is missing.
    pub(super) fn forget_settled_group(&mut self, sqn: Sqn) {
        let group = self.groups.start_of(sqn);
        if self.groups.groups.contains_key(&group)
            && self.is_settled(group)
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

    /// Gives up what is missing of a group.
    pub(super) fn lose_group(&mut self, group: Sqn) {
        let size = self.groups.session.map_or(0, |s| s.parameters.group_size);
        for sqn in (0..size).map(|at| group.plus(at)) {
            if let Some(at) = self.slot_of(sqn) {
                self.lose(at);
            }
        }
        self.drop_groups(|other| other == group);
    }

    /// Forgets groups whose packets were handed out.
    pub(super) fn forget_passed_groups(&mut self) {
        let base = self.base;
        self.drop_groups(|group| group.is_before(base));
    }

    pub(super) fn forget_all_groups(&mut self) {
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
