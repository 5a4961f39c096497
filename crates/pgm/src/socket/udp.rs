//! Packets in UDP: a socket at which comes what goes to the group, one for all that goes to one member
//! and at which a source is asked for repairs, and a source's for what it sends to the group.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    time::Duration,
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{
    SocketConfig, SocketError,
    datagrams::{Came, Datagrams},
    error::Doing,
    link::{Ends, More, Take, endpoint},
    room::Room,
    wait::{MOST, wait},
};
use crate::Destination;

/// How many datagrams come in one call, at most, where each comes by itself. Memory that none has filled
/// is only set aside.
const ONE_BY_ONE: usize = 32;

#[derive(Debug)]
pub(super) struct Udp {
    /// None if there is no receiver: all that a source must hear is sent to it alone, too.
    group: Option<Datagrams>,
    /// At a port that nobody knows if there is no source.
    own: Datagrams,
    /// None if there is no source: then little goes to the group, and by `own`.
    outward: Option<Datagrams>,
    interface: u32,
    unicast: u16,
    multicast: u16,
    asked: usize,
    room: Room,
    /// What came and is still in the room.
    came: Vec<Came>,
    /// Which of the sockets can be read, where that is known.
    readable: Option<[bool; MOST]>,
}

impl Udp {
    pub(super) fn open(
        config: &SocketConfig,
        address: IpAddr,
        (unicast, multicast): (u16, u16),
        ends: Ends,
    ) -> Result<Udp, SocketError> {
        let interface = config.interface.index();
        let doing = || "prepare a UDP socket".to_owned();
        // Bound to the group, a socket hears no other; Windows binds to own addresses only.
        let bound = match config.group {
            _ if cfg!(unix) => config.group,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let group = match ends.receiver {
            true => {
                let group = open(bound, multicast, config)?;
                join(&group, config, address)?;
                Some(Datagrams::new(group, config.joined).doing(doing)?)
            }
            false => None,
        };
        let own = open(address, if ends.source { unicast } else { 0 }, config)?;
        send_through(&own, config, address)?;
        let outward = match ends.source {
            true => {
                let socket = open(address, 0, config)?;
                // Before it is connected, since that settles the way.
                send_through(&socket, config, address)?;
                let peer = endpoint(config.group, multicast, interface);
                Some(Datagrams::towards(socket, peer).doing(doing)?)
            }
            false => None,
        };
        Ok(Udp {
            group,
            own: Datagrams::new(own, true).doing(doing)?,
            outward,
            interface,
            unicast,
            multicast,
            asked: config.buffer,
            room: Room::of(match config.joined {
                true => Datagrams::ROOM,
                false => ONE_BY_ONE * Datagrams::ROOM,
            }),
            came: Vec::new(),
            readable: None,
        })
    }

    pub(super) fn most_packets(&self) -> usize {
        self.sends().most()
    }

    /// The sockets at which packets come.
    pub(super) fn sockets(&self) -> [Option<&UdpSocket>; MOST] {
        let group = self.group.as_ref().map(Datagrams::socket);
        [group, self.serves().then(|| self.own.socket())]
    }

    /// Whether there is a source.
    fn serves(&self) -> bool {
        self.outward.is_some()
    }

    /// By which most is sent.
    fn sends(&self) -> &Datagrams {
        self.outward.as_ref().unwrap_or(&self.own)
    }

    pub(super) fn buffers(&self) -> (usize, &UdpSocket, &UdpSocket) {
        let sends = self.sends().socket();
        let group = self.group.as_ref().map_or(sends, Datagrams::socket);
        (self.asked, group, sends)
    }

    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        packet: usize,
        to: Destination,
        group: IpAddr,
    ) -> Result<bool, SocketError> {
        let (address, port) = match to {
            Destination::Group | Destination::GroupOneHop => (group, self.multicast),
            Destination::Unicast(address) => (address, self.unicast),
        };
        let sent = match (&mut self.outward, to) {
            (Some(outward), Destination::Group) => outward.send(bytes, packet, None),
            _ => {
                let destination = endpoint(address, port, self.interface);
                self.own.send(bytes, packet, Some(destination))
            }
        };
        match sent {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error).doing(|| format!("send to {address}, port {port}")),
        }
    }

    /// Waits until something can be received, or sent where that is wanted, or so long; or less, if
    /// that is long.
    pub(super) fn wait(
        &mut self,
        most: Option<Duration>,
        to_send: bool,
    ) -> Result<(), SocketError> {
        if !self.came.is_empty() {
            return Ok(());
        }
        let is_long = |wait| most.is_none_or(|most| most >= wait);
        // Who waits for the group alone, and for long, waits by receiving, which saves a call.
        let can_wait = Datagrams::WAIT.is_some_and(is_long) && !self.serves() && !to_send;
        let Some(group) = self.group.as_mut().filter(|_| can_wait) else {
            let sends = to_send.then(|| self.sends().socket());
            self.readable = Some(wait(self.sockets().into_iter().flatten(), sends, most)?);
            return Ok(());
        };
        let came = &mut self.came;
        let received = self.room.fill(|room| group.receive_waiting(room, came));
        if_any(received).map(|_| ())
    }

    pub(super) fn receive(&mut self, take: &mut Take<'_>) -> Result<More, SocketError> {
        if !self.came.is_empty() {
            hand_out(&mut self.came, &self.room, take);
            // If there is more, the next wait has it at once.
            return Ok(More::No);
        }
        let mut more = More::No;
        // As many as there are sockets.
        let mut readable = self.readable.take().unwrap_or([true; MOST]).into_iter();
        let own = self.outward.is_some().then_some(&mut self.own);
        for socket in self.group.iter_mut().chain(own) {
            if readable.next() != Some(true) {
                continue;
            }
            let came = &mut self.came;
            if if_any(self.room.fill(|room| socket.receive(room, came)))? {
                hand_out(&mut self.came, &self.room, take);
                more = More::Perhaps;
            }
        }
        Ok(more)
    }
}

