//! Common interface of both encapsulations: UDP and raw IP.

use std::{
    net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket},
    time::Duration,
};

use bytes::Bytes;
use socket2::SockRef;

use super::{
    Buffers, Encapsulation, SocketConfig, SocketError, error::Context, raw::Raw, udp::Udp,
    wait::wait,
};
use crate::{Destination, Receiver, Source, wire::Dialect};

/// Sockets of a member, for either encapsulation.
#[derive(Debug)]
pub(super) enum Link {
    Udp(Box<Udp>),
    Raw(Raw),
}

/// Roles of a member: source, receiver, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) source: bool,
    pub(super) receiver: bool,
}

/// Result of a step. It shows that more work may be due now, or that no more work is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Maybe,
    No,
}

/// Callback for a received packet. The arguments are the sender's address, the bytes of the packet,
/// and the memory that contains the packet, if messages may share this memory.
pub(super) type Take<'a> = dyn FnMut(IpAddr, &[u8], Option<&Bytes>) + 'a;

impl Link {
    /// Maximum number of bytes sent in one call.
    pub(super) const MAX_BYTES: usize = 65_000;

    /// Opens the sockets.
    pub(super) fn open(
        config: &SocketConfig,
        address: IpAddr,
        ends: Ends,
    ) -> Result<Link, SocketError> {
        Ok(match config.encapsulation {
            Encapsulation::Udp { unicast, multicast } => Link::Udp(Box::new(Udp::open(
                config,
                address,
                (unicast, multicast),
                ends,
            )?)),
            Encapsulation::Raw => Link::Raw(Raw::open(config, address)?),
        })
    }

    /// Returns the maximum number of packets that one call can send.
    pub(super) fn max_packets(&self) -> usize {
        match self {
            Link::Udp(udp) => udp.max_packets(),
            Link::Raw(_) => 1,
        }
    }

    /// Sends packets of `packet` bytes each. The last packet may be shorter. Returns false if the system did
    /// not accept the packets because its buffer is full.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        packet: usize,
        to: Destination,
        group: IpAddr,
        router_alert: bool,
    ) -> Result<bool, SocketError> {
        match self {
            Link::Udp(udp) => udp.send(bytes, packet, to, group),
            Link::Raw(raw) => raw.send(bytes, to, group, router_alert),
        }
    }

    /// Receives a batch of packets.
    pub(super) fn receive(&mut self, take: &mut Take<'_>) -> Result<More, SocketError> {
        match self {
            Link::Udp(udp) => udp.receive(take),
            Link::Raw(raw) => raw.receive(take),
        }
    }

    /// Returns the sockets on which packets arrive.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        let sockets = match self {
            Link::Udp(udp) => udp.sockets(),
            Link::Raw(raw) => [Some(raw.socket()), None],
        };
        sockets.into_iter().flatten()
    }

    pub(super) fn buffers(&self) -> Result<Buffers, SocketError> {
        let (requested, receive, send) = match self {
            Link::Udp(udp) => udp.buffers(),
            Link::Raw(raw) => raw.buffers(),
        };
        let size = |socket: &UdpSocket, is_receive: bool| {
            let socket = SockRef::from(socket);
            if is_receive {
                socket.recv_buffer_size()
            } else {
                socket.send_buffer_size()
            }
        };
        let context = || "query the system's buffer sizes".to_owned();
        Ok(Buffers {
            requested,
            receive: size(receive, true).context(context)?,
            send: size(send, false).context(context)?,
        })
    }

    /// Waits until packets can be received or the timeout is over. If `to_send` is true, the wait
    /// also ends when packets can be sent.
    pub(super) fn wait(
        &mut self,
        timeout: Option<Duration>,
        to_send: bool,
    ) -> Result<(), SocketError> {
        match self {
            Link::Udp(udp) => udp.wait(timeout, to_send),
            Link::Raw(raw) => {
                let socket = raw.socket();
                let sends = to_send.then_some(socket);
                wait(std::iter::once(socket), sends, timeout).map(|_| ())
            }
        }
    }

    /// Returns the dialect for parsing packets. If there is a source, the dialect comes from the
    /// configuration of the source. Otherwise, it comes from the configuration of the receiver.
    pub(super) fn dialect(&self, source: Option<&Source>, receiver: Option<&Receiver>) -> Dialect {
        source
            .map(Source::dialect)
            .or(receiver.map(Receiver::dialect))
            .unwrap_or_default()
    }
}

/// Returns a socket address with the port. If the IP address is unique only on one link, the socket
/// address also names the interface.
pub(super) fn endpoint(address: IpAddr, port: u16, interface: u32) -> SocketAddr {
    match address {
        IpAddr::V4(_) => SocketAddr::new(address, port),
        IpAddr::V6(v6) => {
            let is_local = v6.is_unicast_link_local() || v6.is_multicast();
            let scope = if is_local { interface } else { 0 };
            SocketAddrV6::new(v6, port, 0, scope).into()
        }
    }
}
