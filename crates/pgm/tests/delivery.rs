//! Tests random sessions in a bad network. Each message is delivered once and in order, or reported
//! as lost. Windows never move back, and the number of requests is limited.

use crate::simulation;

use std::collections::HashSet;

use pgm::{
    CongestionConfig, Event, Order, ParityConfig, ReceiverConfig, SendError, SourceConfig,
    WindowLimit,
    wire::{Body, Sqn},
};
use simulation::{Network, Weather, microseconds, milliseconds, receiver_config, source_config};
use testdata::Rng;

/// Sends messages at random times, closes the session and waits for the end of the session. Returns each
/// message with the number of its first packet.
fn send_and_close(network: &mut Network, rng: &mut Rng, count: usize) -> Vec<(Sqn, Vec<u8>)> {
    let mut sent = Vec::new();
    for number in 0..count {
        let length = match rng.below(10) {
            0 => 0,
            1 => rng.below(9_000),
            _ => rng.below(300),
        };
        // The message starts with its number, so that all messages differ.
        let mut message = (number as u32).to_be_bytes().to_vec();
        message.extend((0..length).map(|_| rng.bits() as u8));
        let first = loop {
            match network.source().send(&message) {
                Ok(first) => break first,
                Err(SendError::WouldBlock { .. }) => network.run_for(milliseconds(1)),
                Err(error) => panic!("{error}"),
            }
        };
        sent.push((first, message));
        if rng.below(3) == 0 {
            network.run_for(microseconds(rng.below(2_000) as u64));
        }
    }
    network.source().close();
    network.run_for(milliseconds(4_000));
    sent
}

