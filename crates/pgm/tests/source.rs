//! Tests a source with constructed packets. The tests check the packets that the source sends without a
//! request, and the packets that it sends as answers.

use std::{net::IpAddr, time::Duration};

use pgm::{
    BackOffTuning, ConfigError, CongestionConfig, ParityConfig, Rate, SendError, Source,
    SourceConfig, Time, WindowLimit,
    wire::{
        Ack, Body, CongestionFeedback, Dialect, Gsi, Nak, NakList, Options, Packet, Polr, Reset,
        Spm, Sqn, Tsi,
    },
};

const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));
const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 192, 0, 1));
const TSI: Tsi = Tsi {
    gsi: Gsi([1, 2, 3, 4, 5, 6]),
    port: 40_000,
};

fn config() -> SourceConfig {
    SourceConfig::new(TSI, SOURCE, GROUP)
}

/// Returns a source that has sent its first SPM.
fn begun(config: SourceConfig) -> Source {
    let mut source = Source::new(config, Time(0)).unwrap();
    sent(&mut source, Time(0), |_| ());
    source
}

fn microseconds(count: u64) -> Time {
    Time(count * 1_000)
}

fn milliseconds(count: u64) -> Time {
    Time(count * 1_000_000)
}

/// Calls `look` with each packet that the source sends at the time `now`, and returns the results.
fn sent<T>(source: &mut Source, now: Time, look: impl Fn(&Packet<'_>) -> T) -> Vec<T> {
    let mut looks = Vec::new();
    let mut bytes = Vec::new();
    while let Some(transmit) = source.poll_transmit(now, &mut bytes) {
        assert_eq!(transmit.size, bytes.len());
        looks.push(look(&Packet::parse(&bytes, Dialect::Rfc3208).unwrap()));
        bytes.clear();
    }
    looks
}

/// Returns the names and numbers of the packets that the source sends at the time `now`.
fn names(source: &mut Source, now: Time) -> Vec<String> {
    sent(source, now, name)
}

fn name(packet: &Packet<'_>) -> String {
    let parity = if packet.parity { "parity " } else { "" };
    let list = packet.options.nak_list.into_iter();
    let list: String = list
        .flat_map(|list| list.iter())
        .map(|sqn| format!("+{}", sqn.0))
        .collect();
    match packet.body {
        Body::Spm(spm) => format!("SPM {}", spm.sqn.0),
        Body::Odata(data) => format!("{parity}ODATA {}", data.sqn.0),
        Body::Rdata(data) => format!("{parity}RDATA {}", data.sqn.0),
        Body::Ncf(nak) => format!("{parity}NCF {}{list}", nak.sqn.0),
        ref other => format!("{other:?}"),
    }
}

fn upstream(body: Body) -> Packet<'static> {
    Packet {
        source_port: 7500,
        destination_port: TSI.port,
        gsi: TSI.gsi,
        parity: false,
        variable_length: false,
        body,
        options: Options::default(),
        payload: b"",
    }
}

fn nak(sqn: u32) -> Packet<'static> {
    upstream(Body::Nak(Nak {
        sqn: Sqn(sqn),
        source: SOURCE,
        group: GROUP,
    }))
}

fn handle_list(source: &mut Source, now: Time, numbers: &[u32]) {
    let rest: Vec<Sqn> = numbers[1..].iter().map(|sqn| Sqn(*sqn)).collect();
    let mut room = [0; 248];
    let packet = Packet {
        options: Options {
            nak_list: Some(NakList::new(&rest, &mut room)),
            ..Options::default()
        },
        ..nak(numbers[0])
    };
    source.handle(now, &packet);
}

fn send(source: &mut Source, count: usize) {
    for _ in 0..count {
        source.send(b"message").unwrap();
    }
}

