//! Tests the quality of repair: its speed, the number of requests, and sessions with members that
//! are slow, late, disconnected or gone.

use crate::simulation;

use std::time::Duration;

use pgm::{
    CongestionConfig, Event, ParityConfig, ReceiverConfig, Source, SourceConfig, Time, WindowLimit,
    wire::{Body, Nak, Options, Packet},
};
use simulation::{
    FAIR, Network, Weather, microseconds, milliseconds, receiver_config, source_config, tsi,
};

fn send(network: &mut Network, count: usize, interval: u64) {
    for number in 0..count {
        network.send(&(number as u32).to_be_bytes());
        network.run_for(microseconds(interval));
    }
}

fn is_nak(body: &Body) -> bool {
    matches!(body, Body::Nak(_))
}

#[test]
fn requests_of_a_hundred_receivers_are_suppressed() {
    let receivers = (1..=100).map(|node| ReceiverConfig {
        // With a hundred receivers, the back-off must be long compared with the network's delay of
        // 50 µs.
        back_off: Duration::from_millis(20),
        ..receiver_config(node)
    });
    let mut network = Network::star(1, source_config(0), receivers);
    network.run_for(milliseconds(1));
    // All receivers lose every tenth original.
    network.filter = Box::new(|packet, _, _| match packet.body {
        Body::Odata(data) => data.sqn.0 % 10 == 5,
        _ => false,
    });
    send(&mut network, 200, 5_000);
    network.run_for(milliseconds(500));
    let naks: usize = (1..=100).map(|node| network.count(node, is_nak)).sum();
    for node in 1..=100 {
        assert_eq!(network.messages(node).len(), 200);
    }
    // There are 20 losses. A confirmation arrives 100 µs after the request. For each loss, one or two of the
    // hundred receivers therefore send a request.
    assert!((20..=60).contains(&naks), "{naks} NAKs for 20 losses");
}

#[test]
fn one_receiver_asks_once_for_each_loss() {
    let mut network = Network::star(1, source_config(0), [receiver_config(1)]);
    network.run_for(milliseconds(1));
    network.filter = Box::new(|packet, _, _| match packet.body {
        Body::Odata(data) => data.sqn.0 % 10 == 5,
        _ => false,
    });
    send(&mut network, 200, 1_000);
    network.run_for(milliseconds(100));
    assert_eq!(network.count(1, is_nak), 20);
    assert_eq!(network.messages(1).len(), 200);
    let statistics = network.receiver(1).statistics(tsi(0)).unwrap();
    assert_eq!(
        (statistics.repairs, statistics.late, statistics.lost),
        (20, 20, 0)
    );
    // A loss is noticed when the next packet arrives. The repair then takes the back-off of up to 500 µs and
    // a round trip of 100 µs.
    assert!(
        statistics.late_max < Duration::from_micros(700),
        "{statistics:?}"
    );
}

#[test]
fn the_last_packet_is_missed_soon() {
    let mut network = Network::star(1, source_config(0), [receiver_config(1)]);
    network.run_for(milliseconds(1));
    network.filter = Box::new(|packet, _, _| matches!(packet.body, Body::Odata(_)));
    network.send(b"only");
    // A heartbeat SPM shows the loss after 5 ms. The back-off and the repair then take less than 1 ms.
    network.run_for(milliseconds(6));
    assert_eq!(network.messages(1), [b"only"]);
}

