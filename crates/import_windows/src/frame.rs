//! Headers of captured frames.

use std::net::IpAddr;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, LinkSlice, TransportSlice};

/// Link layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// Ethernet II.
    Ethernet,
    /// IPv4 or IPv6 without a link header.
    Ip,
    /// IEEE 802.11; its headers are not read.
    Wifi,
    /// Linux cooked captures (`LINKTYPE_LINUX_SLL`).
    LinuxCooked,
    /// An address family of four bytes, then an IP packet (`LINKTYPE_NULL`, `LINKTYPE_LOOP`).
    Loopback,
    /// Another link layer. Contains its `LINKTYPE` number. Its headers are not read.
    Other(i32),
    /// The capture does not state the link layer.
    Unknown,
}

impl Link {
    /// Returns the link layer of a number. The numbers are listed in
    /// <https://www.tcpdump.org/linktypes.html>.
    pub(crate) fn from_number(number: i32) -> Link {
        match number {
            1 => Link::Ethernet,
            101 | 228 | 229 => Link::Ip,
            105 => Link::Wifi,
            113 => Link::LinuxCooked,
            0 | 108 => Link::Loopback,
            other => Link::Other(other),
        }
    }

    /// Returns the link layer of a frame of a Wi-Fi adapter. Drivers of these adapters convert frames to Ethernet for
    /// Windows, so that a capture that states IEEE 802.11 can contain frames of both kinds.
    pub(crate) fn of_wifi(bytes: &[u8]) -> Link {
        if is_ethernet(bytes) && !is_wifi_data(bytes) {
            Link::Ethernet
        } else {
            Link::Wifi
        }
    }

    /// Returns the name of the link layer, as in the table `packets`.
    pub(crate) fn name(self) -> Option<String> {
        Some(match self {
            Link::Ethernet => "ethernet".into(),
            Link::Ip => "ip".into(),
            Link::Wifi => "802.11".into(),
            Link::LinuxCooked => "linux_cooked".into(),
            Link::Loopback => "loopback".into(),
            Link::Other(number) => format!("linktype {number}"),
            Link::Unknown => return None,
        })
    }
}

/// Returns true if a frame has a known EtherType at the place that Ethernet gives it, and content that fits.
fn is_ethernet(bytes: &[u8]) -> bool {
    let Some([high, low, content @ ..]) = bytes.get(12..) else {
        return false;
    };
    let ethertype = u16::from_be_bytes([*high, *low]);
    match (ethertype, content) {
        // IPv4 with a header of at least 20 bytes.
        (0x0800, [first, ..]) => (0x45..=0x4F).contains(first),
        (0x86DD, [first, ..]) => first >> 4 == 6,
        // ARP for Ethernet.
        (0x0806, content) => content.starts_with(&[0, 1]),
        // Authentication of IEEE 802.1X, versions 1 to 3.
        (0x888E, [version, ..]) => (1..=3).contains(version),
        // VLAN tag: two bytes, then the EtherType of the content.
        (0x8100 | 0x88A8, [_, _, high, low, ..]) => {
            matches!(
                u16::from_be_bytes([*high, *low]),
                0x0800 | 0x86DD | 0x0806 | 0x888E
            )
        }
        _ => false,
    }
}

/// Returns true if a frame is a data frame of IEEE 802.11 with LLC and SNAP headers behind its own header.
fn is_wifi_data(bytes: &[u8]) -> bool {
    let &[kind, flags, ..] = bytes else {
        return false;
    };
    // Version 0, type 2.
    if kind & 0x0F != 0x08 {
        return false;
    }
    let has_quality = kind & 0x80 != 0;
    let addresses = if flags & 3 == 3 { 30 } else { 24 };
    let quality = if has_quality { 2 } else { 0 };
    let control = if has_quality && flags & 0x80 != 0 {
        4
    } else {
        0
    };
    let content = bytes.get(addresses + quality + control..);
    content.is_some_and(|content| content.starts_with(&[0xAA, 0xAA, 3]))
}

/// Header fields of a frame. A field is `None` if the frame lacks this field or was cut off before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) source_mac: Option<[u8; 6]>,
    pub(crate) destination_mac: Option<[u8; 6]>,
    pub(crate) vlan: Option<u16>,
    pub(crate) ethertype: Option<u16>,
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: Option<IpAddr>,
    pub(crate) dscp: Option<u8>,
    pub(crate) ecn: Option<u8>,
    pub(crate) hops: Option<u8>,
    pub(crate) protocol: Option<u8>,
    pub(crate) source_port: Option<u16>,
    pub(crate) destination_port: Option<u16>,
    pub(crate) tcp: Option<Tcp>,
    /// Number of bytes after the UDP or TCP header. It is computed from the length in the IP header.
    pub(crate) payload: Option<u32>,
    /// Number of bytes from the frame's start to the end of the IP packet in the frame. It is computed from
    /// the length in the IP header.
    pub(crate) stated_length: Option<u32>,
}

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// Flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: u32,
    pub(crate) window: u16,
}

