//! The receiving end of all sessions of a group.

mod config;
mod event;
mod groups;
mod naks;
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
use peer::Peer;
pub use statistics::ReceiverStatistics;

use crate::{
    Time, Transmit,
    wire::{Body, Dialect, Packet, Tsi},
};

/// The receiving end: all sources of one group and port.
///
/// Whoever owns it calls [`Receiver::handle`] with packets that were received, then
/// [`Receiver::poll_transmit`] and [`Receiver::poll_event`] until they give nothing more, and both
/// again at the moment that [`Receiver::timeout`] says.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    peers: BTreeMap<Tsi, Peer>,
    /// Sources that may have events, each once.
    pending: VecDeque<Tsi>,
    rng: fastrand::Rng,
    ignored: u64,
}

/// What is wrong with a receiver's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiverError {
    /// The group is no multicast group.
    #[error("{0} is no multicast group: 224.0.0.0/4 and ff00::/8 are")]
    NotMulticast(IpAddr),
    /// The window holds nothing, or more than numbers can tell apart.
    #[error("a window of {0} packets is not possible: from 2 to 16,777,216 are")]
    Window(u32),
    /// No memory, or no source.
    #[error("a receiver needs room for at least 65,536 bytes and one source")]
    Room,
}

impl Receiver {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the configuration is not possible.
    pub fn new(config: ReceiverConfig) -> Result<Receiver, ReceiverError> {
        if !config.group.is_multicast() {
            return Err(ReceiverError::NotMulticast(config.group));
        }
        if !(2..=1 << 24).contains(&config.window) {
            return Err(ReceiverError::Window(config.window));
        }
        if config.bytes < 1 << 16 || config.sources == 0 {
            return Err(ReceiverError::Room);
        }
        Ok(Receiver {
            rng: fastrand::Rng::with_seed(config.seed),
            config,
            peers: BTreeMap::new(),
            pending: VecDeque::new(),
            ignored: 0,
        })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.config.dialect
    }

    /// The sources that are known.
    pub fn sources(&self) -> impl Iterator<Item = Tsi> {
        self.peers.keys().copied()
    }

    /// What was had of a source, while it is known.
    pub fn statistics(&self, source: Tsi) -> Option<ReceiverStatistics> {
        self.peers.get(&source).map(Peer::statistics)
    }

    /// How many packets were ignored since they are of more sources than are listened to.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Handles a packet that came from the address `from`; those for other ports are ignored.
    pub fn handle(&mut self, now: Time, from: IpAddr, packet: &Packet<'_>) {
        self.handle_from(now, from, packet, None);
    }

    /// As [`Receiver::handle`], where the packet lies in memory that messages may share.
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
                peer.overhear(now, packet);
            }
            return;
        }
        if packet.destination_port != self.config.destination_port {
            return;
        }
        let peer = match self.peers.get_mut(&tsi) {
            Some(known) => Some(known),
            None => self.meet(now, from, packet),
        };
        if let Some(peer) = peer {
            peer.handle(now, from, packet, room);
            self.may_have_events(tsi);
        }
    }

    /// A source that is heard for the first time, if the packet introduces it and there is room for one
    /// more.
    #[cold]
    fn meet(&mut self, now: Time, from: IpAddr, packet: &Packet<'_>) -> Option<&mut Peer> {
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

    /// What has happened to one of the sources.
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

    /// Appends the next packet that is to be sent now to `out`, if there is one.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let start = out.len();
        let mut changed = Vec::new();
        let mut to = None;
        for (tsi, peer) in &mut self.peers {
            if peer.timeout().is_none_or(|timeout| timeout > now) {
                continue;
            }
            peer.expire(now);
            // Requests that were given up make events.
            changed.push(*tsi);
            to = peer.poll_transmit(now, out);
            if to.is_some() {
                break;
            }
        }
        for tsi in changed {
            self.may_have_events(tsi);
        }
        to.map(|to| Transmit {
            to,
            size: out.len() - start,
            // It goes to its receiver's own address, or no further than the own network.
            router_alert: false,
        })
    }

    /// When `poll_transmit` and `poll_event` may have something next.
    pub fn timeout(&self) -> Option<Time> {
        self.peers.values().filter_map(Peer::timeout).min()
    }
}
