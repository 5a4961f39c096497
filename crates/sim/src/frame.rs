//! Bytes of an Ethernet frame in a packet capture.

use thiserror::Error;

use rules::flow::{Addresses, Flow};

/// Time to live (IPv4) and hop limit (IPv6) of packets that Windows sends.
const HOPS: u8 = 128;

/// Receive window in the header of every TCP segment.
const TCP_WINDOW: u16 = 0xffff;

/// A packet: headers of Ethernet II, IPv4 or IPv6 without options, and UDP or TCP, followed by a
/// payload of zeros.
///
/// A frame shorter than Ethernet's minimum of 60 bytes is not padded, because captures on Windows
/// see packets before the network adapter pads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// MAC address of the sending interface.
    pub(crate) source_mac: [u8; 6],
    /// MAC address of the receiving interface.
    pub(crate) destination_mac: [u8; 6],
    /// IP addresses and ports.
    pub(crate) flow: Flow,
    /// Transport protocol: UDP or TCP.
    pub(crate) transport: Transport,
    /// Differentiated services code point (DSCP), 0 to 63. `46` is expedited forwarding.
    pub(crate) dscp: u8,
    /// Explicit congestion notification (ECN), 0 to 3.
    pub(crate) ecn: u8,
    /// Number of bytes after the UDP or TCP header.
    pub(crate) payload: usize,
}

/// Transport protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A UDP datagram.
    Udp,
    /// A TCP segment of an established connection, with the flags ACK and PSH.
    Tcp {
        /// Sequence number of the payload's first byte.
        sequence: u32,
        /// Sequence number of the next byte that the sender expects to receive.
        acknowledgment: u32,
    },
}

/// Error in the parameters of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum FrameError {
    /// The payload is too long for the length field in the packet's header.
    #[error("a payload of {payload} bytes is too long for one packet: it has room for {room}")]
    Payload {
        /// Requested size of the payload in bytes.
        payload: usize,
        /// Maximum size of the payload in bytes.
        room: usize,
    },
    /// The DSCP has more than six bits.
    #[error("a DSCP is 0 to 63, found {0}")]
    Dscp(u8),
    /// The ECN has more than two bits.
    #[error("an ECN is 0 to 3, found {0}")]
    Ecn(u8),
}