/// Offset of the EtherType in the header of Linux cooked captures.
const COOKED_TYPE: usize = 14;
/// Size of the header of Linux cooked captures, in bytes.
const COOKED_HEADER: usize = 16;

impl Frame {
    /// Reads the headers of a frame.
    pub(crate) fn read(link: Link, bytes: &[u8]) -> Frame {
        let (slices, before) = match link {
            Link::Ethernet => (LaxSlicedPacket::from_ethernet(bytes).ok(), 0),
            Link::Ip => (LaxSlicedPacket::from_ip(bytes).ok(), 0),
            Link::LinuxCooked => (cooked(bytes), COOKED_HEADER),
            Link::Loopback => {
                let packet = bytes.get(4..).unwrap_or(&[]);
                (LaxSlicedPacket::from_ip(packet).ok(), 4)
            }
            Link::Wifi | Link::Other(_) | Link::Unknown => (None, 0),
        };
        slices.map_or_else(Frame::default, |slices| Frame::from_slices(&slices, before))
    }

    /// Reads the fields of the parsed headers. `before` is the number of bytes that were skipped
    /// before the headers.
    fn from_slices(slices: &LaxSlicedPacket<'_>, before: usize) -> Frame {
        let mut frame = Frame::default();
        let mut at = before;
        if let Some(LinkSlice::Ethernet2(ethernet)) = &slices.link {
            frame.source_mac = Some(ethernet.source());
            frame.destination_mac = Some(ethernet.destination());
            at += 14;
        }
        let vlans = slices.vlan_ids();
        at += 4 * vlans.len();
        frame.vlan = vlans.first().map(|vlan| vlan.value());
        // A smaller value is not a type. It is the length of an IEEE 802.3 frame.
        const LEAST_TYPE: u16 = 0x0600;
        frame.ethertype = slices
            .ether_payload()
            .map(|payload| payload.ether_type.0)
            .filter(|ethertype| *ethertype >= LEAST_TYPE);
        // The first value is the size of the IP header. The second value is the size of the whole IP packet
        // (header and content) according to the IP header.
        let lengths = match &slices.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                frame.source = Some(header.source_addr().into());
                frame.destination = Some(header.destination_addr().into());
                frame.dscp = Some(header.dcp().value());
                frame.ecn = Some(header.ecn().value());
                frame.hops = Some(header.ttl());
                frame.protocol = Some(ip.payload().ip_number.0);
                frame.ethertype = frame.ethertype.or(Some(EtherType::IPV4.0));
                let stated = usize::from(header.total_len());
                Some((header.slice().len(), stated))
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                frame.source = Some(header.source_addr().into());
                frame.destination = Some(header.destination_addr().into());
                frame.dscp = Some(header.dscp().value());
                frame.ecn = Some(header.ecn().value());
                frame.hops = Some(header.hop_limit());
                frame.protocol = Some(ip.payload().ip_number.0);
                frame.ethertype = frame.ethertype.or(Some(EtherType::IPV6.0));
                let own = header.slice().len();
                let stated = match header.payload_length() {
                    0 => 0,
                    content => own + usize::from(content),
                };
                Some((own + ip.extensions().slice().len(), stated))
            }
            _ => None,
        };
        // If the network adapter will split a packet into segments, the header of this packet states a length
        // of 0.
        let lengths = lengths.filter(|(_, stated)| *stated > 0);
        frame.stated_length = lengths.map(|(_, stated)| (at + stated) as u32);
        frame.read_transport(slices, lengths);
        frame
    }

    fn read_transport(&mut self, slices: &LaxSlicedPacket<'_>, lengths: Option<(usize, usize)>) {
        let header = match &slices.transport {
            Some(TransportSlice::Udp(udp)) => {
                self.source_port = Some(udp.source_port());
                self.destination_port = Some(udp.destination_port());
                8
            }
            Some(TransportSlice::Tcp(tcp)) => {
                self.source_port = Some(tcp.source_port());
                self.destination_port = Some(tcp.destination_port());
                let flags = [
                    tcp.fin(),
                    tcp.syn(),
                    tcp.rst(),
                    tcp.psh(),
                    tcp.ack(),
                    tcp.urg(),
                    tcp.ece(),
                    tcp.cwr(),
                ];
                let bits = flags
                    .iter()
                    .zip(0..)
                    .map(|(set, bit)| u8::from(*set) << bit);
                self.tcp = Some(Tcp {
                    flags: bits.sum(),
                    sequence: tcp.sequence_number(),
                    acknowledgment: tcp.acknowledgment_number(),
                    window: tcp.window_size(),
                });
                tcp.header_slice().len()
            }
            _ => return,
        };
        self.payload = lengths
            .and_then(|(ip_header, stated)| stated.checked_sub(ip_header + header))
            .map(|payload| payload as u32);
    }
}

