//! The calls of Linux: `UDP_SEGMENT` and `UDP_GRO`.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    time::Duration,
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg,
        setsockopt, sockopt,
    },
};
use rustix::net::{SendFlags, send, sendto};

/// The kernel's bound on datagrams of one call (`UDP_MAX_SEGMENTS` before Linux 6.9).
const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct Calls {
    /// How many datagrams go in one call: 1 where an interface cannot cut them.
    most: usize,
    control: Vec<u8>,
}

impl Calls {
    pub(super) const WAIT: Option<Duration> = Some(Duration::from_millis(50));

    /// What goes to a connected socket's peer needs no address.
    pub(super) const CAN_CONNECT: bool = true;

    pub(super) fn of(socket: &UdpSocket, joined: bool) -> io::Result<Calls> {
        socket.set_read_timeout(Self::WAIT)?;
        // Kernels before Linux 5.0 have it not, and then give them one by one.
        let _ = setsockopt(socket, sockopt::UdpGroSegment, &joined);
        Ok(Calls {
            most: MOST,
            control: cmsg_space!(i32),
        })
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        bytes: &[u8],
        each: usize,
        to: Option<SocketAddr>,
    ) -> io::Result<()> {
        if bytes.len() > each {
            match send_train(socket, bytes, each, to) {
                // Not every interface cuts them, and which does not is only known by trying.
                Err(Errno::EIO | Errno::EINVAL) => self.most = 1,
                sent => return Ok(sent?),
            }
        }
        for datagram in bytes.chunks(each.max(1)) {
            match to {
                Some(to) => sendto(socket, datagram, SendFlags::DONTWAIT, &to)?,
                None => send(socket, datagram, SendFlags::DONTWAIT)?,
            };
        }
        Ok(())
    }

    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        room: &mut [u8],
        waiting: bool,
    ) -> io::Result<super::Came> {
        let flags = match waiting {
            true => MsgFlags::empty(),
            false => MsgFlags::MSG_DONTWAIT,
        };
        let mut parts = [IoSliceMut::new(room)];
        let control = Some(&mut self.control[..]);
        let came = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, control, flags)?;
        let each = came.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(each) => usize::try_from(each).ok(),
            _ => None,
        });
        let v4 = |address: &SockaddrStorage| Some(address.as_sockaddr_in()?.ip().into());
        let v6 = |address: &SockaddrStorage| Some(address.as_sockaddr_in6()?.ip().into());
        let from = (came.address).and_then(|address| v4(&address).or_else(|| v6(&address)));
        Ok(super::Came {
            from: from.ok_or(io::ErrorKind::WouldBlock)?,
            length: came.bytes,
            each: each.unwrap_or(came.bytes),
        })
    }
}

fn send_train(
    socket: &UdpSocket,
    bytes: &[u8],
    each: usize,
    to: Option<SocketAddr>,
) -> nix::Result<()> {
    let each = u16::try_from(each).map_err(|_| Errno::EINVAL)?;
    sendmsg(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        &[ControlMessage::UdpGsoSegments(&each)],
        MsgFlags::MSG_DONTWAIT,
        to.map(SockaddrStorage::from).as_ref(),
    )
    .map(|_| ())
}
