//! One call per message to a multicast group, as in PGM, through any carrier.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::in_flight::InFlight;
use super::{BURST, Receive, ReceivedCount, Send, WAIT, if_ready};
use crate::Scheduling;
use crate::net::{
    Buffers, Carrier, Family, NetError, Place, Side, Testbed, Transport, UdpGrants, UdpOptions,
};

/// One of the two ends of a run.
pub(super) struct End {
    transport: Box<dyn Transport>,
    /// Flow control. `None` if the carrier has no flow control. Such a carrier drops excess packets.
    in_flight: Option<Arc<InFlight>>,
}

/// Returns the two ends and their buffer sizes. The first end sends to the group. The second end receives.
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
    let in_flight = carrier.needs_group().then(|| Arc::new(InFlight::default()));
    let open = |side| {
        let interface = Some(testbed.interface(side, Family::of_address(group))?);
        let place = Place::Group { group, interface };
        let opened = testbed.on(side, || carrier.open(side, &place, &options, scheduling))?;
        let (transport, UdpGrants { buffers, .. }) = opened?;
        let in_flight = in_flight.clone();
        let end = End {
            transport,
            in_flight,
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
        if let Some(way) = &self.end.in_flight {
            way.sent((packets * self.size) as u64);
        }
        packets as u64
    }
}

impl Send for Group {
    fn burst(&mut self) -> io::Result<u64> {
        let way = self.end.in_flight.as_ref();
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
        let way = self.end.in_flight.as_ref();
        while way.is_some_and(|way| way.bytes() > 0) && started.elapsed() < 10 * WAIT {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Receive for Group {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut count = ReceivedCount::default();
        let received = self.end.transport.receive(&mut self.buffer)?;
        if let Some(received) = received {
            count.add(received.len, self.size);
        }
        if let Some(way) = &self.end.in_flight {
            match received {
                Some(_) => way.received(count.bytes),
                None => way.give_up(),
            }
        }
        Ok(count)
    }
}
