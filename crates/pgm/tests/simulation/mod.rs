//! Simulated network with simulated time. It loses, duplicates, delays and reorders packets. The
//! same seed always gives the same result.

// Each test file uses only a part of this module.
#![allow(dead_code)]

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    net::{IpAddr, Ipv4Addr},
};

use pgm::{
    Destination, Event, Receiver, ReceiverConfig, Source, SourceConfig, Time, Transmit,
    wire::{Body, Dialect, Gsi, Packet, Sqn, Tsi},
};
use testdata::Rng;

pub(crate) const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 0, 1));

pub(crate) fn address(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, (node >> 8) as u8, node as u8))
}

pub(crate) fn tsi(node: usize) -> Tsi {
    Tsi {
        gsi: Gsi([1, 2, 3, 4, 5, node as u8]),
        port: 40_000,
    }
}

pub(crate) fn source_config(node: usize) -> SourceConfig {
    SourceConfig {
        seed: node as u64,
        ..SourceConfig::new(tsi(node), address(node), GROUP)
    }
}

pub(crate) fn receiver_config(node: usize) -> ReceiverConfig {
    ReceiverConfig {
        seed: 0x9E37_79B9 * (node as u64 + 1),
        ..ReceiverConfig::new(address(node), GROUP)
    }
}

pub(crate) fn milliseconds(count: u64) -> Time {
    Time(count * 1_000_000)
}

pub(crate) fn microseconds(count: u64) -> Time {
    Time(count * 1_000)
}

/// Behaviour of the network towards a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Number of lost packets per 1,000 packets.
    pub(crate) lost: usize,
    /// Number of duplicated packets per 1,000 packets.
    pub(crate) twice: usize,
    /// Minimum delay in microseconds.
    pub(crate) delay: usize,
    /// Maximum additional random delay in microseconds. This delay can reorder packets.
    pub(crate) jitter: usize,
}

pub(crate) const FAIR: Weather = Weather {
    lost: 0,
    twice: 0,
    delay: 50,
    jitter: 0,
};

#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) source: Option<Source>,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) events: Vec<Event>,
    /// True if the node is disconnected.
    pub(crate) is_cut_off: bool,
}

/// Packet that has been sent and has not arrived yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    arrives: Time,
    number: u64,
    to: usize,
    from: usize,
    bytes: Vec<u8>,
}

/// Record of a sent packet. Packets that were lost later are also recorded.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) from: usize,
    pub(crate) to: Destination,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::parse(&self.bytes, Dialect::Rfc3208).expect("a sent packet parses")
    }
}

