//! One call for many packets: `sendmmsg` and `recvmmsg`.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};

use super::{BURST, Receive, ReceivedCount, Send, if_ready};

struct Sender {
    socket: UdpSocket,
    packet: Vec<u8>,
    headers: MultiHeaders<SockaddrStorage>,
}

struct Receiver {
    socket: UdpSocket,
    size: usize,
    /// Buffers for the packets, one after the other.
    buffer: Vec<u8>,
    headers: MultiHeaders<SockaddrStorage>,
}

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    Ok(Box::new(Sender {
        socket,
        packet: vec![0; size],
        headers: MultiHeaders::preallocate(BURST, None),
    }))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    Ok(Box::new(Receiver {
        socket,
        size,
        buffer: vec![0; size * BURST],
        headers: MultiHeaders::preallocate(BURST, None),
    }))
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let packet = [IoSlice::new(&self.packet)];
        let packets = [&packet; BURST];
        let no_addresses: [Option<SockaddrStorage>; BURST] = [None; BURST];
        let sent = sendmmsg(
            self.socket.as_raw_fd(),
            &mut self.headers,
            packets,
            no_addresses,
            [],
            MsgFlags::empty(),
        );
        let sent = if_ready(sent.map_err(io::Error::from))?;
        Ok(sent.map_or(0, |sent| sent.count() as u64))
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut rooms: Vec<[IoSliceMut<'_>; 1]> = (self.buffer.chunks_mut(self.size))
            .map(|room| [IoSliceMut::new(room)])
            .collect();
        let received = recvmmsg(
            self.socket.as_raw_fd(),
            &mut self.headers,
            rooms.iter_mut(),
            MsgFlags::MSG_WAITFORONE,
            None,
        );
        let mut count = ReceivedCount::default();
        for message in if_ready(received.map_err(io::Error::from))?
            .into_iter()
            .flatten()
        {
            count.add(message.bytes, self.size);
        }
        Ok(count)
    }
}
