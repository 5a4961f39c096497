//! The protocol on real sockets.

mod buffers;
mod datagrams;
mod error;
mod interface;
#[cfg(target_os = "linux")]
mod join_source;
mod link;
mod raw;
mod room;
mod udp;
mod wait;

use std::{
    net::{IpAddr, UdpSocket},
    time::{Duration, Instant},
};

pub use buffers::Buffers;
use error::Doing;
pub use error::SocketError;
pub use interface::Interface;
use link::{Ends, Link, More};
pub use wait::Waiter;

use crate::{
    Destination, Event, Receiver, ReceiverConfig, ReceiverStatistics, SendError, Source,
    SourceConfig, SourceStatistics, Time, Transmit,
    time::earlier,
    wire::{Packet, Sqn, Tsi},
};

/// Where a socket sends and listens.
#[derive(Clone, Debug)]
pub struct SocketConfig {
    /// The interface.
    pub interface: Interface,
    /// The group.
    pub group: IpAddr,
    /// How packets are packed.
    pub encapsulation: Encapsulation,
    /// How many routers multicast packets may pass, plus one.
    pub hops: u32,
    /// Whether other sockets of this machine hear what this one sends.
    pub loopback: bool,
    /// Only these sources are heard (source-specific multicast); if there are none, all are. The
    /// network is told so, over IPv6 on Linux only; elsewhere the others' packets come and are dropped.
    pub only: Vec<IpAddr>,
    /// How many bytes the system is asked to buffer for each direction; see [`Socket::buffers`].
    pub buffer: usize,
    /// Whether the system may hand over packets of a group joined, as many as it can in one call.
    pub joined: bool,
    /// The DSCP mark of all packets, 0 to 63 (RFC 2474). Windows marks by its own policies only and
    /// refuses all but 0.
    pub dscp: u8,
}

/// How packets are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// In UDP.
    Udp {
        /// The port of what goes to one member: requests for repair. May be the same as the other.
        unicast: u16,
        /// The port of what goes to the group.
        multicast: u16,
    },
    /// Bare, as IP protocol 113, which needs the system's permission.
    Raw,
}

impl SocketConfig {
    /// UDP at the ports that other implementations have, for what is near.
    pub fn new(interface: Interface, group: IpAddr) -> SocketConfig {
        SocketConfig {
            interface,
            group,
            encapsulation: Encapsulation::Udp {
                unicast: 3055,
                multicast: 3056,
            },
            hops: 16,
            loopback: false,
            only: Vec::new(),
            buffer: 8 << 20,
            joined: true,
            dscp: 0,
        }
    }

    /// The octet of IP's header that has the mark (RFC 2474: in its upper six bits).
    fn traffic_class(&self) -> u8 {
        self.dscp << 2
    }

    /// The interface's own address of the group's family.
    ///
    /// # Errors
    /// When it has none.
    pub fn address(&self) -> Result<IpAddr, SocketError> {
        self.interface
            .address_for(self.group)
            .ok_or_else(|| SocketError::NoAddress {
                interface: self.interface.name().to_owned(),
                group: self.group,
            })
    }
}

/// A member of a group: a source, a receiver, or both.
///
/// It has no thread of its own and never blocks unless told to. [`Socket::recv`] does all that is to be
/// done, also for a socket that only sends: requests for repair are served there, all that are due in
/// one call. Call it when one of [`Socket::sockets`] can be read and when the time that it gave last has
/// passed; or leave that to [`Socket::recv_blocking`].
#[derive(Debug)]
pub struct Socket {
    link: Link,
    group: IpAddr,
    only: Vec<IpAddr>,
    source: Option<Source>,
    receiver: Option<Receiver>,
    begun: Instant,
    /// When the clock was read last.
    moment: Time,
    /// Packets written and not yet sent: all of one length, but the last may be shorter.
    train: Train,
    /// All that had come was received: the next thing to do is to wait.
    is_drained: bool,
    unreadable: u64,
}

