//! `packets`: captured frames.

use etl::{Event, le};
use tables::{Direction, PacketRows, PacketSource, Packets};

use crate::frame::{Frame, Link};
use crate::providers::{NDIS_PACKET_CAPTURE, PKTMON, logged_by};
use crate::register::{FromEvents, IncomingEvent, Reads};

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

/// Adds a row.
pub(crate) fn push(rows: &mut Packets, packet: &Packet<'_>) {
    let frame = Frame::read(packet.link, packet.bytes);
    let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
    let stated = frame.stated_length.unwrap_or(0).max(captured);
    rows.time_ns.push(packet.time_ns);
    rows.cpu.push(packet.cpu);
    rows.source.0.push(packet.source);
    rows.interface.push(packet.interface);
    rows.interface_name.push(packet.interface_name);
    rows.direction.push(packet.direction.map(Direction::name));
    rows.link_type.push(packet.link.name().as_deref());
    rows.length_bytes.push(packet.length.unwrap_or(stated));
    rows.captured_bytes.push(captured);
    rows.frame.push(packet.bytes);
    rows.source_mac.push(frame.source_mac.map(mac).as_deref());
    let destination_mac = frame.destination_mac.map(mac);
    rows.destination_mac.push(destination_mac.as_deref());
    rows.vlan.push(frame.vlan);
    rows.ethertype.push(frame.ethertype);
    let source = frame.source.map(|address| address.to_string());
    rows.source_address.push(source.as_deref());
    let destination = frame.destination.map(|address| address.to_string());
    rows.destination_address.push(destination.as_deref());
    rows.protocol.push(frame.protocol);
    rows.source_port.push(frame.source_port);
    rows.destination_port.push(frame.destination_port);
    rows.dscp.push(frame.dscp);
    rows.ecn.push(frame.ecn);
    rows.hop_limit.push(frame.hops);
    rows.tcp_flags.push(frame.tcp.map(|tcp| tcp.flags));
    rows.tcp_sequence.push(frame.tcp.map(|tcp| tcp.sequence));
    rows.tcp_acknowledgment
        .push(frame.tcp.map(|tcp| tcp.acknowledgment));
    rows.tcp_window.push(frame.tcp.map(|tcp| tcp.window));
    rows.payload_bytes.push(frame.payload);
    rows.packet_id.push(packet.packet_id);
    rows.drop_reason.push(packet.drop_reason);
    rows.process_id.push(packet.process_id);
}

fn mac(bytes: [u8; 6]) -> String {
    let digits = bytes.map(|byte| format!("{byte:02x}"));
    digits.join(":")
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

/// Adds a packet of NDIS-PacketCapture. If the packet is incomplete, keeps the fragment until the last fragment is
/// read. Returns `None` if the payload is unreadable or the first fragment is missing.
fn take_ndis(raw: &mut PacketRows, event: &Event<'_>) -> Option<()> {
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
    let before = raw
        .fragments
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
        raw.fragments.extend(whole.map(|whole| (key, whole)));
        return Some(());
    }
    let sender = logged_by(event)
        .1
        .filter(|_| direction == Some(Direction::Send));
    let bytes = whole.as_deref().unwrap_or(fragment);
    push(
        &mut raw.rows,
        &Packet {
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
        },
    );
    Some(())
}

/// Adds a packet of PktMon.
fn take_pktmon(event: &Event<'_>, rows: &mut Packets) -> Option<()> {
    let payload = event.payload();
    let size = usize::from(le::u16(payload, 32)?);
    let bytes = payload.get(34..)?.get(..size)?;
    push(
        rows,
        &Packet {
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
        },
    );
    Some(())
}

impl FromEvents for Packets {
    const READS: Reads = Reads {
        providers: &[
            (NDIS_PACKET_CAPTURE, &[1001..=1001]),
            (PKTMON, &[160..=160, 170..=170]),
        ],
        ..Reads::NOTHING
    };

    fn push(raw: &mut PacketRows, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        if event.guid()? == NDIS_PACKET_CAPTURE {
            take_ndis(raw, event)
        } else {
            take_pktmon(event, &mut raw.rows)
        }
    }
}
