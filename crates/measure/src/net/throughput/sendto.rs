//! One call per packet, with its destination. The sockets are not connected, as in most servers.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use super::{BURST, Receive, ReceivedCount, Send, if_ready};

struct UnconnectedSocket {
    socket: UdpSocket,
    peer: SocketAddr,
    size: usize,
    buffer: Vec<u8>,
}

pub(super) fn sender(socket: UdpSocket, peer: SocketAddr, size: usize) -> Box<dyn Send> {
    Box::new(UnconnectedSocket {
        socket,
        peer,
        size,
        buffer: vec![0; size],
    })
}

pub(super) fn receiver(socket: UdpSocket, peer: SocketAddr, size: usize) -> Box<dyn Receive> {
    Box::new(UnconnectedSocket {
        socket,
        peer,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    })
}

impl Send for UnconnectedSocket {
    fn burst(&mut self) -> io::Result<u64> {
        for sent in 0..BURST {
            if if_ready(self.socket.send_to(&self.buffer, self.peer))?.is_none() {
                return Ok(sent as u64);
            }
        }
        Ok(BURST as u64)
    }
}

impl Receive for UnconnectedSocket {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut count = ReceivedCount::default();
        // Foreign packets also arrive. They are ignored.
        if let Some((bytes, from)) = if_ready(self.socket.recv_from(&mut self.buffer))?
            && from == self.peer
        {
            count.add(bytes, self.size);
        }
        Ok(count)
    }
}