/// Packets that go to the same place and can go in one call.
#[derive(Debug, Default)]
struct Train {
    bytes: Vec<u8>,
    /// The length of all packets but the last.
    packet: usize,
    /// How many bytes at the front go in the next call; what is after them is another packet.
    ready: usize,
    to: Option<(Destination, bool)>,
    /// Of the packet after `ready`.
    next: Option<(Destination, bool)>,
}

impl Train {
    /// Whether a packet that was written behind those that are ready can go with them.
    fn goes_with(&self, transmit: &Transmit) -> bool {
        let to = self.to.as_ref();
        to.is_some_and(|(to, alert)| *alert == transmit.router_alert && *to == transmit.to)
            && transmit.size <= self.packet
            && self.ready + transmit.size <= Link::MOST_BYTES
    }
}

/// Whether messages may share the memory in which they came: only if all are handed out before more is
/// received, or a few short ones could hold much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Yes,
    No,
}

/// What [`Socket::recv`] has to say.
#[derive(Debug)]
pub enum Received {
    /// Something has happened to a source.
    Event(Event),
    /// Nothing now, and there is nothing to be done before a packet comes.
    WouldBlock,
    /// Nothing now; call again when a packet comes or this has passed.
    TimerPending(Duration),
    /// The session was closed and repairs are served no longer.
    End,
}

impl Socket {
    /// Opens the sockets and joins the group. Seeds that are 0 are chosen at random.
    ///
    /// # Errors
    /// When a configuration is not possible, or the system refuses: no such address, a port taken, no
    /// permission for raw packets.
    pub fn open(
        config: &SocketConfig,
        source: Option<SourceConfig>,
        receiver: Option<ReceiverConfig>,
    ) -> Result<Socket, SocketError> {
        if config.dscp > 63 {
            return Err(SocketError::Dscp(config.dscp));
        }
        let address = config.address()?;
        let begun = Instant::now();
        let seed = |seed| if seed == 0 { fastrand::u64(..) } else { seed };
        let source = source.map(|source| SourceConfig {
            seed: seed(source.seed),
            ..source
        });
        let receiver = receiver.map(|receiver| ReceiverConfig {
            seed: seed(receiver.seed),
            ..receiver
        });
        let ends = Ends {
            source: source.is_some(),
            receiver: receiver.is_some(),
        };
        Ok(Socket {
            source: source
                .map(|source| Source::new(source, Time::default()))
                .transpose()?,
            receiver: receiver.map(Receiver::new).transpose()?,
            link: Link::open(config, address, ends)?,
            group: config.group,
            only: config.only.clone(),
            begun,
            moment: Time::default(),
            train: Train::default(),
            is_drained: false,
            unreadable: 0,
        })
    }

    /// What the system has granted of the buffers that it was asked for.
    ///
    /// # Errors
    /// When it does not say.
    pub fn buffers(&self) -> Result<Buffers, SocketError> {
        self.link.buffers()
    }

