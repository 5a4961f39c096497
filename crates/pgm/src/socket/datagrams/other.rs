//! System calls for several datagrams on Windows (`UDP_SEND_MSG_SIZE`,
//! `UDP_RECV_MAX_COALESCED_SIZE`) and macOS, if the system has them. Wine lacks them.

use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use super::ReceivedBatch;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

/// State of the calls for several datagrams. `None` if the system handles datagrams one by one.
#[derive(Debug)]
pub(super) struct Calls(Option<UdpSocketState>);

impl Calls {
    /// No timeout, because these sockets are non-blocking and never wait.
    pub(super) const WAIT: Option<Duration> = None;

    /// False because each datagram is sent with its address on these systems.
    pub(super) const CAN_CONNECT: bool = false;

    pub(super) fn new(socket: &UdpSocket, joined: bool) -> io::Result<Calls> {
        socket.set_nonblocking(true)?;
        let batches = joined.then(|| UdpSocketState::new(socket.into()).ok());
        Ok(Calls(batches.flatten()))
    }

    pub(super) fn max_segments(&self) -> usize {
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
        // A single datagram is sent without the batch call. In the batch call, macOS would replace the
        // socket's traffic class (DSCP mark) with 0.
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
        came: &mut Vec<ReceivedBatch>,
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
        came.extend(metas.map(|meta| ReceivedBatch {
            from: meta.addr.ip(),
            at: 0,
            length: meta.len,
            each: meta.stride,
        }));
        Ok(())
    }
}
