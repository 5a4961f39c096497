//! One call for a train of equal packets, which the kernel cuts as late as it can (`UDP_SEGMENT`) and
//! joins as early as it can (`UDP_GRO`).

use std::io;
use std::net::UdpSocket;

use nix::sys::socket::{setsockopt, sockopt};

use super::super::wire::LARGEST;
use super::{BURST, Receive, Send, Taken, if_ready};

struct Sender {
    socket: UdpSocket,
    size: usize,
    train: Vec<u8>,
}

struct Receiver {
    socket: UdpSocket,
    size: usize,
    buffer: Vec<u8>,
}

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    setsockopt(&socket, sockopt::UdpGsoSegment, &(size as i32))?;
    let packets = (LARGEST / size).clamp(1, BURST);
    Ok(Box::new(Sender {
        socket,
        size,
        train: vec![0; packets * size],
    }))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    Ok(Box::new(Receiver {
        socket,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    }))
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        match if_ready(self.socket.send(&self.train))? {
            Some(bytes) => Ok((bytes / self.size) as u64),
            None => Ok(0),
        }
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<Taken> {
        let mut taken = Taken::default();
        // All packets are of one size, so that is by what their joint length is divided.
        if let Some(bytes) = if_ready(self.socket.recv(&mut self.buffer))? {
            taken.add(bytes, self.size);
        }
        Ok(taken)
    }
}
