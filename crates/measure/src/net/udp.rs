//! UDP as a transport, to one machine or to a multicast group.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use super::buffers::{Buffers, grant};
use super::spinning::Spinning;
use super::{Interface, NetError, ReceivedPacket, Transport, message};
use crate::Grant;

/// Timeout of [`Transport::receive`]. An end also needs at most this time to notice that it must stop.
pub(super) const WAIT: Duration = Duration::from_millis(100);

/// Name of the grant for reading the DSCP marks of packets at a reflector.
pub(super) const READING: &str = "reading the DSCP of received packets";

/// Role and addresses of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Source that sends to the reflector at this address.
    Peer(SocketAddr),
    /// Reflector that listens at this address and answers all sources.
    Answering(SocketAddr),
    /// Member of a multicast group.
    Group {
        /// Address and port of the group.
        group: SocketAddr,
        /// Interface for the group; `None` if the system chooses it.
        interface: Option<Interface>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Peer(address) | Place::Answering(address) => write!(f, "{address}"),
            Place::Group { group, .. } => write!(f, "the group {group}"),
        }
    }
}

impl Place {
    /// Returns the group and its interface, with the addresses to use. If no interface is given, the routing
    /// of the system chooses it.
    ///
    /// # Errors
    /// Returns an error if this place is not a `Place::Group`, or if there is no route.
    pub(super) fn group(&self) -> Result<(SocketAddr, Interface), NetError> {
        let Place::Group { group, interface } = self else {
            return Err(NetError::NoGroup);
        };
        let interface = match interface {
            Some(interface) => interface.clone(),
            None => {
                let own = routed_from(*group)?;
                Interface {
                    addresses: vec![own],
                    ..Interface::find(&own.to_string())?
                }
            }
        };
        Ok((*group, interface))
    }
}

/// Returns the group with a port number that is `more` higher.
///
/// # Errors
/// Returns an error if there is no such port.
pub(super) fn with_later_port(mut group: SocketAddr, more: u16) -> Result<SocketAddr, NetError> {
    let port = group.port().checked_add(more);
    group.set_port(port.ok_or(NetError::PortTooHigh(group.port()))?);
    Ok(group)
}

/// Returns the address of this machine that the routing of the system uses as source address for packets to a
/// group.
fn routed_from(group: SocketAddr) -> Result<IpAddr, NetError> {
    let any: IpAddr = match group {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
        .and_then(|socket| {
            socket.connect(group)?;
            Ok(socket.local_addr()?.ip())
        })
        .map_err(|error| no_route(error, group))
}

/// Requested socket options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpOptions {
    /// Requested size of the send and receive buffers in bytes; `None` for the system's default.
    pub buffer_bytes: Option<usize>,
    /// DSCP mark, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// Time that the kernel polls the network card before it waits for an interrupt
    /// (`SO_BUSY_POLL`).
    pub busy_poll: Option<Duration>,
    /// Time that a receiver polls for a packet before it sleeps, at most
    /// [`MAX_SPIN`](super::MAX_SPIN).
    pub spin: Option<Duration>,
}

impl UdpOptions {
    /// Describes the requests for a DSCP mark, busy polling and polling. Buffers are not described.
    pub(super) fn requests(&self) -> [Option<String>; 3] {
        [
            self.dscp.map(|dscp| format!("DSCP {dscp}")),
            (self.busy_poll).map(|time| format!("busy polling for {time:?}")),
            (self.spin).map(|time| format!("polling for at most {time:?}")),
        ]
    }
}

/// Outcomes of the requested socket options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpGrants {
    /// Requested and granted buffer sizes.
    pub buffers: Buffers,
    /// Outcomes of the other requests.
    pub others: Vec<Grant>,
}

/// An end of a UDP connection.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// Group to which packets are sent; `None` if the end has no group.
    group: Option<SocketAddr>,
    /// Buffer for control messages; `None` if the traffic class is not needed.
    control: Option<Vec<u8>>,
    spinning: Spinning,
}

