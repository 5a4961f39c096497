//! Packets in UDP: one socket for the group, one for what goes to this member alone, from which all
//! is sent.

use std::{
    io::{self, ErrorKind, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{
    SocketConfig, SocketError,
    error::Doing,
    link::{More, Take, endpoint},
};
use crate::Destination;

/// How many system buffers are read at once; each can hold many packets where the system joins them.
const BATCH: usize = 8;
/// The longest datagram, or packets that the system has joined.
const LONGEST: usize = 65_536;

#[derive(Debug)]
pub(super) struct Udp {
    group: Endpoint,
    own: Endpoint,
    interface: u32,
    unicast: u16,
    multicast: u16,
    asked: usize,
    room: Vec<u8>,
    /// Which of the sockets can be read, where that is known.
    readable: Option<[bool; 2]>,
}

#[derive(Debug)]
struct Endpoint {
    socket: UdpSocket,
    /// Sends and receives several packets in one call, where the system can; Wine cannot.
    batches: Option<UdpSocketState>,
}

impl Udp {
    pub(super) fn open(
        config: &SocketConfig,
        address: IpAddr,
        unicast: u16,
        multicast: u16,
    ) -> Result<Udp, SocketError> {
        let interface = config.interface.index();
        // Bound to the group, a socket hears no other; Windows binds to own addresses only.
        let bound = match config.group {
            _ if cfg!(unix) => config.group,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let group = Endpoint::open(bound, multicast, config)?;
        join(&group.socket, config, address)?;
        let own = Endpoint::open(address, unicast, config)?;
        send_through(&own.socket, config, address)?;
        Ok(Udp {
            group,
            own,
            interface,
            unicast,
            multicast,
            asked: config.buffer,
            room: vec![0; BATCH * LONGEST],
            readable: None,
        })
    }

    pub(super) fn most_packets(&self) -> usize {
        let batches = self.own.batches.as_ref();
        batches.map_or(1, UdpSocketState::max_gso_segments)
    }

    pub(super) fn sockets(&self) -> [&UdpSocket; 2] {
        [&self.group.socket, &self.own.socket]
    }

    pub(super) fn buffers(&self) -> (usize, &UdpSocket, &UdpSocket) {
        (self.asked, &self.group.socket, &self.own.socket)
    }

    pub(super) fn send(
        &self,
        bytes: &[u8],
        packet: usize,
        to: Destination,
        group: IpAddr,
    ) -> Result<bool, SocketError> {
        let (address, port) = match to {
            Destination::Group | Destination::GroupOneHop => (group, self.multicast),
            Destination::Unicast(address) => (address, self.unicast),
        };
        let destination = endpoint(address, port, self.interface);
        let Endpoint { socket, batches } = &self.own;
        let sent = match batches {
            Some(batches) => {
                let transmit = Transmit {
                    destination,
                    ecn: None,
                    contents: bytes,
                    segment_size: (packet < bytes.len()).then_some(packet),
                    src_ip: None,
                };
                batches.try_send(socket.into(), &transmit)
            }
            None => socket.send_to(bytes, destination).map(|_| ()),
        };
        match sent {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error).doing(|| format!("send to {destination}")),
        }
    }

    /// Which of the sockets can be read, until the next time that they are.
    pub(super) fn set_readable(&mut self, readable: [bool; 2]) {
        self.readable = Some(readable);
    }

    pub(super) fn receive(&mut self, take: &mut Take<'_>) -> Result<More, SocketError> {
        let mut more = More::No;
        let readable = self.readable.take().unwrap_or([true; 2]);
        for (endpoint, _) in [&self.group, &self.own]
            .into_iter()
            .zip(readable)
            .filter(|(_, r)| *r)
        {
            match endpoint.receive(&mut self.room, take) {
                Ok(true) => more = More::Perhaps,
                Ok(false) => {}
                Err(error) if says_nothing(&error) => {}
                Err(error) => return Err(error).doing(|| "receive".to_owned()),
            }
        }
        Ok(more)
    }
}

/// Nothing to receive, or word that a packet sent before was refused, which repair takes care of.
pub(super) fn says_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
    )
}

