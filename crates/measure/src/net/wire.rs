//! Layout of the probe packet: magic number, run and sequence number.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `LLNP` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | kind: 1 hello, 2 welcome, 3 probe, 4 echo |
//! | 6 | 1 | 1 if the byte at offset 7 contains a value, else 0 |
//! | 7 | 1 | traffic class (DSCP in its upper six bits) with which the packet reached the reflector |
//! | 8 | 16 | the run's random id |
//! | 24 | 8 | sequence number, little-endian |
//!
//! The rest of the packet is padding up to the requested size. An answer is a copy of the packet
//! that it answers, with another kind and with the observed traffic class. A reflector therefore
//! never sends more bytes than it received.

use std::fmt;

/// Length of the header in bytes, which is also the minimum packet size.
pub const HEADER_LEN: usize = 32;

/// Maximum payload of a UDP datagram over IPv4, in bytes.
pub const LARGEST: usize = 65_507;

const MAGIC: [u8; 4] = *b"LLNP";
const VERSION: u8 = 1;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Packet that introduces a run.
    Hello,
    /// Packet that confirms a run.
    Welcome,
    /// Packet whose round trip is measured.
    Probe,
    /// Probe that the reflector returned.
    Echo,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Hello => 1,
            Kind::Welcome => 2,
            Kind::Probe => 3,
            Kind::Echo => 4,
        }
    }

    fn from_code(code: u8) -> Option<Kind> {
        [Kind::Hello, Kind::Welcome, Kind::Probe, Kind::Echo]
            .into_iter()
            .find(|kind| kind.code() == code)
    }

    /// Returns the kind of the answer. Returns `None` if this kind is itself an answer.
    pub(super) fn answer(self) -> Option<Kind> {
        match self {
            Kind::Hello => Some(Kind::Welcome),
            Kind::Probe => Some(Kind::Echo),
            Kind::Welcome | Kind::Echo => None,
        }
    }
}

/// Random number that identifies the packets of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RunId(pub(super) [u8; 16]);

impl RunId {
    /// Returns a new random id.
    ///
    /// # Errors
    /// Returns an error if the system returns no random numbers.
    pub(super) fn random() -> Result<RunId, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(RunId(bytes))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Kind of the packet.
    pub(super) kind: Kind,
    /// Run to which the packet belongs.
    pub(super) run: RunId,
    /// Sequence number.
    pub(super) sequence: u64,
    /// Traffic class with which the packet reached the reflector. `None` if the packet has not
    /// reached the reflector, or if the reflector's system does not report the class.
    pub(super) seen_class: Option<u8>,
}

impl Header {
    /// Parses the header of a packet. Returns `None` if the packet does not belong to this
    /// protocol.
    pub(super) fn read(packet: &[u8]) -> Option<Header> {
        let header: &[u8; HEADER_LEN] = packet.first_chunk()?;
        if header[..4] != MAGIC || header[4] != VERSION {
            return None;
        }
        let seen_class = match (header[6], header[7]) {
            (0, 0) => None,
            (1, class) => Some(class),
            _ => return None,
        };
        Some(Header {
            kind: Kind::from_code(header[5])?,
            run: RunId(*header[8..].first_chunk()?),
            sequence: u64::from_le_bytes(*header[24..].first_chunk()?),
            seen_class,
        })
    }

    /// Writes the header to the start of a packet.
    ///
    /// # Panics
    /// Panics if the packet is shorter than [`HEADER_LEN`].
    pub(super) fn write(&self, packet: &mut [u8]) {
        packet[..4].copy_from_slice(&MAGIC);
        packet[4] = VERSION;
        packet[5] = self.kind.code();
        packet[6] = u8::from(self.seen_class.is_some());
        packet[7] = self.seen_class.unwrap_or(0);
        packet[8..24].copy_from_slice(&self.run.0);
        Header::number(packet, self.sequence);
    }

    /// Changes the sequence number of a packet with a header.
    ///
    /// # Panics
    /// Panics if the packet is shorter than [`HEADER_LEN`].
    pub(super) fn number(packet: &mut [u8], sequence: u64) {
        packet[24..HEADER_LEN].copy_from_slice(&sequence.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// Compares the bytes of a packet with the table at the top of this file.
    #[test]
    fn the_layout_is_as_documented() {
        let mut packet = [0xAA; 40];
        Header {
            kind: Kind::Echo,
            run: RunId(*b"0123456789abcdef"),
            sequence: 0x0102,
            seen_class: Some(0xB8),
        }
        .write(&mut packet);
        let mut expected = b"LLNP\x01\x04\x01\xB80123456789abcdef\x02\x01\0\0\0\0\0\0".to_vec();
        expected.extend([0xAA; 8]);
        assert_eq!(packet[..], expected[..]);
    }

    #[test]
    fn headers_round_trip() {
        let mut rng = Rng(7);
        for _ in 0..1000 {
            let header = Header {
                kind: Kind::from_code(1 + rng.below(4) as u8).expect("four kinds"),
                run: RunId((u128::from(rng.bits()) << 64 | u128::from(rng.bits())).to_be_bytes()),
                sequence: rng.bits(),
                seen_class: (rng.below(2) == 0).then(|| rng.below(256) as u8),
            };
            let mut packet = vec![0; HEADER_LEN + rng.below(100)];
            header.write(&mut packet);
            assert_eq!(Header::read(&packet), Some(header));
        }
    }

    #[test]
    fn foreign_packets_are_rejected() {
        let mut ours = [0; HEADER_LEN];
        Header {
            kind: Kind::Probe,
            run: RunId([9; 16]),
            sequence: 1,
            seen_class: None,
        }
        .write(&mut ours);
        assert!(Header::read(&ours).is_some());
        assert_eq!(Header::read(&[]), None);
        assert_eq!(Header::read(&ours[..HEADER_LEN - 1]), None);
        // A wrong magic number, version, kind or flag is enough to reject a packet. A packet is also rejected if byte
        // 7 contains a class although byte 6 states that there is none.
        for (offset, value) in [(0, b'X'), (3, 0), (4, 2), (5, 0), (5, 5), (6, 2), (7, 1)] {
            let mut theirs = ours;
            theirs[offset] = value;
            assert_eq!(Header::read(&theirs), None, "byte {offset} = {value}");
        }
        let mut rng = Rng(3);
        for length in 0..200 {
            let noise: Vec<u8> = (0..length).map(|_| rng.bits() as u8).collect();
            assert_eq!(Header::read(&noise), None);
        }
    }
}
