//! The receive window, which a receiver keeps for each source.

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

/// Number of missing packets that the window of a new source may have. A forged packet of a few bytes can name a last
/// packet far away, so that more slots must be earned by packets.
const MISSING_AT_START: u64 = 1024;

/// Number of missing packets that each received packet allows.
const MISSING_PER_PACKET: u64 = 4;

/// Receive window of a source. It has a slot for each packet from the first undelivered packet to the last
/// packet that the source is known to have sent. If the window is full, the last packets have no slot.
///
/// With parity, packets stay in the window until their whole group was delivered, because recovery needs
/// these packets.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    pub(super) config: ReceiverConfig,
    /// First packet of the window when the window was opened. If a message started before this packet, its
    /// packets count as skipped, not as lost.
    joined: Sqn,
    /// Sequence number of the first slot.
    pub(super) base: Sqn,
    pub(super) slots: VecDeque<Slot>,
    /// Number of missing packets.
    pub(super) missing: usize,
    /// Index of the first undelivered slot.
    next: usize,
    /// Progress of the check for a complete next message.
    scan: Scan,
    /// First packet that the source can repair.
    trail: Sqn,
    /// Last packet that the source is known to have sent.
    pub(super) lead: Sqn,
    /// Sequence number at which the window restarts after all its slots were delivered. This field is set if
    /// the packets before this number cannot be repaired any more or were given up.
    resume: Option<Sqn>,
    /// Total size of the payloads in memory, in bytes.
    pub(super) bytes: usize,
    /// First packets of complete messages, if messages are returned in order of arrival.
    whole: VecDeque<Sqn>,
    /// Number of bytes received of each fragmented message, by the first packet of the message. The map is
    /// used only if messages are returned in order of arrival.
    parts: HashMap<Sqn, usize>,
    pub(super) timers: RequestTimers,
    pub(super) groups: Groups,
    pub(super) back_off: Duration,
    /// Time at which the last random back-off was chosen, and the time at which it ends.
    drawn: Option<(Time, Time)>,
    pub(super) rng: fastrand::Rng,
    pub(super) statistics: ReceiverStatistics,
}

/// State of a packet in the receive window.
#[derive(Debug)]
pub(super) enum Slot {
    Missing(Request),
    Held(StoredPacket),
    /// Delivered packet, or unused number. The packet is kept as long as the recovery of its group may need
    /// the packet.
    Delivered(Option<StoredPacket>),
    Lost,
}

/// A received data packet.
#[derive(Clone, Debug)]
pub(super) struct StoredPacket {
    pub(super) payload: Bytes,
    pub(super) fragment: Option<Fragment>,
}

impl StoredPacket {
    pub(super) fn member(&self) -> Member<'_> {
        Member {
            payload: &self.payload,
            fragment: self.fragment,
        }
    }

    /// Returns the fragment option. Returns `None` if the packet is a whole message.
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

/// Origin of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Original,
    Repair,
    Parity,
}

/// Item to return to the application.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Message { sqn: Sqn, payload: Bytes },
    Lost { first: Sqn, packets: u32 },
}

