//! Flow control between a source that repairs losses and its receiver. It works only if both ends are in one
//! process, and it sends nothing over the network.
//!
//! A source that repairs losses normally sends at a configured rate. The test, however, measures the highest
//! rate that the receiver can take. The source therefore waits while it is so far ahead that it could not
//! repair all losses.

use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of packets in flight. This maximum is half of the number of packets that a source can
/// repair.
const MAX_PACKETS: u64 = 8_192;

/// Approximate payload of a packet in bytes.
const PACKET_BYTES: usize = 1_400;

/// State that both ends share.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Number of bytes sent.
    sent: AtomicU64,
    /// Number of bytes received or lost.
    done: AtomicU64,
}

impl InFlight {
    /// Returns true if the source may send more messages of `size` bytes.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.bytes() <= MAX_PACKETS * size.min(PACKET_BYTES) as u64
    }

    /// Adds bytes that the source sent.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds bytes that the receiver received.
    pub(super) fn received(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the bytes of `packets` lost packets to the bytes that are done. The packets belong to messages of
    /// `size` bytes.
    pub(super) fn lost(&self, packets: u64, size: usize) {
        self.received(packets * size.min(PACKET_BYTES) as u64);
    }

    /// Counts all sent bytes as received. The receiver calls this function when it stops waiting for the rest
    /// of the packets.
    pub(super) fn give_up(&self) {
        let sent = self.sent.load(Ordering::Relaxed);
        self.done.fetch_max(sent, Ordering::Relaxed);
    }

    /// Returns the number of bytes in flight.
    pub(super) fn bytes(&self) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        self.sent.load(Ordering::Relaxed).saturating_sub(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_waits_for_its_receiver() {
        let way = InFlight::default();
        way.sent(100 * MAX_PACKETS);
        assert!(way.has_room(100));
        way.sent(1);
        assert!(!way.has_room(100));
        way.received(50);
        way.lost(3, 100);
        assert_eq!(way.bytes(), 100 * MAX_PACKETS + 1 - 350);
        assert!(way.has_room(100));
        way.give_up();
        assert_eq!(way.bytes(), 0);
        // If a message has several packets, each lost packet counts separately.
        way.sent(5_000);
        way.lost(1, 5_000);
        assert_eq!(way.bytes(), 3_600);
    }
}