#[test]
fn an_spm_announces_source_and_window() {
    let config = SourceConfig {
        late_join: true,
        first: Sqn(100),
        ..config()
    };
    let mut source = Source::new(config, Time(0)).unwrap();
    let spm = |lead, sqn| Spm {
        sqn: Sqn(sqn),
        trail: Sqn(100),
        lead: Sqn(lead),
        path: SOURCE,
    };
    let look = |packet: &Packet<'_>| {
        assert_eq!(
            (packet.source_port, packet.destination_port),
            (40_000, 7500)
        );
        assert_eq!(packet.gsi, TSI.gsi);
        let Body::Spm(spm) = packet.body else {
            return None;
        };
        assert_eq!(packet.payload, b"");
        Some((spm, packet.options.join))
    };
    let first = sent(&mut source, Time(0), look);
    assert_eq!(first, [Some((spm(99, 0), Some(Sqn(100))))]);
    send(&mut source, 3);
    sent(&mut source, Time(0), look);
    let next = sent(&mut source, milliseconds(5), look);
    assert_eq!(next, [Some((spm(102, 1), Some(Sqn(100))))]);
}

/// Runs the timers of the source until the time `until` in milliseconds. Returns the times at which the
/// source sends packets.
fn times(source: &mut Source, until: u64) -> Vec<u64> {
    let mut times = Vec::new();
    loop {
        let now = source.timeout().unwrap();
        if now > milliseconds(until) {
            return times;
        }
        let count = sent(source, now, |_| ()).len();
        times.extend(std::iter::repeat_n(now.0 / 1_000_000, count));
    }
}

#[test]
fn ambient_spms_keep_their_interval() {
    let config = SourceConfig {
        ambient: Duration::from_millis(100),
        heartbeat_min: Duration::from_secs(10),
        heartbeat_max: Duration::from_secs(10),
        ..config()
    };
    let mut source = Source::new(config, Time(0)).unwrap();
    assert_eq!(times(&mut source, 450), [0, 100, 200, 300, 400]);
}

#[test]
fn heartbeats_follow_data_at_doubling_intervals() {
    let config = SourceConfig {
        ambient: Duration::from_secs(1000),
        heartbeat_min: Duration::from_millis(10),
        heartbeat_max: Duration::from_millis(50),
        ..config()
    };
    let mut source = Source::new(config, Time(0)).unwrap();
    times(&mut source, 999);
    send(&mut source, 1);
    assert_eq!(names(&mut source, milliseconds(1000)), ["ODATA 0"]);
    // The intervals are 10, 20 and 40 ms, and then always 50 ms.
    assert_eq!(times(&mut source, 1200), [1010, 1030, 1070, 1120, 1170]);
}

#[test]
fn data_is_numbered_one_after_the_other() {
    let mut source = begun(SourceConfig {
        first: Sqn(u32::MAX - 1),
        ..config()
    });
    for message in [&b"a"[..], b"", b"ccc"] {
        source.send(message).unwrap();
    }
    let look = |packet: &Packet<'_>| (name(packet), packet.payload.to_vec(), packet.options.syn);
    assert_eq!(
        sent(&mut source, Time(0), look),
        [
            ("ODATA 4294967294".to_owned(), b"a".to_vec(), true),
            ("ODATA 4294967295".to_owned(), b"".to_vec(), false),
            ("ODATA 0".to_owned(), b"ccc".to_vec(), false),
        ]
    );
}

#[test]
fn long_messages_are_fragmented() {
    let mut source = begun(config());
    source.send(b"first").unwrap();
    sent(&mut source, Time(0), |_| ());
    let message: Vec<u8> = (0..3000u32).map(|at| at as u8).collect();
    source.send(&message).unwrap();
    let look = |packet: &Packet<'_>| {
        let fragment = packet.options.fragment.unwrap();
        let at = fragment.offset as usize;
        assert_eq!(packet.payload, &message[at..at + packet.payload.len()]);
        (fragment.first.0, fragment.length, at, packet.payload.len())
    };
    // With UDP over IPv4 and IP packets of 1,500 bytes, a fragment has 1,428 bytes, as with
    // OpenPGM.
    assert_eq!(
        sent(&mut source, Time(0), look),
        [
            (1, 3000, 0, 1428),
            (1, 3000, 1428, 1428),
            (1, 3000, 2856, 144)
        ]
    );
    assert_eq!(source.longest_unfragmented(), 1448);
}

