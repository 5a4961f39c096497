//! UDP as a transport: to one machine, or to a group.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use super::buffers::{Buffers, grant};
use super::spinning::Spinning;
use super::{Interface, NetError, Received, Transport, message};
use crate::Grant;

/// How long [`Transport::receive`] waits here: as long as an end takes to notice that it shall stop.
pub(super) const WAIT: Duration = Duration::from_millis(100);

/// What is said of a reflector that reads marks.
pub(super) const READING: &str = "reading the DSCP of what comes";

/// Where an end sends to and listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A source's end, talking with one reflector.
    Peer(SocketAddr),
    /// A reflector's end, answering whoever asks.
    Answering(SocketAddr),
    /// An end that talks with a group, and hears it.
    Group {
        /// The group and its port.
        group: SocketAddr,
        /// Through which interface; the system chooses if none is given.
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
    /// The group, and the interface for it with the addresses to use: the one that routing has, if none
    /// is named.
    ///
    /// # Errors
    /// When it is no group, or knows no way out.
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

/// A group at so many ports after the one that is named.
///
/// # Errors
/// When there are not so many.
pub(super) fn later(mut group: SocketAddr, more: u16) -> Result<SocketAddr, NetError> {
    let port = group.port().checked_add(more);
    group.set_port(port.ok_or(NetError::PortTooHigh(group.port()))?);
    Ok(group)
}

/// The own address by which packets reach a group, as routing has it.
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

/// What is asked of the sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpOptions {
    /// Bytes of send and receive buffer to ask for; the system's default if none.
    pub buffer_bytes: Option<usize>,
    /// The DSCP mark, 0 to 63 (RFC 2474).
    pub dscp: Option<u8>,
    /// For how long the kernel polls the network card before it waits for an interrupt (`SO_BUSY_POLL`).
    pub busy_poll: Option<Duration>,
    /// For how long a receiver spins before it sleeps, at most [`LONGEST_SPIN`](super::LONGEST_SPIN).
    pub spin: Option<Duration>,
}

impl UdpOptions {
    /// What is wished for beside buffers, in words: of the mark, busy polling and spinning.
    pub(super) fn wishes(&self) -> [Option<String>; 3] {
        [
            self.dscp.map(|dscp| format!("DSCP {dscp}")),
            (self.busy_poll).map(|time| format!("busy polling for {time:?}")),
            (self.spin).map(|time| format!("spinning for at most {time:?}")),
        ]
    }
}

/// What became of what was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpGrants {
    /// The buffers.
    pub buffers: Buffers,
    /// Everything else that was asked for.
    pub others: Vec<Grant>,
}

/// An end of UDP.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// Where packets go that answer nobody; none if the socket is connected.
    group: Option<SocketAddr>,
    /// Room for what the system says of a packet; none if nobody asks.
    control: Option<Vec<u8>>,
    spinning: Spinning,
}

impl Udp {
    /// Opens an end, and says what was granted of what was asked.
    ///
    /// # Errors
    /// When there is no such address, group, interface or route, or the port is taken. What can be
    /// measured without is no error but said in the grants.
    pub fn open(place: &Place, options: &UdpOptions) -> Result<(Udp, UdpGrants), NetError> {
        let of_place = match place {
            Place::Peer(address) | Place::Answering(address) => address,
            Place::Group { group, .. } => group,
        };
        let is_v4 = of_place.is_ipv4();
        let domain = if is_v4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(NetError::while_doing("making a UDP socket"))?;
        let mut group_to = None;
        match place {
            Place::Peer(peer) => {
                socket
                    .connect(&(*peer).into())
                    .map_err(|error| no_route(error, *peer))?;
            }
            Place::Answering(local) => {
                // Wine takes any address, at which nothing ever comes.
                let ip = local.ip();
                if cfg!(windows)
                    && !ip.is_unspecified()
                    && Interface::find(&ip.to_string()).is_err()
                {
                    return Err(NetError::NotOurAddress(ip));
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
                .map_err(NetError::while_doing("asking for buffers"))?,
            others: Vec::new(),
        };
        let [marking, polling, spinning] = options.wishes();
        if let Some((dscp, marking)) = options.dscp.zip(marking) {
            grants.enter(marking, mark(&socket, is_v4, dscp << 2));
        }
        // Who is a source hears of it from the reflector, and receives the faster without.
        let is_source = matches!(place, Place::Peer(_));
        if !is_source {
            let read_class = read_class(&socket, is_v4);
            // That a mark cannot be read is worth a word only to someone who marks packets.
            if options.dscp.is_some() {
                grants.enter(READING, read_class);
            }
        }
        if let Some((time, polling)) = options.busy_poll.zip(polling) {
            grants.enter(polling, busy_poll(&socket, time));
        }
        if let Some(spinning) = spinning {
            let outcome = match cfg!(target_os = "linux") {
                true => Ok(()),
                false => only_on_linux(),
            };
            grants.enter(spinning, outcome);
        }
        socket
            .set_read_timeout(Some(WAIT))
            .map_err(NetError::while_doing("setting a time-out"))?;
        let udp = Udp {
            socket: socket.into(),
            group: group_to,
            control: (!is_source).then(message::control_room),
            spinning: Spinning::of(options),
        };
        Ok((udp, grants))
    }

    /// The address that the end listens at.
    ///
    /// # Errors
    /// What the system says.
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

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
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

    fn another(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Udp {
            socket: self.socket.try_clone()?,
            group: self.group,
            control: self.control.is_some().then(message::control_room),
            spinning: self.spinning.another(),
        }))
    }
}