impl Udp {
    /// Opens an end and returns the grants of its options.
    ///
    /// # Errors
    /// Returns an error if there is no such address, group, interface or route, or if the port is
    /// in use. A refused option is not an error; the grants report it.
    pub fn open(place: &Place, options: &UdpOptions) -> Result<(Udp, UdpGrants), NetError> {
        let of_place = match place {
            Place::Peer(address) | Place::Answering(address) => address,
            Place::Group { group, .. } => group,
        };
        let is_v4 = of_place.is_ipv4();
        let domain = if is_v4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(NetError::context("creating a UDP socket"))?;
        let mut group_to = None;
        match place {
            Place::Peer(peer) => {
                socket
                    .connect(&(*peer).into())
                    .map_err(|error| no_route(error, *peer))?;
            }
            Place::Answering(local) => {
                // Wine accepts any address, but a socket with an address of another machine receives nothing.
                let ip = local.ip();
                if cfg!(windows)
                    && !ip.is_unspecified()
                    && Interface::find(&ip.to_string()).is_err()
                {
                    return Err(NetError::ForeignAddress(ip));
                }
                bind(&socket, *local)?;
            }
            Place::Group { group, interface } => {
                join(&socket, *group, interface.as_ref())?;
                group_to = Some(*group);
            }
        }
        let mut grants = UdpGrants {
            buffers: grant(&socket, options.buffer_bytes)
                .map_err(NetError::context("setting buffer sizes"))?,
            others: Vec::new(),
        };
        let [marking, polling, spinning] = options.requests();
        if let Some((dscp, marking)) = options.dscp.zip(marking) {
            grants.add(marking, mark(&socket, is_v4, dscp << 2));
        }
        // A source does not read the traffic class of received packets, because that is slower. The source
        // does not need it, because the reflector's answer contains the traffic class.
        let is_source = matches!(place, Place::Peer(_));
        if !is_source {
            let read_class = read_class(&socket, is_v4);
            // The outcome matters only if packets are marked, so it is reported only in this case.
            if options.dscp.is_some() {
                grants.add(READING, read_class);
            }
        }
        if let Some((time, polling)) = options.busy_poll.zip(polling) {
            grants.add(polling, busy_poll(&socket, time));
        }
        if let Some(spinning) = spinning {
            let outcome = if cfg!(target_os = "linux") {
                Ok(())
            } else {
                only_on_linux()
            };
            grants.add(spinning, outcome);
        }
        socket
            .set_read_timeout(Some(WAIT))
            .map_err(NetError::context("setting a timeout"))?;
        let udp = Udp {
            socket: socket.into(),
            group: group_to,
            control: (!is_source).then(message::control_room),
            spinning: Spinning::new(options),
        };
        Ok((udp, grants))
    }

    /// Returns the address at which the end listens.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl Transport for Udp {
    fn send(&mut self, packet: &[u8], to: Option<SocketAddr>) -> io::Result<()> {
        match self.group.or(to) {
            Some(to) => self.socket.send_to(packet, to),
            None => self.socket.send(packet),
        }
        .map(|_| ())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        if cfg!(target_os = "linux") {
            let (socket, control) = (&self.socket, &mut self.control);
            let at_once = || in_time(message::receive(socket, buffer, control.as_mut(), true));
            if let Some(received) = self.spinning.look(at_once)? {
                return Ok(Some(received));
            }
        }
        let received = message::receive(&self.socket, buffer, self.control.as_mut(), false);
        self.spinning.slept();
        in_time(received)
    }

    fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Udp {
            socket: self.socket.try_clone()?,
            group: self.group,
            control: self.control.is_some().then(message::control_room),
            spinning: self.spinning.clone_handle(),
        }))
    }
}