/// Whether anything was received.
fn if_any(received: io::Result<()>) -> Result<bool, SocketError> {
    match received {
        Ok(()) => Ok(true),
        Err(error) if says_nothing(&error) => Ok(false),
        Err(error) => Err(error).doing(|| "receive".to_owned()),
    }
}

/// Messages share the room if they fill a part of it: whoever keeps one keeps all of it.
fn hand_out(all: &mut Vec<Came>, room: &Room, take: &mut Take<'_>) {
    let room = room.bytes();
    for came in all.drain(..) {
        let shared = (16 * came.length >= room.len()).then_some(room);
        for packet in room[came.at..came.at + came.length].chunks(came.each.max(1)) {
            take(came.from, packet, shared);
        }
    }
}

fn open(address: IpAddr, port: u16, config: &SocketConfig) -> Result<UdpSocket, SocketError> {
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
    Ok(socket.into())
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

/// Asks for buffers; what the system grants is for the user to see, and no error.
pub(super) fn ask_for_buffers(socket: &Socket, bytes: usize) {
    let _ = socket.set_recv_buffer_size(bytes);
    let _ = socket.set_send_buffer_size(bytes);
    // Who may administer the network may go beyond the system's limit.
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, bytes);
        let _ = sockopt::set_socket_send_buffer_size_force(socket, bytes);
    }
}

/// Joins the group, of the named sources only where the system can.
pub(super) fn join(
    socket: &UdpSocket,
    config: &SocketConfig,
    address: IpAddr,
) -> Result<(), SocketError> {
    #[cfg(target_os = "linux")]
    let of_one_source = |group, source| {
        let interface = config.interface.index();
        super::join_source::join_source(socket, interface, group, source)
    };
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
            {
                socket.set_multicast_all_v6(false).doing(doing)?;
                for source in &config.only {
                    if let IpAddr::V6(source) = *source {
                        of_one_source(group, source).doing(doing)?;
                    }
                }
                if !config.only.is_empty() {
                    return Ok(());
                }
            }
            socket
                .join_multicast_v6(&group, config.interface.index())
                .doing(doing)
        }
        _ => Ok(()),
    }
}

/// Multicast goes out through the interface, and all with its mark.
pub(super) fn send_through(
    socket: &UdpSocket,
    config: &SocketConfig,
    address: IpAddr,
) -> Result<(), SocketError> {
    let socket = SockRef::from(socket);
    if config.dscp != 0 {
        let dscp = config.dscp;
        mark(&socket, address, config.traffic_class())
            .map_err(|error| SocketError::NotMarked { dscp, error })?;
    }
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

#[cfg(unix)]
fn mark(socket: &Socket, own: IpAddr, class: u8) -> io::Result<()> {
    match own {
        IpAddr::V4(_) => socket.set_tos_v4(class.into()),
        IpAddr::V6(_) => socket.set_tclass_v6(class.into()),
    }
}

/// Windows takes the option and ignores it.
#[cfg(windows)]
fn mark(_: &Socket, _: IpAddr, _: u8) -> io::Result<()> {
    let why = "Windows marks by its policies only (New-NetQosPolicy)";
    Err(io::Error::new(ErrorKind::Unsupported, why))
}