/// Compares the messages that a node received with the messages that were sent.
fn check(network: &Network, node: usize, order: Order, sent: &[(Sqn, Vec<u8>)]) {
    let events = &network.nodes[node].events;
    assert!(
        matches!(events.last(), Some(Event::Finished { .. })),
        "node {node} has no end after {} events: {:#?}",
        events.len(),
        network.nodes[node]
    );
    let mut next = 0;
    let mut handed_out = HashSet::new();
    let mut lost: Vec<(Sqn, u32)> = Vec::new();
    for event in events {
        match event {
            Event::Message { sqn, payload, .. } => {
                let at = sent.iter().position(|(first, _)| first == sqn);
                let at = at.expect("a message that was sent");
                assert_eq!(payload, &sent[at].1);
                assert!(handed_out.insert(*sqn), "delivered twice");
                if order == Order::AsSent {
                    assert!(at >= next, "message {at} after message {next}");
                    next = at;
                }
            }
            Event::Lost { first, packets, .. } => lost.push((*first, *packets)),
            Event::Finished { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    for (at, (first, message)) in sent.iter().enumerate() {
        let end = sent.get(at + 1).map_or(first.plus(1), |(next, _)| *next);
        let is_told = lost.iter().any(|(start, packets)| {
            start.since(*first) < end.since(*first) || first.since(*start) < *packets
        });
        assert!(
            handed_out.contains(first) || is_told,
            "message {at} of {} bytes was neither delivered nor reported as lost",
            message.len()
        );
    }
}

/// Checks that the window in the SPMs of a source never moves back.
fn check_windows(network: &Network) {
    let Body::Spm(first) = network.sent[0].packet().body else {
        panic!("a session begins with an SPM");
    };
    let mut last = (first.trail, first.lead);
    for sent in network.sent.iter().filter(|sent| sent.from == 0) {
        let trail = match sent.packet().body {
            Body::Spm(spm) => {
                assert!(!spm.lead.is_before(last.1), "the lead moves back");
                last.1 = spm.lead;
                spm.trail
            }
            Body::Odata(data) | Body::Rdata(data) => data.trail,
            _ => continue,
        };
        assert!(!trail.is_before(last.0), "the trail moves back");
        last.0 = trail;
    }
}

/// Runs a session with one to three receivers in a random bad network, and checks its events.
/// `change` adapts the configuration of each receiver.
fn session(
    seed: u64,
    source: SourceConfig,
    change: impl Fn(&mut ReceiverConfig),
) -> (Network, Vec<(Sqn, Vec<u8>)>) {
    let mut rng = Rng(seed);
    let receivers: Vec<ReceiverConfig> = (1..=1 + rng.below(3))
        .map(|node| {
            let mut config = receiver_config(node);
            change(&mut config);
            config
        })
        .collect();
    let orders: Vec<Order> = receivers.iter().map(|config| config.order).collect();
    let mut network = Network::star(seed, source, receivers);
    // All receivers join before the network degrades.
    network.run_for(milliseconds(1));
    network.weather = Weather {
        lost: rng.below(400),
        twice: rng.below(50),
        delay: 20 + rng.below(200),
        jitter: [0, 100, 2_000][rng.below(3)],
    };
    let sent = send_and_close(&mut network, &mut rng, 150);
    for (node, order) in (1..).zip(orders) {
        check(&network, node, order, &sent);
    }
    check_windows(&network);
    (network, sent)
}

fn parity(rng: &mut Rng) -> Option<ParityConfig> {
    let group_size = [2, 4, 8, 16, 64][rng.below(5)];
    let shorten_groups = rng.below(2) == 0;
    [
        None,
        Some(ParityConfig {
            group_size,
            proactive: 1 + rng.below(3),
            on_demand: false,
            shorten_groups,
        }),
        Some(ParityConfig {
            group_size,
            proactive: 0,
            on_demand: true,
            shorten_groups,
        }),
        Some(ParityConfig {
            group_size,
            proactive: 1,
            on_demand: true,
            shorten_groups,
        }),
    ][rng.below(4)]
}

#[test]
fn a_large_window_loses_nothing() {
    for seed in 0..150 {
        let mut rng = Rng(seed);
        let source = SourceConfig {
            parity: parity(&mut rng),
            max_packet: [300, 1472][rng.below(2)],
            first: Sqn(0u32.wrapping_sub(rng.below(300) as u32)),
            ..source_config(0)
        };
        let order = [Order::AsSent, Order::AsReceived][rng.below(2)];
        let (network, sent) = session(seed, source, |config| config.order = order);
        for node in 1..network.nodes.len() {
            assert_eq!(network.losses(node), [], "seed {seed}, {:?}", source.parity);
            assert_eq!(network.messages(node).len(), sent.len());
        }
    }
}

#[test]
fn losses_of_a_small_window_are_reported() {
    let mut lost = 0;
    for seed in 990..1090 {
        let mut rng = Rng(seed);
        let parity = parity(&mut rng).filter(|parity| parity.group_size <= 16);
        let source = SourceConfig {
            parity,
            window: WindowLimit {
                packets: 32,
                bytes: None,
                age: None,
            },
            ..source_config(0)
        };
        let order = [Order::AsSent, Order::AsReceived][rng.below(2)];
        let window = [16, 64, 1024][rng.below(3)];
        let (network, _) = session(seed, source, |config| {
            config.order = order;
            config.window = window;
        });
        lost += (1..network.nodes.len())
            .map(|node| network.losses(node).len())
            .sum::<usize>();
    }
    assert!(lost > 0, "nothing was lost, so the test tested nothing");
}

#[test]
fn congestion_control_loses_nothing_and_keeps_sending() {
    for seed in 0..20 {
        let source = SourceConfig {
            congestion: Some(CongestionConfig {
                timeout: std::time::Duration::from_millis(20),
                ..CongestionConfig::default()
            }),
            ..source_config(0)
        };
        let (network, sent) = session(seed, source, |_| ());
        for node in 1..network.nodes.len() {
            assert_eq!(network.messages(node).len(), sent.len());
        }
    }
}

/// Sends thousands of packets with wrong fields to the receiver and the source of a running session. Checks
/// that the receiver and the source continue without a panic.
#[test]
fn malformed_and_lying_packets_do_no_harm() {
    for seed in 0..40 {
        let mut rng = Rng(seed);
        let source = SourceConfig {
            parity: parity(&mut rng),
            window: WindowLimit {
                packets: 256,
                bytes: None,
                age: None,
            },
            ..source_config(0)
        };
        let order = [Order::AsSent, Order::AsReceived][rng.below(2)];
        let receiver = ReceiverConfig {
            order,
            window: 64,
            bytes: 1 << 16,
            sources: 4,
            ..receiver_config(1)
        };
        let mut network = Network::star(seed, source, [receiver]);
        network.weather.lost = 100;
        let mut heard = 0;
        for _ in 0..400 {
            let message = vec![1; rng.below(4000)];
            // Packets with wrong fields may keep the window full, so an error is ignored.
            let _ = network.source().send(&message);
            network.run_for(microseconds(rng.below(3_000) as u64));
            for _ in 0..rng.below(5) {
                let at = rng.below(network.sent.len());
                let sent = network.sent[at].clone();
                let mut bytes = sent.bytes;
                for _ in 0..=rng.below(3) {
                    // The changed bytes follow the ports and the identifier, so that the packet
                    // still belongs to the session.
                    let at = if bytes.len() > 16 {
                        16 + rng.below(bytes.len() - 16)
                    } else {
                        5
                    };
                    bytes[at] = [0, 0xff, 0x7f, 0x80, rng.bits() as u8][rng.below(5)];
                }
                bytes[6..8].fill(0);
                let sum = pgm::wire::checksum(&bytes);
                bytes[6..8].copy_from_slice(&sum.to_be_bytes());
                if pgm::wire::Packet::parse(&bytes, pgm::wire::Dialect::Rfc3208).is_ok() {
                    network.carry(sent.from, 1 - sent.from, &bytes);
                    heard += 1;
                }
            }
        }
        network.source().close();
        network.run_for(milliseconds(1_000));
        assert!(heard > 300, "{heard} packets were accepted");
    }
}
