//! The two ends of a run.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

#[cfg(target_os = "linux")]
use super::openpgm;
use super::{Method, Receive, Send, WAIT, Way, group, reliable, sendto};
use crate::Scheduling;
use crate::net::buffers::grant;
use crate::net::{Buffers, Family, NetError, Side, Testbed};

/// Parameters of a run, without the method.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Test bed with both ends. The near side sends.
    pub testbed: &'a Testbed,
    /// Address family.
    pub family: Family,
    /// Multicast group for the methods that send to a group.
    pub group: Option<SocketAddr>,
    /// Payload size in bytes.
    pub size: usize,
    /// Duration of sending.
    pub time: Duration,
    /// Requested send and receive buffer in bytes; `None` for the system's default.
    pub buffer_bytes: Option<usize>,
}

/// The two ends of a run. Each end is created on the thread that uses it.
pub(super) struct Ends {
    pub(super) sender: Make<dyn Send>,
    pub(super) receiver: Make<dyn Receive>,
    pub(super) sender_buffers: Buffers,
    pub(super) receiver_buffers: Buffers,
}

pub(super) type Make<T> = Box<dyn FnOnce() -> io::Result<Box<T>> + core::marker::Send>;

impl Ends {
    fn new<T: core::marker::Send + 'static>(
        [(near, sender_buffers), (far, receiver_buffers)]: [(T, Buffers); 2],
        sender: fn(T, usize) -> Box<dyn Send>,
        receiver: fn(T, usize) -> Box<dyn Receive>,
        size: usize,
    ) -> Ends {
        Ends {
            sender_buffers,
            receiver_buffers,
            sender: Box::new(move || Ok(sender(near, size))),
            receiver: Box::new(move || Ok(receiver(far, size))),
        }
    }
}

impl Load<'_> {
    pub(super) fn ends(&self, method: Method, scheduling: &Scheduling) -> Result<Ends, NetError> {
        let size = self.size;
        let group = || self.group.ok_or(NetError::NoGroup);
        Ok(match method.way {
            Way::Udp { .. } | Way::Unconnected => {
                let open = |side| {
                    let address = (self.testbed.address(side, self.family), 0).into();
                    (self.testbed).on(side, || {
                        UdpEnd::open(address, method.socket(), self.buffer_bytes)
                    })?
                };
                let (near, far) = (open(Side::Near)?, open(Side::Far)?);
                let (near_at, far_at) = (near.at, far.at);
                Ends {
                    sender_buffers: near.buffers,
                    receiver_buffers: far.buffers,
                    sender: near.sender(method, far_at, size)?,
                    receiver: far.receiver(method, near_at, size)?,
                }
            }
            Way::Group(carrier) => {
                carrier.check(size, Some(self.testbed))?;
                let ends = group::ends(
                    carrier,
                    self.testbed,
                    group()?,
                    self.buffer_bytes,
                    scheduling,
                )?;
                Ends::new(ends, group::sender, group::receiver, size)
            }
            #[cfg(target_os = "linux")]
            Way::OpenPgm => {
                method.carrier().check(size, Some(self.testbed))?;
                let ends = openpgm::ends(self.testbed, group()?, self.buffer_bytes)?;
                Ends::new(ends, openpgm::sender, openpgm::receiver, size)
            }
            Way::Pgm(batch) => {
                let ends = reliable::ends(self.testbed, group()?, batch, self.buffer_bytes)?;
                Ends::new(ends, reliable::sender, reliable::receiver, size)
            }
        })
    }
}

/// UDP socket of one end.
pub(super) struct UdpEnd {
    socket: UdpSocket,
    pub(super) at: SocketAddr,
    pub(super) buffers: Buffers,
}

impl UdpEnd {
    /// Opens a socket at an address. If the port is 0, the system chooses a port.
    pub(super) fn open(
        address: SocketAddr,
        kind: Type,
        buffer_bytes: Option<usize>,
    ) -> Result<UdpEnd, NetError> {
        let open = || {
            let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
            socket.bind(&address.into())?;
            let socket = UdpSocket::from(socket);
            socket.set_read_timeout(Some(WAIT))?;
            socket.set_write_timeout(Some(WAIT))?;
            Ok(UdpEnd {
                at: socket.local_addr()?,
                buffers: grant(&SockRef::from(&socket), buffer_bytes)?,
                socket,
            })
        };
        open().map_err(NetError::context(format!("listening on {address}")))
    }

    /// Returns the sending end of a method.
    ///
    /// # Errors
    /// Returns an error if the method does not use UDP sockets, or if the other end cannot be
    /// reached.
    pub(super) fn sender(
        self,
        method: Method,
        peer: SocketAddr,
        size: usize,
    ) -> Result<Make<dyn Send>, NetError> {
        Ok(match method.way {
            Way::Udp { sender, .. } => {
                let socket = self.connected(peer)?;
                Box::new(move || sender(socket, size))
            }
            Way::Unconnected => Box::new(move || Ok(sendto::sender(self.socket, peer, size))),
            _ => return Err(NetError::OnlyHere),
        })
    }

    /// Returns the receiving end of a method.
    ///
    /// # Errors
    /// Returns the errors of [`UdpEnd::sender`].
    pub(super) fn receiver(
        self,
        method: Method,
        peer: SocketAddr,
        size: usize,
    ) -> Result<Make<dyn Receive>, NetError> {
        Ok(match method.way {
            Way::Udp { receiver, .. } => {
                let socket = self.connected(peer)?;
                Box::new(move || receiver(socket, size))
            }
            Way::Unconnected => Box::new(move || Ok(sendto::receiver(self.socket, peer, size))),
            _ => return Err(NetError::OnlyHere),
        })
    }

    fn connected(self, peer: SocketAddr) -> Result<UdpSocket, NetError> {
        let connected = self.socket.connect(peer);
        connected.map_err(NetError::context(format!("connecting to {peer}")))?;
        Ok(self.socket)
    }
}
