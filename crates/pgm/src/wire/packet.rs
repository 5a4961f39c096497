//! PGM packet: header, body, options and payload.

use super::{
    Body, Dialect, Gsi, Options, Tsi, WireError,
    checksum::{changed, checksum, checksum_of_parts},
    cursor::Cursor,
};

const OPTIONS_PRESENT: u8 = 0x01;
const OPTIONS_FOR_NETWORK: u8 = 0x02;
const VARIABLE_LENGTH: u8 = 0x40;
const PARITY: u8 = 0x80;

/// PGM packet. Its options and payload borrow from the bytes that were parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Data-source port. In packets to a source, this field contains the data-destination port.
    pub source_port: u16,
    /// Data-destination port. In packets to a source, this field contains the data-source port.
    pub destination_port: u16,
    /// Host identifier of a source. For a packet from a source, this source sent the packet. For other packets, it is
    /// the source to which the packet refers.
    pub gsi: Gsi,
    /// True for parity packets, and for requests for parity.
    pub parity: bool,
    /// True if parity covers packets of different lengths.
    pub variable_length: bool,
    /// Type of the packet and the fields of this type.
    pub body: Body,
    /// Known options of the packet. Unknown options are skipped.
    pub options: Options<'a>,
    /// Payload of a data packet; empty in other packets.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Size of the common header in bytes.
    pub const HEADER: usize = 16;

    /// Parses a packet. `bytes` must contain exactly one packet.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a valid PGM packet; see [`WireError`].
    pub fn parse(bytes: &'a [u8], dialect: Dialect) -> Result<Packet<'a>, WireError> {
        let mut cursor = Cursor::new(bytes);
        let header: [u8; Packet::HEADER] = cursor.array("the header")?;
        let [s0, s1, d0, d1, code, flags, c0, c1, gsi @ .., l0, l1] = header;
        let [source_port, destination_port] = [[s0, s1], [d0, d1]].map(u16::from_be_bytes);
        let [sum, announced] = [[c0, c1], [l0, l1]].map(u16::from_be_bytes);
        let announced = usize::from(announced);
        if code >> 6 != 0 {
            return Err(WireError::Version(code >> 6));
        }
        let body = Body::read(code & 0x0f, &mut cursor)?;
        match sum {
            0 if body.is_data() => return Err(WireError::NoChecksum),
            0 => {}
            // The sum over a valid packet including its checksum is all ones.
            found if checksum(bytes) != 0xffff => {
                let computed = changed(checksum(bytes), found, 0);
                return Err(WireError::Checksum { found, computed });
            }
            _ => {}
        }
        let parity = flags & PARITY != 0;
        let options = if flags & OPTIONS_PRESENT != 0 {
            Options::read(&mut cursor, parity && body.is_data(), dialect)?
        } else {
            Options::default()
        };
        let payload = cursor.rest();
        if payload.len() != announced {
            return Err(WireError::PayloadLength {
                announced,
                found: payload.len(),
            });
        }
        Ok(Packet {
            source_port,
            destination_port,
            gsi: Gsi(gsi),
            parity,
            variable_length: flags & VARIABLE_LENGTH != 0,
            body,
            options,
            payload,
        })
    }

    /// Appends the packet with its checksum to `out`.
    ///
    /// # Panics
    /// Panics if the payload has more than 65,535 bytes.
    pub fn write(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let start = out.len();
        let length = u16::try_from(self.payload.len()).expect("a payload has at most 65,535 bytes");
        let has_options = !self.options.is_empty();
        let mut flags = 0;
        for (flag, is_set) in [
            (OPTIONS_PRESENT, has_options),
            (
                OPTIONS_FOR_NETWORK,
                has_options && (self.options).are_for_network(matches!(self.body, Body::Odata(_))),
            ),
            (VARIABLE_LENGTH, self.variable_length),
            (PARITY, self.parity),
        ] {
            if is_set {
                flags |= flag;
            }
        }
        let [g0, g1, g2, g3, g4, g5] = self.gsi.0;
        let gsi = u64::from_be_bytes([0, 0, g0, g1, g2, g3, g4, g5]);
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        let kind = u64::from(self.body.code()) << 8 | u64::from(flags);
        // The header is written in words that are at least as long as the words that the checksum reads. If
        // the processor read several short writes back as one longer word, it would stall.
        out.extend_from_slice(&(ports << 32 | kind << 16).to_be_bytes());
        out.extend_from_slice(&(gsi << 16 | u64::from(length)).to_be_bytes());
        self.body.write(out);
        if has_options {
            self.options.write(dialect, out);
        }
        // To avoid the same stall, the checksum reads the payload from `self.payload` and not from the copy
        // of the payload.
        debug_assert!((out.len() - start).is_multiple_of(2));
        let sum = checksum_of_parts(&out[start..], self.payload);
        out.extend_from_slice(self.payload);
        out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }

    /// Returns the session identifier of the packet.
    pub fn tsi(&self) -> Tsi {
        let port = if self.body.is_upstream() {
            self.destination_port
        } else {
            self.source_port
        };
        Tsi {
            gsi: self.gsi,
            port,
        }
    }
}
