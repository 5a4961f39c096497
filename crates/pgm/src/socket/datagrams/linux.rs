//! Sending and receiving of datagrams on Linux. With the option `UDP_SEGMENT`, one call sends several datagrams. With
//! `UDP_GRO`, the kernel joins received datagrams. If the caller does not allow joined datagrams, one call of
//! `recvmmsg` receives several separate datagrams.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    time::Duration,
};

use super::{Datagrams, ReceivedBatch};
use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg,
        recvmsg, sendmsg, setsockopt, sockopt,
    },
};
use rustix::net::{SendFlags, send, sendto};

/// Kernel limit on datagrams per call (`UDP_MAX_SEGMENTS`) since Linux 6.9.
const MAX_SEGMENTS: usize = 128;

/// Kernel limit on datagrams per call before Linux 6.9.
const OLD_MAX_SEGMENTS: usize = 64;

/// Distance in bytes between the datagrams of a call in the buffer. If the distance were a multiple of the
/// page size, the beginnings of all datagrams would compete for the same cache lines. Most datagrams are so
/// short that they consist only of such a beginning.
const STRIDE: usize = Datagrams::ROOM + 192;

#[derive(Debug)]
pub(super) struct Calls {
    /// Maximum number of datagrams per call. The value is 1 if the interface cannot segment.
    max_segments: usize,
    /// True if the system may deliver several datagrams in one call.
    joined: bool,
    control: Vec<u8>,
}

impl Calls {
    pub(super) const WAIT: Option<Duration> = Some(Duration::from_millis(50));

    /// True because a connected socket needs no address per datagram on Linux.
    pub(super) const CAN_CONNECT: bool = true;

    pub(super) fn new(socket: &UdpSocket, joined: bool) -> io::Result<Calls> {
        socket.set_read_timeout(Self::WAIT)?;
        // Kernels before Linux 5.0 lack this option and deliver datagrams one by one, so an error
        // is ignored.
        let _ = setsockopt(socket, sockopt::UdpGroSegment, &joined);
        Ok(Calls {
            max_segments: MAX_SEGMENTS,
            joined,
            control: cmsg_space!(i32),
        })
    }

    pub(super) fn max_segments(&self) -> usize {
        self.max_segments
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
        while rest.len() > each && self.max_segments > 1 {
            let (train, after) = rest.split_at(rest.len().min(self.max_segments * each));
            match send_segments(socket, train, each, to) {
                Ok(()) => rest = after,
                // Some kernels accept fewer datagrams, and some interfaces cannot segment. Only a failed call
                // shows these limits. After any other error, such as a full buffer, the caller may repeat all
                // datagrams, also those that were already sent. Receivers drop these as duplicates.
                Err(Errno::EINVAL) if self.max_segments > OLD_MAX_SEGMENTS => {
                    self.max_segments = OLD_MAX_SEGMENTS
                }
                Err(Errno::EIO | Errno::EINVAL) => self.max_segments = 1,
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
        came: &mut Vec<ReceivedBatch>,
        waiting: bool,
    ) -> io::Result<()> {
        if !self.joined {
            return receive_many(socket, room, came, waiting);
        }
        let flags = if waiting {
            MsgFlags::empty()
        } else {
            MsgFlags::MSG_DONTWAIT
        };
        let mut parts = [IoSliceMut::new(room)];
        let control = Some(&mut self.control[..]);
        let got = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, control, flags)?;
        let each = got.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(each) => usize::try_from(each).ok(),
            _ => None,
        });
        came.extend(
            got.address
                .as_ref()
                .and_then(address)
                .map(|from| ReceivedBatch {
                    from,
                    at: 0,
                    length: got.bytes,
                    each: each.unwrap_or(got.bytes),
                }),
        );
        Ok(())
    }
}

fn address(storage: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = storage.as_sockaddr_in().map(|storage| storage.ip().into());
    v4.or_else(|| Some(storage.as_sockaddr_in6()?.ip().into()))
}

/// Receives several datagrams in one call. Each datagram gets a separate part of the buffer.
fn receive_many(
    socket: &UdpSocket,
    room: &mut [u8],
    came: &mut Vec<ReceivedBatch>,
    waiting: bool,
) -> io::Result<()> {
    let flags = if waiting {
        MsgFlags::MSG_WAITFORONE
    } else {
        MsgFlags::MSG_DONTWAIT
    };
    let mut parts: Vec<_> = (room.chunks_exact_mut(STRIDE))
        .map(|part| [IoSliceMut::new(part)])
        .collect();
    // The headers are created for each call, because headers contain pointers. A socket that stored the
    // headers could not move to another thread.
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(parts.len(), None);
    let got = recvmmsg(socket.as_raw_fd(), &mut headers, &mut parts, flags, None)?;
    came.extend(got.zip((0..).step_by(STRIDE)).filter_map(|(got, at)| {
        Some(ReceivedBatch {
            from: got.address.as_ref().and_then(address)?,
            at,
            length: got.bytes,
            each: got.bytes,
        })
    }));
    Ok(())
}

fn send_segments(
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
    fn large_batches_are_split_into_calls() {
        const COUNT: u8 = 150;
        for max_segments in [200, MAX_SEGMENTS, OLD_MAX_SEGMENTS, 3, 1] {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            receiver.set_read_timeout(Calls::WAIT).unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut calls = Calls::new(&sender, false).unwrap();
            calls.max_segments = max_segments;
            let bytes: Vec<u8> = (0..COUNT).flat_map(|number| [number; 10]).collect();
            let to = receiver.local_addr().unwrap();
            calls.send(&sender, &bytes, 10, Some(to)).unwrap();
            for of in 0..COUNT {
                let mut datagram = [0; 20];
                let length = receiver.recv(&mut datagram).unwrap();
                assert_eq!(datagram[..length], [of; 10], "{max_segments} in a call");
            }
            assert!(calls.max_segments <= MAX_SEGMENTS, "no kernel accepts 150");
            if max_segments < MAX_SEGMENTS {
                assert_eq!(
                    calls.max_segments, max_segments,
                    "the loopback interface segments"
                );
            }
        }
    }
}