#[test]
fn no_packet_is_longer_than_configured() {
    for parity in [None, Some(fec(8, 2, true))] {
        for congestion in [None, Some(pgm::CongestionConfig::default())] {
            let mut source = begun(SourceConfig {
                parity,
                congestion,
                max_packet: 200,
                ..config()
            });
            let mut longest = 0;
            for length in (0..1000).step_by(7) {
                source.send(&vec![1; length]).unwrap();
                // No packet is acknowledged, so congestion control allows one packet at each timeout.
                for _ in 0..20 {
                    let now = source.timeout().unwrap();
                    let mut bytes = Vec::new();
                    while let Some(transmit) = source.poll_transmit(now, &mut bytes) {
                        longest = longest.max(transmit.size);
                    }
                }
            }
            assert!((190..=200).contains(&longest), "{longest} bytes");
        }
    }
}

#[test]
fn the_mark_of_the_end_does_not_lengthen_a_full_packet() {
    // The mark for the end of the session needs 8 bytes: an option, and the length of all options.
    for (spare, is_marked) in [(0, false), (7, false), (8, true)] {
        let mut source = begun(config());
        send(&mut source, 1);
        sent(&mut source, Time(0), |_| ());
        let room = source.longest_unfragmented();
        source.send(&vec![1; room - spare]).unwrap();
        source.close();
        let mut bytes = Vec::new();
        source.poll_transmit(Time(0), &mut bytes).unwrap();
        assert!(bytes.len() <= config().max_packet, "{} bytes", bytes.len());
        let data = Packet::parse(&bytes, Dialect::Rfc3208).unwrap();
        assert_eq!(data.options.fin, is_marked, "{spare}");
        // The SPM that follows announces the end in any case.
        let fins = sent(&mut source, Time(0), |packet| packet.options.fin);
        assert_eq!(fins, [true]);
    }
}

#[test]
fn the_rate_is_kept() {
    let mut source = begun(SourceConfig {
        rate: Some(Rate {
            bytes_per_second: 100_000,
            burst: 2_000,
        }),
        ..config()
    });
    let mut bytes = 0;
    let mut now = Time(0);
    while now < milliseconds(2_000) {
        while source.send(&[0; 972 - 24]).is_ok() {}
        for size in sent(&mut source, now, |packet| packet.payload.len()) {
            bytes += if size > 0 { 1000 } else { 36 + 28 };
        }
        now = source.timeout().unwrap().max(Time(now.0 + 1));
    }
    // The total is the number of bytes in two seconds at the rate, plus the burst, plus less than one packet.
    assert!((198_000..203_000).contains(&bytes), "{bytes} bytes in 2 s");
}

#[test]
fn a_full_backlog_returns_the_time_to_retry() {
    let mut source = begun(SourceConfig {
        rate: Some(Rate {
            bytes_per_second: 1_000,
            burst: 100,
        }),
        window: window(8),
        heartbeat_min: Duration::from_secs(1000),
        heartbeat_max: Duration::from_secs(1000),
        ..config()
    });
    let error = loop {
        if let Err(error) = source.send(&[0; 1_000]) {
            break error;
        }
        sent(&mut source, Time(0), |_| ());
    };
    let SendError::WouldBlock { until: Some(until) } = error else {
        panic!("{error}");
    };
    assert!(until > Time(0));
    assert!(names(&mut source, Time(until.0 - 1)).is_empty());
    assert_eq!(names(&mut source, until), ["ODATA 1"]);
}

fn window(packets: u32) -> WindowLimit {
    WindowLimit {
        packets,
        bytes: None,
        age: None,
    }
}

#[test]
fn a_nak_is_confirmed_and_repaired_each_time() {
    let mut source = begun(config());
    send(&mut source, 5);
    sent(&mut source, Time(0), |_| ());
    // The second NAK comes more than 1 ms after the confirmation. The source therefore treats it as a new
    // request, not as a NAK that was sent before the confirmation arrived.
    for now in [0, 1_001].map(microseconds) {
        source.handle(now, &nak(3));
        assert_eq!(names(&mut source, now), ["NCF 3", "RDATA 3"]);
    }
    // A request for a repair that is already queued has no effect.
    let now = microseconds(2_500);
    source.handle(now, &nak(3));
    source.handle(now, &nak(3));
    assert_eq!(names(&mut source, now), ["NCF 3", "RDATA 3"]);
    assert_eq!(source.statistics().numbers_eliminated, 1);
}

