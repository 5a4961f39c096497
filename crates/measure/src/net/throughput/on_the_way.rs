//! How much of what a reliable source has sent its receiver has yet to deal with, told past the network.
//!
//! Such a source sends at the rate that it is told, and what is the highest that a receiver bears is what
//! is measured here. So it waits while it is further ahead than what it could repair.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many packets may be on their way: half of what a source can repair.
const MOST: u64 = 8_192;

/// How much of a message a packet carries, about, in bytes.
const OF_A_PACKET: usize = 1_400;

/// What both ends share.
#[derive(Debug, Default)]
pub(super) struct OnTheWay {
    /// In bytes.
    sent: AtomicU64,
    /// In bytes.
    dealt_with: AtomicU64,
}

impl OnTheWay {
    /// Whether more messages of so many bytes may be sent.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.bytes() <= MOST * size.min(OF_A_PACKET) as u64
    }

    /// Enters so many bytes as sent.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Enters so many bytes as received.
    pub(super) fn received(&self, bytes: u64) {
        self.dealt_with.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Enters so many packets, of messages of so many bytes, as lost for good.
    pub(super) fn lost(&self, packets: u64, size: usize) {
        self.received(packets * size.min(OF_A_PACKET) as u64);
    }

    /// Enters all that was sent as dealt with: the receiver has waited for it long enough.
    pub(super) fn give_up(&self) {
        let sent = self.sent.load(Ordering::Relaxed);
        self.dealt_with.fetch_max(sent, Ordering::Relaxed);
    }

    /// How many bytes are on their way.
    pub(super) fn bytes(&self) -> u64 {
        let dealt_with = self.dealt_with.load(Ordering::Relaxed);
        self.sent.load(Ordering::Relaxed).saturating_sub(dealt_with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_waits_for_its_receiver() {
        let way = OnTheWay::default();
        way.sent(100 * MOST);
        assert!(way.has_room(100));
        way.sent(1);
        assert!(!way.has_room(100));
        way.received(50);
        way.lost(3, 100);
        assert_eq!(way.bytes(), 100 * MOST + 1 - 350);
        assert!(way.has_room(100));
        way.give_up();
        assert_eq!(way.bytes(), 0);
        // A message of several packets is lost by the packet.
        way.sent(5_000);
        way.lost(1, 5_000);
        assert_eq!(way.bytes(), 3_600);
    }
}