impl Endpoint {
    fn open(address: IpAddr, port: u16, config: &SocketConfig) -> Result<Endpoint, SocketError> {
        let at = endpoint(address, port, config.interface.index());
        let doing = || format!("open a UDP socket at {at}");
        let socket =
            Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP)).doing(doing)?;
        // Several members on one machine share the group's port.
        socket.set_reuse_address(true).doing(doing)?;
        if at.is_ipv6() {
            socket.set_only_v6(true).doing(doing)?;
        }
        ask_for_buffers(&socket, config.buffer);
        socket.bind(&at.into()).doing(doing)?;
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true).doing(doing)?;
        let batches = UdpSocketState::new((&socket).into()).ok();
        Ok(Endpoint { socket, batches })
    }

    /// Receives what the system gives in one call, and says whether it may have more.
    fn receive(&self, room: &mut [u8], take: &mut Take<'_>) -> io::Result<bool> {
        let Some(batches) = &self.batches else {
            let (length, from) = self.socket.recv_from(room)?;
            take(from.ip(), &room[..length]);
            return Ok(true);
        };
        let mut buffers: Vec<IoSliceMut<'_>> =
            room.chunks_mut(LONGEST).map(IoSliceMut::new).collect();
        let mut metas = [RecvMeta::default(); BATCH];
        let count = batches.recv((&self.socket).into(), &mut buffers, &mut metas)?;
        for (meta, buffer) in metas[..count].iter().zip(&buffers) {
            for packet in buffer[..meta.len].chunks(meta.stride.max(1)) {
                take(meta.addr.ip(), packet);
            }
        }
        Ok(count == BATCH)
    }
}

/// Asks for buffers; what the system grants is for the user to see, and no error.
pub(super) fn ask_for_buffers(socket: &Socket, bytes: usize) {
    let _ = socket.set_recv_buffer_size(bytes);
    let _ = socket.set_send_buffer_size(bytes);
}

/// Joins the group, of the named sources only where the system can.
pub(super) fn join(
    socket: &UdpSocket,
    config: &SocketConfig,
    address: IpAddr,
) -> Result<(), SocketError> {
    let socket = SockRef::from(socket);
    let doing = || {
        let name = config.interface.name();
        format!("join the group {} on {name}", config.group)
    };
    match (config.group, address) {
        (IpAddr::V4(group), IpAddr::V4(own)) => {
            // Else it would hear every group that anybody on this machine has joined.
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v4(false).doing(doing)?;
            if config.only.is_empty() {
                return socket.join_multicast_v4(&group, &own).doing(doing);
            }
            for source in &config.only {
                if let IpAddr::V4(source) = source {
                    socket.join_ssm_v4(source, &group, &own).doing(doing)?;
                }
            }
            Ok(())
        }
        (IpAddr::V6(group), _) => {
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v6(false).doing(doing)?;
            // Packets of other sources are dropped as they come.
            socket
                .join_multicast_v6(&group, config.interface.index())
                .doing(doing)
        }
        _ => Ok(()),
    }
}

/// Multicast goes out through the interface.
pub(super) fn send_through(
    socket: &UdpSocket,
    config: &SocketConfig,
    address: IpAddr,
) -> Result<(), SocketError> {
    let socket = SockRef::from(socket);
    let doing = || format!("send through {}", config.interface.name());
    match address {
        IpAddr::V4(own) => {
            socket.set_multicast_if_v4(&own).doing(doing)?;
            socket.set_multicast_ttl_v4(config.hops).doing(doing)?;
            socket.set_multicast_loop_v4(config.loopback).doing(doing)
        }
        IpAddr::V6(_) => {
            let index = config.interface.index();
            socket.set_multicast_if_v6(index).doing(doing)?;
            socket.set_multicast_hops_v6(config.hops).doing(doing)?;
            socket.set_multicast_loop_v6(config.loopback).doing(doing)
        }
    }
}
