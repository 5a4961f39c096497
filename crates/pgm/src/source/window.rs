//! The transmit window and the packets that wait to be sent.

use std::collections::VecDeque;

use super::WindowLimit;
use crate::{
    Time,
    fec::Member,
    wire::{Fragment, Sqn},
};

/// Transmit window: the sent packets that can be repaired, followed by the packets that have not
/// been sent yet.
#[derive(Debug)]
pub(super) struct TransmitWindow {
    trail: Sqn,
    packets: VecDeque<WindowPacket>,
    /// Number of packets in `packets` that were sent.
    sent: usize,
    /// Total size of the payloads in `packets`, in bytes.
    bytes: usize,
    /// True after a packet was pushed.
    has_started: bool,
    limit: WindowLimit,
    /// Number of packets per parity group. The trail moves by whole groups, because parity needs all packets
    /// of a group.
    group_size: u32,
    /// Memory of the last dropped packet, which the next packet can reuse.
    spare: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct WindowPacket {
    pub(super) payload: Vec<u8>,
    pub(super) fragment: Option<Fragment>,
    /// True for the first packet of the session.
    pub(super) is_first: bool,
    /// True for the last packet of the session.
    pub(super) is_last: bool,
    pub(super) is_repair_waiting: bool,
    /// True for a sequence number that a shortened group leaves unused.
    pub(super) is_unused: bool,
    sent_at: Time,
}

impl WindowPacket {
    pub(super) fn member(&self) -> Member<'_> {
        Member {
            payload: &self.payload,
            fragment: self.fragment,
        }
    }
}

impl TransmitWindow {
    pub(super) fn new(first: Sqn, limit: WindowLimit, group_size: u32) -> Self {
        Self {
            trail: first,
            packets: VecDeque::new(),
            sent: 0,
            bytes: 0,
            has_started: false,
            limit,
            group_size,
            spare: Vec::new(),
        }
    }

    pub(super) fn trail(&self) -> Sqn {
        self.trail
    }

    /// Returns the number of the last packet that was sent. If no packet was sent, returns the number before
    /// the trail.
    pub(super) fn lead(&self) -> Sqn {
        self.trail.plus(self.sent as u32).minus(1)
    }

    /// Returns the sequence number of the next packet to be pushed.
    pub(super) fn next(&self) -> Sqn {
        self.trail.plus(self.packets.len() as u32)
    }

    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(super) fn unsent(&self) -> usize {
        self.packets.len() - self.sent
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.unsent() > 0
    }

    pub(super) fn push(&mut self, payload: &[u8], fragment: Option<Fragment>) {
        self.make_room(1, payload.len());
        let mut memory = std::mem::take(&mut self.spare);
        // Memory that is much larger than the payload is not reused, because most of it would be wasted while the
        // packet is kept.
        if memory.capacity() > 2 * payload.len() {
            memory = Vec::new();
        }
        memory.clear();
        memory.extend_from_slice(payload);
        self.packets.push_back(WindowPacket {
            payload: memory,
            fragment,
            is_first: !self.has_started,
            is_last: false,
            is_repair_waiting: false,
            is_unused: false,
            sent_at: Time::default(),
        });
        self.has_started = true;
        self.bytes += payload.len();
    }

    /// Marks the next waiting packet as sent, and returns its number.
    pub(super) fn send_next(&mut self, now: Time) -> Option<Sqn> {
        let packet = self.packets.get_mut(self.sent)?;
        packet.sent_at = now;
        self.sent += 1;
        self.make_room(0, 0);
        Some(self.lead())
    }

    /// Shortens the last group: marks its remaining numbers as unused, so that they count as sent. Returns
    /// the group. Returns `None` in three cases: the group is complete, some of its packets are not sent yet,
    /// or its first packet is not in the window.
    pub(super) fn shorten_groups(&mut self, now: Time) -> Option<Sqn> {
        let next = self.next();
        let group = next.group(self.group_size);
        let rest = self.group_size - next.index(self.group_size);
        if rest == self.group_size || self.has_unsent() || !self.was_sent(group) {
            return None;
        }
        self.make_room(rest as usize, 0);
        self.packets.extend((0..rest).map(|_| WindowPacket {
            payload: Vec::new(),
            fragment: None,
            is_first: false,
            is_last: false,
            is_repair_waiting: false,
            is_unused: true,
            sent_at: now,
        }));
        self.sent += rest as usize;
        Some(group)
    }

    /// Returns the number of packets in a group, if the group was shortened.
    pub(super) fn short_size(&self, group: Sqn) -> Option<u32> {
        let is_unused = |at: &u32| self.get(group.plus(*at)).is_some_and(|kept| kept.is_unused);
        (0..self.group_size).find(is_unused)
    }

    /// Returns the last packet that waits to be sent.
    pub(super) fn last_unsent(&self) -> Option<&WindowPacket> {
        self.packets.back().filter(|_| self.has_unsent())
    }

    /// Marks the last waiting packet as the end of the session.
    pub(super) fn finish(&mut self) {
        if self.has_unsent()
            && let Some(last) = self.packets.back_mut()
        {
            last.is_last = true;
        }
    }

    /// Drops the packets that were not sent yet, and returns their number.
    pub(super) fn drop_unsent(&mut self) -> u64 {
        let packets = self.unsent();
        let unsent = self.packets.drain(self.sent..);
        self.bytes -= unsent.map(|kept| kept.payload.len()).sum::<usize>();
        packets as u64
    }

    pub(super) fn get(&self, sqn: Sqn) -> Option<&WindowPacket> {
        self.packets.get(sqn.since(self.trail) as usize)
    }

    /// Returns a packet if it was sent and can still be repaired.
    pub(super) fn sent_mut(&mut self, sqn: Sqn) -> Option<&mut WindowPacket> {
        let at = sqn.since(self.trail) as usize;
        self.packets.get_mut(at).filter(|_| at < self.sent)
    }

    /// Returns true if a packet was sent and can still be repaired.
    pub(super) fn was_sent(&self, sqn: Sqn) -> bool {
        (sqn.since(self.trail) as usize) < self.sent
    }

    /// Drops packets that are too old.
    pub(super) fn expire(&mut self, now: Time) {
        while self.next_expiry().is_some_and(|expiry| expiry <= now) && self.advance() {}
    }

    /// Returns the time at which the next packets become too old.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        let step = self.step();
        let last = self.packets.get(step - 1).filter(|_| step <= self.sent)?;
        Some(last.sent_at.plus(self.limit.age?))
    }

    /// Drops sent packets until `packets` further packets with `bytes` bytes fit into the limits, or until no
    /// sent packet is left.
    fn make_room(&mut self, packets: usize, bytes: usize) {
        let limit = self.limit;
        let is_over = |window: &Self| {
            window.packets.len() + packets > limit.packets as usize
                || limit.bytes.is_some_and(|most| window.bytes + bytes > most)
        };
        while is_over(self) && self.advance() {}
    }

    /// Returns the number of packets by which the trail moves. This is the number of packets up to the end of
    /// the trail's group.
    fn step(&self) -> usize {
        (self.group_size - self.trail.index(self.group_size)) as usize
    }

    /// Moves the trail to the next group and drops the packets before the new trail. If this would drop
    /// unsent packets, does nothing and returns false.
    fn advance(&mut self) -> bool {
        let step = self.step();
        if step > self.sent {
            return false;
        }
        for _ in 0..step {
            if let Some(dropped) = self.packets.pop_front() {
                self.bytes -= dropped.payload.len();
                self.spare = dropped.payload;
            }
        }
        self.sent -= step;
        self.trail = self.trail.plus(step as u32);
        true
    }
}
