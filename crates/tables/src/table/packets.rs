//! `packets`: captured frames.

use std::collections::HashMap;

use crate::column::{Bytes, Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
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
pub enum Direction {
    /// Sent by the machine.
    Send,
    /// Received by the machine.
    Receive,
}

impl Direction {
    /// Returns the name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Send => "send",
            Direction::Receive => "receive",
        }
    }
}

/// Packets of one CPU stream. Incomplete packets are included.
#[derive(Debug, Default)]
pub struct PacketRows {
    /// Complete packets.
    pub rows: Packets,
    /// Bytes of each packet whose last fragment was not read yet. The key consists of the two indices of the interface
    /// and the direction.
    pub fragments: HashMap<(u32, u32, Option<Direction>), Vec<u8>>,
}

impl PacketRows {
    /// Adds `packets` to `rows`. Both are sorted. The result is also sorted.
    pub fn add(&mut self, packets: Packets) {
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
            fragments: HashMap::new(),
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
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl EventTable for Packets {
    type Raw = PacketRows;
    type State = ();

    fn join(raw: &mut PacketRows, (): &mut (), trackers: &Trackers<'_>) -> Packets {
        let mut rows = std::mem::take(&mut raw.rows);
        rows.process_row = trackers.process_rows(&rows.process_id, &rows.time_ns);
        rows
    }
}
