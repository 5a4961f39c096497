//! One source's packets on their way to the application.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;

use super::{
    Order, ReceiverConfig, ReceiverStatistics,
    groups::Groups,
    request::{Request, RequestTimers, Stage, Target},
};
use crate::{
    Time,
    fec::Member,
    wire::{Fragment, Sqn},
};

/// The receive window: a slot for each packet from the first that was not handed out to the last that
/// the source is known to have sent, as far as there is room.
///
/// Where there is parity, packets stay until their group has been handed out, since lost ones are made
/// of them.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    pub(super) config: ReceiverConfig,
    /// Messages that began before this are not missed.
    joined: Sqn,
    /// The number of the first slot.
    pub(super) base: Sqn,
    pub(super) slots: VecDeque<Slot>,
    /// How many of the slots are missing.
    pub(super) missing: usize,
    /// The first slot that was not handed out.
    next: usize,
    /// How far the message there is known to be whole.
    scan: Scan,
    /// The first packet that the source can repair.
    trail: Sqn,
    /// The last packet that the source is known to have sent.
    pub(super) lead: Sqn,
    /// Once all slots were handed out, go on here: the source has left the window behind.
    resume: Option<Sqn>,
    /// Bytes of all payloads that are held.
    pub(super) bytes: usize,
    /// Messages that are whole, by their first packets, where order does not matter.
    whole: VecDeque<Sqn>,
    /// Of messages in several packets, how many bytes came, where order does not matter.
    parts: HashMap<Sqn, usize>,
    pub(super) timers: RequestTimers,
    pub(super) groups: Groups,
    pub(super) back_off: Duration,
    /// When the last back-off was drawn, and its end.
    drawn: Option<(Time, Time)>,
    pub(super) rng: fastrand::Rng,
    pub(super) statistics: ReceiverStatistics,
}

/// What is known of a packet.
#[derive(Debug)]
pub(super) enum Slot {
    Missing(Request),
    Held(Piece),
    /// Was handed out, or never existed; kept while its group may need it.
    Taken(Option<Piece>),
    Lost,
}

/// A data packet that came.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) payload: Bytes,
    pub(super) fragment: Option<Fragment>,
}

impl Piece {
    pub(super) fn member(&self) -> Member<'_> {
        Member {
            payload: &self.payload,
            fragment: self.fragment,
        }
    }

    /// The fragment option, if the packet is not all of its message.
    fn part(&self) -> Option<Fragment> {
        self.fragment
            .filter(|fragment| fragment.length as usize != self.payload.len())
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    first: Sqn,
    packets: usize,
    bytes: usize,
}

/// How a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Original,
    Repair,
    Parity,
}

/// What is handed out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Message { sqn: Sqn, payload: Bytes },
    Lost { first: Sqn, packets: u32 },
}

/// Whether the next message can be handed out.
enum Head {
    Whole { packets: usize },
    Incomplete,
    Broken,
}

impl ReceiveWindow {
    pub(super) fn new(config: ReceiverConfig, first: Sqn, seed: u64) -> Self {
        Self {
            config,
            joined: first,
            base: first,
            slots: VecDeque::new(),
            missing: 0,
            next: 0,
            scan: Scan::default(),
            trail: first,
            lead: first.minus(1),
            resume: None,
            bytes: 0,
            whole: VecDeque::new(),
            parts: HashMap::new(),
            timers: RequestTimers::default(),
            groups: Groups::default(),
            back_off: config.back_off,
            drawn: None,
            rng: fastrand::Rng::with_seed(seed),
            statistics: ReceiverStatistics::default(),
        }
    }

    /// The number after the last slot.
    pub(super) fn end(&self) -> Sqn {
        self.base.plus(self.slots.len() as u32)
    }

    /// The first packet that was neither handed out nor reported lost.
    pub(super) fn next_sqn(&self) -> Sqn {
        self.base.plus(self.next as u32)
    }

    /// Where a packet's slot is, if it has one.
    pub(super) fn slot_of(&self, sqn: Sqn) -> Option<usize> {
        let at = sqn.since(self.base) as usize;
        (at < self.slots.len()).then_some(at)
    }

    /// The source can repair nothing before `trail` any more.
    pub(super) fn advance_trail(&mut self, trail: Sqn) {
        if !self.trail.is_before(trail) {
            return;
        }
        let from = if self.trail.is_before(self.base) {
            self.base
        } else {
            self.trail
        };
        self.trail = trail;
        if !self.base.is_before(trail) {
            return;
        }
        let end = self.slots.len().min(trail.since(self.base) as usize);
        for at in from.since(self.base) as usize..end {
            self.lose(at);
        }
        if self.end().is_before(trail) {
            self.resume = Some(trail);
            if self.lead.is_before(trail.minus(1)) {
                self.lead = trail.minus(1);
            }
        }
    }