#[test]
fn parity_repairs_most_groups_without_a_request() {
    let source = SourceConfig {
        parity: Some(ParityConfig {
            group_size: 8,
            proactive: 2,
            on_demand: true,
            shorten_groups: false,
        }),
        ..source_config(0)
    };
    let mut network = Network::star(7, source, [receiver_config(1)]);
    network.run_for(milliseconds(1));
    network.weather = Weather { lost: 100, ..FAIR };
    let groups = 1_000;
    send(&mut network, 8 * groups, 100);
    network.run_for(milliseconds(1_000));
    assert_eq!(network.messages(1).len(), 8 * groups);
    let asked: std::collections::HashSet<u32> = network
        .sent
        .iter()
        .filter(|sent| sent.from == 1)
        .flat_map(|sent| {
            let packet = sent.packet();
            let Body::Nak(nak) = packet.body else {
                return Vec::new();
            };
            let list = packet.options.nak_list.into_iter();
            std::iter::once(nak.sqn)
                .chain(list.flat_map(|list| list.iter()))
                .map(|sqn| sqn.0 / 8)
                .collect()
        })
        .collect();
    // A group needs a request if more than two of its ten packets are lost. This happens in 7.0 %
    // of all groups: 1 − Σ C(10,i) 0.1^i 0.9^(10−i), i ≤ 2.
    assert!((40..100).contains(&asked.len()), "{} groups", asked.len());
}

#[test]
fn a_hundred_simultaneous_requests_get_one_confirmation() {
    let config = source_config(0);
    let mut source = Source::new(config, Time(0)).unwrap();
    source.send(b"a").unwrap();
    let mut bytes = Vec::new();
    while source.poll_transmit(Time(0), &mut bytes).is_some() {}
    let request = Packet {
        source_port: config.destination_port,
        destination_port: config.tsi.port,
        gsi: config.tsi.gsi,
        parity: false,
        variable_length: false,
        body: Body::Nak(Nak {
            sqn: config.first,
            source: config.address,
            group: config.group,
        }),
        options: Options::default(),
        payload: b"",
    };
    for receiver in 0..100 {
        let now = microseconds(receiver);
        source.handle(now, &request);
        while source.poll_transmit(now, &mut bytes).is_some() {}
    }
    let statistics = source.statistics();
    assert_eq!((statistics.naks, statistics.ncfs), (100, 1));
    assert!(statistics.repairs > 0);
    // If a receiver requests the packet again after 2 ms, it did not get the confirmation. The confirmation
    // is therefore repeated.
    source.handle(milliseconds(2), &request);
    while source.poll_transmit(milliseconds(2), &mut bytes).is_some() {}
    assert_eq!(source.statistics().ncfs, 2);
}

/// Checks that a receiver that loses a tenth of the packets reports this loss.
#[test]
fn receivers_report_their_loss() {
    for shorten_groups in [false, true] {
        let source = SourceConfig {
            loss_reports: true,
            parity: shorten_groups.then_some(ParityConfig {
                group_size: 4,
                proactive: 1,
                on_demand: false,
                shorten_groups,
            }),
            ..source_config(0)
        };
        let mut network = Network::star(11, source, [receiver_config(1)]);
        network.run_for(milliseconds(1));
        assert_eq!(network.source().statistics().loss, None);
        network.weather = Weather { lost: 100, ..FAIR };
        for _ in 0..1_000 {
            send(&mut network, 3, 100);
            network.run_for(milliseconds(6));
        }
        let loss = network.source().statistics().loss.unwrap();
        assert_eq!(loss.receiver, receiver_config(1).address);
        // The expected loss is 0.1 × 65,536, plus or minus three standard deviations. The loss is a
        // moving average in which each packet weighs 500/65,536. Its standard deviation is √(0.1 ×
        // 0.9 × 500 / (2 × 65,536 − 500)) = 0.0185.
        assert!((2_900..10_200).contains(&loss.loss), "{loss:?}");
    }
}

/// Checks that shortened groups need far fewer requests. The source sends bursts of three packets, so the
/// last group of a burst is rarely complete.
#[test]
fn parity_of_shortened_groups_repairs_without_requests() {
    let requests = |shorten_groups| {
        let source = SourceConfig {
            parity: Some(ParityConfig {
                group_size: 8,
                proactive: 2,
                on_demand: true,
                shorten_groups,
            }),
            ..source_config(0)
        };
        let mut network = Network::star(7, source, [receiver_config(1)]);
        network.run_for(milliseconds(1));
        network.weather = Weather { lost: 100, ..FAIR };
        for _ in 0..500 {
            send(&mut network, 3, 100);
            network.run_for(milliseconds(20));
        }
        network.run_for(milliseconds(1_000));
        assert_eq!(network.messages(1).len(), 1_500);
        assert_eq!(network.losses(1), []);
        let naks = (network.sent.iter()).filter(|sent| is_nak(&sent.packet().body));
        naks.count()
    };
    let (without, with) = (requests(false), requests(true));
    // 27 % of the bursts lose at least one packet. If groups are not shortened, the receiver
    // requests the lost packet, unless its group is complete by then. If groups are shortened,
    // there is a request in two cases only: more than two of the five packets are lost (0.9 %), or
    // all packets that announce the end of the group are lost.
    assert!(without > 60, "{without} requests without");
    assert!(with < without / 4, "{with} requests with");
}