#[test]
fn a_nak_list_is_confirmed_as_a_list_and_all_of_it_repaired() {
    let mut source = begun(config());
    send(&mut source, 10);
    sent(&mut source, Time(0), |_| ());
    handle_list(&mut source, Time(0), &[2, 4, 5, 9]);
    assert_eq!(
        names(&mut source, Time(0)),
        ["NCF 2+4+5+9", "RDATA 2", "RDATA 4", "RDATA 5", "RDATA 9"]
    );
}

#[test]
fn packets_outside_the_window_are_not_confirmed() {
    let mut source = begun(SourceConfig {
        window: window(4),
        ..config()
    });
    for _ in 0..8 {
        send(&mut source, 1);
        sent(&mut source, Time(0), |_| ());
    }
    assert_eq!(source.window(), (Sqn(4), Sqn(7)));
    handle_list(&mut source, Time(0), &[3, 8, 4]);
    assert_eq!(names(&mut source, Time(0)), ["NCF 4", "RDATA 4"]);
    let foreign = Packet {
        body: Body::Nak(Nak {
            sqn: Sqn(5),
            source: GROUP,
            group: GROUP,
        }),
        ..nak(5)
    };
    source.handle(Time(0), &foreign);
    assert!(names(&mut source, Time(0)).is_empty());
    assert_eq!(source.statistics().other_naks, 1);
}

#[test]
fn repairs_and_originals_alternate() {
    let mut source = begun(SourceConfig {
        repairs_per_original: 2,
        ..config()
    });
    send(&mut source, 6);
    sent(&mut source, Time(0), |_| ());
    handle_list(&mut source, Time(0), &[0, 1, 2, 3, 4]);
    send(&mut source, 3);
    assert_eq!(
        names(&mut source, Time(0))[1..],
        [
            "RDATA 0", "RDATA 1", "ODATA 6", "RDATA 2", "RDATA 3", "ODATA 7", "RDATA 4", "ODATA 8"
        ]
    );
}

#[test]
fn the_window_is_limited_by_bytes_and_age() {
    let mut source = begun(SourceConfig {
        window: WindowLimit {
            packets: 100,
            bytes: Some(21),
            age: Some(Duration::from_millis(50)),
        },
        ..config()
    });
    send(&mut source, 3);
    sent(&mut source, Time(0), |_| ());
    assert_eq!(source.window(), (Sqn(0), Sqn(2)));
    send(&mut source, 1);
    sent(&mut source, milliseconds(20), |_| ());
    assert_eq!(source.window(), (Sqn(1), Sqn(3)));
    sent(&mut source, milliseconds(50), |_| ());
    assert_eq!(source.window(), (Sqn(3), Sqn(3)));
    sent(&mut source, milliseconds(70), |_| ());
    assert_eq!(source.window(), (Sqn(4), Sqn(3)));
}

fn fec(group_size: u32, proactive: usize, on_demand: bool) -> ParityConfig {
    ParityConfig {
        group_size,
        proactive,
        on_demand,
        shorten_groups: false,
    }
}

#[test]
fn spms_carry_the_parity_parameters() {
    let config = SourceConfig {
        parity: Some(fec(16, 0, true)),
        ..config()
    };
    let mut source = Source::new(config, Time(0)).unwrap();
    let parity = sent(&mut source, Time(0), |packet| packet.options.parity);
    let parity = parity[0].unwrap();
    assert_eq!(
        (parity.group_size, parity.proactive, parity.on_demand),
        (16, false, true)
    );
}