    /// The source has sent everything up to `lead`.
    pub(super) fn advance_lead(&mut self, now: Time, lead: Sqn) {
        if self.lead.is_before(lead) {
            self.lead = lead;
        }
        self.extend(now);
    }

    /// Makes slots for what the source has sent, as far as there is room.
    fn extend(&mut self, now: Time) {
        if self.resume.is_some() || self.bytes >= self.config.bytes {
            return;
        }
        let end = self.end();
        if !end.is_before(self.lead.plus(1)) {
            return;
        }
        let room = self.config.window as usize - self.slots.len();
        let count = room.min(self.lead.plus(1).since(end) as usize);
        self.slots
            .extend((0..count).map(|_| Slot::Missing(Request::deferred(now))));
        self.missing += count;
        self.ask_for_new(now, end);
    }

    /// Takes a data packet.
    pub(super) fn insert(&mut self, now: Time, sqn: Sqn, piece: Piece, how: How) {
        if sqn.is_before(self.base) {
            self.statistics.duplicates += 1;
            return;
        }
        self.advance_lead(now, sqn.minus(1));
        if sqn == self.end() && self.has_room() {
            self.slots.push_back(Slot::Missing(Request::deferred(now)));
            self.missing += 1;
            self.lead = if self.lead.is_before(sqn) {
                sqn
            } else {
                self.lead
            };
        }
        self.advance_lead(now, sqn);
        match self.slot_of(sqn) {
            Some(at) if !matches!(self.slots[at], Slot::Missing(_)) => {
                self.statistics.duplicates += 1;
            }
            Some(at) if self.may_hold(at) => {
                self.fill(now, at, piece, how);
                self.group_changed(now, sqn);
            }
            Some(_) | None => self.statistics.refused += 1,
        }
    }

    /// Whether this is the packet after the last, nothing is missing before it, and it waits for
    /// nothing: it can be appended.
    pub(super) fn comes_next(&self, sqn: Sqn) -> bool {
        sqn == self.end()
            && self.lead.plus(1) == sqn
            && self.missing == 0
            && self.config.order == Order::AsSent
            && !self.groups.is_active()
            && self.has_room()
    }

    /// Takes a whole message that comes next.
    pub(super) fn append(&mut self, payload: Bytes) {
        self.statistics.packets += 1;
        self.bytes += payload.len();
        self.lead = self.end();
        self.slots.push_back(Slot::Held(Piece {
            payload,
            fragment: None,
        }));
    }

    fn has_room(&self) -> bool {
        self.resume.is_none()
            && self.bytes < self.config.bytes
            && self.slots.len() < self.config.window as usize
    }

    /// Slots that are there may be filled somewhat beyond the limit, since they were asked for; and
    /// always the one that all others wait for.
    fn may_hold(&mut self, at: usize) -> bool {
        self.bytes < 2 * self.config.bytes || {
            let head = match self.slots.get(self.next) {
                Some(Slot::Held(_)) => {
                    self.head();
                    self.next + self.scan.packets
                }
                _ => self.next,
            };
            at == head
        }
    }

    /// Puts a packet into its slot, which is missing.
    pub(super) fn fill(&mut self, now: Time, at: usize, piece: Piece, how: How) {
        let sqn = self.base.plus(at as u32);
        let part = piece.part();
        self.bytes += piece.payload.len();
        let length = piece.payload.len();
        let Slot::Missing(request) = std::mem::replace(&mut self.slots[at], Slot::Held(piece))
        else {
            return;
        };
        self.missing -= 1;
        self.timers.disarm(Target::Packet(sqn.0), &request);
        let missing = now.since(request.since);
        let statistics = &mut self.statistics;
        statistics.packets += 1;
        match how {
            How::Original => {}
            How::Repair => statistics.repairs += 1,
            How::Parity => statistics.recovered += 1,
        }
        if how != How::Original || !missing.is_zero() {
            statistics.late += 1;
            statistics.late_total += missing;
            statistics.late_most = statistics.late_most.max(missing);
        }
        if self.config.order == Order::AsReceived {
            match part {
                None => self.whole.push_back(sqn),
                Some(part) if sqn.since(part.first) >= self.config.window => {}
                Some(part) => {
                    let bytes = self.parts.entry(part.first).or_default();
                    *bytes += length;
                    if *bytes >= part.length as usize {
                        self.parts.remove(&part.first);
                        self.whole.push_back(part.first);
                    }
                }
            }
        }
    }

