//! `packets`: captured frames.

use std::collections::HashMap;

use etl::{Event, le};

use crate::column::{Bytes, Named, Names, Nullable, Text};
use crate::frame::{Frame, Link};
use crate::providers::{NDIS_PACKET_CAPTURE, PKTMON, logged_by};
use crate::register::{EventTable, Incoming, Reader, Reads, Register};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::trackers::Trackers;

table! {
    /// One row per captured packet. Packets come from `netsh trace` and NetworkMonitor (NDIS-PacketCapture),
    /// from `pktmon`, and from pcapng and pcap files that are opened with a trace or alone.
    ///
    /// `pktmon` reports a packet once for every component that the packet passes. These rows have the same
    /// `packet_id`. The headers of Ethernet, IP, Linux cooked and loopback links are read. The headers of
    /// VLAN tags, IPv4, IPv6, TCP and UDP are also read. If a frame lacks a field, or if the field was cut
    /// off, its column is unknown.
    Packets, PacketsView = "packets" sorted by time_ns
        title "Packets"
        record "packets (netsh trace start capture=yes, pktmon, or a pcapng file with the trace)"
    {
        /// Time of the capture. If a packet has several fragments, this is the time of the last fragment.
        time_ns: Vec<i64> = "header time; pcapng, pcap: time stamp, by UTC",
        /// CPU that logged the packet. Unknown for capture files.
        cpu: Nullable<u16> = "CPU of the buffer",
        /// Source of the capture: `ndis`, `pktmon` or `pcap`.
        source: Names<PacketSource> = "NDIS-PacketCapture 1001; PktMon 160, 170; a pcapng or pcap file",
        /// Index of the network interface. For `pktmon`, this is the id of the component.
        interface: Nullable<u32> = "MiniportIfIndex; ComponentId; pcapng: interface id",
        /// Name of the interface, at most 256 characters.
        interface_name: Text = "pcapng: if_name",
        /// Direction: `send` or `receive`. Unknown for `pktmon`, because its direction tag is not documented.
        direction: Text = "NDIS-PacketCapture: keyword; pcapng: epb_flags",
        /// Link layer of the frame: `ethernet`, `ip`, `802.11`, `linux_cooked`, `loopback`, or
        /// `linktype` and a number. A frame of a Wi-Fi adapter is `ethernet` if it has the header of Ethernet,
        /// although the capture states 802.11.
        link_type: Text = "NDIS-PacketCapture: keyword; PktMon: PacketType; pcapng, pcap: link type",
        /// Length of the frame on the wire. `ndis` does not report this length. For `ndis`, the value is the
        /// larger of two lengths: the captured length and the length in the IP header.
        length_bytes: Vec<u32> = "FragmentSize; OriginalPayloadSize; pcapng, pcap: original length",
        /// Number of captured bytes.
        captured_bytes: Vec<u32> = "FragmentSize; LoggedPayloadSize; pcapng, pcap: captured length",
        /// Captured bytes of the frame.
        frame: Bytes = "Fragment; Payload; pcapng, pcap: packet data",
        /// Hardware address of the sender, as `01:23:45:67:89:ab`.
        source_mac: Text = "Ethernet: source",
        /// Hardware address of the receiver, as `01:23:45:67:89:ab`.
        destination_mac: Text = "Ethernet: destination",
        /// Identifier of the outer VLAN.
        vlan: Nullable<u16> = "IEEE 802.1Q: VLAN identifier",
        /// Protocol of the frame's content: 2048 IPv4, 34525 IPv6, 2054 ARP.
        ethertype: Nullable<u16> = "EtherType; without a link header, the IP version",
        /// IP address of the sender.
        source_address: Text = "IP: source address",
        /// IP address of the receiver.
        destination_address: Text = "IP: destination address",
        /// Protocol of the IP packet's content: 6 TCP, 17 UDP, 1 ICMP, 58 ICMPv6.
        protocol: Nullable<u8> = "IPv4: protocol; IPv6: last next header",
        /// Port of the sender.
        source_port: Nullable<u16> = "TCP, UDP: source port",
        /// Port of the receiver.
        destination_port: Nullable<u16> = "TCP, UDP: destination port",
        /// Differentiated services code point: 0 best effort, 46 expedited forwarding.
        dscp: Nullable<u8> = "IPv4: type of service; IPv6: traffic class; upper six bits",
        /// Explicit congestion notification: 0 not capable, 1 and 2 capable, 3 congested.
        ecn: Nullable<u8> = "IPv4: type of service; IPv6: traffic class; lower two bits",
        /// Maximum number of routers that may still forward the packet.
        hop_limit: Nullable<u8> = "IPv4: time to live; IPv6: hop limit",
        /// TCP flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
        tcp_flags: Nullable<u8> = "TCP: control bits",
        /// Sequence number of the payload's first byte.
        tcp_sequence: Nullable<u32> = "TCP: sequence number",
        /// Sequence number of the next byte that the sender of the packet expects to receive.
        tcp_acknowledgment: Nullable<u32> = "TCP: acknowledgment number",
        /// Receive window of the sender, before scaling.
        tcp_window: Nullable<u16> = "TCP: window",
        /// Number of bytes of TCP or UDP data. It is computed from the length in the IP header.
        payload_bytes: Nullable<u32> = "IP: length minus the headers",
        /// Identifier of the packet. `pktmon` may report one packet in several rows with the same identifier.
        packet_id: Nullable<u64> = "PktMon: PktGroupId",
        /// Reason for dropping the packet. Null if the packet was not dropped.
        drop_reason: Nullable<u32> = "PktMon: DropReason, if not 0",
        /// Process that sent the packet. Unknown for received packets.
        process_id: Nullable<u32> = "header process of a send",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
    }
}

