//! One blocking call per packet.

use std::io;
use std::net::UdpSocket;

use super::{BURST, Receive, ReceivedCount, Send, if_ready};

struct Blocking {
    socket: UdpSocket,
    size: usize,
    buffer: Vec<u8>,
}

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    Ok(Box::new(Blocking {
        socket,
        size,
        buffer: vec![0; size],
    }))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    Ok(Box::new(Blocking {
        socket,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    }))
}

impl Send for Blocking {
    fn burst(&mut self) -> io::Result<u64> {
        for sent in 0..BURST {
            if if_ready(self.socket.send(&self.buffer))?.is_none() {
                return Ok(sent as u64);
            }
        }
        Ok(BURST as u64)
    }
}

impl Receive for Blocking {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut count = ReceivedCount::default();
        if let Some(bytes) = if_ready(self.socket.recv(&mut self.buffer))? {
            count.add(bytes, self.size);
        }
        Ok(count)
    }
}