    /// Gives a packet up, if it is missing.
    pub(super) fn lose(&mut self, at: usize) {
        let sqn = self.base.plus(at as u32);
        if let Slot::Missing(request) = &self.slots[at] {
            self.timers.disarm(Target::Packet(sqn.0), request);
            self.slots[at] = Slot::Lost;
            self.missing -= 1;
            self.forget_settled_group(sqn);
        }
    }

    /// Gives everything up that is missing.
    pub(super) fn give_up(&mut self) {
        for at in 0..self.slots.len() {
            self.lose(at);
        }
    }

    /// What is to be handed out next, if anything.
    pub(super) fn next_delivery(&mut self, now: Time) -> Option<Delivery> {
        let delivery = self.next_at_front().or_else(|| {
            let delivery = self.next_whole().or_else(|| self.next_in_order());
            self.drop_passed();
            delivery
        });
        self.extend(now);
        match &delivery {
            Some(Delivery::Message { payload, .. }) => {
                self.statistics.messages += 1;
                self.statistics.message_bytes += payload.len() as u64;
            }
            Some(Delivery::Lost { packets, .. }) => self.statistics.lost += u64::from(*packets),
            None => {}
        }
        delivery
    }

    /// A message of one packet at the front, where no group needs it: the usual case, and short.
    fn next_at_front(&mut self) -> Option<Delivery> {
        let is_usual =
            self.next == 0 && !self.groups.is_active() && self.config.order == Order::AsSent;
        let front = self.slots.pop_front_if(
            |slot| matches!(slot, Slot::Held(piece) if is_usual && piece.part().is_none()),
        );
        let Some(Slot::Held(piece)) = front else {
            return None;
        };
        let sqn = self.base;
        self.base = sqn.plus(1);
        self.bytes -= piece.payload.len();
        Some(Delivery::Message {
            sqn,
            payload: piece.payload,
        })
    }

    /// A message that came out of order, where that does not matter.
    fn next_whole(&mut self) -> Option<Delivery> {
        while let Some(first) = self.whole.pop_front() {
            if let Some(at) = self.slot_of(first)
                && let Head::Whole { packets } = self.look(at, &mut Scan::default())
            {
                let payload = self.take(at, packets);
                return Some(Delivery::Message {
                    sqn: first,
                    payload,
                });
            }
        }
        None
    }

    fn next_in_order(&mut self) -> Option<Delivery> {
        let mut lost = None;
        loop {
            match self.slots.get(self.next) {
                Some(Slot::Missing(_)) => break,
                Some(Slot::Taken(_)) if lost.is_some() => break,
                Some(Slot::Taken(_)) => self.next += 1,
                Some(Slot::Lost) => {
                    let (_, packets) = lost.get_or_insert((self.next_sqn(), 0u32));
                    *packets += 1;
                    self.next += 1;
                }
                Some(Slot::Held(piece)) => {
                    let first = piece.part().map(|part| part.first);
                    let piece_bytes = piece.payload.len();
                    match self.head() {
                        Head::Incomplete => break,
                        Head::Whole { .. } if lost.is_some() => break,
                        Head::Whole { packets } => {
                            let sqn = self.next_sqn();
                            let payload = self.take(self.next, packets);
                            return Some(Delivery::Message { sqn, payload });
                        }
                        Head::Broken if first.is_some_and(|f| f.is_before(self.joined)) => {
                            self.statistics.skipped += 1;
                            self.take(self.next, 1);
                        }
                        Head::Broken => {
                            self.bytes -= piece_bytes;
                            self.slots[self.next] = Slot::Lost;
                        }
                    }
                }
                None => {
                    if let Some(resume) = self.resume.take() {
                        let (_, packets) = lost.get_or_insert((self.next_sqn(), 0));
                        *packets = packets.saturating_add(resume.since(self.next_sqn()));
                        self.restart(resume);
                    }
                    break;
                }
            }
        }
        lost.map(|(first, packets)| Delivery::Lost { first, packets })
    }

    /// Goes on elsewhere; all slots were handed out.
    fn restart(&mut self, base: Sqn) {
        self.forget_all_groups();
        self.slots.clear();
        self.missing = 0;
        self.bytes = 0;
        self.parts.clear();
        self.whole.clear();
        self.base = base;
        self.next = 0;
    }