/// Source of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketSource {
    /// NDIS-PacketCapture.
    Ndis,
    /// PktMon.
    Pktmon,
    /// A pcapng or pcap file.
    Pcap,
}

impl Named for PacketSource {
    const NAMES: &'static [&'static str] = &["ndis", "pktmon", "pcap"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Send,
    Receive,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Send => "send",
            Direction::Receive => "receive",
        }
    }
}

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'p> {
    pub(crate) time_ns: i64,
    pub(crate) cpu: Option<u16>,
    pub(crate) source: PacketSource,
    pub(crate) interface: Option<u32>,
    pub(crate) interface_name: Option<&'p str>,
    pub(crate) direction: Option<Direction>,
    pub(crate) link: Link,
    /// Length of the packet on the wire. `None` if the capture does not contain this length.
    pub(crate) length: Option<u32>,
    pub(crate) bytes: &'p [u8],
    pub(crate) packet_id: Option<u64>,
    pub(crate) drop_reason: Option<u32>,
    pub(crate) process_id: Option<u32>,
}

impl Packets {
    /// Adds a row.
    pub(crate) fn push(&mut self, packet: &Packet<'_>) {
        let frame = Frame::read(packet.link, packet.bytes);
        let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        let stated = frame.stated_length.unwrap_or(0).max(captured);
        self.time_ns.push(packet.time_ns);
        self.cpu.push(packet.cpu);
        self.source.0.push(packet.source);
        self.interface.push(packet.interface);
        self.interface_name.push(packet.interface_name);
        self.direction.push(packet.direction.map(Direction::name));
        self.link_type.push(packet.link.name().as_deref());
        self.length_bytes.push(packet.length.unwrap_or(stated));
        self.captured_bytes.push(captured);
        self.frame.push(packet.bytes);
        self.source_mac.push(frame.source_mac.map(mac).as_deref());
        let destination_mac = frame.destination_mac.map(mac);
        self.destination_mac.push(destination_mac.as_deref());
        self.vlan.push(frame.vlan);
        self.ethertype.push(frame.ethertype);
        let source = frame.source.map(|address| address.to_string());
        self.source_address.push(source.as_deref());
        let destination = frame.destination.map(|address| address.to_string());
        self.destination_address.push(destination.as_deref());
        self.protocol.push(frame.protocol);
        self.source_port.push(frame.source_port);
        self.destination_port.push(frame.destination_port);
        self.dscp.push(frame.dscp);
        self.ecn.push(frame.ecn);
        self.hop_limit.push(frame.hops);
        self.tcp_flags.push(frame.tcp.map(|tcp| tcp.flags));
        self.tcp_sequence.push(frame.tcp.map(|tcp| tcp.sequence));
        self.tcp_acknowledgment
            .push(frame.tcp.map(|tcp| tcp.acknowledgment));
        self.tcp_window.push(frame.tcp.map(|tcp| tcp.window));
        self.payload_bytes.push(frame.payload);
        self.packet_id.push(packet.packet_id);
        self.drop_reason.push(packet.drop_reason);
        self.process_id.push(packet.process_id);
    }
}

fn mac(bytes: [u8; 6]) -> String {
    let digits = bytes.map(|byte| format!("{byte:02x}"));
    digits.join(":")
}

/// Fragments of the incomplete packets of one CPU stream. The last fragment of such a packet was not read
/// yet.
#[derive(Debug, Default)]
struct Fragments {
    /// Bytes of each incomplete packet. The key consists of the two indices of the interface and the
    /// direction.
    open: HashMap<(u32, u32, Option<Direction>), Vec<u8>>,
}

/// Keywords of NDIS-PacketCapture events.
mod keyword {
    pub(super) const ETHERNET: u64 = 1;
    pub(super) const WWAN: u64 = 0x200;
    pub(super) const WIFI: u64 = 0x1_0000;
    pub(super) const PACKET_START: u64 = 0x4000_0000;
    pub(super) const PACKET_END: u64 = 0x8000_0000;
    pub(super) const SEND: u64 = 0x1_0000_0000;
    pub(super) const RECEIVE: u64 = 0x2_0000_0000;
}

