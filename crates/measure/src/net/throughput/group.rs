//! A call a packet to a group, as the messages of PGM go.

use std::io;
use std::net::SocketAddr;

use super::{BURST, Receive, Send, Taken, if_ready};
use crate::net::{
    Buffers, Family, NetError, Place, Side, Testbed, Transport, Udp, UdpGrants, UdpOptions,
};

struct Group {
    end: Udp,
    size: usize,
    buffer: Vec<u8>,
}

/// The two ends and their buffers: one sends to the group, the other hears it.
pub(super) fn ends(
    testbed: &Testbed,
    group: SocketAddr,
    buffer_bytes: Option<usize>,
) -> Result<[(Udp, Buffers); 2], NetError> {
    let family = match group {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(_) => Family::V6,
    };
    let options = UdpOptions {
        buffer_bytes,
        ..UdpOptions::default()
    };
    let open = |side| {
        let interface = Some(testbed.interface(side, family)?);
        let opened = testbed.on(side, || {
            Udp::open(&Place::Group { group, interface }, &options)
        })?;
        opened.map(|(end, UdpGrants { buffers, .. })| (end, buffers))
    };
    Ok([open(Side::Near)?, open(Side::Far)?])
}

pub(super) fn sender(end: Udp, size: usize) -> Box<dyn Send> {
    Box::new(Group {
        end,
        size,
        buffer: vec![0; size],
    })
}

pub(super) fn receiver(end: Udp, size: usize) -> Box<dyn Receive> {
    Box::new(Group {
        end,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    })
}

impl Send for Group {
    fn burst(&mut self) -> io::Result<u64> {
        for sent in 0..BURST {
            if if_ready(self.end.send(&self.buffer, None))?.is_none() {
                return Ok(sent as u64);
            }
        }
        Ok(BURST as u64)
    }
}

impl Receive for Group {
    fn take(&mut self) -> io::Result<Taken> {
        let mut taken = Taken::default();
        if let Some(received) = self.end.receive(&mut self.buffer)? {
            taken.add(received.len, self.size);
        }
        Ok(taken)
    }
}