fn cooked(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let ethertype = bytes.get(COOKED_TYPE..COOKED_HEADER)?.try_into().ok()?;
    let ethertype = EtherType(u16::from_be_bytes(ethertype));
    Some(LaxSlicedPacket::from_ether_type(
        ethertype,
        &bytes[COOKED_HEADER..],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// TCP SYN over IPv4 with DSCP 46 and ECN 1 (TOS 0xB9). The bytes were written by hand from RFC 791, RFC
    /// 2474 and RFC 9293.
    const SYN: [u8; 54] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x08, 0x00, // Ethernet II
        0x45, 0xB9, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0x30, 0x39, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x02, 0xFF, 0xFE, 0, 0, 0, 0, // TCP
    ];

    #[test]
    fn all_headers_are_read() {
        let frame = Frame::read(Link::Ethernet, &SYN);
        assert_eq!(frame.destination_mac, Some([0, 1, 2, 3, 4, 5]));
        assert_eq!(frame.source_mac, Some([6, 7, 8, 9, 10, 11]));
        assert_eq!(
            (frame.dscp, frame.ecn, frame.hops),
            (Some(46), Some(1), Some(64))
        );
        assert_eq!((frame.ethertype, frame.protocol), (Some(0x0800), Some(6)));
        assert_eq!(
            (frame.source_port, frame.destination_port),
            (Some(12345), Some(80))
        );
        let tcp = frame.tcp.unwrap();
        assert_eq!((tcp.flags, tcp.sequence, tcp.acknowledgment), (2, 7, 9));
        assert_eq!((frame.payload, frame.stated_length), (Some(0), Some(54)));
        let mut without_link = Frame::read(Link::Ip, &SYN[14..]);
        assert_eq!(without_link.stated_length.take(), Some(40));
        assert_eq!(without_link.source, frame.source);
        assert_eq!(without_link.ethertype, Some(0x0800));
    }

    #[test]
    fn a_vlan_tag_is_skipped() {
        let tag = [0x81, 0x00, 0x60, 0x2A];
        let tagged = [&SYN[..12], &tag, &SYN[12..]].concat();
        let frame = Frame::read(Link::Ethernet, &tagged);
        assert_eq!((frame.vlan, frame.ethertype), (Some(42), Some(0x0800)));
        assert_eq!((frame.dscp, frame.stated_length), (Some(46), Some(58)));
    }

    #[test]
    fn a_cut_frame_has_the_fields_before_the_cut() {
        let frame = Frame::read(Link::Ethernet, &SYN[..40]);
        assert_eq!((frame.dscp, frame.stated_length), (Some(46), Some(54)));
        assert_eq!(frame.source_port, None);
        assert_eq!(Frame::read(Link::Ethernet, &SYN[..13]), Frame::default());
    }

    #[test]
    fn other_links_lead_to_the_same_packet() {
        let cooked = [&[0; 14][..], &[0x08, 0x00], &SYN[14..]].concat();
        let loopback = [&[2, 0, 0, 0][..], &SYN[14..]].concat();
        for (link, bytes) in [(Link::LinuxCooked, cooked), (Link::Loopback, loopback)] {
            let frame = Frame::read(link, &bytes);
            assert_eq!((frame.dscp, frame.destination_port), (Some(46), Some(80)));
            assert_eq!(frame.stated_length, Some(bytes.len() as u32));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic() {
        let mut random = Rng(1);
        for _ in 0..20_000 {
            let mut bytes = SYN.to_vec();
            for _ in 0..random.below(6) {
                let at = random.below(bytes.len());
                bytes[at] = random.bits() as u8;
            }
            bytes.truncate(random.below(bytes.len() + 1));
            for link in [Link::Ethernet, Link::Ip, Link::LinuxCooked, Link::Loopback] {
                Frame::read(link, &bytes);
            }
        }
    }
}
