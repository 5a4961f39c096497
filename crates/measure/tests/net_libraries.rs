//! Other people's libraries as carriers, between network namespaces.
//!
//! Left out, with a word on stderr, where a library is not installed or this user may not make namespaces.

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
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "left out: {why}");
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
            precision: None,
        },
    }
}

#[test]
fn their_round_trips_stand_beside_ours() {
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

/// Its `pgm_send` ends the program for messages that it does not bear; those of any length that we let
/// through it must bear, and all of their bytes must come.
#[test]
fn every_length_comes_as_it_was_sent() {
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
        // Whoever joins late hears what is sent from then on.
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
            // The source serves what is asked for when it looks for messages.
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
        assert!(started.elapsed() < Duration::from_secs(10), "in vain");
    }
}

#[test]
fn what_they_cannot_do_is_said() {
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
        // Longer ones end a program that has OpenPGM send them.
        if carrier == Carrier::OpenPgm {
            let said = refused(1_401).to_string();
            assert!(said.starts_with("libpgm-5.3.so.0 ends a program"), "{said}");
        }
    }
}