    /// The sockets to be watched, by epoll, `mio` or `tokio`.
    pub fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.link.sockets()
    }

    /// What waits for packets on another thread, while this one sends.
    ///
    /// # Errors
    /// When the system gives no further handles of the sockets.
    pub fn waiter(&self) -> Result<Waiter, SocketError> {
        let handles = self.sockets().map(UdpSocket::try_clone).collect();
        let handles: std::io::Result<Vec<UdpSocket>> = handles;
        handles
            .map(Waiter)
            .doing(|| "open sockets a second time".to_owned())
    }

    /// What was sent, if this is a source.
    pub fn source_statistics(&self) -> Option<SourceStatistics> {
        self.source.as_ref().map(Source::statistics)
    }

    /// What was had of a source.
    pub fn statistics(&self, source: Tsi) -> Option<ReceiverStatistics> {
        self.receiver.as_ref()?.statistics(source)
    }

    /// The sources that are heard.
    pub fn sources(&self) -> impl Iterator<Item = Tsi> {
        self.receiver.iter().flat_map(Receiver::sources)
    }

    /// How many packets came that are none of PGM.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn now(&mut self) -> Time {
        self.moment = Time::default().plus(self.begun.elapsed());
        self.moment
    }

    /// Sends a message to the group.
    ///
    /// # Errors
    /// When it cannot be sent yet, or at all: see [`SocketError`]. Where the system refuses
    /// ([`SocketError::System`]: the interface is down), the message was taken all the same, and is
    /// repaired like one that was lost on its way.
    pub fn send(&mut self, message: &[u8]) -> Result<Sqn, SocketError> {
        let source = self.source.as_mut().ok_or(SocketError::NoSource)?;
        let sent = source.send(message);
        let now = self.now();
        let flushed = self.flush(now);
        match sent {
            Ok(sqn) => flushed.map(|()| sqn),
            Err(SendError::NotYet { until }) => Err(SocketError::NotYet {
                wait: until.map(|until| until.since(now)),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends as many of the messages as can be sent now, and says how many. Packets of the same
    /// length go to the system in one call where it can take them so, which costs a fraction of as
    /// many calls.
    ///
    /// # Errors
    /// As [`Socket::send`], but for what has to wait: that is not sent and not counted. Where the system
    /// refuses, all were taken; where some have to wait, too, the refusal is left to the next call.
    pub fn send_many<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<usize, SocketError> {
        let source = self.source.as_mut().ok_or(SocketError::NoSource)?;
        let mut count = 0;
        let mut failed = None;
        for message in messages {
            match source.send(message) {
                Ok(_) => count += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let now = self.now();
        let flushed = self.flush(now);
        match failed {
            None => flushed.map(|()| count),
            Some(SendError::NotYet { .. }) => Ok(count),
            Some(_) if count > 0 => Ok(count),
            Some(error) => Err(error.into()),
        }
    }

    /// Sends a message, waiting until it can be.
    ///
    /// # Errors
    /// As [`Socket::send`], but for having to wait.
    pub fn send_blocking(&mut self, message: &[u8]) -> Result<Sqn, SocketError> {
        loop {
            match self.send(message) {
                Err(SocketError::NotYet { .. }) => {
                    // The message has not been taken yet. What the system refuses meanwhile is lost on its
                    // way, and told once it was, if that lasts.
                    let now = self.now();
                    while matches!(self.receive(now, Share::No), Ok(More::Perhaps)) {}
                    let _ = self.flush(now);
                    let wait = self.timeout(now).unwrap_or(Duration::from_millis(10));
                    if !wait.is_zero() && self.wait(Some(wait)).is_err() {
                        std::thread::sleep(wait.min(Duration::from_millis(10)));
                    }
                }
                sent => return sent,
            }
        }
    }

    /// Ends the session: what is waiting is sent, then its end is announced. Go on calling
    /// [`Socket::recv`], which serves repairs, until it says [`Received::End`].
    pub fn close(&mut self) {
        if let Some(source) = &mut self.source {
            source.close();
        }
    }

    /// Does all that is to be done now, and gives the next message or what else has happened.
    ///
    /// # Errors
    /// When the system refuses to send or receive. The socket can still be used: what could not be
    /// sent counts as lost on its way.
    pub fn recv(&mut self) -> Result<Received, SocketError> {
        loop {
            // The clock is read for all that came in one call, not for each message of it.
            let event = self.receiver.as_mut();
            if let Some(event) = event.and_then(|receiver| receiver.poll_event(self.moment)) {
                return Ok(Received::Event(event));
            }
            let now = self.now();
            if !std::mem::take(&mut self.is_drained) {
                // What is due is sent after that: a packet may have made it needless.
                self.is_drained = self.receive(now, Share::Yes)? == More::No;
                self.flush(now)?;
                continue;
            }
            if self.receiver.is_none() && self.source.as_ref().is_some_and(|s| s.is_finished(now)) {
                return Ok(Received::End);
            }
            return Ok(self
                .timeout(now)
                .map_or(Received::WouldBlock, Received::TimerPending));
        }
    }

    /// As [`Socket::recv`], but waits until there is something to say.
    ///
    /// # Errors
    /// As [`Socket::recv`].
    pub fn recv_blocking(&mut self) -> Result<Received, SocketError> {
        loop {
            match self.recv()? {
                Received::WouldBlock => self.wait(None)?,
                Received::TimerPending(wait) => self.wait(Some(wait))?,
                said => return Ok(said),
            }
        }
    }

    /// Waits until a packet can be received, or at most so long; it may end earlier.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn wait(&mut self, most: Option<Duration>) -> Result<(), SocketError> {
        self.link.wait(most, !self.train.bytes.is_empty())
    }

    /// How long until something is to be done.
    fn timeout(&self, now: Time) -> Option<Duration> {
        let source = self.source.as_ref().filter(|s| !s.is_finished(now));
        let timeout = earlier(
            source.and_then(Source::timeout),
            self.receiver.as_ref().and_then(Receiver::timeout),
        )?;
        // While the system takes nothing, waiting ends when it does.
        let is_stuck = !self.train.bytes.is_empty();
        Some(if is_stuck {
            Duration::from_millis(10)
        } else {
            timeout.since(now)
        })
    }

    /// Receives one batch of packets.
    fn receive(&mut self, now: Time, share: Share) -> Result<More, SocketError> {
        let Self {
            link,
            source,
            receiver,
            only,
            unreadable,
            ..
        } = self;
        let own = source.as_ref().map(Source::tsi);
        let dialect = link.dialect(source.as_ref(), receiver.as_ref());
        link.receive(&mut |from, bytes, room| {
            // By reference: a packet with all that it may have is long to move.
            let parsed = Packet::parse(bytes, dialect);
            let Ok(packet) = &parsed else {
                *unreadable += 1;
                return;
            };
            let is_own = own == Some(packet.tsi());
            if let Some(source) = source.as_mut().filter(|_| is_own) {
                source.handle(now, packet);
            } else if let Some(receiver) = receiver
                && (only.is_empty() || packet.body.is_upstream() || only.contains(&from))
            {
                receiver.handle_from(now, from, packet, room.filter(|_| share == Share::Yes));
            }
        })
    }

    /// Sends all that is to be sent now, as far as the system takes it.
    fn flush(&mut self, now: Time) -> Result<(), SocketError> {
        let mut after = More::Perhaps;
        while self.train.ready == 0 || self.send_train()? {
            if after == More::No {
                break;
            }
            after = self.fill_train(now);
        }
        Ok(())
    }

    /// Collects packets that can go in one call, and says whether there may be more after them.
    fn fill_train(&mut self, now: Time) -> More {
        let most = self.link.most_packets();
        let train = &mut self.train;
        // What did not fit the last train begins this one.
        let mut count = usize::from(train.next.is_some());
        train.to = train.next.take();
        train.packet = train.bytes.len();
        train.ready = train.bytes.len();
        let mut more = More::Perhaps;
        while count < most.max(1) {
            // Looked at where they are: reading what was just written, to move it, waits.
            let source = self.source.as_mut();
            let of_source = source.and_then(|s| s.poll_transmit(now, &mut train.bytes));
            let receiver = self.receiver.as_mut().filter(|_| of_source.is_none());
            let of_receiver = receiver.and_then(|r| r.poll_transmit(now, &mut train.bytes));
            let Some(transmit) = of_source.as_ref().or(of_receiver.as_ref()) else {
                more = More::No;
                break;
            };
            if count == 0 {
                train.to = Some((transmit.to, transmit.router_alert));
                train.packet = transmit.size;
            } else if !train.goes_with(transmit) {
                train.next = Some((transmit.to, transmit.router_alert));
                break;
            }
            count += 1;
            train.ready += transmit.size;
            if transmit.size < train.packet {
                break;
            }
        }
        more
    }

    /// Sends what is ready, and says whether the system took it.
    fn send_train(&mut self) -> Result<bool, SocketError> {
        let train = &mut self.train;
        let Some((to, router_alert)) = train.to else {
            train.ready = 0;
            return Ok(true);
        };
        let bytes = &train.bytes[..train.ready];
        let sent = self
            .link
            .send(bytes, train.packet, to, self.group, router_alert);
        if matches!(sent, Ok(false)) {
            return Ok(false);
        }
        train.bytes.drain(..train.ready);
        train.ready = 0;
        sent
    }
}
