//! Sends any packets at any times to a source and a receiver: neither panics, both become idle, and the
//! receiver sends at most twice the bytes that it received.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use pgm::{
    ParityConfig, Receiver, ReceiverConfig, Source, SourceConfig, Time,
    wire::{Dialect, Gsi, Packet, Tsi, checksum},
};

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 0, 1));

fuzz_target!(|data: &[u8]| {
    let tsi = Tsi {
        gsi: Gsi([1, 2, 3, 4, 5, 6]),
        port: 0xabcd,
    };
    let mut source = Source::new(
        SourceConfig {
            parity: Some(ParityConfig {
                group_size: 4,
                proactive: 1,
                on_demand: true,
                shorten_groups: true,
            }),
            loss_reports: true,
            ..SourceConfig::new(tsi, ADDRESS, GROUP)
        },
        Time(0),
    )
    .expect("possible");
    let mut receiver = Receiver::new(ReceiverConfig {
        window: 32,
        bytes: 1 << 16,
        late_join: true,
        ..ReceiverConfig::new(ADDRESS, GROUP)
    })
    .expect("possible");
    let mut now = Time(0);
    let (mut received, mut requested) = (0, 0);
    let mut rest = data;
    // A byte for the time that passes in 100 µs, one for the length of the packet that follows.
    while let [wait, length, following @ ..] = rest {
        now = Time(now.0 + u64::from(*wait) * 100_000);
        let (packet, after) = following.split_at(following.len().min(usize::from(*length)));
        rest = after;
        let mut packet = packet.to_vec();
        if packet.len() >= Packet::HEADER {
            packet[6..8].fill(0);
            let sum = checksum(&packet);
            packet[6..8].copy_from_slice(&sum.to_be_bytes());
        }
        let _ = source.send(&packet);
        let size = packet.len();
        if let Ok(packet) = Packet::parse(&packet, Dialect::Rfc3208) {
            source.handle(now, &packet);
            receiver.handle(now, ADDRESS, &packet);
            received += size;
        }
        let mut out = Vec::new();
        let mut sent = 0;
        loop {
            if source.poll_transmit(now, &mut out).is_none() {
                match receiver.poll_transmit(now, &mut out) {
                    Some(transmit) => requested += transmit.size,
                    None => break,
                }
            }
            sent += 1;
            assert!(sent < 10_000, "it does not come to rest");
            out.clear();
        }
        while receiver.poll_event(now).is_some() {}
        assert!(requested <= 2 * received, "{requested} bytes for {received}");
    }
});
