//! Seeded sessions with hostile members. The tests check that the bytes and packets sent, the number of
//! sources, and the memory stay within their limits.

#[path = "hostile/memory.rs"]
mod memory;
#[path = "hostile/session.rs"]
mod session;

use std::net::{IpAddr, Ipv4Addr};

use pgm::wire::{Body, Data, Gsi, Options, Packet, Spm, Sqn};
use pgm::{Receiver, ReceiverConfig, Time};
use testdata::Rng;

/// Checks the memory of a receiver with 256 forged sources. Each sends two packets, which name packets far away.
#[test]
fn few_packets_of_many_sources_take_little_memory() {
    const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 0, 1));
    const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
    let before = memory::start();
    let mut receiver = Receiver::new(ReceiverConfig::new(RECEIVER, GROUP)).unwrap();
    for source in 0..256_u16 {
        let address = IpAddr::V4(Ipv4Addr::new(10, 78, 0, source as u8));
        let far = Sqn(16_000);
        let spm = Body::Spm(Spm {
            sqn: Sqn(1),
            trail: Sqn(1),
            lead: far,
            path: address,
        });
        let data = Body::Odata(Data {
            sqn: far,
            trail: Sqn(1),
        });
        for body in [spm, data] {
            let packet = Packet {
                source_port: source,
                destination_port: 7500,
                gsi: Gsi([1; 6]),
                parity: false,
                variable_length: false,
                body,
                options: Options::default(),
                payload: &[0; 8],
            };
            receiver.handle(Time(1), address, &packet);
        }
    }
    assert_eq!(receiver.sources().count(), 256);
    let bytes = memory::now().saturating_sub(before);
    assert!(bytes < 64 << 20, "{bytes} bytes");
}

#[test]
fn hostile_members_stay_within_the_limits() {
    let mut script = Vec::new();
    let mut most = 0;
    for seed in 0..2_500 {
        let mut rng = Rng(seed);
        script.clear();
        let length = 40 + rng.below(800);
        script.extend((0..length).map(|_| rng.bits() as u8));
        most = most.max(session::run(&script));
    }
    // The memory limit is a useful check only if sessions come near it.
    assert!(most > session::MEMORY / 10, "{most} bytes");
}
