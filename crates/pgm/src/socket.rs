//! PGM over the network sockets of the system.

mod buffers;
mod datagrams;
mod error;
mod interface;
#[cfg(target_os = "linux")]
mod join_source;
mod link;
mod raw;
mod receive_buffer;
mod udp;
mod wait;

use std::{
    net::{IpAddr, UdpSocket},
    time::{Duration, Instant},
};

pub use buffers::Buffers;
use error::Context;
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

/// Addresses and options of a socket.
#[derive(Clone, Debug)]
pub struct SocketConfig {
    /// Network interface for sending and receiving.
    pub interface: Interface,
    /// Address of the multicast group.
    pub group: IpAddr,
    /// Encapsulation of PGM packets.
    pub encapsulation: Encapsulation,
    /// Time to live of multicast packets: the number of routers that the packets may pass, plus one.
    pub hops: u32,
    /// True if sent packets are also delivered to other sockets on this machine.
    pub loopback: bool,
    /// Addresses of the accepted sources (source-specific multicast). If the list is empty, all sources are
    /// accepted. For IPv4, and on Linux also for IPv6, the network gets these addresses and delivers only
    /// packets of these sources. In all other cases, packets of other sources arrive, and the socket drops
    /// them.
    pub only: Vec<IpAddr>,
    /// Requested size in bytes of the system's send buffer and of its receive buffer; see
    /// [`Socket::buffers`].
    pub buffer: usize,
    /// True to let the system deliver several packets in one call (receive offload).
    pub joined: bool,
    /// DSCP mark of all sent packets, 0 to 63 (RFC 2474). On Windows only 0 is accepted, because
    /// Windows marks packets only by its own policies.
    pub dscp: u8,
}

/// Encapsulation of PGM packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// UDP.
    Udp {
        /// Port for packets to a single member, such as NAKs. It may equal the multicast port.
        unicast: u16,
        /// Port for packets to the group.
        multicast: u16,
    },
    /// IP protocol 113 without UDP. The program needs a privilege to open such a raw socket.
    Raw,
}

impl SocketConfig {
    /// Returns a configuration for a local network. It uses UDP on the ports that other PGM
    /// implementations use.
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

    /// Returns the octet of the IP header that has the DSCP mark in its upper six bits (RFC 2474).
    fn traffic_class(&self) -> u8 {
        self.dscp << 2
    }

    /// Returns the interface's address in the address family (IPv4 or IPv6) of the group.
    ///
    /// # Errors
    /// Returns an error if the interface has no such address.
    pub fn address(&self) -> Result<IpAddr, SocketError> {
        self.interface
            .address_for(self.group)
            .ok_or_else(|| SocketError::NoAddress {
                interface: self.interface.name().to_owned(),
                group: self.group,
            })
    }
}

/// Member of a multicast group: a source, a receiver, or both.
///
/// The socket has no thread. Only [`Socket::send_blocking`], [`Socket::recv_blocking`] and [`Socket::wait`]
/// block. [`Socket::recv`] does all pending work. Call `recv` when a socket of [`Socket::sockets`] is
/// readable, and when the time that `recv` last returned has passed. Call `recv` even if the socket only
/// sends, because `recv` serves repairs. [`Socket::recv_blocking`] makes these calls for you.
#[derive(Debug)]
pub struct Socket {
    link: Link,
    group: IpAddr,
    only: Vec<IpAddr>,
    source: Option<Source>,
    receiver: Option<Receiver>,
    started: Instant,
    /// Time of the last reading of the clock.
    last_reading: Time,
    /// Packets to send. All packets have the same length, but the last packet may be shorter.
    train: Train,
    /// True if all packets that had arrived were received. In this case, the next step is to wait.
    is_idle: bool,
    unreadable: u64,
    refusals: Refusals,
}

/// Counts of the calls to send or receive that the system refused. PGM repairs the affected packets
/// like lost packets.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Number of refused calls to send.
    pub sends: u64,
    /// Number of refused calls to receive.
    pub receives: u64,
    /// Error of the last refused call.
    pub last: Option<SocketError>,
}

/// Packets with the same destination that are sent in one system call.
#[derive(Debug, Default)]
struct Train {
    bytes: Vec<u8>,
    /// Length in bytes of each packet except the last.
    packet: usize,
    /// Number of bytes in `bytes` that the next call sends. After these bytes, `bytes` may contain one packet
    /// for a later call.
    ready: usize,
    to: Option<(Destination, bool)>,
    /// Destination of the packet after `ready`, and true if this packet needs the Router Alert option.
    next: Option<(Destination, bool)>,
}

impl Train {
    /// Returns true if the latest written packet can be sent in the same call as the packets that are ready.
    fn goes_with(&self, transmit: &Transmit) -> bool {
        let to = self.to.as_ref();
        to.is_some_and(|(to, alert)| *alert == transmit.router_alert && *to == transmit.to)
            && transmit.size <= self.packet
            && self.ready + transmit.size <= Link::MAX_BYTES
    }
}