/// Converts a timeout or an interruption by a signal into `None`.
fn in_time(received: io::Result<ReceivedPacket>) -> io::Result<Option<ReceivedPacket>> {
    match received {
        Ok(received) => Ok(Some(received)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

fn bind(socket: &Socket, local: SocketAddr) -> Result<(), NetError> {
    if local.is_ipv6() {
        socket
            .set_only_v6(true)
            .map_err(NetError::context("setting IPv6 only"))?;
    }
    socket
        .bind(&local.into())
        .map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => NetError::PortInUse(local),
            io::ErrorKind::PermissionDenied => NetError::PortForbidden(local),
            io::ErrorKind::AddrNotAvailable => NetError::ForeignAddress(local.ip()),
            _ => NetError::context(format!("listening on {local}"))(error),
        })
}

/// Joins a group. The socket does not receive from other groups that programs on this machine have
/// joined.
fn join(socket: &Socket, group: SocketAddr, interface: Option<&Interface>) -> Result<(), NetError> {
    if !group.ip().is_multicast() {
        return Err(NetError::NotMulticast(group.ip()));
    }
    if interface.is_none() {
        // If no interface is given, routing must choose the interface. A separate socket checks that there is
        // a route. The socket itself must not be connected, because a connected socket would not receive from
        // the group.
        let probe = Socket::new(Domain::for_address(group), Type::DGRAM, None)
            .map_err(NetError::context("creating a UDP socket"))?;
        probe
            .connect(&group.into())
            .map_err(|error| no_route(error, group))?;
    }
    // The two ends of a local test listen on the same port.
    socket
        .set_reuse_address(true)
        .map_err(NetError::context("sharing the group's port"))?;
    // Windows cannot bind a socket to a group, so the socket is bound to all addresses.
    let local = match (cfg!(windows), group.ip()) {
        (false, _) => group,
        (true, IpAddr::V4(_)) => (Ipv4Addr::UNSPECIFIED, group.port()).into(),
        (true, IpAddr::V6(_)) => (Ipv6Addr::UNSPECIFIED, group.port()).into(),
    };
    bind(socket, local)?;
    // Packets loop back to this machine only on the loopback interface, because the other end is then on this
    // machine. An end on the loopback interface therefore also receives its sent packets.
    let hears_itself = interface.is_some_and(Interface::is_loopback);
    match group.ip() {
        IpAddr::V4(address) => {
            let through = interface.map(Interface::ipv4).transpose()?;
            socket
                .join_multicast_v4_n(
                    &address,
                    &InterfaceIndexOrAddress::Address(through.unwrap_or(Ipv4Addr::UNSPECIFIED)),
                )
                .and_then(|()| match through {
                    Some(through) => socket.set_multicast_if_v4(&through),
                    None => Ok(()),
                })
                .and_then(|()| socket.set_multicast_loop_v4(hears_itself))
                .and_then(|()| only_own_groups(socket, true))
        }
        IpAddr::V6(address) => {
            let through = interface.map(Interface::ipv6_index).transpose()?;
            socket
                .join_multicast_v6(&address, through.unwrap_or(0))
                .and_then(|()| match through {
                    Some(through) => socket.set_multicast_if_v6(through),
                    None => Ok(()),
                })
                .and_then(|()| socket.set_multicast_loop_v6(hears_itself))
                .and_then(|()| only_own_groups(socket, false))
        }
    }
    .map_err(|error| no_route(error, group))
}

/// Converts a system error. Errors that mean "no route to the address" become separate variants.
pub(super) fn no_route(error: io::Error, to: SocketAddr) -> NetError {
    // A join without an interface fails with ENODEV if there is no route.
    let no_device = cfg!(unix) && error.raw_os_error() == Some(19);
    let is_group = to.ip().is_multicast();
    match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {}
        // Windows returns this error for an interface without multicast.
        io::ErrorKind::AddrNotAvailable if is_group => {}
        _ if no_device => {}
        _ => return NetError::context(format!("connecting to {to}"))(error),
    }
    if is_group {
        NetError::NoMulticastRoute(to.ip())
    } else {
        NetError::NoRoute(to)
    }
}

impl UdpGrants {
    pub(super) fn add(&mut self, asked: impl fmt::Display, outcome: io::Result<()>) {
        let outcome = outcome.map_err(|error| error.to_string());
        self.others.push(Grant::new(asked, outcome));
    }

    /// Adds the requests of `options`, except the buffer sizes, as refused. They are refused because this program
    /// does not make these requests for the sockets that `library` opens.
    #[cfg(target_os = "linux")]
    pub(super) fn refuse(&mut self, options: &UdpOptions, library: &str) {
        for asked in options.requests().into_iter().flatten() {
            let why = format!("it is not requested from {library}");
            self.add(asked, Err(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
    }
}

#[cfg(target_os = "linux")]
fn only_own_groups(socket: &Socket, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        socket.set_multicast_all_v4(false)
    } else {
        socket.set_multicast_all_v6(false)
    }
}

#[cfg(not(target_os = "linux"))]
fn only_own_groups(_: &Socket, _: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn mark(socket: &Socket, is_v4: bool, class: u8) -> io::Result<()> {
    if is_v4 {
        socket.set_tos_v4(class.into())
    } else {
        socket.set_tclass_v6(class.into())
    }
}

/// Returns an error, because Windows ignores the socket option. Windows marks only flows of qWAVE,
/// and qWAVE needs an administrator.
#[cfg(windows)]
fn mark(_: &Socket, _: bool, _: u8) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "Windows marks only by policy (New-NetQosPolicy)",
    ))
}

/// Enables reading the traffic class of received packets.
#[cfg(target_os = "linux")]
fn read_class(socket: &Socket, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        socket.set_recv_tos_v4(true)
    } else {
        socket.set_recv_tclass_v6(true)
    }
}

#[cfg(not(target_os = "linux"))]
fn read_class(_: &Socket, _: bool) -> io::Result<()> {
    only_on_linux()
}

#[cfg(target_os = "linux")]
pub(super) fn busy_poll(socket: &Socket, time: Duration) -> io::Result<()> {
    socket.set_busy_poll(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn busy_poll(_: &Socket, _: Duration) -> io::Result<()> {
    only_on_linux()
}

fn only_on_linux() -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "it exists on Linux only",
    ))
}