#[test]
fn groups_are_shortened_at_pauses() {
    let mut source = begun(SourceConfig {
        parity: Some(ParityConfig {
            shorten_groups: true,
            ..fec(4, 1, true)
        }),
        ..config()
    });
    send(&mut source, 6);
    let look = |packet: &Packet<'_>| (name(packet), packet.options.current_group_size);
    let before = sent(&mut source, Time(0), look);
    assert_eq!(before.last(), Some(&("ODATA 5".to_owned(), None)));
    assert_eq!(source.window().1, Sqn(5));
    // The first heartbeat SPM announces the shortened group. The parity of its two packets follows.
    let pause = sent(&mut source, milliseconds(5), look);
    assert_eq!(pause.len(), 2, "{pause:?}");
    assert!(
        pause[0].0.starts_with("SPM") && pause[0].1 == Some(2),
        "{pause:?}"
    );
    assert_eq!(pause[1], ("parity ODATA 4".to_owned(), Some(2)));
    // Numbers 6 and 7 are unused. If a receiver requests one of these numbers, the answer is parity. The
    // parity packet contains the group size.
    send(&mut source, 1);
    assert_eq!(names(&mut source, milliseconds(5)), ["ODATA 8"]);
    source.handle(milliseconds(5), &nak(6));
    assert_eq!(
        sent(&mut source, milliseconds(5), look),
        [
            ("NCF 6".to_owned(), None),
            ("parity RDATA 5".to_owned(), Some(2))
        ]
    );
    // Without new data, no further group is shortened.
    let later = sent(&mut source, milliseconds(10), look);
    assert_eq!(later.len(), 2, "SPM and parity of group 8: {later:?}");
    let later = sent(&mut source, milliseconds(20), look);
    assert_eq!(later.len(), 1, "an SPM: {later:?}");
    assert_eq!(later[0].1, Some(1));

    let both = SourceConfig {
        congestion: Some(pgm::CongestionConfig::default()),
        parity: Some(ParityConfig {
            shorten_groups: true,
            ..fec(4, 1, true)
        }),
        ..config()
    };
    assert_eq!(
        Source::new(both, Time(0)).unwrap_err(),
        ConfigError::ShortenGroups
    );
}

#[test]
fn parity_is_sent_after_its_group_and_new_parity_on_demand() {
    let mut source = begun(SourceConfig {
        parity: Some(fec(4, 1, true)),
        ..config()
    });
    send(&mut source, 6);
    assert_eq!(
        names(&mut source, Time(0)),
        [
            "ODATA 0",
            "ODATA 1",
            "ODATA 2",
            "ODATA 3",
            "parity ODATA 0",
            "ODATA 4",
            "ODATA 5"
        ]
    );
    // The first request asks for two parity packets of group 0. The second request asks for four parity
    // packets. The number in a request is: first number of the group + count − 1.
    for (sqn, answer) in [
        (1, vec!["parity NCF 1", "parity RDATA 1", "parity RDATA 2"]),
        (
            3,
            vec![
                "parity NCF 3",
                "parity RDATA 3",
                "parity RDATA 0",
                "parity RDATA 1",
                "parity RDATA 2",
            ],
        ),
    ] {
        let request = Packet {
            parity: true,
            ..nak(sqn)
        };
        source.handle(Time(0), &request);
        assert_eq!(names(&mut source, Time(0)), answer);
    }
    // Group 4 is not complete, so it has no parity yet.
    let request = Packet {
        parity: true,
        ..nak(4)
    };
    source.handle(Time(0), &request);
    assert!(names(&mut source, Time(0)).is_empty());
    assert_eq!(source.statistics().parity_repairs, 6);
}

#[test]
fn parity_matches_the_published_vectors() {
    let mut source = begun(SourceConfig {
        parity: Some(fec(2, 2, false)),
        ..config()
    });
    for i in 0..2u8 {
        let data: Vec<u8> = (0..8u8).map(|j| 37 * i + 11 * j + 1).collect();
        source.send(&data).unwrap();
    }
    let payloads = sent(&mut source, Time(0), |packet| packet.payload.to_vec());
    assert_eq!(payloads[2], 0x4f76_41e8_d3f2_1534u64.to_be_bytes());
    assert_eq!(payloads[3], 0x9df8_bbab_ccb1_efbau64.to_be_bytes());
}

