//! What is odd about adapters and addresses.

use serde::Serialize;

use super::Api;

/// Something that a program that enumerates adapters must know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Anomaly {
    /// The adapter does not work: what is said of its addresses' prefixes may be missing.
    NotOperational,
    /// There is no network on the link, just one other end.
    PointToPoint,
    /// Windows calls a Teredo address's prefix 64 bits long; it is 32.
    Teredo,
    /// A link-local IPv4 address: nobody gave the adapter one.
    SelfAssigned,
    /// A link-local IPv4 address beside another one: such adapters appear twice to who counts them.
    SelfAssignedBeside,
    /// The prefix length that is told is none; the whole address is taken instead.
    IllegalPrefix {
        /// What was told.
        told: u8,
    },
    /// Nobody tells the prefix length.
    UnknownPrefix,
    /// Two interfaces tell different lengths.
    DifferentPrefixes,
    /// An interface that tells of IPv4 addresses does not tell of this one.
    NotTold {
        /// Which.
        api: Api,
    },
    /// An interface tells of an address that GetAdaptersAddresses does not know.
    OnlyTold {
        /// Which.
        api: Api,
    },
    /// The mask is no prefix: ones come after zeros.
    ScatteredMask,
}
