//! Tests of the network probe over real sockets of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[cfg(target_os = "linux")]
use measure::net::peers::{self, PeerError};
use measure::net::throughput::{self, Load, Method, ThroughputPlan};
use measure::net::{
    self, Carrier, Family, Interface, NetError, NetSetting, Pace, Patience, Place, ReflectorCounts,
    RoundTripPlan, RoundTrips, Route, RunContext, RunEnd, Runs, Side, Testbed, Traffic, Udp,
    UdpGrants, UdpOptions,
};
use measure::{Clock, End, Plan, SampleOutcome, Scheduling, SettingGrants};

const TRAFFIC: Traffic = Traffic {
    pace: Pace::PerSecond(NonZeroU32::new(2_000).unwrap()),
    size: 100,
    time: Duration::from_millis(100),
    warm_up: Duration::ZERO,
    patience: Duration::from_secs(3),
};

fn left_out(why: impl std::fmt::Display) {
    testdata::skip(&why.to_string());
}

/// Measures with a reflector on another thread. Runs `disturb` before the measurement. Returns the
/// results of the source and the reflector.
fn both(
    source: Udp,
    reflector: Udp,
    traffic: &Traffic,
    disturb: impl FnOnce(),
) -> (RoundTrips, ReflectorCounts) {
    let (measured, reflected) = attempt(source, reflector, traffic, disturb);
    (measured.expect("measured"), reflected)
}

fn attempt(
    source: Udp,
    mut reflector: Udp,
    traffic: &Traffic,
    disturb: impl FnOnce(),
) -> (Result<RoundTrips, NetError>, ReflectorCounts) {
    let stop = AtomicBool::new(false);
    let has_stopped = || stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let reflecting =
            scope.spawn(|| net::reflect(&mut reflector, Patience::default(), &has_stopped));
        disturb();
        let context = RunContext {
            clock: &Clock::best(),
            scheduling: &Scheduling::default(),
            stop: &|| false,
        };
        let measured = net::measure(Box::new(source), "here", traffic, context);
        stop.store(true, Ordering::Relaxed);
        let reflected = reflecting.join().expect("no panic").expect("reflected");
        (measured, reflected)
    })
}

fn open(place: &Place, options: &UdpOptions) -> Result<(Udp, UdpGrants), NetError> {
    Udp::open(place, options)
}

/// Opens a source on the near side of a test bed and a reflector on the far side.
fn unicast(testbed: &Testbed, family: Family, options: &UdpOptions) -> (Udp, Udp) {
    let listen = Place::Answering((testbed.address(Side::Far, family), 0).into());
    let far = testbed
        .on(Side::Far, || open(&listen, options))
        .expect("entered");
    let (far, _) = far.expect("opened");
    let peer = Place::Peer(far.local_address().expect("an address"));
    let near = testbed
        .on(Side::Near, || open(&peer, options))
        .expect("entered");
    (near.expect("opened").0, far)
}

/// Returns a test bed on the loopback interface and, if the program has the privilege, a test bed
/// with namespaces.
fn testbeds() -> Vec<Testbed> {
    let mut testbeds = vec![Testbed::loopback()];
    if cfg!(target_os = "linux") {
        match Testbed::namespaces() {
            Ok(testbed) => testbeds.push(testbed),
            Err(error) => left_out(error),
        }
    }
    testbeds
}

