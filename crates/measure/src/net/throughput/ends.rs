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

/// What a run is about, beside its method.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Where both ends are: the near side sends.
    pub testbed: &'a Testbed,
    /// Which addresses they use.
    pub family: Family,
    /// The group that PGM uses.
    pub group: Option<SocketAddr>,
    /// The size of a packet, in bytes of payload.
    pub size: usize,
    /// For how long packets are sent, as fast as it goes.
    pub time: Duration,
    /// Bytes of send and receive buffer to ask for; the system's default if none.
    pub buffer_bytes: Option<usize>,
}

/// The two ends, each made on the thread that uses it.
pub(super) struct Ends {
    pub(super) sender: Make<dyn Send>,
    pub(super) receiver: Make<dyn Receive>,
    pub(super) sender_buffers: Buffers,
    pub(super) receiver_buffers: Buffers,
}

pub(super) type Make<T> = Box<dyn FnOnce() -> io::Result<Box<T>> + core::marker::Send>;

impl Ends {
    fn of<T: core::marker::Send + 'static>(
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
                Ends::of(ends, group::sender, group::receiver, size)
            }
            #[cfg(target_os = "linux")]
            Way::OpenPgm => {
                method.carrier().check(size, Some(self.testbed))?;
                let ends = openpgm::ends(self.testbed, group()?, self.buffer_bytes)?;
                Ends::of(ends, openpgm::sender, openpgm::receiver, size)
            }
            Way::Pgm(batch) => {
                let ends = reliable::ends(self.testbed, group()?, batch, self.buffer_bytes)?;
                Ends::of(ends, reliable::sender, reliable::receiver, size)
            }
        })
    }
}

/// A socket of UDP for one of the two ends.
pub(super) struct UdpEnd {
    socket: UdpSocket,
    pub(super) at: SocketAddr,
    pub(super) buffers: Buffers,
}

impl UdpEnd {
    /// Opens one at an address, whose port the system chooses if it is 0.
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
        open().map_err(NetError::while_doing(format!("listening at {address}")))
    }

    /// What sends to the other end by a method.
    ///
    /// # Errors
    /// When the method is not one of two such sockets, or the other end cannot be reached.
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

    /// What receives from the other end by a method.
    ///
    /// # Errors
    /// As for [`UdpEnd::sender`].
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
        connected.map_err(NetError::while_doing(format!("connecting with {peer}")))?;
        Ok(self.socket)
    }
}
