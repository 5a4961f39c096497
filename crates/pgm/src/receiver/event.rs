//! Events that a receiver reports.

use bytes::Bytes;

use crate::wire::{Reset, Sqn, Tsi};

/// Event of a receiver that concerns one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A complete message.
    Message {
        /// Session identifier of the source.
        source: Tsi,
        /// Sequence number of the message's first packet.
        sqn: Sqn,
        /// Bytes of the message, which may be empty. They may share memory with other messages that
        /// arrived in the same system call. Copy them if you keep them for long.
        payload: Bytes,
    },
    /// Some packets were lost and cannot be repaired. Later events concern later packets.
    Lost {
        /// Session identifier of the source.
        source: Tsi,
        /// Sequence number of the first lost packet.
        first: Sqn,
        /// Number of lost packets.
        packets: u32,
    },
    /// The source aborted its session.
    Reset {
        /// Session identifier of the source.
        source: Tsi,
        /// Reason for the abort, and whether the source still sends repairs.
        reset: Reset,
    },
    /// The session ended, and all its messages were returned or reported as lost.
    Finished {
        /// Session identifier of the source.
        source: Tsi,
    },
    /// The source was silent for too long, or another source started with the same session
    /// identifier.
    Expired {
        /// Session identifier of the source.
        source: Tsi,
    },
}
