//! The calls of Linux: `UDP_SEGMENT` and `UDP_GRO`, and `recvmmsg` for what comes one by one.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    time::Duration,
};

use super::{Came, Datagrams};
use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg,
        recvmsg, sendmsg, setsockopt, sockopt,
    },
};
use rustix::net::{SendFlags, send, sendto};

/// The kernel's bound on datagrams of one call (`UDP_MAX_SEGMENTS`) since Linux 6.9.
const MOST: usize = 128;

/// The same before.
const MOST_BEFORE: usize = 64;

/// Where the next datagram of a call goes that comes by itself: it may have any length, and mostly is
/// short. Were their beginnings whole pages apart, a processor's caches could not hold many of them.
const APART: usize = Datagrams::ROOM + 192;

#[derive(Debug)]
pub(super) struct Calls {
    /// How many datagrams go in one call: 1 where an interface cannot cut them.
    most: usize,
    /// Whether datagrams come as one.
    joined: bool,
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
            joined,
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
        let each = each.max(1);
        let mut rest = bytes;
        while rest.len() > each && self.most > 1 {
            let (train, after) = rest.split_at(rest.len().min(self.most * each));
            match send_train(socket, train, each, to) {
                Ok(()) => rest = after,
                // Not every kernel takes as many, nor every interface cuts them; which does not is only
                // known by trying. What went before another error goes again, and is dropped as known.
                Err(Errno::EINVAL) if self.most > MOST_BEFORE => self.most = MOST_BEFORE,
                Err(Errno::EIO | Errno::EINVAL) => self.most = 1,
                Err(error) => return Err(error.into()),
            }
        }
        for datagram in rest.chunks(each) {
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
        came: &mut Vec<Came>,
        waiting: bool,
    ) -> io::Result<()> {
        if !self.joined {
            return receive_many(socket, room, came, waiting);
        }
        let flags = match waiting {
            true => MsgFlags::empty(),
            false => MsgFlags::MSG_DONTWAIT,
        };
        let mut parts = [IoSliceMut::new(room)];
        let control = Some(&mut self.control[..]);
        let got = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, control, flags)?;
        let each = got.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(each) => usize::try_from(each).ok(),
            _ => None,
        });
        came.extend(got.address.as_ref().and_then(address).map(|from| Came {
            from,
            at: 0,
            length: got.bytes,
            each: each.unwrap_or(got.bytes),
        }));
        Ok(())
    }
}

fn address(of: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = of.as_sockaddr_in().map(|of| of.ip().into());
    v4.or_else(|| Some(of.as_sockaddr_in6()?.ip().into()))
}

/// Receives what has come, each datagram by itself.
fn receive_many(
    socket: &UdpSocket,
    room: &mut [u8],
    came: &mut Vec<Came>,
    waiting: bool,
) -> io::Result<()> {
    let flags = match waiting {
        true => MsgFlags::MSG_WAITFORONE,
        false => MsgFlags::MSG_DONTWAIT,
    };
    let mut parts: Vec<_> = (room.chunks_exact_mut(APART))
        .map(|part| [IoSliceMut::new(part)])
        .collect();
    // Made anew for each call, since it has pointers, with which a socket could go to no other thread.
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(parts.len(), None);
    let got = recvmmsg(socket.as_raw_fd(), &mut headers, &mut parts, flags, None)?;
    came.extend(got.zip((0..).step_by(APART)).filter_map(|(got, at)| {
        Some(Came {
            from: got.address.as_ref().and_then(address)?,
            at,
            length: got.bytes,
            each: got.bytes,
        })
    }));
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_kernel_takes_go_in_several_calls() {
        const COUNT: u8 = 150;
        for most in [200, MOST, MOST_BEFORE, 3, 1] {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            receiver.set_read_timeout(Calls::WAIT).unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut calls = Calls::of(&sender, false).unwrap();
            calls.most = most;
            let bytes: Vec<u8> = (0..COUNT).flat_map(|of| [of; 10]).collect();
            let to = receiver.local_addr().unwrap();
            calls.send(&sender, &bytes, 10, Some(to)).unwrap();
            for of in 0..COUNT {
                let mut datagram = [0; 20];
                let length = receiver.recv(&mut datagram).unwrap();
                assert_eq!(datagram[..length], [of; 10], "{most} in a call");
            }
            assert!(calls.most <= MOST, "no kernel takes 150");
            if most < MOST {
                assert_eq!(calls.most, most, "the loopback cuts them");
            }
        }
    }
}