/// Function that returns true if the network must lose a packet. Its arguments are the packet and
/// the indices of the sending and the receiving node.
type Filter = Box<dyn FnMut(&Packet<'_>, usize, usize) -> bool>;

pub(crate) struct Network {
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Node>,
    pub(crate) weather: Weather,
    pub(crate) filter: Filter,
    pub(crate) sent: Vec<Sent>,
    pub(crate) lost: u64,
    rng: Rng,
    flights: BinaryHeap<Reverse<Flight>>,
    number: u64,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Network {
        Network {
            now: milliseconds(1),
            nodes: Vec::new(),
            weather: FAIR,
            filter: Box::new(|_, _, _| false),
            sent: Vec::new(),
            lost: 0,
            rng: Rng(seed),
            flights: BinaryHeap::new(),
            number: 0,
        }
    }

    /// Returns a network in which node 0 is a source and the other nodes are receivers.
    pub(crate) fn star(
        seed: u64,
        source: SourceConfig,
        receivers: impl IntoIterator<Item = ReceiverConfig>,
    ) -> Network {
        let mut network = Network::new(seed);
        network.nodes.push(Node {
            source: Some(Source::new(source, network.now).unwrap()),
            ..Node::default()
        });
        for receiver in receivers {
            network.nodes.push(Node {
                receiver: Some(Receiver::new(receiver).unwrap()),
                ..Node::default()
            });
        }
        network
    }

    pub(crate) fn source(&mut self) -> &mut Source {
        self.nodes[0].source.as_mut().unwrap()
    }

    pub(crate) fn receiver(&mut self, node: usize) -> &mut Receiver {
        self.nodes[node].receiver.as_mut().unwrap()
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> Sqn {
        self.source().send(message).unwrap()
    }

    /// Advances the time to `end`, and handles all packets and timers until then.
    pub(crate) fn run_until(&mut self, end: Time) {
        let mut steps = 0;
        self.poll_all();
        while let Some(next) = self.next_moment().filter(|next| *next <= end) {
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(steps < 100_000, "no progress at {:?}", self.now);
            self.now = self.now.max(next);
            while self.flights.peek().is_some_and(|f| f.0.arrives <= self.now) {
                let Reverse(flight) = self.flights.pop().unwrap();
                self.arrive(&flight);
                self.poll(flight.to);
            }
            self.poll_all();
        }
        self.now = end;
        self.poll_all();
    }

    pub(crate) fn run_for(&mut self, duration: Time) {
        self.run_until(Time(self.now.0 + duration.0));
    }

    fn next_moment(&self) -> Option<Time> {
        let flight = self.flights.peek().map(|flight| flight.0.arrives);
        let timers = self
            .nodes
            .iter()
            .filter(|node| !node.is_cut_off)
            .flat_map(|node| {
                let source = node.source.as_ref().filter(|s| !s.is_finished(self.now));
                let source = source.and_then(Source::timeout);
                let receiver = node.receiver.as_ref().and_then(Receiver::timeout);
                [source, receiver]
            });
        timers.flatten().chain(flight).min()
    }

    fn arrive(&mut self, flight: &Flight) {
        let node = &mut self.nodes[flight.to];
        if node.is_cut_off {
            return;
        }
        let packet = Packet::parse(&flight.bytes, Dialect::Rfc3208).unwrap();
        if let Some(source) = &mut node.source {
            source.handle(self.now, &packet);
        }
        if let Some(receiver) = &mut node.receiver
            && flight.from != flight.to
        {
            receiver.handle(self.now, address(flight.from), &packet);
        }
    }

    pub(crate) fn poll_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.poll(node);
        }
    }

    /// Sends the due packets of a node and collects its events.
    fn poll(&mut self, at: usize) {
        let mut bytes = Vec::new();
        loop {
            let node = &mut self.nodes[at];
            if node.is_cut_off {
                return;
            }
            let source = node.source.as_mut();
            let transmit = source
                .and_then(|source| source.poll_transmit(self.now, &mut bytes))
                .or_else(|| node.receiver.as_mut()?.poll_transmit(self.now, &mut bytes));
            let Some(transmit) = transmit else {
                break;
            };
            self.transmit(at, transmit, std::mem::take(&mut bytes));
        }
        let node = &mut self.nodes[at];
        if let Some(receiver) = &mut node.receiver {
            while let Some(event) = receiver.poll_event(self.now) {
                node.events.push(event);
            }
        }
    }

    fn transmit(&mut self, from: usize, transmit: Transmit, bytes: Vec<u8>) {
        assert_eq!(transmit.size, bytes.len());
        for to in 0..self.nodes.len() {
            let is_meant = match transmit.to {
                Destination::Group | Destination::GroupOneHop => to != from,
                Destination::Unicast(to_address) => to_address == address(to),
            };
            if is_meant {
                self.carry(from, to, &bytes);
            }
        }
        self.sent.push(Sent {
            at: self.now,
            from,
            to: transmit.to,
            bytes,
        });
    }

    /// Sends a packet from one node to another, or loses it.
    pub(crate) fn carry(&mut self, from: usize, to: usize, bytes: &[u8]) {
        let packet = Packet::parse(bytes, Dialect::Rfc3208).expect("a sent packet parses");
        let copies = 1 + usize::from(self.rng.below(1000) < self.weather.twice);
        for _ in 0..copies {
            let is_lost = self.rng.below(1000) < self.weather.lost;
            if (self.filter)(&packet, from, to) || is_lost {
                self.lost += 1;
                continue;
            }
            let delay = self.weather.delay + self.rng.below(self.weather.jitter + 1);
            self.number += 1;
            self.flights.push(Reverse(Flight {
                arrives: Time(self.now.0 + 1000 * delay as u64),
                number: self.number,
                to,
                from,
                bytes: bytes.to_vec(),
            }));
        }
    }

    /// Returns the messages that a node received.
    pub(crate) fn messages(&self, node: usize) -> Vec<&[u8]> {
        let messages = self.nodes[node].events.iter();
        messages
            .filter_map(|event| match event {
                Event::Message { payload, .. } => Some(&payload[..]),
                _ => None,
            })
            .collect()
    }

    /// Returns the losses that a node reported. Each loss consists of the first packet and the number of
    /// packets.
    pub(crate) fn losses(&self, node: usize) -> Vec<(u32, u32)> {
        let events = self.nodes[node].events.iter();
        events
            .filter_map(|event| match event {
                Event::Lost { first, packets, .. } => Some((first.0, *packets)),
                _ => None,
            })
            .collect()
    }

    /// Returns the number of packets that a node has sent and for which `is_counted` returns true.
    pub(crate) fn count(&self, from: usize, is_counted: impl Fn(&Body) -> bool) -> usize {
        let sent = self.sent.iter().filter(|sent| sent.from == from);
        sent.filter(|sent| is_counted(&sent.packet().body)).count()
    }
}
