//! What was sent and can be repaired, and what waits to be sent.

use std::collections::VecDeque;

use super::WindowLimit;
use crate::{
    Time,
    fec::Member,
    wire::{Fragment, Sqn},
};

/// The transmit window, followed by the packets that have not been sent yet.
#[derive(Debug)]
pub(super) struct TransmitWindow {
    trail: Sqn,
    packets: VecDeque<Kept>,
    /// How many of them were sent.
    sent: usize,
    /// Bytes of all payloads.
    bytes: usize,
    /// Whether there ever was a packet.
    has_begun: bool,
    limit: WindowLimit,
    /// The trail moves by whole groups of so many, since parity needs all of a group.
    group_size: u32,
    /// The memory of the packet that was dropped last: in the long run one goes for each that comes.
    spare: Vec<u8>,
}

/// A packet.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) payload: Vec<u8>,
    pub(super) fragment: Option<Fragment>,
    /// The session begins with it.
    pub(super) is_first: bool,
    /// The session ends with it.
    pub(super) is_last: bool,
    pub(super) is_repair_waiting: bool,
    /// There is no such packet: its group was cut short.
    pub(super) is_unused: bool,
    sent_at: Time,
}

impl Kept {
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
            has_begun: false,
            limit,
            group_size,
            spare: Vec::new(),
        }
    }

    pub(super) fn trail(&self) -> Sqn {
        self.trail
    }

    /// The last packet that was sent; the one before the trail if there is none.
    pub(super) fn lead(&self) -> Sqn {
        self.trail.plus(self.sent as u32).minus(1)
    }

    /// The number of the next packet to be pushed.
    pub(super) fn next(&self) -> Sqn {
        self.trail.plus(self.packets.len() as u32)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
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
        // Much more than is needed would be kept for as long as the packet is.
        if memory.capacity() > 2 * payload.len() {
            memory = Vec::new();
        }
        memory.clear();
        memory.extend_from_slice(payload);
        self.packets.push_back(Kept {
            payload: memory,
            fragment,
            is_first: !self.has_begun,
            is_last: false,
            is_repair_waiting: false,
            is_unused: false,
            sent_at: Time::default(),
        });
        self.has_begun = true;
        self.bytes += payload.len();
    }

    /// Marks the next packet that waits as sent.
    pub(super) fn send_next(&mut self, now: Time) -> Option<Sqn> {
        let kept = self.packets.get_mut(self.sent)?;
        kept.sent_at = now;
        self.sent += 1;
        self.make_room(0, 0);
        Some(self.lead())
    }

    /// Leaves the rest of the last group's numbers unused, which count as sent, and gives that group.
    /// None if it is complete, or not all of it is there and was sent.
    pub(super) fn cut_short(&mut self, now: Time) -> Option<Sqn> {
        let next = self.next();
        let group = next.group(self.group_size);
        let rest = self.group_size - next.index(self.group_size);
        if rest == self.group_size || self.has_unsent() || !self.was_sent(group) {
            return None;
        }
        self.make_room(rest as usize, 0);
        self.packets.extend((0..rest).map(|_| Kept {
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

    /// How many packets a group has, if it was cut short.
    pub(super) fn short_size(&self, group: Sqn) -> Option<u32> {
        let is_unused = |at: &u32| self.get(group.plus(*at)).is_some_and(|kept| kept.is_unused);
        (0..self.group_size).find(is_unused)
    }

    /// Nothing follows what waits.
    pub(super) fn finish(&mut self) {
        if self.has_unsent()
            && let Some(last) = self.packets.back_mut()
        {
            last.is_last = true;
        }
    }

    pub(super) fn drop_unsent(&mut self) {
        let unsent = self.packets.drain(self.sent..);
        self.bytes -= unsent.map(|kept| kept.payload.len()).sum::<usize>();
    }

    pub(super) fn get(&self, sqn: Sqn) -> Option<&Kept> {
        self.packets.get(sqn.since(self.trail) as usize)
    }

    /// A packet that was sent and can be repaired.
    pub(super) fn sent_mut(&mut self, sqn: Sqn) -> Option<&mut Kept> {
        let at = sqn.since(self.trail) as usize;
        self.packets.get_mut(at).filter(|_| at < self.sent)
    }

    /// Whether a packet was sent and can be repaired.
    pub(super) fn was_sent(&self, sqn: Sqn) -> bool {
        (sqn.since(self.trail) as usize) < self.sent
    }

    /// Drops what is too old.
    pub(super) fn expire(&mut self, now: Time) {
        while self.next_expiry().is_some_and(|expiry| expiry <= now) && self.advance() {}
    }

    /// When the next packets become too old.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        let step = self.step();
        let last = self.packets.get(step - 1).filter(|_| step <= self.sent)?;
        Some(last.sent_at.plus(self.limit.age?))
    }

    /// Drops what was sent until so much more keeps the limits, or nothing of it is left.
    fn make_room(&mut self, packets: usize, bytes: usize) {
        let limit = self.limit;
        let is_over = |window: &Self| {
            window.packets.len() + packets > limit.packets as usize
                || limit.bytes.is_some_and(|most| window.bytes + bytes > most)
        };
        while is_over(self) && self.advance() {}
    }

    /// How many packets the trail moves by: to the end of its group.
    fn step(&self) -> usize {
        (self.group_size - self.trail.index(self.group_size)) as usize
    }

    /// Moves the trail on, unless that would drop what has not been sent.
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
