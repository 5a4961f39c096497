//! The calls of Windows (`UDP_SEND_MSG_SIZE`, `UDP_RECV_MAX_COALESCED_SIZE`) and of macOS, where those are
//! there; Wine has them not.

use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use super::Came;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

/// None where the system takes and gives datagrams one by one.
#[derive(Debug)]
pub(super) struct Calls(Option<UdpSocketState>);

impl Calls {
    /// These sockets never wait.
    pub(super) const WAIT: Option<Duration> = None;

    /// Each datagram is sent with its address.
    pub(super) const CAN_CONNECT: bool = false;

    pub(super) fn of(socket: &UdpSocket, joined: bool) -> io::Result<Calls> {
        socket.set_nonblocking(true)?;
        let batches = joined.then(|| UdpSocketState::new(socket.into()).ok());
        Ok(Calls(batches.flatten()))
    }

    pub(super) fn most(&self) -> usize {
        let batches = self.0.as_ref();
        batches.map_or(1, UdpSocketState::max_gso_segments)
    }

    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        bytes: &[u8],
        each: usize,
        to: Option<SocketAddr>,
    ) -> io::Result<()> {
        let destination = to.ok_or(io::ErrorKind::NotConnected)?;
        // By itself also where batches are there: macOS would take their class of traffic, which is none,
        // for the socket's.
        let Some(batches) = self.0.as_ref().filter(|_| bytes.len() > each) else {
            return socket.send_to(bytes, destination).map(|_| ());
        };
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: bytes,
            segment_size: Some(each),
            src_ip: None,
        };
        batches.try_send(socket.into(), &transmit)
    }

    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        room: &mut [u8],
        came: &mut Vec<Came>,
        _waiting: bool,
    ) -> io::Result<()> {
        let mut metas = [RecvMeta::default()];
        let [meta] = &mut metas;
        match &self.0 {
            Some(batches) => {
                batches.recv(socket.into(), &mut [IoSliceMut::new(room)], &mut metas)?;
            }
            None => {
                (meta.len, meta.addr) = socket.recv_from(room)?;
                meta.stride = meta.len;
            }
        }
        came.extend(metas.map(|meta| Came {
            from: meta.addr.ip(),
            at: 0,
            length: meta.len,
            each: meta.stride,
        }));
        Ok(())
    }
}
