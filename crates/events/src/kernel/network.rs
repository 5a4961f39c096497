//! TCP and UDP traffic as the kernel reports it.

use std::net::{IpAddr, SocketAddr};

use super::cursor::Cursor;

/// What happened to a connection or datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetworkAction {
    /// Data was sent.
    Send,
    /// Data was received.
    Receive,
    /// A connection was opened from here.
    Connect,
    /// A connection was closed.
    Disconnect,
    /// Data was sent again.
    Retransmit,
    /// A connection was opened from outside.
    Accept,
    /// A connection was tried again.
    Reconnect,
    /// Received data was handed to the application.
    Copy,
}

impl NetworkAction {
    /// The action of an opcode, and whether it speaks of IPv6, whose opcodes are 16 higher.
    fn of_opcode(opcode: u8) -> Option<(NetworkAction, bool)> {
        let is_v6 = opcode >= 26;
        let action = match if is_v6 { opcode - 16 } else { opcode } {
            10 => NetworkAction::Send,
            11 => NetworkAction::Receive,
            12 => NetworkAction::Connect,
            13 => NetworkAction::Disconnect,
            14 => NetworkAction::Retransmit,
            15 => NetworkAction::Accept,
            16 => NetworkAction::Reconnect,
            18 => NetworkAction::Copy,
            _ => return None,
        };
        Some((action, is_v6))
    }
}

/// Traffic events of the TcpIp and UdpIp classes, version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkEvent {
    /// What happened.
    pub action: NetworkAction,
    /// The process whose traffic it is.
    pub process_id: u32,
    /// Bytes of data.
    pub size: u32,
    /// What the event calls its destination: of TCP the remote end, also where data was received
    /// (seen in real traces); of UDP where the datagram went.
    pub destination: SocketAddr,
    /// What the event calls its source: of TCP the local end, of UDP where the datagram came from.
    pub source: SocketAddr,
    /// When a TCP send started and ended, in the units the event has; other events lack it.
    pub send_times: Option<(u32, u32)>,
    /// Sequence number.
    pub sequence: u32,
    /// Tells connections apart.
    pub connection: u64,
}

impl NetworkEvent {
    /// Reads the payload of the TcpIp event `opcode`; `None` if it is not one of
    /// [`NetworkAction`], older than version 2, or too short.
    pub fn read_tcp(opcode: u8, payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let (action, is_v6) = NetworkAction::of_opcode(opcode)?;
        NetworkEvent::read(action, is_v6, true, payload, version, pointer_size)
    }

    /// Reads the payload of the UdpIp event `opcode`, which sends or receives; `None` as for
    /// [`NetworkEvent::read_tcp`].
    pub fn read_udp(opcode: u8, payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let (action, is_v6) = NetworkAction::of_opcode(opcode)?;
        if !matches!(action, NetworkAction::Send | NetworkAction::Receive) {
            return None;
        }
        NetworkEvent::read(action, is_v6, false, payload, version, pointer_size)
    }

    fn read(
        action: NetworkAction,
        is_v6: bool,
        is_tcp: bool,
        payload: &[u8],
        version: u8,
        pointer_size: usize,
    ) -> Option<Self> {
        if version < 2 {
            return None;
        }
        let mut cursor = Cursor::new(payload, pointer_size);
        let (process_id, size) = (cursor.u32()?, cursor.u32()?);
        let mut address = || -> Option<IpAddr> {
            Some(if is_v6 {
                cursor.ipv6()?.into()
            } else {
                cursor.ipv4()?.into()
            })
        };
        let (destination, source) = (address()?, address()?);
        let destination = SocketAddr::new(destination, cursor.port()?);
        let source = SocketAddr::new(source, cursor.port()?);
        let mut send_times = None;
        match action {
            NetworkAction::Send if is_tcp => send_times = Some((cursor.u32()?, cursor.u32()?)),
            // Segment size, option flags and windows.
            NetworkAction::Connect | NetworkAction::Accept => cursor.skip(16)?,
            _ => {}
        }
        Some(NetworkEvent {
            action,
            process_id,
            size,
            destination,
            source,
            send_times,
            sequence: cursor.u32()?,
            connection: cursor.pointer()?,
        })
    }
}