#[test]
fn packets_return_over_ipv4_and_ipv6() {
    for testbed in testbeds() {
        for family in [Family::V4, Family::V6] {
            let (near, far) = unicast(&testbed, family, &UdpOptions::default());
            let (result, reflected) = both(near, far, &TRAFFIC, || {});
            let tally = result.tally;
            assert_eq!(
                (tally.sent + tally.not_sent, result.trips.len()),
                (200, 200)
            );
            assert!(tally.returned > 0);
            assert_eq!(tally.returned + tally.lost, tally.sent);
            assert!(reflected.echoes >= tally.returned);
            assert_eq!((reflected.runs, result.ended), (1, RunEnd::AsPlanned));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_mark_is_read_back_at_the_other_end() {
    for testbed in testbeds() {
        for family in [Family::V4, Family::V6] {
            for dscp in [0, 8, 46] {
                let marked = UdpOptions {
                    dscp: Some(dscp),
                    ..UdpOptions::default()
                };
                let (near, far) = unicast(&testbed, family, &marked);
                let (result, _) = both(near, far, &TRAFFIC, || {});
                let [(class, count)] = result.seen_classes[..] else {
                    panic!("{:?}", result.seen_classes)
                };
                // The mark is in the upper six bits of the octet (RFC 2474).
                assert_eq!(class, dscp << 2);
                assert!(count >= result.tally.returned);
            }
        }
    }
}

#[test]
fn a_group_reaches_both_ends() {
    let groups = [
        ("239.255.77.3:0", Family::V4),
        ("[ff15::6c6c]:0", Family::V6),
    ];
    for testbed in testbeds() {
        for (group, family) in groups {
            // A socket with port 0 gets a free port, which the group then uses.
            let free = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("bound");
            let mut group: SocketAddr = group.parse().expect("an address");
            group.set_port(free.local_addr().expect("an address").port());
            drop(free);
            let end = |side| {
                let place = Place::Group {
                    group,
                    interface: Some(testbed.interface(side, family).expect("an interface")),
                };
                let opened = testbed.on(side, || open(&place, &UdpOptions::default()));
                opened.expect("entered")
            };
            let (near, far) = match (end(Side::Near), end(Side::Far)) {
                (Ok((near, _)), Ok((far, _))) => (near, far),
                // Systems differ in routing IPv6 groups over the loopback interface.
                (Err(error), _) | (_, Err(error)) => {
                    assert!(testbed.is_loopback() && family == Family::V6, "{error}");
                    continue;
                }
            };
            let result = match attempt(near, far, &TRAFFIC, || {}).0 {
                Ok(result) => result,
                Err(NetError::NoAnswer { said: Some(_), .. })
                    if testbed.is_loopback() && family == Family::V6 =>
                {
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            assert!(result.tally.returned > 0);
            // A loopback interface returns the source's own packets. They are neither foreign nor
            // duplicates.
            assert_eq!((result.tally.strangers, result.tally.duplicates), (0, 0));
        }
    }
}

#[test]
fn foreign_packets_are_counted_and_not_answered() {
    let (near, far) = unicast(&Testbed::loopback(), Family::V4, &UdpOptions::default());
    let at = far.local_address().expect("an address");
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    // The forged packet is a probe of an unknown run, in the documented layout.
    let mut forged = b"LLNP\x01\x03\0\0".to_vec();
    forged.resize(100, 7);
    let (result, reflected) = both(near, far, &TRAFFIC, || {
        for packet in [&b""[..], b"x", &[0xFF; 1_400], &forged] {
            stranger.send_to(packet, at).expect("sent");
        }
    });
    assert_eq!(reflected.strangers, 4);
    assert!(result.tally.returned > 0);
    stranger.set_nonblocking(true).expect("set");
    assert!(
        stranger.recv_from(&mut [0; 2_000]).is_err(),
        "a foreign packet was answered"
    );
}

#[test]
fn a_reflector_ends_when_nothing_comes() {
    let place = Place::Answering((Ipv4Addr::LOCALHOST, 0).into());
    let (mut reflector, _) = open(&place, &UdpOptions::default()).expect("opened");
    for patience in [
        Patience {
            idle: Some(Duration::from_millis(1)),
            in_all: None,
        },
        Patience {
            idle: None,
            in_all: Some(Duration::from_millis(1)),
        },
    ] {
        let reflected = net::reflect(&mut reflector, patience, &|| false).expect("ended");
        assert_eq!(reflected, ReflectorCounts::default());
    }
}

#[test]
fn a_closed_port_is_an_error() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let at = closed.local_addr().expect("an address");
    drop(closed);
    let (source, _) = open(&Place::Peer(at), &UdpOptions::default()).expect("opened");
    let context = RunContext {
        clock: &Clock::best(),
        scheduling: &Scheduling::default(),
        stop: &|| false,
    };
    let traffic = Traffic {
        patience: Duration::from_millis(300),
        ..TRAFFIC
    };
    let error = net::measure(Box::new(source), &at.to_string(), &traffic, context);
    match error {
        Err(NetError::NoAnswer { to, .. }) => assert_eq!(to, at.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_of_opening_tell_the_reason() {
    let refused = |place: Place| {
        let error = open(&place, &UdpOptions::default()).map(|_| ());
        error.expect_err("refused").to_string()
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let at = socket.local_addr().expect("an address");
    let said = refused(Place::Answering(at));
    assert!(
        said.starts_with(&format!("cannot listen on {at}: the port is in use")),
        "{said}"
    );

    // On Unix, only root may use a port below 1024, so other users get an error.
    let for_root = SocketAddr::from((Ipv4Addr::LOCALHOST, 81));
    let denied = UdpSocket::bind(for_root)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if denied {
        let said = refused(Place::Answering(for_root));
        assert!(
            said.starts_with("cannot listen on 127.0.0.1:81: "),
            "{said}"
        );
    }

    let elsewhere = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 77), 0));
    assert_eq!(
        refused(Place::Answering(elsewhere)),
        "192.0.2.77 is not an address of this machine; use one of its addresses"
    );
    let no_group = Place::Group {
        group: (Ipv4Addr::new(10, 1, 2, 3), 7_000).into(),
        interface: None,
    };
    let said = refused(no_group);
    assert!(
        said.starts_with("10.1.2.3 is not a multicast group"),
        "{said}"
    );
    assert!(Interface::find("no such interface").is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_group_without_a_route_asks_for_an_interface() {
    let Ok(testbed) = Testbed::namespaces() else {
        return left_out("it needs network namespaces");
    };
    let removed = testbed.on(Side::Near, || {
        let routes = ["route", "del", "224.0.0.0/4"];
        std::process::Command::new("ip").args(routes).status()
    });
    assert!(removed.expect("entered").expect("ran").success());
    let place = Place::Group {
        group: "239.255.0.1:7000".parse().expect("an address"),
        interface: None,
    };
    let opened = testbed
        .on(Side::Near, || open(&place, &UdpOptions::default()))
        .expect("entered");
    let error = opened.map(|_| ()).expect_err("no route");
    assert_eq!(
        error.to_string(),
        "no multicast route to 239.255.0.1; name the interface with --interface"
    );
    let far_away = Place::Peer("198.51.100.1:7".parse().expect("an address"));
    let opened = testbed.on(Side::Near, || open(&far_away, &UdpOptions::default()));
    let error = opened.expect("entered").map(|_| ()).expect_err("no route");
    assert!(
        error.to_string().starts_with("no route to 198.51.100.1:7"),
        "{error}"
    );
}

#[test]
fn every_method_transfers_packets() {
    let context = RunContext {
        clock: &Clock::best(),
        scheduling: &Scheduling::default(),
        stop: &|| false,
    };
    for testbed in testbeds() {
        for &method in Method::ALL {
            let time = Duration::from_millis(50);
            let sizes = [100, 1_000].map(|size| (size, Family::V4));
            for (size, family) in sizes.into_iter().chain([(100, Family::V6)]) {
                let group = match family {
                    Family::V4 => (Ipv4Addr::new(239, 255, 76, 77), port()).into(),
                    Family::V6 => (Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0, 0x77), port()).into(),
                };
                let load = Load {
                    testbed: &testbed,
                    family,
                    group: Some(group),
                    size,
                    time,
                    buffer_bytes: None,
                };
                // On a busy machine, the receiver may start only after such a short run.
                let mut runs = (0..3).map(|_| throughput::measure(load, method, context));
                let through = runs
                    .find(|run| !matches!(run, Ok(through) if through.received == 0))
                    .unwrap_or_else(|| panic!("{method:?} transfers no packets"));
                let through = match through {
                    Ok(through) => through,
                    // On the loopback interface, both ends share one interface and one IPv6
                    // address.
                    Err(NetError::OneAddress | NetError::OneInterface) if testbed.is_loopback() => {
                        continue;
                    }
                    // Systems differ in routing IPv6 groups over the loopback interface.
                    Err(NetError::System { .. })
                        if testbed.is_loopback() && family == Family::V6 =>
                    {
                        continue;
                    }
                    Err(error) => {
                        left_out(error);
                        continue;
                    }
                };
                assert!(through.received <= through.sent, "{method:?} {through:?}");
                assert_eq!(through.bytes, through.received * size as u64, "{method:?}");
                assert!(through.packets_per_second().is_some());
            }
        }
    }
}

/// Returns a port that other test runs on this machine are unlikely to use. Other test runs are also unlikely
/// to use the two ports after this port.
fn port() -> u16 {
    20_000 + (std::process::id() % 4_000) as u16 * 3
}

#[test]
fn reliable_multicast_is_measured_with_udp() {
    for testbed in testbeds() {
        let reports = Mutex::new(Vec::new());
        let plan = RoundTripPlan {
            carriers: vec![Carrier::Udp, Carrier::Pgm],
            ..plan(Route::Here {
                testbed,
                family: Family::V4,
                group: Some((Ipv4Addr::new(239, 255, 76, 78), port()).into()),
            })
        };
        let tell = |runs| reports.lock().expect("no panic").push(runs);
        let report = plan.measure(&Clock::best(), &|| false, &tell);
        let report = report.expect("measured");
        assert_eq!(report.failed, None);
        let of = |name: &str| {
            let fates = report.fates.iter();
            fates
                .filter(|fates| fates.method == name)
                .collect::<Vec<_>>()
        };
        let (udp, pgm) = (of("udp 2000/s"), of("pgm 2000/s"));
        assert_eq!((udp.len(), pgm.len()), (3, 3));
        assert!(udp.iter().all(|fates| fates.repairs.is_none()));
        for fates in pgm {
            assert_eq!(fates.tally.sent, 200);
            let lost = fates.repairs.expect("it repairs").lost;
            assert!(
                fates.tally.returned > 0 && fates.tally.lost >= lost,
                "{fates:?}"
            );
        }
        let reports = reports.into_inner().expect("no panic");
        let expected: Vec<Runs> = (0..6).map(|done| Runs { done, total: 6 }).collect();
        assert_eq!(reports, expected);
    }
}

#[test]
fn grants_are_listed_per_carrier() {
    let wishes = NetSetting {
        udp: UdpOptions {
            dscp: Some(46),
            spin: Some(Duration::from_micros(50)),
            ..UdpOptions::default()
        },
        ..NetSetting::default()
    };
    for testbed in testbeds() {
        let plan = RoundTripPlan {
            carriers: vec![Carrier::Udp, Carrier::Pgm],
            settings: vec![wishes.clone()],
            ..plan(Route::Here {
                testbed,
                family: Family::V4,
                group: Some((Ipv4Addr::new(239, 255, 76, 79), port()).into()),
            })
        };
        let report = plan.measure(&Clock::best(), &|| false, &|_| {});
        let report = report.expect("measured");
        let measurement = &report.measurement;
        let [udp, pgm] = &measurement.settings[..] else {
            panic!("{:?}", measurement.settings)
        };
        let refused = |of: &SettingGrants| {
            let refused = of.grants.iter().filter(|grant| !grant.is_granted());
            refused.map(|grant| grant.asked.clone()).collect::<Vec<_>>()
        };
        let (mark, reading) = ("DSCP 46", "reading the DSCP of received packets");
        let spinning = "polling for at most 50µs";
        let expected: [&[&str]; 2] = match () {
            () if cfg!(target_os = "linux") => [&[], &[reading]],
            () if cfg!(windows) => [&[mark, reading, spinning], &[mark, reading]],
            () => [&[reading, spinning], &[reading]],
        };
        assert_eq!([refused(udp), refused(pgm)], expected);
        let of = |carrier: &str| {
            let mut of = measurement.series.iter();
            let of = of.find(|series| series.method.starts_with(carrier));
            of.expect("a series").setting.clone()
        };
        assert_eq!([of("udp"), of("pgm")], [&*udp.setting, &*pgm.setting]);
        let said = |wish: &str, is_refused| {
            if is_refused {
                format!("{wish} (refused)")
            } else {
                wish.to_owned()
            }
        };
        let spun = |is_refused| format!(", {}", said(spinning, is_refused));
        assert!(udp.setting.ends_with(&spun(!cfg!(target_os = "linux"))));
        assert!(pgm.setting.ends_with(&spun(false)));
        assert!(pgm.setting.contains(&said(mark, cfg!(windows))));
    }
}

#[test]
fn reliable_multicast_needs_a_group_and_two_more_ports() {
    let here = |group| {
        plan(Route::Here {
            testbed: Testbed::loopback(),
            family: Family::V4,
            group,
        })
    };
    let refused = |group: Option<SocketAddr>| {
        let plan = RoundTripPlan {
            carriers: vec![Carrier::Pgm],
            ..here(group)
        };
        let report = plan.measure(&Clock::best(), &|| false, &|_| {});
        report.map(|_| ()).expect_err("refused")
    };
    assert!(matches!(refused(None), NetError::NoGroup));
    let last = (Ipv4Addr::new(239, 255, 76, 78), 65_534).into();
    assert!(matches!(refused(Some(last)), NetError::PortTooHigh(65_534)));
}

#[test]
fn an_unknown_address_is_no_interface() {
    let error = Interface::find("203.0.113.200").expect_err("unknown");
    assert!(matches!(error, NetError::UnknownInterface { .. }));
    let loopback = Interface::find(&IpAddr::V4(Ipv4Addr::LOCALHOST).to_string());
    assert!(loopback.expect("exists").is_loopback());
}

const TURNS: Plan = Plan {
    warm_up: 0,
    at_least: 1,
    at_most: 3,
    time: Duration::MAX,
    goal: None,
};

fn plan(route: Route) -> RoundTripPlan {
    RoundTripPlan {
        route,
        carriers: vec![Carrier::Udp],
        paces: vec![TRAFFIC.pace],
        settings: vec![NetSetting::default()],
        size: TRAFFIC.size,
        time: TRAFFIC.time,
        warm_up: Duration::ZERO,
        patience: Duration::from_secs(10),
        with_peer: false,
        plan: TURNS,
        late: None,
    }
}

#[test]
fn rates_and_settings_are_measured_in_turns() {
    let marked = NetSetting {
        udp: UdpOptions {
            dscp: Some(46),
            ..UdpOptions::default()
        },
        ..NetSetting::default()
    };
    let plan = RoundTripPlan {
        paces: vec![TRAFFIC.pace, Pace::PingPong],
        settings: vec![NetSetting::default(), marked],
        ..plan(Route::Here {
            testbed: Testbed::loopback(),
            family: Family::V4,
            group: None,
        })
    };
    let report = plan
        .measure(&Clock::best(), &|| false, &|_| {})
        .expect("measured");
    let measurement = &report.measurement;
    assert_eq!(
        (measurement.end, measurement.groups().len()),
        (End::Rounds, 4)
    );
    assert_eq!((measurement.series.len(), report.fates.len()), (12, 12));
    for (series, fates) in measurement.series.iter().zip(&report.fates) {
        assert_eq!(
            (&series.method, &series.setting),
            (&fates.method, &fates.setting)
        );
        let of = |outcome| {
            series
                .samples
                .iter()
                .filter(|s| s.outcome == outcome)
                .count() as u64
        };
        let tally = fates.tally;
        assert_eq!(of(SampleOutcome::Done), tally.returned);
        assert_eq!(of(SampleOutcome::Lost), tally.lost);
        assert_eq!(of(SampleOutcome::Failed), tally.not_sent);
        assert!(
            series
                .samples
                .iter()
                .all(|sample| sample.intended_start_ns >= 0)
        );
        if cfg!(target_os = "linux") {
            let mark = if series.setting.contains("DSCP 46") {
                46
            } else {
                0
            };
            assert!(
                fates.seen_dscp.iter().all(|(seen, _)| *seen == mark),
                "{fates:?}"
            );
        }
    }
}

#[test]
fn runs_before_a_dead_reflector_are_kept() {
    let place = Place::Answering((Ipv4Addr::LOCALHOST, 0).into());
    let (mut reflector, _) = open(&place, &UdpOptions::default()).expect("opened");
    let at = reflector.local_address().expect("an address");
    let is_over = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    // The reflector calls `dies` before each packet. A run has a hello and 4,000 packets, so the
    // reflector ends in the second run.
    let dies = || {
        let packets = calls.fetch_add(1, Ordering::Relaxed);
        packets >= 5_000 || is_over.load(Ordering::Relaxed)
    };
    let plan = RoundTripPlan {
        time: Duration::from_secs(2),
        patience: Duration::from_millis(500),
        ..plan(Route::There(Place::Peer(at)))
    };
    let report = thread::scope(|scope| {
        scope.spawn(|| net::reflect(&mut reflector, Patience::default(), &dies));
        let report = plan.measure(&Clock::best(), &|| false, &|_| {});
        is_over.store(true, Ordering::Relaxed);
        report.expect("the first run is there")
    });
    assert!(report.measurement.series.len() < 3);
    let last = report.fates.last().expect("there is one");
    assert_eq!(last.ended, RunEnd::Silent);
    assert!(report.fates.iter().any(|fates| fates.tally.returned > 0));
    let failed = report.failed.expect("the failure is reported");
    assert!(
        failed.starts_with("the reflector fell silent in run"),
        "{failed}"
    );
    assert_eq!(report.measurement.end, End::Rounds, "not stopped");
}

#[test]
fn a_plan_without_reflector_is_an_error() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let at = closed.local_addr().expect("an address");
    drop(closed);
    let plan = RoundTripPlan {
        patience: Duration::from_millis(200),
        ..plan(Route::There(Place::Peer(at)))
    };
    let error = plan.measure(&Clock::best(), &|| false, &|_| {}).map(|_| ());
    assert!(matches!(error, Err(NetError::NoAnswer { .. })), "{error:?}");
}

#[test]
fn methods_are_measured_in_turns() {
    let plan = ThroughputPlan {
        route: Route::Here {
            testbed: Testbed::loopback(),
            family: Family::V4,
            group: None,
        },
        patience: Duration::from_secs(2),
        methods: ["poll", "blocking"]
            .iter()
            .filter_map(|name| Method::from_name(name))
            .collect(),
        scheduling: Scheduling::default(),
        size: 100,
        time: Duration::from_millis(20),
        buffer_bytes: Some(1 << 20),
        with_peer: false,
        plan: TURNS,
    };
    let report = plan
        .measure(&Clock::best(), &|| false, &|_| {})
        .expect("measured");
    let methods: Vec<&str> = report.runs.iter().map(|run| run.method).collect();
    assert_eq!(
        methods,
        ["poll", "blocking", "blocking", "poll", "poll", "blocking"]
    );
    assert!(
        report.compared("poll", "blocking").is_err(),
        "three runs are too few"
    );
    let stopped = plan
        .measure(&Clock::best(), &|| true, &|_| {})
        .expect("measured");
    assert_eq!((stopped.end, stopped.runs.len()), (End::Stopped, 0));
}

#[cfg(target_os = "linux")]
#[test]
fn installed_peers_are_parsed() {
    let testbed = Testbed::loopback();
    match peers::round_trips(&testbed, Family::V4, None, &TRAFFIC, &|| false) {
        Err(error @ PeerError::Absent(_)) => left_out(error),
        Err(error) => panic!("{error}"),
        Ok(trips) => {
            assert!(trips.sent > 0 && trips.p50_ns > 0);
            assert!(trips.p50_ns <= trips.p99_ns && trips.p99_ns <= trips.max_ns);
        }
    }
    let time = Duration::from_millis(100);
    match peers::throughput(&testbed, Family::V4, 100, time, &|| false) {
        Err(error @ PeerError::Absent(_)) => left_out(error),
        Err(error) => panic!("{error}"),
        Ok(through) => assert!(through.sent > 0 && through.lost <= through.sent),
    }
}
