//! Network adapters with receive side scaling (RSS), and their traffic.

use std::collections::VecDeque;
use std::io::{Seek, Write};
use std::net::SocketAddr;

use super::device::Pace;
use super::interrupt::{Kind, MAX_PARTS, MOST_WAITING, Then, Work};
use super::{BodyId, Due, Model, ProcessId, Readier, RoutineId, Source};
use crate::random::Random;
use crate::scenario::Amount;
use crate::scenario::Importance;
use crate::time::Time;

/// Priority boost of a thread that receives a packet (`IO_NETWORK_INCREMENT`).
const NETWORK_BOOST: u8 = 2;

/// A part of the work of an adapter's DPC, with its costs in processor time.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) per_dpc: Amount,
    pub(crate) per_packet: Amount,
    pub(crate) per_kib: Amount,
}

/// A network adapter.
#[derive(Debug)]
pub(crate) struct Nic {
    pub(crate) isr: Source,
    pub(crate) dpc_routine: RoutineId,
    pub(crate) dpc_body: BodyId,
    pub(crate) layers: Vec<Layer>,
    pub(crate) moderation: Time,
    pub(crate) coalesce: bool,
    pub(crate) queues: Vec<NicQueue>,
    pub(crate) random: Random,
}

/// A receive queue of a network adapter. The RSS hash of a packet selects a processor, and the packet arrives
/// in the queue of this processor.
#[derive(Debug)]
pub(crate) struct NicQueue {
    pub(crate) cpu: usize,
    pub(crate) waiting: VecDeque<Delivery>,
    /// Deliveries that the DPC of the queue handles. The DPC is queued or running.
    pub(crate) in_hand: Vec<Delivery>,
    pub(crate) busy: bool,
    pub(crate) may_interrupt: Time,
    pub(crate) moderated: bool,
}

/// Packets of a flow that arrived together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) flow: usize,
    pub(crate) peer: u32,
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
}

/// Traffic between this machine and others.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) nic: usize,
    pub(crate) process: ProcessId,
    pub(crate) tcp: bool,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// For each remote peer: the index of the receive queue for its packets.
    pub(crate) queues: Vec<usize>,
    pub(crate) bytes: u32,
    pub(crate) packets: u32,
    pub(crate) pace: Option<Pace>,
    pub(crate) window: u32,
    pub(crate) echo: bool,
    pub(crate) delay: Amount,
    pub(crate) think: Amount,
    pub(crate) loss: f64,
    pub(crate) dscp: u8,
    pub(crate) bleached: bool,
    pub(crate) send_cost: Amount,
    /// Object that is set when packets of the flow are delivered.
    pub(crate) arrived: usize,
    pub(crate) random: Random,
    pub(crate) sequence: u32,
}

/// Maximum duration of a layer's work in a DPC, in nanoseconds: one day, the maximum length of a
/// trace.
const LONGEST: u64 = 24 * 3_600 * 1_000_000_000;

/// Largest number of bytes that the remote side sends in one frame.
const FRAME_BYTES: u32 = 1_460;

impl Flow {
    /// Returns the DSCP mark on packets when they leave this machine.
    pub(crate) fn dscp_on_wire(&self) -> u8 {
        if self.bleached { 0 } else { self.dscp }
    }

    /// Returns the address and port of one of the flow's remote peers.
    pub(crate) fn peer(&self, peer: u32) -> SocketAddr {
        peer_address(self.remote, peer)
    }
}

/// Returns the address and port of a flow's `n`th peer. The first peer has the address `first`, and each
/// further peer has the next address. After 251 peers, the addresses repeat with the next port.
pub(crate) fn peer_address(first: SocketAddr, n: u32) -> SocketAddr {
    let port = first.port().wrapping_add((n / 251) as u16);
    match first {
        SocketAddr::V4(v4) => {
            let address = u32::from(*v4.ip()).wrapping_add(n % 251);
            (std::net::Ipv4Addr::from(address), port).into()
        }
        SocketAddr::V6(v6) => {
            let address = u128::from(*v6.ip()).wrapping_add(u128::from(n % 251));
            (std::net::Ipv6Addr::from(address), port).into()
        }
    }
}

impl<W: Write + Seek> Model<W> {
    /// Schedules the arrival of the next packets of a flow that sends without requests.
    pub(crate) fn flow_next(&mut self, flow: usize) {
        let base = self.base;
        let state = &mut self.flows[flow];
        let Some(pace) = &mut state.pace else { return };
        let next = pace.next(self.now, |ns| base.ticks(ns), &mut state.random);
        if let Some(next) = next {
            self.agenda.push(next, Due::Arrival(flow as u16));
        }
    }

    pub(crate) fn flow_arrives(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let peers = state.queues.len() as u64;
        let peer = state.random.below(peers) as u32;
        let (packets, bytes) = (state.packets, state.packets * state.bytes);
        if state.random.chance(state.loss) {
            self.truth_lost(flow, packets);
        } else {
            self.deliver(Delivery {
                flow,
                peer,
                packets,
                bytes,
            });
        }
        self.flow_next(flow);
    }

    /// Delivers the answer of the remote side, or the remote side's next block.
    pub(crate) fn answer_arrives(&mut self, flow: usize, bytes: u32) {
        self.deliver(Delivery {
            flow,
            peer: 0,
            packets: bytes.div_ceil(FRAME_BYTES).max(1),
            bytes,
        });
    }

