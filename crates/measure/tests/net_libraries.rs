//! Tests of libraries of other projects as carriers, between network namespaces.
//!
//! The tests are skipped if a library is not installed, or if the user may not create namespaces.

#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use measure::net::{
    Carrier, Family, NetError, NetSetting, Pace, Place, RoundTripPlan, Route, Side, Testbed,
    UdpOptions,
};
use measure::{Clock, Plan, Scheduling};

fn left_out(why: impl std::fmt::Display) {
    testdata::skip(&why.to_string());
}

fn namespaces() -> Option<Testbed> {
    let testbed = Testbed::namespaces();
    testbed.map_err(left_out).ok()
}

fn group(family: Family) -> SocketAddr {
    match family {
        Family::V4 => (Ipv4Addr::new(239, 255, 76, 79), 7_600).into(),
        Family::V6 => (Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0, 0x79), 7_600).into(),
    }
}

fn plan(testbed: Testbed, family: Family, carriers: &[Carrier], size: usize) -> RoundTripPlan {
    RoundTripPlan {
        route: Route::Here {
            testbed,
            family,
            group: Some(group(family)),
        },
        carriers: carriers.to_vec(),
        paces: NonZeroU32::new(2_000)
            .map(Pace::PerSecond)
            .into_iter()
            .collect(),
        settings: vec![NetSetting::default()],
        size,
        time: Duration::from_millis(100),
        warm_up: Duration::ZERO,
        patience: Duration::from_secs(5),
        with_peer: false,
        plan: Plan {
            warm_up: 0,
            at_least: 1,
            at_most: 2,
            time: Duration::MAX,
            goal: None,
        },
        late: None,
    }
}

#[test]
fn round_trips_of_libraries_are_measured() {
    let all = [Carrier::Pgm, Carrier::OpenPgm, Carrier::Epgm];
    for family in [Family::V4, Family::V6] {
        let Some(testbed) = namespaces() else { return };
        let report = plan(testbed, family, &all, 100)
            .measure(&Clock::best(), &|| false, &|_| {})
            .expect("ours is there in any case");
        for one in &report.measurement.unavailable {
            left_out(format!("{}: {}", one.method, one.why));
        }
        assert_eq!(report.failed, None);
        let there = all.len() - report.measurement.unavailable.len();
        assert_eq!(report.fates.len(), 2 * there);
        for fates in &report.fates {
            assert_eq!(fates.tally.sent, 200, "{fates:?}");
            assert!(fates.tally.returned > 0, "{fates:?}");
            assert_eq!(
                (fates.tally.strangers, fates.tally.duplicates),
                (0, 0),
                "{fates:?}"
            );
        }
    }
}

/// Checks that all lengths that laglab allows work, and that all bytes arrive. `pgm_send` aborts the process
/// if it does not support a message.
#[test]
fn messages_of_every_length_arrive() {
    let Some(testbed) = namespaces() else { return };
    for (carrier, longest) in [(Carrier::OpenPgm, 1_400), (Carrier::Epgm, 5_000)] {
        let open = |side| {
            let interface = testbed.interface(side, Family::V4)?;
            let place = Place::Group {
                group: group(Family::V4),
                interface: Some(interface),
            };
            testbed.on(side, || {
                carrier.open(side, &place, &UdpOptions::default(), &Scheduling::default())
            })?
        };
        let (mut near, mut far) = match (open(Side::Near), open(Side::Far)) {
            (Ok((near, _)), Ok((far, _))) => (near, far),
            (Err(error @ NetError::Library { .. }), _) => {
                left_out(error);
                continue;
            }
            (Err(error), _) | (_, Err(error)) => panic!("{error}"),
        };
        // A receiver that joins late gets only later packets. Empty packets are therefore sent
        // until one arrives.
        let mut buffer = vec![0; 65_535];
        until(|| {
            near.send(&[], None).expect("sent");
            far.receive(&mut buffer).expect("received").is_some()
        });
        let lengths = (1..=1_400).chain((1_401..=longest).step_by(97));
        for length in lengths {
            let message: Vec<u8> = (0..length).map(|n| (n + length) as u8).collect();
            until(|| near.send(&message, None).is_ok());
            let received = until_some(|| {
                let received = far.receive(&mut buffer).expect("received")?;
                (received.len > 0).then_some(received.len)
            });
            assert!(
                buffer[..received] == message,
                "{carrier:?}: {received} bytes instead of {length}"
            );
            // The source serves repair requests while it looks for messages.
            if length % 100 == 0 && carrier == Carrier::OpenPgm {
                assert_eq!(near.receive(&mut buffer).expect("received"), None);
            }
        }
    }
}

fn until(mut is_done: impl FnMut() -> bool) {
    until_some(|| is_done().then_some(()));
}

fn until_some<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "timed out");
    }
}

#[test]
fn unsupported_requests_are_errors() {
    for carrier in [Carrier::OpenPgm, Carrier::Epgm] {
        let refused = |size| {
            plan(Testbed::loopback(), Family::V4, &[carrier], size)
                .measure(&Clock::best(), &|| false, &|_| {})
                .map(|_| ())
                .expect_err("refused")
        };
        match refused(100) {
            error @ NetError::Library { .. } => {
                left_out(error);
                continue;
            }
            NetError::OneInterface => {}
            other => panic!("{other}"),
        }
        // Longer messages would abort a program that uses OpenPGM.
        if carrier == Carrier::OpenPgm {
            let said = refused(1_401).to_string();
            assert!(
                said.starts_with("cannot use libpgm-5.3.so.0: it aborts a program"),
                "{said}"
            );
        }
    }
}
