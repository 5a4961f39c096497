//! A call a packet, which does not wait; who waits is `poll`.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{BURST, Receive, Send, Taken, WAIT, if_ready};

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

    /// Waits until something can be done, but not for long.
    fn wait(&self, what: PollFlags) -> io::Result<()> {
        let mut sockets = [PollFd::new(self.socket.as_fd(), what)];
        let time = PollTimeout::try_from(WAIT).unwrap_or(PollTimeout::ZERO);
        if_ready(poll(&mut sockets, time).map_err(io::Error::from)).map(|_| ())
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
                self.wait(PollFlags::POLLOUT)?;
                return Ok(sent as u64);
            }
        }
        Ok(BURST as u64)
    }
}

impl Receive for Polling {
    fn take(&mut self) -> io::Result<Taken> {
        self.wait(PollFlags::POLLIN)?;
        let mut taken = Taken::default();
        for _ in 0..BURST {
            match if_ready(self.socket.recv(&mut self.buffer))? {
                Some(bytes) => taken.add(bytes, self.size),
                None => break,
            }
        }
        Ok(taken)
    }
}
