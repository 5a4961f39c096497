//! A call a message to a group, as the messages of PGM go, by whatever carries them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::on_the_way::OnTheWay;
use super::{BURST, Receive, Send, Taken, WAIT, if_ready};
use crate::Scheduling;
use crate::net::{
    Buffers, Carrier, Family, NetError, Place, Side, Testbed, Transport, UdpGrants, UdpOptions,
};

/// One of the two ends.
pub(super) struct End {
    transport: Box<dyn Transport>,
    /// None of a carrier that loses what is too much.
    on_the_way: Option<Arc<OnTheWay>>,
}

/// The two ends and their buffers: one sends to the group, the other hears it.
pub(super) fn ends(
    carrier: Carrier,
    testbed: &Testbed,
    group: SocketAddr,
    buffer_bytes: Option<usize>,
    scheduling: &Scheduling,
) -> Result<[(End, Buffers); 2], NetError> {
    let options = UdpOptions {
        buffer_bytes,
        ..UdpOptions::default()
    };
    let on_the_way = carrier.needs_group().then(|| Arc::new(OnTheWay::default()));
    let open = |side| {
        let interface = Some(testbed.interface(side, Family::of(group))?);
        let place = Place::Group { group, interface };
        let opened = testbed.on(side, || carrier.open(side, &place, &options, scheduling))?;
        let (transport, UdpGrants { buffers, .. }) = opened?;
        let on_the_way = on_the_way.clone();
        let end = End {
            transport,
            on_the_way,
        };
        Ok::<_, NetError>((end, buffers))
    };
    Ok([open(Side::Near)?, open(Side::Far)?])
}

struct Group {
    end: End,
    size: usize,
    buffer: Vec<u8>,
}

pub(super) fn sender(end: End, size: usize) -> Box<dyn Send> {
    Box::new(Group {
        end,
        size,
        buffer: vec![0; size],
    })
}

pub(super) fn receiver(end: End, size: usize) -> Box<dyn Receive> {
    Box::new(Group {
        end,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    })
}

impl Group {
    fn sent(&self, packets: usize) -> u64 {
        if let Some(way) = &self.end.on_the_way {
            way.sent((packets * self.size) as u64);
        }
        packets as u64
    }
}

impl Send for Group {
    fn burst(&mut self) -> io::Result<u64> {
        let way = self.end.on_the_way.as_ref();
        if way.is_some_and(|way| !way.has_room(self.size)) {
            thread::sleep(Duration::from_micros(100));
            return Ok(0);
        }
        for sent in 0..BURST {
            if if_ready(self.end.transport.send(&self.buffer, None))?.is_none() {
                return Ok(self.sent(sent));
            }
        }
        Ok(self.sent(BURST))
    }

    fn finish(&mut self) -> io::Result<()> {
        let started = Instant::now();
        let way = self.end.on_the_way.as_ref();
        while way.is_some_and(|way| way.bytes() > 0) && started.elapsed() < 10 * WAIT {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Receive for Group {
    fn take(&mut self) -> io::Result<Taken> {
        let mut taken = Taken::default();
        let received = self.end.transport.receive(&mut self.buffer)?;
        if let Some(received) = received {
            taken.add(received.len, self.size);
        }
        if let Some(way) = &self.end.on_the_way {
            match received {
                Some(_) => way.received(taken.bytes),
                None => way.give_up(),
            }
        }
        Ok(taken)
    }
}