#[test]
fn a_request_for_an_spm_is_answered_at_once_but_not_too_often() {
    let mut source = begun(SourceConfig {
        heartbeat_min: Duration::from_secs(1),
        ..config()
    });
    let request = upstream(Body::Spmr);
    source.handle(milliseconds(100), &request);
    source.handle(milliseconds(100), &request);
    assert_eq!(names(&mut source, milliseconds(100)), ["SPM 1"]);
    source.handle(milliseconds(200), &request);
    assert!(names(&mut source, milliseconds(200)).is_empty());
    sent(&mut source, milliseconds(1000), |_| ()); // the heartbeat SPM
    assert_eq!(names(&mut source, milliseconds(1100)), ["SPM 3"]);
}

#[test]
fn packets_of_others_are_ignored() {
    let mut source = begun(config());
    send(&mut source, 1);
    sent(&mut source, Time(0), |_| ());
    for other in [
        Packet {
            gsi: Gsi([0; 6]),
            ..nak(0)
        },
        Packet {
            destination_port: 1,
            ..nak(0)
        },
        Packet {
            source_port: 1,
            ..nak(0)
        },
    ] {
        source.handle(Time(0), &other);
    }
    assert!(names(&mut source, Time(0)).is_empty());
}

#[test]
fn the_end_is_announced_after_all_data_and_repairs_continue() {
    let mut source = begun(SourceConfig {
        linger: Duration::from_millis(100),
        ..config()
    });
    send(&mut source, 2);
    source.close();
    assert_eq!(source.send(b""), Err(SendError::Closed));
    let look = |packet: &Packet<'_>| (name(packet), packet.options.fin);
    let packets = sent(&mut source, milliseconds(1), look);
    let expected = [("ODATA 0", false), ("ODATA 1", true), ("SPM 1", true)];
    assert_eq!(packets, expected.map(|(name, fin)| (name.to_owned(), fin)));
    source.handle(milliseconds(2), &nak(0));
    assert_eq!(names(&mut source, milliseconds(2)), ["NCF 0", "RDATA 0"]);
    assert!(!source.is_finished(milliseconds(100)));
    assert!(source.is_finished(milliseconds(101)));
    assert!(names(&mut source, milliseconds(101)).is_empty());
}

/// Sends 60 messages with congestion control and closes the session. Either a receiver acknowledges each
/// packet after 400 ms, or no receiver exists. Returns the duration until the end in milliseconds, and the
/// numbers of packets that were sent and dropped.
fn close_with_congestion_control(has_receiver: bool) -> (u64, u64, u64) {
    let mut source = Source::new(
        SourceConfig {
            congestion: Some(CongestionConfig::default()),
            ..config()
        },
        Time(0),
    )
    .unwrap();
    send(&mut source, 60);
    source.close();
    let mut now = Time(0);
    while !source.is_finished(now) {
        let data = sent(&mut source, now, |packet| match packet.body {
            Body::Odata(data) => Some(data.sqn),
            _ => None,
        });
        let highest = data.into_iter().flatten().last();
        let Some(highest) = highest.filter(|_| has_receiver) else {
            let next = source.timeout().map_or(0, |next| next.0);
            now = Time(next.max(now.0 + 1));
            continue;
        };
        now = now.plus(Duration::from_millis(400));
        let ack = Ack {
            highest,
            bitmap: u32::MAX,
        };
        let feedback = CongestionFeedback {
            timestamp: 0,
            loss: 0,
            receiver: SOURCE,
        };
        let packet = Packet {
            options: Options {
                congestion_feedback: Some(feedback),
                ..Options::default()
            },
            ..upstream(Body::Ack(ack))
        };
        source.handle(now, &packet);
    }
    let statistics = source.statistics();
    (now.0 / 1_000_000, statistics.packets, statistics.dropped)
}

#[test]
fn closing_without_receivers_ends_within_the_linger_time() {
    let (took, sent, dropped) = close_with_congestion_control(false);
    // The end takes two timeouts of 500 ms, 5 s without an acknowledgement, and 5 s for repairs.
    assert!((10_000..=11_500).contains(&took), "{took} ms");
    assert!((2..60).contains(&sent), "{sent}");
    assert_eq!(sent + dropped, 60);
    let (_, sent, dropped) = close_with_congestion_control(true);
    assert_eq!((sent, dropped), (60, 0));
}

