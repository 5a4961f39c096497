//! Parses any bytes as a PGM packet. If the packet is valid, writes it and reads it again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgm::wire::{Dialect, Packet};

fuzz_target!(|data: &[u8]| {
    for dialect in [Dialect::Rfc3208, Dialect::OpenPgm] {
        if let Ok(packet) = Packet::parse(data, dialect) {
            let mut written = Vec::new();
            packet.write(dialect, &mut written);
            assert_eq!(Packet::parse(&written, dialect), Ok(packet));
        }
    }
});
