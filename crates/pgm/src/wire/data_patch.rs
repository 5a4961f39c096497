//! What changes in a data packet between being kept and being sent.

use super::{Sqn, checksum::changed};

const TYPE_AND_FLAGS: usize = 4;
const CHECKSUM: usize = 6;
const TRAIL: usize = 20;

/// Which of the two data packets is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataKind {
    Original,
    Repair,
}

/// Makes the written data packet at the start of `packet` an ODATA or RDATA with this trail; the
/// checksum follows without reading the payload again.
pub(crate) fn patch_data(packet: &mut [u8], kind: DataKind, trail: Sqn) {
    let code = match kind {
        DataKind::Original => super::body::ODATA,
        DataKind::Repair => super::body::RDATA,
    };
    let flags = packet[TYPE_AND_FLAGS + 1];
    let trail = trail.0.to_be_bytes();
    let words = [
        (TYPE_AND_FLAGS, [code, flags]),
        (TRAIL, [trail[0], trail[1]]),
        (TRAIL + 2, [trail[2], trail[3]]),
    ];
    let mut sum = word(packet, CHECKSUM);
    for (at, new) in words {
        sum = changed(sum, word(packet, at), u16::from_be_bytes(new));
        packet[at..at + 2].copy_from_slice(&new);
    }
    packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

fn word(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Body, Data, Dialect, Gsi, Options, Packet};

    #[test]
    fn a_patched_packet_is_as_if_written_so() {
        let write = |body| {
            let mut bytes = Vec::new();
            let packet = Packet {
                source_port: 1,
                destination_port: 2,
                gsi: Gsi::default(),
                parity: true,
                variable_length: false,
                body,
                options: Options {
                    syn: true,
                    ..Options::default()
                },
                payload: b"payload",
            };
            packet.write(Dialect::Rfc3208, &mut bytes);
            bytes
        };
        let data = |trail| Data {
            sqn: Sqn(7),
            trail: Sqn(trail),
        };
        let mut packet = write(Body::Odata(data(3)));
        patch_data(&mut packet, DataKind::Repair, Sqn(0xfedc_ba98));
        assert_eq!(packet, write(Body::Rdata(data(0xfedc_ba98))));
        patch_data(&mut packet, DataKind::Original, Sqn(3));
        assert_eq!(packet, write(Body::Odata(data(3))));
    }
}
