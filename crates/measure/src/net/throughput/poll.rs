//! One non-blocking call per packet. `poll` waits until the socket is ready.

use std::io;
use std::net::UdpSocket;

use super::ready::{Ready, wait};
use super::{BURST, Receive, ReceivedCount, Send, if_ready};

struct Polling {
    socket: UdpSocket,
    size: usize,
    buffer: Vec<u8>,
}

impl Polling {
    fn new(socket: UdpSocket, size: usize, room: usize) -> io::Result<Box<Polling>> {
        socket.set_nonblocking(true)?;
        Ok(Box::new(Polling {
            socket,
            size,
            buffer: vec![0; room],
        }))
    }
}

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    Ok(Polling::new(socket, size, size)?)
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    Ok(Polling::new(socket, size, usize::from(u16::MAX))?)
}

impl Send for Polling {
    fn burst(&mut self) -> io::Result<u64> {
        for sent in 0..BURST {
            if if_ready(self.socket.send(&self.buffer))?.is_none() {
                wait(&self.socket, Ready::ToSend)?;
                return Ok(sent as u64);
            }
        }
        Ok(BURST as u64)
    }
}

impl Receive for Polling {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        wait(&self.socket, Ready::ToReceive)?;
        let mut count = ReceivedCount::default();
        for _ in 0..BURST {
            match if_ready(self.socket.recv(&mut self.buffer))? {
                Some(bytes) => count.add(bytes, self.size),
                None => break,
            }
        }
        Ok(count)
    }
}