/// None where nothing came in time, or a signal ended the wait.
fn in_time(received: io::Result<Received>) -> io::Result<Option<Received>> {
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
            .map_err(NetError::while_doing("asking for IPv6 only"))?;
    }
    socket
        .bind(&local.into())
        .map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => NetError::PortTaken(local),
            io::ErrorKind::PermissionDenied => NetError::PortForbidden(local),
            io::ErrorKind::AddrNotAvailable => NetError::NotOurAddress(local.ip()),
            _ => NetError::while_doing(format!("listening at {local}"))(error),
        })
}

/// Makes a socket talk with a group and hear it, and no other group that others here have joined.
fn join(socket: &Socket, group: SocketAddr, interface: Option<&Interface>) -> Result<(), NetError> {
    if !group.ip().is_multicast() {
        return Err(NetError::NotMulticast(group.ip()));
    }
    if interface.is_none() {
        // Only routing can say through which interface; whether it can is asked of another socket,
        // for one that is connected to a group hears nothing.
        let probe = Socket::new(Domain::for_address(group), Type::DGRAM, None)
            .map_err(NetError::while_doing("making a UDP socket"))?;
        probe
            .connect(&group.into())
            .map_err(|error| no_route(error, group))?;
    }
    // Both ends of a test on one machine listen at the same port.
    socket
        .set_reuse_address(true)
        .map_err(NetError::while_doing("sharing the group's port"))?;
    // Windows binds no socket to a group.
    let local = match (cfg!(windows), group.ip()) {
        (false, _) => group,
        (true, IpAddr::V4(_)) => (Ipv4Addr::UNSPECIFIED, group.port()).into(),
        (true, IpAddr::V6(_)) => (Ipv6Addr::UNSPECIFIED, group.port()).into(),
    };
    bind(socket, local)?;
    // An end hears itself only where it cannot hear the other otherwise.
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

/// What the system says where there is no way to an address, in our words.
pub(super) fn no_route(error: io::Error, to: SocketAddr) -> NetError {
    // A join without an interface fails with ENODEV where no route names one.
    let no_device = cfg!(unix) && error.raw_os_error() == Some(19);
    let is_group = to.ip().is_multicast();
    match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {}
        // In Windows's words: of an interface that bears no groups.
        io::ErrorKind::AddrNotAvailable if is_group => {}
        _ if no_device => {}
        _ => return NetError::while_doing(format!("talking with {to}"))(error),
    }
    match is_group {
        true => NetError::NoMulticastRoute(to.ip()),
        false => NetError::NoRoute(to),
    }
}

impl UdpGrants {
    pub(super) fn enter(&mut self, asked: impl fmt::Display, outcome: io::Result<()>) {
        let outcome = outcome.map_err(|error| error.to_string());
        self.others.push(Grant::new(asked, outcome));
    }

    /// Enters that nothing but buffers can be asked of a library's sockets.
    #[cfg(target_os = "linux")]
    pub(super) fn refuse(&mut self, options: &UdpOptions, library: &str) {
        for asked in options.wishes().into_iter().flatten() {
            let why = format!("it is not asked of {library}");
            self.enter(asked, Err(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
    }
}

#[cfg(target_os = "linux")]
fn only_own_groups(socket: &Socket, is_v4: bool) -> io::Result<()> {
    match is_v4 {
        true => socket.set_multicast_all_v4(false),
        false => socket.set_multicast_all_v6(false),
    }
}

#[cfg(not(target_os = "linux"))]
fn only_own_groups(_: &Socket, _: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn mark(socket: &Socket, is_v4: bool, class: u8) -> io::Result<()> {
    match is_v4 {
        true => socket.set_tos_v4(class.into()),
        false => socket.set_tclass_v6(class.into()),
    }
}

/// Windows ignores the socket option; its way is a flow of qWAVE, which needs an administrator.
#[cfg(windows)]
fn mark(_: &Socket, _: bool, _: u8) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "Windows marks by its policies only (New-NetQosPolicy)",
    ))
}

/// Asks for the traffic class of what comes.
#[cfg(target_os = "linux")]
fn read_class(socket: &Socket, is_v4: bool) -> io::Result<()> {
    match is_v4 {
        true => socket.set_recv_tos_v4(true),
        false => socket.set_recv_tclass_v6(true),
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
    Err(io::Error::new(io::ErrorKind::Unsupported, "only on Linux"))
}