#[test]
fn a_reset_carries_its_code_and_may_end_repairs() {
    let mut source = begun(config());
    send(&mut source, 2);
    sent(&mut source, Time(0), |_| ());
    send(&mut source, 1);
    source.reset(7, true);
    let look = |packet: &Packet<'_>| (name(packet), packet.options.reset);
    let reset = Reset {
        no_repairs: true,
        code: 7,
    };
    assert_eq!(
        sent(&mut source, Time(0), look),
        [("SPM 1".to_owned(), Some(reset))]
    );
    source.handle(Time(0), &nak(0));
    assert!(names(&mut source, Time(0)).is_empty());
}

#[test]
fn receivers_are_estimated_from_answers() {
    let mut source = begun(config());
    assert_eq!(source.receivers(), None);
    source.poll_receivers(Duration::from_millis(10), 3);
    let polls = sent(&mut source, Time(0), |packet| match packet.body {
        Body::Poll(poll) => Some(poll),
        _ => None,
    });
    let poll = polls[0].unwrap();
    assert_eq!((poll.back_off, poll.mask, poll.path), (10_000, 7, SOURCE));
    assert_eq!(source.receivers(), Some(0));
    for sqn in [poll.sqn, poll.sqn, Sqn(77)] {
        source.handle(Time(0), &upstream(Body::Polr(Polr { sqn, round: 0 })));
    }
    assert_eq!(source.receivers(), Some(16), "two answers of one in eight");
}

#[test]
fn duplicate_requests_make_receivers_wait_longer() {
    let mut source = begun(SourceConfig {
        back_off: Some(BackOffTuning {
            min: Duration::from_micros(100),
            max: Duration::from_millis(10),
            probes: 10,
        }),
        ..config()
    });
    send(&mut source, 1);
    sent(&mut source, Time(0), |_| ());
    source.handle(Time(0), &nak(0));
    source.handle(Time(0), &nak(0));
    let told = sent(&mut source, Time(0), |packet| {
        packet.options.back_off_interval
    });
    assert_eq!(told[0].unwrap().interval, 200);
}

#[test]
fn invalid_configurations_are_errors() {
    let refused = |change: fn(&mut SourceConfig)| {
        let mut config = config();
        change(&mut config);
        Source::new(config, Time(0)).unwrap_err()
    };
    assert_eq!(
        refused(|config| config.max_packet = 100),
        ConfigError::PacketSize(100)
    );
    assert_eq!(
        refused(|config| config.destination_port = 40_000),
        ConfigError::SamePort(40_000)
    );
    assert_eq!(
        refused(|config| config.group = SOURCE),
        ConfigError::NotMulticast(SOURCE)
    );
    assert!(matches!(
        refused(|config| config.address = "::1".parse().unwrap()),
        ConfigError::Families { .. }
    ));
    assert!(matches!(
        refused(|config| config.parity = Some(fec(8, 248, false))),
        ConfigError::Parity { .. }
    ));
    assert_eq!(
        refused(|config| {
            config.parity = Some(fec(4, 1, false));
            config.dialect = Dialect::OpenPgm;
        }),
        ConfigError::ParityToOpenPgm
    );
    assert!(matches!(
        refused(|config| config.window.packets = 0),
        ConfigError::Window { .. }
    ));
    assert!(matches!(
        refused(|config| config.rate = Some(Rate {
            bytes_per_second: 0,
            burst: 0
        })),
        ConfigError::Rate
    ));
}

#[test]
fn a_message_longer_than_the_window_is_refused() {
    let mut source = begun(SourceConfig {
        window: window(4),
        ..config()
    });
    assert_eq!(
        source.send(&[0; 6_000]),
        Err(SendError::TooManyPackets { packets: 5, max: 4 })
    );
    assert!(source.send(&[0; 4 * 1424]).is_ok());
    let mut source = begun(SourceConfig {
        window: WindowLimit {
            bytes: Some(5_000),
            ..window(100)
        },
        ..config()
    });
    let error = source.send(&[0; 6_000]).unwrap_err();
    let message = "the message has 6000 bytes; at most 5000 are possible";
    assert_eq!(error.to_string(), message);
    assert!(source.send(&[0; 5_000]).is_ok());
}