/// Permission for messages to share the memory in which they arrived. Messages may share it if all of them
/// are returned before the next packets are received. Without this condition, a few short messages could keep
/// much memory in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Yes,
    No,
}

/// Result of [`Socket::recv`].
#[derive(Debug)]
pub enum Received {
    /// An event of a source.
    Event(Event),
    /// There is no work until a packet arrives.
    WouldBlock,
    /// There is no work until a packet arrives or this time has passed.
    TimerPending(Duration),
    /// The session was closed, and the time for repairs is over. Only a socket without a receiver returns this
    /// value.
    End,
}

impl Socket {
    /// Opens the sockets and joins the group. If a configured seed is 0, a random seed replaces it.
    ///
    /// # Errors
    /// Returns an error if a configuration is invalid, or if the system refuses to open the
    /// sockets, for example because the address does not exist, a port is in use, or raw packets
    /// are not permitted.
    pub fn open(
        config: &SocketConfig,
        source: Option<SourceConfig>,
        receiver: Option<ReceiverConfig>,
    ) -> Result<Socket, SocketError> {
        if config.dscp > 63 {
            return Err(SocketError::Dscp(config.dscp));
        }
        let address = config.address()?;
        let started = Instant::now();
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
            started,
            last_reading: Time::default(),
            train: Train::default(),
            is_idle: false,
            unreadable: 0,
            refusals: Refusals::default(),
        })
    }

    /// Returns the buffer sizes that the system granted.
    ///
    /// # Errors
    /// Returns an error if the system does not report the sizes.
    pub fn buffers(&self) -> Result<Buffers, SocketError> {
        self.link.buffers()
    }

    /// Returns the sockets to watch with epoll, `mio` or `tokio`.
    pub fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.link.sockets()
    }

    /// Returns an object that waits for packets on another thread while the current thread sends.
    ///
    /// # Errors
    /// Returns an error if the sockets cannot be duplicated.
    pub fn waiter(&self) -> Result<Waiter, SocketError> {
        let handles = self.sockets().map(UdpSocket::try_clone).collect();
        let handles: std::io::Result<Vec<UdpSocket>> = handles;
        handles
            .map(Waiter)
            .context(|| "open sockets a second time".to_owned())
    }

    /// Returns the statistics of this socket's source, if it has a source.
    pub fn source_statistics(&self) -> Option<SourceStatistics> {
        self.source.as_ref().map(Source::statistics)
    }

    /// Returns the statistics about a source. Returns `None` if this socket's receiver does not know the
    /// source.
    pub fn statistics(&self, source: Tsi) -> Option<ReceiverStatistics> {
        self.receiver.as_ref()?.statistics(source)
    }

    /// Returns the sources that this socket's receiver knows.
    pub fn sources(&self) -> impl Iterator<Item = Tsi> {
        self.receiver.iter().flat_map(Receiver::sources)
    }

    /// Returns the number of received packets that are not valid PGM packets.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the counts of calls that the system refused, for example because there is no route
    /// to an address. Such an error does not close the socket, because any member of the group
    /// could cause it.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    fn now(&mut self) -> Time {
        self.last_reading = Time::default().plus(self.started.elapsed());
        self.last_reading
    }

    /// Sends a message to the group.
    ///
    /// # Errors
    /// Returns an error if the message cannot be sent now, or can never be sent; see [`SocketError`]. It is
    /// not an error if the system refuses the message, for example because the interface is down. A refused
    /// message is counted in [`Socket::refusals`] and is repaired like a lost message.
    pub fn send(&mut self, message: &[u8]) -> Result<Sqn, SocketError> {
        let source = self.source.as_mut().ok_or(SocketError::NoSource)?;
        let sent = source.send(message);
        let now = self.now();
        self.flush(now);
        match sent {
            Ok(sqn) => Ok(sqn),
            Err(SendError::WouldBlock { until }) => Err(SocketError::WouldBlock {
                wait: until.map(|until| until.since(now)),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends as many messages as can be sent now, and returns their number. If the system supports it, one
    /// call sends several packets of the same length. This is several times faster.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send`], if they concern the first message. If a message must wait,
    /// this is not an error. Such a message is not sent and not counted.
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
        self.flush(now);
        match failed {
            None => Ok(count),
            Some(SendError::WouldBlock { .. }) => Ok(count),
            Some(_) if count > 0 => Ok(count),
            Some(error) => Err(error.into()),
        }
    }

    /// Sends a message. If the message cannot be sent now, this function waits until it can be sent.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::send`], except [`SocketError::WouldBlock`].
    pub fn send_blocking(&mut self, message: &[u8]) -> Result<Sqn, SocketError> {
        loop {
            match self.send(message) {
                Err(SocketError::WouldBlock { .. }) => {
                    let now = self.now();
                    while matches!(self.receive(now, Share::No), Ok(More::Maybe)) {}
                    self.flush(now);
                    let wait = self.timeout(now).unwrap_or(Duration::from_millis(10));
                    if !wait.is_zero() && self.wait(Some(wait)).is_err() {
                        std::thread::sleep(wait.min(Duration::from_millis(10)));
                    }
                }
                sent => return sent,
            }
        }
    }

    /// Ends the session: sends the waiting packets, and then announces the end. After this call, continue to
    /// call [`Socket::recv`], because `recv` serves repairs. Without a receiver, call it until it returns
    /// [`Received::End`]. A socket with a receiver never returns `End`, because it still receives from other sources;
    /// call `recv` at least for the time [`SourceConfig::linger`].
    pub fn close(&mut self) {
        if let Some(source) = &mut self.source {
            source.close();
        }
    }

    /// Does all pending work, and returns the next event.
    ///
    /// # Errors
    /// Returns an error if the socket itself is broken. Errors that a packet from the network can
    /// cause are counted in [`Socket::refusals`] instead.
    pub fn recv(&mut self) -> Result<Received, SocketError> {
        loop {
            // The clock is read once per batch, not per message.
            let event = self.receiver.as_mut();
            if let Some(event) = event.and_then(|receiver| receiver.poll_event(self.last_reading)) {
                return Ok(Received::Event(event));
            }
            let now = self.now();
            if !std::mem::take(&mut self.is_idle) {
                // Sending comes after receiving, because a received packet can make a request
                // unnecessary.
                self.is_idle = self.receive(now, Share::Yes)? == More::No;
                self.flush(now);
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

    /// Waits for the next event, and returns it as [`Socket::recv`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Socket::recv`].
    pub fn recv_blocking(&mut self) -> Result<Received, SocketError> {
        loop {
            match self.recv()? {
                Received::WouldBlock => self.wait(None)?,
                Received::TimerPending(wait) => self.wait(Some(wait))?,
                said => return Ok(said),
            }
        }
    }

    /// Waits until a packet can be received or the timeout is over. The wait may end earlier.
    ///
    /// # Errors
    /// Returns an error if the system refuses to wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<(), SocketError> {
        let waited = self.link.wait(timeout, !self.train.bytes.is_empty());
        self.unless_refused(waited, ())
    }

    /// Counts an error that a packet from the network can cause, and returns `otherwise` in its place. Other
    /// results are returned unchanged.
    fn unless_refused<T>(
        &mut self,
        received: Result<T, SocketError>,
        otherwise: T,
    ) -> Result<T, SocketError> {
        match received {
            Err(error) if error.is_caused_by_network() => {
                self.refusals.receives += 1;
                self.refusals.last = Some(error);
                Ok(otherwise)
            }
            received => received,
        }
    }

    /// Returns the time until the next action.
    fn timeout(&self, now: Time) -> Option<Duration> {
        let source = self.source.as_ref().filter(|s| !s.is_finished(now));
        let timeout = earlier(
            source.and_then(Source::timeout),
            self.receiver.as_ref().and_then(Receiver::timeout),
        )?;
        // If the system accepts no packets, the wait must end soon to try again.
        let is_stuck = !self.train.bytes.is_empty();
        Some(if is_stuck {
            Duration::from_millis(10)
        } else {
            timeout.since(now)
        })
    }

    /// Receives a batch of packets.
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
        let received = link.receive(&mut |from, bytes, room| {
            // A parsed packet is large, so it is passed by reference.
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
        });
        self.unless_refused(received, More::No)
    }

    /// Sends all due packets, until the system accepts no more packets.
    fn flush(&mut self, now: Time) {
        let mut after = More::Maybe;
        while self.train.ready == 0 || self.send_train() {
            if after == More::No {
                break;
            }
            after = self.fill_train(now);
        }
    }

    /// Collects packets for one system call. Returns `More::Maybe` if further packets may be due.
    fn fill_train(&mut self, now: Time) -> More {
        let most = self.link.max_packets();
        let train = &mut self.train;
        // The packet that did not fit the last call is the first packet of this call.
        let mut count = usize::from(train.next.is_some());
        train.to = train.next.take();
        train.packet = train.bytes.len();
        train.ready = train.bytes.len();
        let mut more = More::Maybe;
        while count < most.max(1) {
            // Each packet is written to the end of the buffer and inspected there, because moving
            // bytes that were just written would stall the processor.
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

    /// Sends the packets that are ready. Returns false if they must be sent later because the
    /// system's buffer is full.
    fn send_train(&mut self) -> bool {
        let train = &mut self.train;
        let Some((to, router_alert)) = train.to else {
            train.ready = 0;
            return true;
        };
        let bytes = &train.bytes[..train.ready];
        let sent = self
            .link
            .send(bytes, train.packet, to, self.group, router_alert);
        match sent {
            Ok(true) => {}
            Ok(false) => return false,
            Err(error) => {
                self.refusals.sends += 1;
                self.refusals.last = Some(error);
            }
        }
        train.bytes.drain(..train.ready);
        train.ready = 0;
        true
    }
}