#[test]
fn a_disconnected_receiver_catches_up() {
    let receivers = [receiver_config(1), receiver_config(2)];
    let mut network = Network::star(1, source_config(0), receivers);
    send(&mut network, 100, 100);
    network.nodes[1].is_cut_off = true;
    send(&mut network, 1_000, 100);
    assert_eq!(
        network.messages(2).len(),
        1_100,
        "a receiver that is gone does not delay the others"
    );
    network.nodes[1].is_cut_off = false;
    send(&mut network, 10, 100);
    network.run_for(milliseconds(200));
    assert_eq!(network.messages(1).len(), 1_110);
}

#[test]
fn a_long_disconnected_receiver_gets_its_losses() {
    let source = SourceConfig {
        window: WindowLimit {
            packets: 100,
            bytes: None,
            age: None,
        },
        ..source_config(0)
    };
    let mut network = Network::star(1, source, [receiver_config(1)]);
    send(&mut network, 100, 100);
    network.nodes[1].is_cut_off = true;
    send(&mut network, 1_000, 100);
    network.nodes[1].is_cut_off = false;
    send(&mut network, 10, 100);
    network.run_for(milliseconds(200));
    // The first packet that the receiver gets after the interruption has number 1,100. At this time, the
    // window of the source starts at 1,001. The window advances by some packets before a request arrives.
    let mut end = 100;
    for (first, packets) in network.losses(1) {
        assert_eq!(first, end);
        end = first + packets;
    }
    assert!((1_001..=1_010).contains(&end), "lost up to {end}");
    assert_eq!(network.messages(1).len() as u32, 1_110 - (end - 100));
}

#[test]
fn late_joiners_get_the_window_if_both_ends_agree() {
    let source = SourceConfig {
        late_join: true,
        ..source_config(0)
    };
    let late = ReceiverConfig {
        late_join: true,
        ..receiver_config(1)
    };
    let mut network = Network::star(1, source, [late, receiver_config(2)]);
    network.nodes[1].is_cut_off = true;
    network.nodes[2].is_cut_off = true;
    send(&mut network, 50, 100);
    network.nodes[1].is_cut_off = false;
    network.nodes[2].is_cut_off = false;
    network.run_for(milliseconds(100)); // a heartbeat SPM announces the current sequence number
    send(&mut network, 50, 100);
    network.run_for(milliseconds(100));
    assert_eq!(network.messages(1).len(), 100);
    assert_eq!(network.messages(2).len(), 50);
}

#[test]
fn a_crashed_source_is_reported_and_replaced() {
    let mut network = Network::star(1, source_config(0), [receiver_config(1)]);
    send(&mut network, 10, 100);
    network.filter = Box::new(|packet, _, _| matches!(packet.body, Body::Odata(_)));
    network.send(b"lost");
    network.run_for(milliseconds(5) /* the heartbeat that announces it */);
    network.nodes[0].source = None;
    network.filter = Box::new(|_, _, _| false);
    // The receiver must not send requests without end while the source is silent.
    network.run_for(milliseconds(31_000));
    assert_eq!(network.losses(1), [(10, 1)]);
    let mut again = source_config(0);
    again.tsi.port += 1;
    network.nodes[0].source = Some(Source::new(again, network.now).unwrap());
    send(&mut network, 10, 100);
    network.run_for(milliseconds(31_000));
    assert_eq!(network.messages(1).len(), 20);
    let expired = network.nodes[1].events.iter();
    let expired: Vec<_> = expired
        .filter_map(|event| match event {
            Event::Expired { source } => Some(source.port),
            _ => None,
        })
        .collect();
    assert_eq!(expired, [tsi(0).port]);
}