    /// Delivers packets to the network adapter.
    fn deliver(&mut self, delivery: Delivery) {
        let flow = &self.flows[delivery.flow];
        let (nic, queue) = (flow.nic, flow.queues[delivery.peer as usize]);
        let state = &mut self.nics[nic].queues[queue];
        state.waiting.push_back(delivery);
        if state.waiting.len() > MOST_WAITING {
            let cpu = state.cpu;
            self.flooded(cpu, "packets");
        }
        self.nic_interrupts(nic, queue);
    }

    /// Raises the interrupt of a receive queue if it has packets and is not being served. If
    /// interrupt moderation does not allow this yet, schedules it for later.
    pub(crate) fn nic_interrupts(&mut self, nic: usize, queue: usize) {
        let now = self.now;
        let state = &mut self.nics[nic];
        let moderation = state.moderation;
        let q = &mut state.queues[queue];
        if q.busy || q.waiting.is_empty() {
            return;
        }
        if now < q.may_interrupt {
            if !std::mem::replace(&mut q.moderated, true) {
                let due = Due::Moderated(nic as u16, queue as u16);
                self.agenda.push(q.may_interrupt, due);
            }
            return;
        }
        q.busy = true;
        q.may_interrupt = now + moderation;
        let cpu = q.cpu;
        let vector = 0x60 + ((nic * 16 + queue) % 0x40) as u16;
        let kind = Kind::MessageIsr(vector, queue as u32);
        let then = Then::NicDpc(nic, queue);
        let work = state.isr.work(kind, self.base, &mut state.random, then);
        self.interrupt(cpu, work);
    }

    /// Queues the adapter's DPC for the packets that have arrived. Without coalescing, the DPC handles only
    /// the first delivery.
    pub(crate) fn queue_nic_dpc(&mut self, c: usize, nic: usize, queue: usize) {
        let base = self.base;
        let state = &mut self.nics[nic];
        let q = &mut state.queues[queue];
        if state.coalesce {
            q.in_hand.extend(q.waiting.drain(..));
        } else {
            q.in_hand.extend(q.waiting.pop_front());
        }
        let packets: u64 = q.in_hand.iter().map(|d| u64::from(d.packets)).sum();
        let bytes: u64 = q.in_hand.iter().map(|d| u64::from(d.bytes)).sum();
        let mut takes = [0; MAX_PARTS];
        for (takes, layer) in takes.iter_mut().zip(&state.layers) {
            let random = &mut state.random;
            let kibs = bytes.saturating_mul(layer.per_kib.sample(random).0) / 1024;
            let ns = packets
                .saturating_mul(layer.per_packet.sample(random).0)
                .saturating_add(kibs)
                .saturating_add(layer.per_dpc.sample(random).0);
            *takes = base.ticks(ns.min(LONGEST));
        }
        let then = Then::NicDone(nic, queue);
        let dpc = Work::new(Kind::Dpc, state.dpc_routine, state.dpc_body, 1, then)
            .in_parts(&takes[..state.layers.len()]);
        self.queue_dpc(c, c, dpc, Importance::Medium);
    }

    /// Delivers the packets of a completed DPC to their receivers.
    pub(crate) fn nic_done(&mut self, c: usize, nic: usize, queue: usize, by: Readier) {
        let mut in_hand = std::mem::take(&mut self.nics[nic].queues[queue].in_hand);
        for delivery in in_hand.drain(..) {
            self.log_received(c, &delivery);
            self.truth_received(c, &delivery);
            let arrived = self.flows[delivery.flow].arrived;
            self.set_object(arrived, NETWORK_BOOST, by);
        }
        let q = &mut self.nics[nic].queues[queue];
        q.in_hand = in_hand;
        q.busy = false;
        self.nic_rearms(nic, queue);
    }

    /// Schedules the next interrupt of a receive queue if more packets wait. The interrupt is at least one
    /// tick later, because the queue's DPC is still running.
    fn nic_rearms(&mut self, nic: usize, queue: usize) {
        let q = &mut self.nics[nic].queues[queue];
        if !q.waiting.is_empty() && !std::mem::replace(&mut q.moderated, true) {
            let at = q.may_interrupt.max(self.now + 1);
            self.agenda
                .push(at, Due::Moderated(nic as u16, queue as u16));
        }
    }

    /// Sends a packet of a thread.
    pub(crate) fn send(&mut self, c: usize, flow: usize, bytes: u32) {
        self.log_sent(c, flow, bytes);
        self.truth_sent(flow, bytes);
        let state = &mut self.flows[flow];
        if !state.echo {
            return;
        }
        // The packet can be lost on its way, and so can the answer.
        let lost = state.random.chance(state.loss) || state.random.chance(state.loss);
        let way = self.round_trip(flow);
        if lost {
            self.truth_lost(flow, 1);
        } else {
            self.agenda
                .push(self.now + way, Due::Answer(flow as u16, bytes));
        }
    }

    /// Answers a block of data, so that the remote side sends the next block.
    pub(crate) fn reply(&mut self, flow: usize) {
        let way = self.round_trip(flow);
        let bytes = self.flows[flow].bytes;
        self.agenda
            .push(self.now + way, Due::Answer(flow as u16, bytes));
    }

    /// Returns the round-trip time plus the time that the remote side takes to answer.
    fn round_trip(&mut self, flow: usize) -> Time {
        let state = &mut self.flows[flow];
        let random = &mut state.random;
        let ns = state.delay.sample(random).0
            + state.think.sample(random).0
            + state.delay.sample(random).0;
        self.base.ticks(ns).max(1)
    }
}
