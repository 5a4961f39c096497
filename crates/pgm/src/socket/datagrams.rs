//! Datagrams, of which some systems take and give several of one length in one call.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

/// A socket for datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// None where the system does not do that; Wine does not.
    batches: Option<UdpSocketState>,
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
    /// These sockets never wait.
    pub(super) const WAIT: Option<Duration> = None;

    /// How much room [`Datagrams::receive`] needs: for the longest datagram, or as many shorter ones.
    pub(super) const ROOM: usize = 1 << 16;

    pub(super) fn new(socket: UdpSocket) -> io::Result<Datagrams> {
        socket.set_nonblocking(true)?;
        let batches = UdpSocketState::new((&socket).into()).ok();
        Ok(Datagrams { socket, batches })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// How many datagrams can go in one call.
    pub(super) fn most(&self) -> usize {
        let batches = self.batches.as_ref();
        batches.map_or(1, UdpSocketState::max_gso_segments)
    }

    /// Sends datagrams of `each` bytes, the last of which may be shorter.
    pub(super) fn send(&mut self, bytes: &[u8], each: usize, to: SocketAddr) -> io::Result<()> {
        let Some(batches) = &self.batches else {
            return self.socket.send_to(bytes, to).map(|_| ());
        };
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: bytes,
            segment_size: (each < bytes.len()).then_some(each),
            src_ip: None,
        };
        batches.try_send((&self.socket).into(), &transmit)
    }

    /// Receives what has come, as the system gives it in one call.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> io::Result<Came> {
        let Some(batches) = &self.batches else {
            let (length, from) = self.socket.recv_from(room)?;
            return Ok(Came {
                from: from.ip(),
                length,
                each: length,
            });
        };
        let mut metas = [RecvMeta::default()];
        batches.recv(
            (&self.socket).into(),
            &mut [IoSliceMut::new(room)],
            &mut metas,
        )?;
        let [came] = metas;
        Ok(Came {
            from: came.addr.ip(),
            length: came.len,
            each: came.stride,
        })
    }

    /// The same.
    pub(super) fn receive_waiting(&mut self, room: &mut [u8]) -> io::Result<Came> {
        self.receive(room)
    }
}
