//! PGM packets sent directly over IP as protocol 113, without UDP.
//!
//! For IPv4, this module writes the IP header, because only some packets carry the Router Alert
//! option. For IPv6, the system writes the header, without the Router Alert option. The value of
//! this option names a protocol (RFC 2711), and no value is assigned to PGM. There is also no safe
//! wrapper for `IPV6_HOPOPTS`.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, UdpSocket},
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{
    SocketConfig, SocketError,
    error::Context,
    link::{More, Take, endpoint},
    udp::{configure_sending, is_transient, join, set_buffer_sizes},
};
use crate::Destination;

const PGM: u8 = 113;
/// The Router Alert option of IPv4 (RFC 2113).
const ROUTER_ALERT: [u8; 4] = [0x94, 0x04, 0, 0];
const HEADER: usize = 20;
const LONGEST: usize = 65_536;

#[derive(Debug)]
pub(super) struct Raw {
    /// Raw socket. Its type is `UdpSocket`, because this type works for any datagram socket.
    socket: UdpSocket,
    own: IpAddr,
    group: IpAddr,
    interface: u32,
    hops: u8,
    class: u8,
    asked: usize,
    room: Vec<u8>,
}

impl Raw {
    pub(super) fn open(config: &SocketConfig, own: IpAddr) -> Result<Raw, SocketError> {
        let at = endpoint(own, 0, config.interface.index());
        let context = || "open a raw socket".to_owned();
        let protocol = Protocol::from(i32::from(PGM));
        let socket = match Socket::new(Domain::for_address(at), Type::RAW, Some(protocol)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(SocketError::NoPermission);
            }
            socket => socket.context(context)?,
        };
        if own.is_ipv4() {
            socket.set_header_included_v4(true).context(context)?;
        }
        set_buffer_sizes(&socket, config.buffer);
        socket.set_nonblocking(true).context(context)?;
        let socket = UdpSocket::from(socket);
        join(&socket, config, own)?;
        configure_sending(&socket, config, config.hops, own)?;
        Ok(Raw {
            socket,
            own,
            group: config.group,
            interface: config.interface.index(),
            hops: u8::try_from(config.hops).unwrap_or(u8::MAX),
            class: config.traffic_class(),
            asked: config.buffer,
            room: vec![0; LONGEST],
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(super) fn buffers(&self) -> (usize, &UdpSocket, &UdpSocket) {
        (self.asked, &self.socket, &self.socket)
    }

    pub(super) fn send(
        &self,
        bytes: &[u8],
        to: Destination,
        group: IpAddr,
        router_alert: bool,
    ) -> Result<bool, SocketError> {
        let (address, hops) = match to {
            Destination::Group => (group, self.hops),
            Destination::GroupOneHop => (group, 1),
            Destination::Unicast(address) => (address, 64),
        };
        let destination = endpoint(address, 0, self.interface);
        let sent = match (self.own, address) {
            (IpAddr::V4(own), IpAddr::V4(address)) => {
                let mut packet =
                    header((own, address), self.class, hops, router_alert, bytes.len());
                packet.extend_from_slice(bytes);
                self.socket.send_to(&packet, destination)
            }
            _ if to == Destination::GroupOneHop => {
                // The system writes the header, with the hop limit of the socket.
                let socket = SockRef::from(&self.socket);
                let context = || "set the hop limit".to_owned();
                socket.set_multicast_hops_v6(1).context(context)?;
                let sent = self.socket.send_to(bytes, destination);
                let hops = self.hops.into();
                socket.set_multicast_hops_v6(hops).context(context)?;
                sent
            }
            _ => self.socket.send_to(bytes, destination),
        };
        match sent {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error).context(|| format!("send to {address}")),
        }
    }

    pub(super) fn receive(&mut self, take: &mut Take<'_>) -> Result<More, SocketError> {
        let (length, from) = match self.socket.recv_from(&mut self.room) {
            Ok(received) => received,
            Err(error) if is_transient(&error) => return Ok(More::No),
            Err(error) => return Err(error).context(|| "receive".to_owned()),
        };
        let bytes = &self.room[..length];
        if self.own.is_ipv6() {
            take(from.ip(), bytes, None);
        } else if let Some((to, payload)) = payload(bytes)
            && (IpAddr::V4(to) == self.group || IpAddr::V4(to) == self.own)
        {
            take(from.ip(), payload, None);
        }
        Ok(More::Maybe)
    }
}

/// Returns an IPv4 header (RFC 791). The system fills in the identification and the checksum.
fn header(
    (from, to): (Ipv4Addr, Ipv4Addr),
    class: u8,
    hops: u8,
    router_alert: bool,
    payload: usize,
) -> Vec<u8> {
    const DO_NOT_FRAGMENT: u8 = 0x40;
    let options: &[u8] = if router_alert { &ROUTER_ALERT } else { &[] };
    let words = ((HEADER + options.len()) / 4) as u8;
    let total = (HEADER + options.len() + payload) as u16;
    let mut header = vec![0x40 | words, class];
    header.extend(total.to_be_bytes());
    header.extend([0, 0, DO_NOT_FRAGMENT, 0, hops, PGM, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    header.extend(options);
    header
}

/// Returns the destination and payload of an IPv4 packet; `None` if the packet is too short.
fn payload(packet: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let words = usize::from(packet.first()? & 0x0f);
    let to: [u8; 4] = packet.get(16..HEADER)?.try_into().ok()?;
    Some((to.into(), packet.get((4 * words).max(HEADER)..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_written_and_read() {
        let (from, to) = (Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(239, 192, 0, 1));
        let mut packet = header((from, to), 46 << 2, 16, true, 2);
        packet.extend(b"ab");
        let expected = [
            0x46, 0xb8, 0, 26, 0, 0, 0x40, 0, 16, 113, 0, 0, 10, 77, 0, 1, 239, 192, 0, 1, 0x94, 4,
            0, 0, b'a', b'b',
        ];
        assert_eq!(packet, expected);
        assert_eq!(payload(&packet), Some((to, &b"ab"[..])));
        for length in 0..24 {
            assert_eq!(payload(&packet[..length]), None);
        }
    }
}
