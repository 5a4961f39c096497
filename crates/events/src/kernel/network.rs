//! Kernel events of TCP and UDP traffic.

use std::net::{IpAddr, SocketAddr};

use rules::kinds::NetworkAction;

use super::cursor::Cursor;

/// Traffic event of the TcpIp or UdpIp class, version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkEvent {
    /// Operation that the event logs.
    pub action: NetworkAction,
    /// Process that owns the connection.
    pub process_id: u32,
    /// Number of bytes of data.
    pub size: u32,
    /// Address and port that the event calls the destination. For TCP, they belong to the remote computer,
    /// even if data was received (seen in real traces). For UDP, they are the destination of the datagram.
    pub destination: SocketAddr,
    /// Address and port that the event calls the source. For TCP, they belong to the local computer. For UDP,
    /// they are the source of the datagram.
    pub source: SocketAddr,
    /// Start and end time of a TCP send. The unit of these times is not documented. The field is `None` for
    /// other events.
    pub send_times: Option<(u32, u32)>,
    /// Sequence number from the payload.
    pub sequence: u32,
    /// Identifier of the connection from the payload.
    pub connection: u64,
}

impl NetworkEvent {
    /// Reads the payload of the TcpIp event `opcode`. Returns `None` if the opcode has no [`NetworkAction`],
    /// if the version is below 2, or if the payload is too short.
    pub fn read_tcp(opcode: u8, payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let (action, is_v6) = NetworkAction::of_opcode(opcode)?;
        NetworkEvent::read(action, is_v6, true, payload, version, pointer_size)
    }

    /// Reads the payload of the UdpIp event `opcode`. Returns `None` if the opcode does not mean sending or
    /// receiving, if the version is below 2, or if the payload is too short.
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
            // These 16 bytes are the segment size, option flags and window sizes.
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
