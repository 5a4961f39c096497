//! PGM packets in UDP datagrams. There are up to three sockets. The first receives packets to the
//! group. The second is for packets to a single member, such as NAKs. The third sends a source's
//! packets to the group.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    time::Duration,
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{
    SocketConfig, SocketError,
    datagrams::{Datagrams, ReceivedBatch},
    error::Context,
    link::{Ends, More, Take, endpoint},
    receive_buffer::ReceiveBuffer,
    wait::{MAX_SOCKETS, wait},
};
use crate::Destination;

/// Maximum number of datagrams that one call receives without receive offload. The system provides
/// the memory of the buffer only when it is used.
const ONE_BY_ONE: usize = 32;

#[derive(Debug)]
pub(super) struct Udp {
    /// Socket that receives packets to the group. `None` without a receiver, because a source
    /// receives only unicast packets.
    group: Option<Datagrams>,
    /// Socket that sends unicast packets, and the few packets of a receiver to the group. Its multicast packets stay in
    /// the local network. If this member has a source, the socket also receives unicast packets. Otherwise, the socket
    /// has a random port.
    own: Datagrams,
    /// Socket that sends a source's packets to the group. `None` if this member has no source.
    outward: Option<Datagrams>,
    interface: u32,
    unicast: u16,
    multicast: u16,
    asked: usize,
    room: ReceiveBuffer,
    /// Received datagrams that are still in the buffer `room`.
    came: Vec<ReceivedBatch>,
    /// Flag for each socket. A flag is true if the socket is readable. `None` if this is unknown.
    readable: Option<[bool; MAX_SOCKETS]>,
}

impl Udp {
    pub(super) fn open(
        config: &SocketConfig,
        address: IpAddr,
        (unicast, multicast): (u16, u16),
        ends: Ends,
    ) -> Result<Udp, SocketError> {
        let interface = config.interface.index();
        let context = || "prepare a UDP socket".to_owned();
        // A socket that is bound to the group receives no packets to other addresses. Windows can
        // bind only to addresses of the machine.
        let bound = match config.group {
            _ if cfg!(unix) => config.group,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let group = if ends.receiver {
            let group = open(bound, multicast, config)?;
            join(&group, config, address)?;
            Some(Datagrams::new(group, config.joined).context(context)?)
        } else {
            None
        };
        let own = open(address, if ends.source { unicast } else { 0 }, config)?;
        configure_sending(&own, config, config.hops.min(1), address)?;
        let outward = if ends.source {
            let socket = open(address, 0, config)?;
            // This call must precede the connect, because the connect fixes the route.
            configure_sending(&socket, config, config.hops, address)?;
            let peer = endpoint(config.group, multicast, interface);
            Some(Datagrams::towards(socket, peer).context(context)?)
        } else {
            None
        };
        Ok(Udp {
            group,
            own: Datagrams::new(own, true).context(context)?,
            outward,
            interface,
            unicast,
            multicast,
            asked: config.buffer,
            room: ReceiveBuffer::new(if config.joined {
                Datagrams::ROOM
            } else {
                ONE_BY_ONE * Datagrams::ROOM
            }),
            came: Vec::new(),
            readable: None,
        })
    }

    pub(super) fn max_packets(&self) -> usize {
        self.sends().max_segments()
    }

    /// Returns the sockets on which packets arrive.
    pub(super) fn sockets(&self) -> [Option<&UdpSocket>; MAX_SOCKETS] {
        let group = self.group.as_ref().map(Datagrams::socket);
        [group, self.serves().then(|| self.own.socket())]
    }

    /// Returns true if this member has a source.
    fn serves(&self) -> bool {
        self.outward.is_some()
    }

    /// Returns the socket that sends most packets.
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
            Err(error) => Err(error).context(|| format!("send to {address}, port {port}")),
        }
    }

    /// Waits until packets can be received or the timeout is over. If `to_send` is true, the wait
    /// also ends when packets can be sent. A long wait may end earlier.
    pub(super) fn wait(
        &mut self,
        timeout: Option<Duration>,
        to_send: bool,
    ) -> Result<(), SocketError> {
        if !self.came.is_empty() {
            return Ok(());
        }
        let is_long = |wait| timeout.is_none_or(|timeout| timeout >= wait);
        // If only the socket of the group is watched, a long wait is a blocking receive call. This saves a
        // system call.
        let can_wait = Datagrams::WAIT.is_some_and(is_long) && !self.serves() && !to_send;
        let Some(group) = self.group.as_mut().filter(|_| can_wait) else {
            let sends = to_send.then(|| self.sends().socket());
            self.readable = Some(wait(self.sockets().into_iter().flatten(), sends, timeout)?);
            return Ok(());
        };
        let came = &mut self.came;
        let received = self.room.fill(|room| group.receive_waiting(room, came));
        is_received(received).map(|_| ())
    }

    pub(super) fn receive(&mut self, take: &mut Take<'_>) -> Result<More, SocketError> {
        if !self.came.is_empty() {
            deliver(&mut self.came, &self.room, take);
            // After `More::No`, the caller waits. If more packets have arrived, this wait returns at once.
            return Ok(More::No);
        }
        let mut more = More::No;
        // One flag per socket: true if packets may have arrived on it.
        let mut readable = self
            .readable
            .take()
            .unwrap_or([true; MAX_SOCKETS])
            .into_iter();
        let own = self.outward.is_some().then_some(&mut self.own);
        for socket in self.group.iter_mut().chain(own) {
            if readable.next() != Some(true) {
                continue;
            }
            let came = &mut self.came;
            if is_received(self.room.fill(|room| socket.receive(room, came)))? {
                deliver(&mut self.came, &self.room, take);
                more = More::Maybe;
            }
        }
        Ok(more)
    }
}

