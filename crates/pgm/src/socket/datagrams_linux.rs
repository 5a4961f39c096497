//! Datagrams, of which Linux takes and gives several of one length in one call (`UDP_SEGMENT`,
//! `UDP_GRO`).

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
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

/// The kernel's bound on datagrams of one call (`UDP_MAX_SEGMENTS` before Linux 6.9).
const MOST: usize = 64;

/// A socket for datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// How many go in one call: 1 where an interface cannot cut them.
    most: usize,
    control: Vec<u8>,
}

/// What came in one call, at the start of the room for it: datagrams of one length, the last of which
/// may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) from: IpAddr,
    /// Bytes in all.
    pub(super) length: usize,
    /// Bytes of each.
    pub(super) each: usize,
}

impl Datagrams {
    /// How long [`Datagrams::receive_waiting`] waits. Shorter waits are left to `poll`, which is
    /// precise; this one is rounded to the kernel's ticks.
    pub(super) const WAIT: Option<Duration> = Some(Duration::from_millis(50));

    /// How much room [`Datagrams::receive`] needs: for the longest datagram, or as many shorter ones.
    pub(super) const ROOM: usize = 1 << 16;

    pub(super) fn new(socket: UdpSocket) -> io::Result<Datagrams> {
        socket.set_read_timeout(Self::WAIT)?;
        // Kernels before Linux 5.0 have it not, and then give them one by one.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        Ok(Datagrams {
            socket,
            most: MOST,
            control: cmsg_space!(i32),
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// How many datagrams can go in one call.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Sends datagrams of `each` bytes, the last of which may be shorter.
    pub(super) fn send(&mut self, bytes: &[u8], each: usize, to: SocketAddr) -> io::Result<()> {
        if bytes.len() > each {
            match self.send_train(bytes, each, to) {
                // Not every interface cuts them, and which does not is only known by trying.
                Err(Errno::EIO | Errno::EINVAL) => self.most = 1,
                sent => return Ok(sent?),
            }
        }
        for datagram in bytes.chunks(each.max(1)) {
            rustix::net::sendto(
                &self.socket,
                datagram,
                rustix::net::SendFlags::DONTWAIT,
                &to,
            )?;
        }
        Ok(())
    }

    fn send_train(&self, bytes: &[u8], each: usize, to: SocketAddr) -> nix::Result<()> {
        let each = u16::try_from(each).map_err(|_| Errno::EINVAL)?;
        sendmsg(
            self.socket.as_raw_fd(),
            &[io::IoSlice::new(bytes)],
            &[ControlMessage::UdpGsoSegments(&each)],
            MsgFlags::MSG_DONTWAIT,
            Some(&SockaddrStorage::from(to)),
        )
        .map(|_| ())
    }

    /// Receives what has come, as the system gives it in one call.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> io::Result<Came> {
        self.receive_with(room, MsgFlags::MSG_DONTWAIT)
    }

    /// The same, but waits for it, at most [`Datagrams::WAIT`]: one call less than to poll before.
    pub(super) fn receive_waiting(&mut self, room: &mut [u8]) -> io::Result<Came> {
        self.receive_with(room, MsgFlags::empty())
    }

    fn receive_with(&mut self, room: &mut [u8], flags: MsgFlags) -> io::Result<Came> {
        let mut parts = [IoSliceMut::new(room)];
        let control = Some(&mut self.control[..]);
        let came = recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, control, flags)?;
        let each = came.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(each) => usize::try_from(each).ok(),
            _ => None,
        });
        let v4 = |address: &SockaddrStorage| Some(address.as_sockaddr_in()?.ip().into());
        let v6 = |address: &SockaddrStorage| Some(address.as_sockaddr_in6()?.ip().into());
        let from = (came.address).and_then(|address| v4(&address).or_else(|| v6(&address)));
        Ok(Came {
            from: from.ok_or(io::ErrorKind::WouldBlock)?,
            length: came.bytes,
            each: each.unwrap_or(came.bytes),
        })
    }
}