impl Fragments {
    /// Adds a packet of NDIS-PacketCapture. If the packet is incomplete, keeps the fragment until the last fragment is
    /// read. Returns `None` if the payload is unreadable or the first fragment is missing.
    fn take_ndis(&mut self, event: &Event<'_>, rows: &mut Packets) -> Option<()> {
        let (payload, bits) = (event.payload(), event.descriptor()?.keyword);
        let (miniport, lower) = (le::u32(payload, 0)?, le::u32(payload, 4)?);
        let size = le::u32(payload, 8)? as usize;
        let fragment = payload.get(12..)?.get(..size)?;
        let has = |bit| bits & bit != 0;
        let direction = match (has(keyword::SEND), has(keyword::RECEIVE)) {
            (true, false) => Some(Direction::Send),
            (false, true) => Some(Direction::Receive),
            _ => None,
        };
        let key = (miniport, lower, direction);
        let before = self
            .open
            .remove(&key)
            .filter(|_| !has(keyword::PACKET_START));
        let whole = match before {
            Some(mut before) => {
                before.extend_from_slice(fragment);
                Some(before)
            }
            None if !has(keyword::PACKET_START) => return None,
            None if has(keyword::PACKET_END) => None,
            None => Some(fragment.to_vec()),
        };
        if !has(keyword::PACKET_END) {
            self.open.extend(whole.map(|whole| (key, whole)));
            return Some(());
        }
        let sender = logged_by(event)
            .1
            .filter(|_| direction == Some(Direction::Send));
        let bytes = whole.as_deref().unwrap_or(fragment);
        rows.push(&Packet {
            time_ns: event.time_ns(),
            cpu: Some(event.cpu()),
            source: PacketSource::Ndis,
            interface: Some(miniport),
            interface_name: None,
            direction,
            link: match bits {
                _ if has(keyword::WIFI) => Link::of_wifi(bytes),
                _ if has(keyword::WWAN) => Link::Ip,
                _ if has(keyword::ETHERNET) => Link::Ethernet,
                _ => Link::Unknown,
            },
            length: None,
            bytes,
            packet_id: None,
            drop_reason: None,
            process_id: sender,
        });
        Some(())
    }
}

/// Adds a packet of PktMon.
fn take_pktmon(event: &Event<'_>, rows: &mut Packets) -> Option<()> {
    let payload = event.payload();
    let size = usize::from(le::u16(payload, 32)?);
    let bytes = payload.get(34..)?.get(..size)?;
    rows.push(&Packet {
        time_ns: event.time_ns(),
        cpu: Some(event.cpu()),
        source: PacketSource::Pktmon,
        interface: Some(le::u16(payload, 16)?.into()),
        interface_name: None,
        direction: None,
        link: match le::u16(payload, 14)? {
            1 => Link::Ethernet,
            2 => Link::of_wifi(bytes),
            3 => Link::Ip,
            _ => Link::Unknown,
        },
        length: Some(le::u16(payload, 30)?.into()),
        bytes,
        packet_id: le::u64(payload, 0),
        drop_reason: le::u32(payload, 22).filter(|reason| *reason != 0),
        process_id: None,
    });
    Some(())
}

/// Packets of one CPU stream. Incomplete packets are included.
#[derive(Debug, Default)]
pub(crate) struct PacketRows {
    rows: Packets,
    fragments: Fragments,
}

impl PacketRows {
    /// Adds `packets` to `rows`. Both are sorted. The result is also sorted.
    pub(crate) fn add(&mut self, packets: Packets) {
        if !packets.is_empty() {
            let own = std::mem::take(&mut self.rows);
            self.rows = Rows::merge(vec![own, packets]);
        }
    }
}

impl Rows for PacketRows {
    fn sort(&mut self) {
        self.rows.sort();
    }

    fn merge(parts: Vec<Self>) -> Self {
        PacketRows {
            rows: Rows::merge(parts.into_iter().map(|part| part.rows).collect()),
            fragments: Fragments::default(),
        }
    }

    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    fn rows(&self) -> usize {
        self.rows.rows()
    }

    fn split_off(&mut self, time_ns: i64) -> Self {
        PacketRows {
            rows: self.rows.split_off(time_ns),
            // These fragments will become packets later. So they belong to the later rows.
            fragments: std::mem::take(&mut self.fragments),
        }
    }
}

impl Register for Packets {
    const READS: Reads = Reads {
        providers: &[
            (NDIS_PACKET_CAPTURE, &[1001..=1001]),
            (PKTMON, &[160..=160, 170..=170]),
        ],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl EventTable for Packets {
    type Raw = PacketRows;
    type State = ();

    fn push(raw: &mut PacketRows, incoming: &Incoming<'_, '_>) -> Option<()> {
        let event = incoming.event;
        match event.guid()? == NDIS_PACKET_CAPTURE {
            true => raw.fragments.take_ndis(event, &mut raw.rows),
            false => take_pktmon(event, &mut raw.rows),
        }
    }

    fn join(raw: &mut PacketRows, (): &mut (), trackers: &Trackers<'_>) -> Packets {
        let mut rows = std::mem::take(&mut raw.rows);
        rows.process_row = trackers.process_rows(&rows.process_id, &rows.time_ns);
        rows
    }
}