impl Frame {
    /// Replaces the contents of `out` with the frame, cut to its first `snap_length` bytes. Captures often
    /// cut frames in this way. Lengths and checksums in the headers describe the whole frame.
    ///
    /// # Errors
    /// Returns an error if the payload, the DSCP or the ECN does not fit into a packet; `out` is then empty.
    pub(crate) fn write(&self, snap_length: usize, out: &mut Vec<u8>) -> Result<(), FrameError> {
        out.clear();
        let segment_length = self.segment_length()?;
        out.extend_from_slice(&self.destination_mac);
        out.extend_from_slice(&self.source_mac);
        self.write_ip(segment_length, out);
        let segment = out.len();
        self.write_transport(segment_length, out);
        let checksum = self.transport_checksum(segment_length, &out[segment..]);
        let place = segment + self.checksum_offset();
        out[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        out.resize((out.len() + self.payload).min(snap_length), 0);
        Ok(())
    }

    fn ip_header(&self) -> usize {
        match self.flow.addresses {
            Addresses::V4 { .. } => 20,
            Addresses::V6 { .. } => 40,
        }
    }

    fn transport_header(&self) -> usize {
        match self.transport {
            Transport::Udp => 8,
            Transport::Tcp { .. } => 20,
        }
    }

    /// Returns the offset of the checksum in the UDP or TCP header.
    fn checksum_offset(&self) -> usize {
        match self.transport {
            Transport::Udp => 6,
            Transport::Tcp { .. } => 16,
        }
    }

    /// Returns the number that the IP header uses for the transport protocol.
    fn protocol(&self) -> u8 {
        match self.transport {
            Transport::Udp => 17,
            Transport::Tcp { .. } => 6,
        }
    }

    /// Returns the length of transport header and payload in bytes, or an error if the payload, the
    /// DSCP or the ECN is too large.
    fn segment_length(&self) -> Result<u16, FrameError> {
        if self.dscp > 0x3f {
            return Err(FrameError::Dscp(self.dscp));
        }
        if self.ecn > 3 {
            return Err(FrameError::Ecn(self.ecn));
        }
        // The length field in an IPv4 header also counts the header itself. In IPv6 it does not.
        let counted = match self.flow.addresses {
            Addresses::V4 { .. } => self.ip_header(),
            Addresses::V6 { .. } => 0,
        };
        let room = usize::from(u16::MAX) - counted - self.transport_header();
        if self.payload > room {
            return Err(FrameError::Payload {
                payload: self.payload,
                room,
            });
        }
        Ok((self.transport_header() + self.payload) as u16)
    }

    /// Writes the EtherType and the IP header.
    fn write_ip(&self, segment_length: u16, out: &mut Vec<u8>) {
        let traffic_class = self.dscp << 2 | self.ecn;
        match self.flow.addresses {
            Addresses::V4 {
                source,
                destination,
            } => {
                out.extend_from_slice(&0x0800_u16.to_be_bytes());
                let header = out.len();
                let total_length = self.ip_header() as u16 + segment_length;
                out.extend_from_slice(&[0x45, traffic_class]);
                out.extend_from_slice(&total_length.to_be_bytes());
                // The identification is 0, because packets with the flag "don't fragment" do not
                // need it.
                out.extend_from_slice(&[0, 0, 0x40, 0, HOPS, self.protocol(), 0, 0]);
                out.extend_from_slice(&source.octets());
                out.extend_from_slice(&destination.octets());
                let checksum = !sum(&out[header..], 0);
                out[header + 10..header + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            Addresses::V6 {
                source,
                destination,
            } => {
                out.extend_from_slice(&0x86dd_u16.to_be_bytes());
                let first = 6 << 28 | u32::from(traffic_class) << 20;
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&segment_length.to_be_bytes());
                out.extend_from_slice(&[self.protocol(), HOPS]);
                out.extend_from_slice(&source.octets());
                out.extend_from_slice(&destination.octets());
            }
        }
    }

    /// Writes the UDP or TCP header with checksum 0.
    fn write_transport(&self, segment_length: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.flow.source_port.to_be_bytes());
        out.extend_from_slice(&self.flow.destination_port.to_be_bytes());
        match self.transport {
            Transport::Udp => {
                out.extend_from_slice(&segment_length.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
            }
            Transport::Tcp {
                sequence,
                acknowledgment,
            } => {
                out.extend_from_slice(&sequence.to_be_bytes());
                out.extend_from_slice(&acknowledgment.to_be_bytes());
                out.extend_from_slice(&[0x50, 0x18]); // header length of 5 words, flags PSH and ACK
                out.extend_from_slice(&TCP_WINDOW.to_be_bytes());
                out.extend_from_slice(&[0; 4]);
            }
        }
    }

    /// Returns the checksum of the pseudo-header and the segment. The payload consists of zeros, so
    /// it does not change the sum.
    fn transport_checksum(&self, segment_length: u16, header: &[u8]) -> u16 {
        let start = u32::from(segment_length) + u32::from(self.protocol());
        let addresses = match self.flow.addresses {
            Addresses::V4 {
                source,
                destination,
            } => sum(
                [source.octets(), destination.octets()].as_flattened(),
                start,
            ),
            Addresses::V6 {
                source,
                destination,
            } => sum(
                [source.octets(), destination.octets()].as_flattened(),
                start,
            ),
        };
        match !sum(header, addresses.into()) {
            // In UDP, 0 means "no checksum". A computed 0 is sent as all ones, which is the same
            // value in ones' complement arithmetic.
            0 if self.transport == Transport::Udp => 0xffff,
            checksum => checksum,
        }
    }
}

/// Returns the sum for the Internet checksum (RFC 1071): `start` plus the 16-bit words of `bytes`,
/// with carries added. The number of bytes must be even, which is true for headers.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for word in bytes.chunks_exact(2) {
        sum += u32::from(word[0]) << 8 | u32::from(word[1]);
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    const V4: (&str, &str) = ("192.168.1.20:50000", "203.0.113.9:27015");
    const V6: (&str, &str) = ("[2001:db8::20]:50000", "[2001:db8:1::9]:27015");

    fn frame(ends: (&str, &str), transport: Transport, payload: usize) -> Frame {
        let endpoint = |text: &str| text.parse().expect("an endpoint");
        Frame {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            flow: Flow::new(endpoint(ends.0), endpoint(ends.1)).expect("one family"),
            transport,
            dscp: 46,
            ecn: 0,
            payload,
        }
    }

    fn bytes(frame: &Frame) -> Vec<u8> {
        let mut out = Vec::new();
        frame.write(usize::MAX, &mut out).expect("a frame");
        out
    }

    /// Returns true if the checksum in the pieces is correct: the 16-bit words of all pieces sum to a multiple of
    /// 65535. The caller passes the pieces that the standards (RFC 791, 768, 9293, 8200) include in the checksum.
    fn is_right(pieces: &[&[u8]]) -> bool {
        let mut covered = pieces.concat();
        covered.resize(covered.len().next_multiple_of(2), 0);
        let words = covered.chunks(2);
        let total: u64 = words
            .map(|word| u64::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        total > 0 && total.is_multiple_of(0xffff)
    }

    #[test]
    fn checksums_are_right() {
        let mut rng = Rng(11);
        for round in 0..4_000 {
            let tcp = Transport::Tcp {
                sequence: rng.bits() as u32,
                acknowledgment: rng.bits() as u32,
            };
            let (transport, protocol) = [(Transport::Udp, 17), (tcp, 6)][round % 2];
            let v4 = round % 4 < 2;
            let mut frame = frame(if v4 { V4 } else { V6 }, transport, rng.below(2_000));
            frame.flow.source_port = rng.bits() as u16;
            let bytes = bytes(&frame);
            // An Ethernet II header has 14 bytes.
            let headers = 14 + frame.ip_header() + frame.transport_header();
            assert_eq!(bytes.len(), headers + frame.payload);
            if v4 {
                let (header, segment) = bytes[14..].split_at(20);
                let length = (segment.len() as u16).to_be_bytes();
                assert!(is_right(&[header]));
                assert!(is_right(&[&header[12..], &[0, protocol], &length, segment]));
            } else {
                let (header, segment) = bytes[14..].split_at(40);
                let length = (segment.len() as u32).to_be_bytes();
                let pseudo_header = [&header[8..], &length, &[0, 0, 0, protocol]].concat();
                assert!(is_right(&[&pseudo_header, segment]));
            }
        }
    }

    /// Checks that a computed checksum of 0 is sent as all ones, because 0 means "no checksum" in UDP.
    #[test]
    fn a_udp_checksum_is_never_0() {
        let mut frame = frame(V4, Transport::Udp, 4);
        let all_ones = (0..=u16::MAX).filter(|&port| {
            frame.flow.source_port = port;
            let bytes = bytes(&frame);
            assert_ne!(bytes[40..42], [0, 0]);
            bytes[40..42] == [0xff, 0xff]
        });
        assert_eq!(all_ones.count(), 1);
    }

    /// Checks the header of the worked example in Wikipedia's article "Internet checksum".
    #[test]
    fn a_published_header_has_its_checksum() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(!sum(&header, 0), 0xb861);
    }

    /// Checks the position of DSCP and ECN. Expedited forwarding has the traffic class 0xb8. In IPv4, the
    /// traffic class is the second byte of the header. In IPv6, it is the eight bits after the 4-bit version.
    #[test]
    fn dscp_and_ecn_are_where_each_family_has_them() {
        let v4 = bytes(&frame(V4, Transport::Udp, 0));
        assert_eq!(v4[12..16], [0x08, 0x00, 0x45, 0xb8]);
        let mut marked = frame(V6, Transport::Udp, 0);
        assert_eq!(bytes(&marked)[12..16], [0x86, 0xdd, 0x6b, 0x80]);
        marked.ecn = 3;
        assert_eq!(bytes(&marked)[14..16], [0x6b, 0xb0]);
    }

    #[test]
    fn a_cut_frame_begins_as_the_whole_one() {
        let frame = frame(V6, Transport::Udp, 600);
        let whole = bytes(&frame);
        let mut cut = vec![9; 5];
        for snap_length in [0, 10, 60, 128, 2_000] {
            frame.write(snap_length, &mut cut).expect("a frame");
            assert_eq!(cut, whole[..snap_length.min(whole.len())]);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let longest = frame(V4, Transport::Udp, 65_507);
        assert_eq!(bytes(&longest)[16..18], [0xff, 0xff]);
        let mut out = Vec::new();
        for (too_much, error) in [
            (
                Frame {
                    payload: 65_508,
                    ..longest
                },
                FrameError::Payload {
                    payload: 65_508,
                    room: 65_507,
                },
            ),
            (
                Frame {
                    dscp: 64,
                    ..longest
                },
                FrameError::Dscp(64),
            ),
            (Frame { ecn: 4, ..longest }, FrameError::Ecn(4)),
        ] {
            assert_eq!(too_much.write(100, &mut out), Err(error));
        }
    }
}