#[test]
fn a_source_restarted_under_its_name_is_received() {
    let source = SourceConfig {
        late_join: true,
        ..source_config(0)
    };
    let receiver = ReceiverConfig {
        late_join: true,
        ..receiver_config(1)
    };
    let mut network = Network::star(1, source, [receiver]);
    send(&mut network, 50, 1_000);
    network.run_for(milliseconds(1_000));
    // The old source had sent many SPMs. The SPM numbers of the new source are therefore lower for some time.
    network.nodes[0].source = Some(Source::new(source, network.now).unwrap());
    send(&mut network, 10, 100);
    network.run_for(milliseconds(1_000));
    assert_eq!(network.messages(1).len(), 60);
    let told = |event: &&Event| matches!(event, Event::Expired { .. });
    assert_eq!(network.nodes[1].events.iter().filter(told).count(), 1);
}

#[test]
fn an_idle_source_sends_little() {
    let mut network = Network::star(1, source_config(0), [receiver_config(1)]);
    network.send(b"only");
    network.run_for(milliseconds(1_000));
    network.sent.clear();
    network.run_for(milliseconds(60_000));
    // At this time, a heartbeat SPM is sent every 5 s and an ambient SPM every 10 s.
    assert!(network.sent.len() <= 22, "{} packets", network.sent.len());
}

#[test]
fn receivers_are_counted() {
    let receivers = (1..=200).map(receiver_config);
    let mut network = Network::star(1, source_config(0), receivers);
    network.run_for(milliseconds(1));
    network
        .source()
        .poll_receivers(Duration::from_millis(10), 0);
    network.run_for(milliseconds(20));
    assert_eq!(network.source().receivers(), Some(200));
    network
        .source()
        .poll_receivers(Duration::from_millis(10), 2);
    network.run_for(milliseconds(20));
    let estimate = network.source().receivers().unwrap();
    assert!((120..=280).contains(&estimate), "{estimate} receivers");
}

/// Returns the number of packets per second that a source sends if one of its two receivers has a
/// slow link.
fn pace(packets_a_second: u64) -> u64 {
    let source = SourceConfig {
        congestion: Some(CongestionConfig::default()),
        ..source_config(0)
    };
    let mut network = Network::star(1, source, [receiver_config(1), receiver_config(2)]);
    // The link of node 2 carries `packets_a_second` packets per second and has a queue for ten
    // packets.
    let mut free_at = 0u64;
    let clock = std::rc::Rc::new(std::cell::Cell::new(0u64));
    let seen = clock.clone();
    network.filter = Box::new(move |packet, from, to| {
        if (from, to) != (0, 2) || !matches!(packet.body, Body::Odata(_) | Body::Rdata(_)) {
            return false;
        }
        let now = seen.get();
        let spacing = 1_000_000_000 / packets_a_second;
        if free_at > now + 10 * spacing {
            return true;
        }
        free_at = free_at.max(now) + spacing;
        false
    });
    network.weather.delay = 1_000;
    let seconds = 4;
    let end = network.now.0 + seconds * 1_000_000_000;
    while network.now.0 < end {
        while network.source().send(b"as much as possible").is_ok() {}
        network.run_for(microseconds(100));
        clock.set(network.now.0);
    }
    let packets = network.source().statistics().packets / seconds;
    let least = network.messages(1).len().min(network.messages(2).len());
    assert!(
        least as u64 >= packets * seconds / 2,
        "{least} messages were handed out"
    );
    packets
}

#[test]
fn the_slowest_receiver_sets_the_pace() {
    let (slow, fast) = (pace(500), pace(4_000));
    assert!(
        (250..=1_000).contains(&slow),
        "{slow} packets a second on a link of 500"
    );
    assert!(
        (2_000..=8_000).contains(&fast),
        "{fast} packets a second on a link of 4,000"
    );
}