/// Returns true if anything was received, and false if nothing has arrived yet.
fn is_received(received: io::Result<()>) -> Result<bool, SocketError> {
    match received {
        Ok(()) => Ok(true),
        Err(error) if is_transient(&error) => Ok(false),
        Err(error) => Err(error).context(|| "receive".to_owned()),
    }
}

/// Delivers received packets. A shared packet keeps the whole buffer in memory. A batch may therefore share
/// the memory of the buffer only if the batch fills at least 1/16 of it.
fn deliver(all: &mut Vec<ReceivedBatch>, room: &ReceiveBuffer, take: &mut Take<'_>) {
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
    let context = || format!("open a UDP socket at {at}");
    let socket =
        Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP)).context(context)?;
    // Several members on one machine use the same port for the group.
    socket.set_reuse_address(true).context(context)?;
    if at.is_ipv6() {
        socket.set_only_v6(true).context(context)?;
    }
    set_buffer_sizes(&socket, config.buffer);
    socket.bind(&at.into()).context(context)?;
    Ok(socket.into())
}

/// Returns true if the error only means that there is nothing to receive now.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Requests buffer sizes. It is not an error if the system grants less, because the user can query the
/// granted sizes.
pub(super) fn set_buffer_sizes(socket: &Socket, bytes: usize) {
    let _ = socket.set_recv_buffer_size(bytes);
    let _ = socket.set_send_buffer_size(bytes);
    // Privileged users may exceed the system's limit. The sizes are therefore also requested with two calls
    // that ignore the limit.
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, bytes);
        let _ = sockopt::set_socket_send_buffer_size_force(socket, bytes);
    }
}

/// Joins the group. If sources are configured and the system supports joining for single sources, joins for
/// these sources only.
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
    let context = || {
        let name = config.interface.name();
        format!("join the group {} on {name}", config.group)
    };
    match (config.group, address) {
        (IpAddr::V4(group), IpAddr::V4(own)) => {
            // Without this call, the socket would receive the packets of all groups that any
            // program on this machine has joined.
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v4(false).context(context)?;
            if config.only.is_empty() {
                return socket.join_multicast_v4(&group, &own).context(context);
            }
            for source in &config.only {
                if let IpAddr::V4(source) = source {
                    socket.join_ssm_v4(source, &group, &own).context(context)?;
                }
            }
            Ok(())
        }
        (IpAddr::V6(group), _) => {
            #[cfg(target_os = "linux")]
            {
                socket.set_multicast_all_v6(false).context(context)?;
                for source in &config.only {
                    if let IpAddr::V6(source) = *source {
                        of_one_source(group, source).context(context)?;
                    }
                }
                if !config.only.is_empty() {
                    return Ok(());
                }
            }
            socket
                .join_multicast_v6(&group, config.interface.index())
                .context(context)
        }
        _ => Ok(()),
    }
}

/// Sets the interface, loopback and DSCP mark for sent packets, and the hop limit for sent multicast packets.
pub(super) fn configure_sending(
    socket: &UdpSocket,
    config: &SocketConfig,
    hops: u32,
    address: IpAddr,
) -> Result<(), SocketError> {
    let socket = SockRef::from(socket);
    if config.dscp != 0 {
        let dscp = config.dscp;
        mark(&socket, address, config.traffic_class())
            .map_err(|source| SocketError::NotMarked { dscp, source })?;
    }
    let context = || format!("send through {}", config.interface.name());
    match address {
        IpAddr::V4(own) => {
            socket.set_multicast_if_v4(&own).context(context)?;
            socket.set_multicast_ttl_v4(hops).context(context)?;
            socket
                .set_multicast_loop_v4(config.loopback)
                .context(context)
        }
        IpAddr::V6(_) => {
            let index = config.interface.index();
            socket.set_multicast_if_v6(index).context(context)?;
            socket.set_multicast_hops_v6(hops).context(context)?;
            socket
                .set_multicast_loop_v6(config.loopback)
                .context(context)
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

/// Returns an error, because Windows accepts the option but ignores it.
#[cfg(windows)]
fn mark(_: &Socket, _: IpAddr, _: u8) -> io::Result<()> {
    let why = "Windows marks only by policy (New-NetQosPolicy)";
    Err(io::Error::new(ErrorKind::Unsupported, why))
}
