//! The receiver of all sessions of a multicast group.

mod config;
mod credit;
mod event;
mod groups;
mod naks;
mod pace;
mod peer;
mod request;
mod statistics;
mod window;

use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
};

use bytes::Bytes;
pub use config::{Order, ReceiverConfig};
pub use event::Event;
use pace::Pace;
use peer::Peer;
pub use statistics::ReceiverStatistics;

use crate::{
    Time, Transmit,
    wire::{Body, Dialect, Packet, Tsi},
};

/// Receiver of all sources of one multicast group and port, without I/O.
///
/// Call [`Receiver::handle`] with each received packet, then [`Receiver::poll_transmit`] and
/// [`Receiver::poll_event`] until both return `None`. Call both again at the time that
/// [`Receiver::timeout`] returns.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    peers: BTreeMap<Tsi, Peer>,
    /// Sources that may have events to report. Each source is listed at most once.
    pending: VecDeque<Tsi>,
    pace: Pace,
    rng: fastrand::Rng,
    ignored: u64,
}

/// Error in a receiver's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiverError {
    /// The group is not a multicast address.
    #[error("{0} is not a multicast group; use an address of 224.0.0.0/4 or ff00::/8")]
    NotMulticast(IpAddr),
    /// The window is too small, or larger than sequence numbers can distinguish.
    #[error("invalid window of {0} packets; use 2 to 16,777,216")]
    Window(u32),
    /// A limit in the configuration is too small.
    #[error(
        "the limits of a receiver are too low; allow at least 65,536 bytes, one source, 256 bytes of \
         requests and one packet per second"
    )]
    Limits,
}

impl Receiver {
    /// Creates a receiver.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid.
    pub fn new(config: ReceiverConfig) -> Result<Receiver, ReceiverError> {
        if !config.group.is_multicast() {
            return Err(ReceiverError::NotMulticast(config.group));
        }
        if !(2..=1 << 24).contains(&config.window) {
            return Err(ReceiverError::Window(config.window));
        }
        if config.bytes < 1 << 16
            || config.sources == 0
            || config.request_bytes < 256
            || config.packets_per_second == 0
        {
            return Err(ReceiverError::Limits);
        }
        Ok(Receiver {
            rng: fastrand::Rng::with_seed(config.seed),
            pace: Pace::per_second(config.packets_per_second),
            config,
            peers: BTreeMap::new(),
            pending: VecDeque::new(),
            ignored: 0,
        })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.config.dialect
    }

    /// Returns all known sources.
    pub fn sources(&self) -> impl Iterator<Item = Tsi> {
        self.peers.keys().copied()
    }

    /// Returns the statistics of a source; `None` if the source is not known.
    pub fn statistics(&self, source: Tsi) -> Option<ReceiverStatistics> {
        self.peers.get(&source).map(Peer::statistics)
    }

    /// Returns the number of packets that were ignored because the maximum number of sources was
    /// reached.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Handles a packet received from address `from`. Packets for other ports are ignored.
    pub fn handle(&mut self, now: Time, from: IpAddr, packet: &Packet<'_>) {
        self.handle_from(now, from, packet, None);
    }

    /// Handles a packet like [`Receiver::handle`]. If messages may share the memory of the packet, `room` is
    /// this memory.
    pub(crate) fn handle_from(
        &mut self,
        now: Time,
        from: IpAddr,
        packet: &Packet<'_>,
        room: Option<&Bytes>,
    ) {
        let tsi = packet.tsi();
        if packet.body.is_upstream() {
            if packet.source_port == self.config.destination_port
                && let Some(peer) = self.peers.get_mut(&tsi)
            {
                peer.handle_from_receiver(now, packet);
            }
            return;
        }
        if packet.destination_port != self.config.destination_port {
            return;
        }
        let peer = match self.peers.get_mut(&tsi) {
            Some(known) => Some(known),
            None => self.add_peer(now, from, packet),
        };
        if let Some(peer) = peer {
            peer.handle(now, from, packet, room);
            self.may_have_events(tsi);
        }
    }

    /// Adds a new source. Returns `None` if the packet is neither an SPM nor a data packet, or if
    /// the maximum number of sources is reached.
    #[cold]
    fn add_peer(&mut self, now: Time, from: IpAddr, packet: &Packet<'_>) -> Option<&mut Peer> {
        if !matches!(packet.body, Body::Spm(_) | Body::Odata(_) | Body::Rdata(_)) {
            return None;
        }
        if self.peers.len() >= self.config.sources {
            self.ignored += 1;
            return None;
        }
        let tsi = packet.tsi();
        let seed = self.rng.u64(..);
        let peer = Peer::new(self.config, tsi, from, now, seed);
        Some(self.peers.entry(tsi).or_insert(peer))
    }

    fn may_have_events(&mut self, tsi: Tsi) {
        if !self.pending.contains(&tsi) {
            self.pending.push_back(tsi);
        }
    }

    /// Returns the next event of any source.
    pub fn poll_event(&mut self, now: Time) -> Option<Event> {
        while let Some(tsi) = self.pending.front().copied() {
            if let Some(peer) = self.peers.get_mut(&tsi) {
                if let Some(event) = peer.next_event(now) {
                    return Some(event);
                }
                if peer.is_expired() {
                    let was_told = peer.has_ended();
                    self.peers.remove(&tsi);
                    if !was_told {
                        return Some(Event::Expired { source: tsi });
                    }
                }
            }
            self.pending.pop_front();
        }
        None
    }

    /// Appends the next due packet to `out`. Returns `None` if no packet is due.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.pace.free_at() > now {
            return None;
        }
        let start = out.len();
        let mut changed = Vec::new();
        let mut to = None;
        for (tsi, peer) in &mut self.peers {
            if peer.timeout().is_none_or(|timeout| timeout > now) {
                continue;
            }
            peer.expire(now);
            // `expire` may give up requests, which causes events.
            changed.push(*tsi);
            to = peer.poll_transmit(now, out);
            if to.is_some() {
                self.pace.sent(now);
                break;
            }
        }
        for tsi in changed {
            self.may_have_events(tsi);
        }
        to.map(|to| Transmit {
            to,
            size: out.len() - start,
            // Routers need not inspect the packet, because the packet is for a single address or stays in the local
            // network.
            router_alert: false,
        })
    }

    /// Returns the time at which `poll_transmit` may next return a packet or `poll_event` may next return an
    /// event.
    pub fn timeout(&self) -> Option<Time> {
        let due = self.peers.values().filter_map(Peer::timeout).min();
        due.map(|due| due.max(self.pace.free_at()))
    }
}