    /// Whether the message at the next slot, which is held, is whole. What was found before is
    /// remembered, so that a long message is not looked through for each of its packets.
    fn head(&mut self) -> Head {
        let sqn = self.next_sqn();
        let mut scan = std::mem::take(&mut self.scan);
        if scan.first != sqn {
            scan = Scan {
                first: sqn,
                ..Scan::default()
            };
        }
        let head = self.look(self.next, &mut scan);
        self.scan = scan;
        head
    }

    /// Looks from a held slot on whether a whole message begins there, going on where `scan` is.
    fn look(&self, at: usize, scan: &mut Scan) -> Head {
        let Some(Slot::Held(piece)) = self.slots.get(at) else {
            return Head::Incomplete;
        };
        let Some(head) = piece.part() else {
            return Head::Whole { packets: 1 };
        };
        let longest = self.config.bytes / 2;
        if head.first != self.base.plus(at as u32) || head.length as usize > longest {
            return Head::Broken;
        }
        loop {
            match self.slots.get(at + scan.packets) {
                Some(Slot::Held(piece)) => {
                    let fits = piece.fragment.is_some_and(|part| {
                        part.first == head.first
                            && part.length == head.length
                            && part.offset as usize == scan.bytes
                    });
                    if !fits {
                        return Head::Broken;
                    }
                    scan.bytes += piece.payload.len();
                    scan.packets += 1;
                    if scan.bytes >= head.length as usize {
                        return if scan.bytes == head.length as usize {
                            Head::Whole {
                                packets: scan.packets,
                            }
                        } else {
                            Head::Broken
                        };
                    }
                }
                Some(Slot::Missing(_)) => return Head::Incomplete,
                Some(Slot::Taken(_) | Slot::Lost) => return Head::Broken,
                // The source no longer has the rest.
                None if self.resume.is_some() => return Head::Broken,
                // There will never be room for it.
                None if at + scan.packets >= self.config.window as usize => return Head::Broken,
                None => return Head::Incomplete,
            }
        }
    }

    /// Takes the payloads of held slots.
    fn take(&mut self, at: usize, packets: usize) -> Bytes {
        let mut whole = Vec::new();
        for slot in self.slots.range_mut(at..at + packets) {
            let Slot::Held(piece) = std::mem::replace(slot, Slot::Taken(None)) else {
                continue;
            };
            if self.groups.is_active() {
                whole.extend_from_slice(&piece.payload);
                *slot = Slot::Taken(Some(piece));
                continue;
            }
            self.bytes -= piece.payload.len();
            if packets == 1 {
                return piece.payload;
            }
            whole.extend_from_slice(&piece.payload);
        }
        whole.into()
    }

    /// Drops slots that were handed out and that no group needs.
    fn drop_passed(&mut self) {
        let keep_from = self.groups.start_of(self.next_sqn());
        let passed = if keep_from.is_before(self.base) {
            0
        } else {
            (keep_from.since(self.base) as usize).min(self.next)
        };
        for slot in self.slots.drain(..passed) {
            if let Slot::Taken(Some(piece)) | Slot::Held(piece) = slot {
                self.bytes -= piece.payload.len();
            }
        }
        self.base = self.base.plus(passed as u32);
        self.next -= passed;
        if passed > 0 {
            let base = self.base;
            self.parts.retain(|first, _| !first.is_before(base));
            self.forget_passed_groups();
        }
    }

    /// When a request wants to go on.
    pub(super) fn next_request(&self) -> Option<Time> {
        self.timers.next()
    }

    /// A moment within the back-off, the same for all that is found missing at once, so that it goes
    /// into one list.
    pub(super) fn back_off_end(&mut self, now: Time) -> Time {
        match self.drawn {
            Some((at, end)) if at == now => end,
            _ => {
                let longest = u64::try_from(self.back_off.as_nanos()).unwrap_or(u64::MAX);
                let end = now.0.saturating_add(self.rng.u64(1..=longest.max(1)));
                self.drawn = Some((now, Time(end)));
                Time(end)
            }
        }
    }

    /// Begins to ask for a packet, if it is missing and deferred.
    pub(super) fn ask_for_packet(&mut self, at: usize, expiry: Time) {
        let target = Target::Packet(self.base.plus(at as u32).0);
        if let Slot::Missing(request) = &mut self.slots[at]
            && request.stage == Stage::Deferred
        {
            self.timers.arm(target, request, Stage::BackOff, expiry);
        }
    }
}
