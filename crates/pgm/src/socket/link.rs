//! Either way of packing packets, behind one face.

use std::{
    net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket},
    time::Duration,
};

use bytes::Bytes;
use socket2::SockRef;

use super::{
    Buffers, Encapsulation, SocketConfig, SocketError, error::Doing, raw::Raw, udp::Udp, wait::wait,
};
use crate::{Destination, Receiver, Source, wire::Dialect};

/// What packets go through.
#[derive(Debug)]
pub(super) enum Link {
    Udp(Box<Udp>),
    Raw(Raw),
}

/// What a member is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) source: bool,
    pub(super) receiver: bool,
}

/// Whether there may be more to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Perhaps,
    No,
}

/// Takes a packet, where it came from, and the memory in which it lies if messages may share that.
pub(super) type Take<'a> = dyn FnMut(IpAddr, &[u8], Option<&Bytes>) + 'a;

impl Link {
    /// No more goes in one call.
    pub(super) const MOST_BYTES: usize = 65_000;

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

    /// How many packets can go in one call.
    pub(super) fn most_packets(&self) -> usize {
        match self {
            Link::Udp(udp) => udp.most_packets(),
            Link::Raw(_) => 1,
        }
    }

    /// Sends packets of one length, the last of which may be shorter. Says whether the system took
    /// them: it may be full.
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

    /// Receives some packets.
    pub(super) fn receive(&mut self, take: &mut Take<'_>) -> Result<More, SocketError> {
        match self {
            Link::Udp(udp) => udp.receive(take),
            Link::Raw(raw) => raw.receive(take),
        }
    }

    /// The sockets at which packets come.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        let sockets = match self {
            Link::Udp(udp) => udp.sockets(),
            Link::Raw(raw) => [Some(raw.socket()), None],
        };
        sockets.into_iter().flatten()
    }

    pub(super) fn buffers(&self) -> Result<Buffers, SocketError> {
        let (asked, receive, send) = match self {
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
        let doing = || "ask how much the system buffers".to_owned();
        Ok(Buffers {
            asked,
            receive: size(receive, true).doing(doing)?,
            send: size(send, false).doing(doing)?,
        })
    }

    /// Waits until something can be received, or sent where that is wanted, or so long.
    pub(super) fn wait(
        &mut self,
        most: Option<Duration>,
        to_send: bool,
    ) -> Result<(), SocketError> {
        match self {
            Link::Udp(udp) => udp.wait(most, to_send),
            Link::Raw(raw) => {
                let socket = raw.socket();
                let sends = to_send.then_some(socket);
                wait(std::iter::once(socket), sends, most).map(|_| ())
            }
        }
    }

    /// What packets are read as: as either end is configured.
    pub(super) fn dialect(&self, source: Option<&Source>, receiver: Option<&Receiver>) -> Dialect {
        source
            .map(Source::dialect)
            .or(receiver.map(Receiver::dialect))
            .unwrap_or_default()
    }
}

/// The address with a port and, where it is only unique on one link, the interface.
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
