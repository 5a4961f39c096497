//! What a receiver hands out.

use bytes::Bytes;

use crate::wire::{Reset, Sqn, Tsi};

/// What has happened to a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message, whole.
    Message {
        /// Whose.
        source: Tsi,
        /// The number of its first packet.
        sqn: Sqn,
        /// The message, which may be empty. It may share memory with others that came in the same
        /// call: a copy of what is kept for long lets go of them.
        payload: Bytes,
    },
    /// Packets are lost for good; what comes after them follows.
    Lost {
        /// Whose.
        source: Tsi,
        /// The first of them.
        first: Sqn,
        /// How many.
        packets: u32,
    },
    /// The source has broken off.
    Reset {
        /// Which.
        source: Tsi,
        /// Why, and whether it still repairs.
        reset: Reset,
    },
    /// The source has ended, and all that it sent was handed out or reported lost.
    Finished {
        /// Which.
        source: Tsi,
    },
    /// The source is gone: nothing was heard of it for too long, or another has begun under its name.
    Expired {
        /// Which.
        source: Tsi,
    },
}