/// State of the message that starts at a slot.
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

    /// Returns the sequence number after the last slot.
    pub(super) fn end(&self) -> Sqn {
        self.base.plus(self.slots.len() as u32)
    }

    /// Returns the first packet that was neither delivered nor reported as lost.
    pub(super) fn next_sqn(&self) -> Sqn {
        self.base.plus(self.next as u32)
    }

    /// Returns the index of a packet's slot; `None` if the packet is outside of the window.
    pub(super) fn slot_of(&self, sqn: Sqn) -> Option<usize> {
        let at = sqn.since(self.base) as usize;
        (at < self.slots.len()).then_some(at)
    }

    /// Records that the source cannot repair packets before `trail`. Marks missing packets before `trail` as
    /// lost.
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

    /// Records that the source has sent all packets up to `lead`.
    pub(super) fn advance_lead(&mut self, now: Time, lead: Sqn) {
        if self.lead.is_before(lead) {
            self.lead = lead;
        }
        self.extend(now);
    }

    /// Adds slots for packets that the source has sent, until the window is full or too many packets are missing.
    fn extend(&mut self, now: Time) {
        if self.resume.is_some() || self.bytes >= self.config.bytes {
            return;
        }
        let end = self.end();
        if !end.is_before(self.lead.plus(1)) {
            return;
        }
        let may_miss = MISSING_AT_START + MISSING_PER_PACKET * self.statistics.packets;
        let may_miss = usize::try_from(may_miss).unwrap_or(usize::MAX);
        let room = self.config.window as usize - self.slots.len();
        let count = room
            .min(may_miss.saturating_sub(self.missing))
            .min(self.lead.plus(1).since(end) as usize);
        self.slots
            .extend((0..count).map(|_| Slot::Missing(Request::deferred(now))));
        self.missing += count;
        self.request_new(now, end);
    }

    /// Stores a data packet.
    pub(super) fn insert(&mut self, now: Time, sqn: Sqn, piece: StoredPacket, origin: Origin) {
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
            Some(at) if self.can_store(at) => {
                self.fill(now, at, piece, origin);
                self.try_recover(now, sqn);
            }
            Some(_) | None => self.statistics.refused += 1,
        }
    }

    /// Returns true if the packet can be appended without further work. This requires that the packet follows
    /// the last packet, that no packet is missing, and that messages are returned in order and without
    /// parity.
    pub(super) fn is_next(&self, sqn: Sqn) -> bool {
        sqn == self.end()
            && self.lead.plus(1) == sqn
            && self.missing == 0
            && self.config.order == Order::AsSent
            && !self.groups.is_active()
            && self.has_room()
    }

    /// Appends a message that consists of one packet.
    pub(super) fn append(&mut self, payload: Bytes) {
        self.statistics.packets += 1;
        self.bytes += payload.len();
        self.lead = self.end();
        self.slots.push_back(Slot::Held(StoredPacket {
            payload,
            fragment: None,
        }));
    }

    fn has_room(&self) -> bool {
        self.resume.is_none()
            && self.bytes < self.config.bytes
            && self.slots.len() < self.config.window as usize
    }

    /// Returns true if the memory limit allows filling a slot. Requested packets may use up to twice the
    /// limit. The packet for which all other packets wait is always accepted.
    fn can_store(&mut self, at: usize) -> bool {
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

    /// Stores a packet in the slot of a missing packet.
    pub(super) fn fill(&mut self, now: Time, at: usize, piece: StoredPacket, origin: Origin) {
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
        match origin {
            Origin::Original => {}
            Origin::Repair => statistics.repairs += 1,
            Origin::Parity => statistics.recovered += 1,
        }
        if origin != Origin::Original || !missing.is_zero() {
            statistics.late += 1;
            statistics.late_total += missing;
            statistics.late_max = statistics.late_max.max(missing);
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

    /// Marks the packet of slot `at` as lost if it is missing.
    pub(super) fn lose(&mut self, at: usize) {
        let sqn = self.base.plus(at as u32);
        if let Slot::Missing(request) = &self.slots[at] {
            self.timers.disarm(Target::Packet(sqn.0), request);
            self.slots[at] = Slot::Lost;
            self.missing -= 1;
            self.forget_complete_group(sqn);
        }
    }

    /// Marks all missing packets as lost, also packets for which the window has no room. Otherwise, a forged packet
    /// with a high number would cause thousands of windows in a row, and each window would report a loss.
    pub(super) fn give_up(&mut self) {
        for at in 0..self.slots.len() {
            self.lose(at);
        }
        let next = self.lead.plus(1);
        if self.end().is_before(next) {
            self.resume = Some(next);
        }
    }

    /// Returns the next message or loss for the application.
    pub(super) fn next_delivery(&mut self, now: Time) -> Option<Delivery> {
        let delivery = self.next_at_front().or_else(|| {
            let delivery = self.next_whole().or_else(|| self.next_in_order());
            self.drop_delivered();
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

    /// Returns the next message quickly in the usual case: a message of one packet at the front of
    /// the window, in a session without parity.
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

    /// Returns the next complete message in order of arrival.
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
                Some(Slot::Delivered(_)) if lost.is_some() => break,
                Some(Slot::Delivered(_)) => self.next += 1,
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

    /// Restarts the window at `base` after all its slots were delivered.
    fn restart(&mut self, base: Sqn) {
        self.drop_all_groups();
        self.slots.clear();
        self.missing = 0;
        self.bytes = 0;
        self.parts.clear();
        self.whole.clear();
        self.base = base;
        self.next = 0;
    }

    /// Checks whether the next message is complete. The progress is kept, so that a long message is
    /// not scanned from its start after each packet.
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

    /// Checks whether a complete message starts at slot `at`. Continues an earlier check at the
    /// position in `scan`.
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
                Some(Slot::Delivered(_) | Slot::Lost) => return Head::Broken,
                // The source can no longer send the rest of the message.
                None if self.resume.is_some() => return Head::Broken,
                // The window is too small for the message.
                None if at + scan.packets >= self.config.window as usize => return Head::Broken,
                None => return Head::Incomplete,
            }
        }
    }

    /// Takes the payloads of filled slots, marks the slots as delivered, and returns the joined
    /// payloads. With parity, the slots keep their packets.
    fn take(&mut self, at: usize, packets: usize) -> Bytes {
        let mut whole = Vec::new();
        for slot in self.slots.range_mut(at..at + packets) {
            let Slot::Held(piece) = std::mem::replace(slot, Slot::Delivered(None)) else {
                continue;
            };
            if self.groups.is_active() {
                whole.extend_from_slice(&piece.payload);
                *slot = Slot::Delivered(Some(piece));
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

    /// Drops the delivered slots that no parity group needs.
    fn drop_delivered(&mut self) {
        let keep_from = self.groups.start_of(self.next_sqn());
        let passed = if keep_from.is_before(self.base) {
            0
        } else {
            (keep_from.since(self.base) as usize).min(self.next)
        };
        for slot in self.slots.drain(..passed) {
            if let Slot::Delivered(Some(piece)) | Slot::Held(piece) = slot {
                self.bytes -= piece.payload.len();
            }
        }
        self.base = self.base.plus(passed as u32);
        self.next -= passed;
        if passed > 0 {
            let base = self.base;
            self.parts.retain(|first, _| !first.is_before(base));
            self.drop_delivered_groups();
        }
    }

    /// Returns the time at which the next request is due.
    pub(super) fn next_request(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Returns the end of a random back-off that starts now. Losses that are found at the same time get the
    /// same end, so that one NAK can list all of them.
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

    /// Starts the request for the packet of slot `at`, if the packet is missing and its request is
    /// deferred.
    pub(super) fn request_packet(&mut self, at: usize, expiry: Time) {
        let target = Target::Packet(self.base.plus(at as u32).0);
        if let Slot::Missing(request) = &mut self.slots[at]
            && request.stage == Stage::Deferred
        {
            self.timers.arm(target, request, Stage::BackOff, expiry);
        }
    }
}
