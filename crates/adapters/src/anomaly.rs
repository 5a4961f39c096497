//! Anomalies of adapters and addresses.

use serde::Serialize;

use super::Api;

/// Special case that programs must handle when they list adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Anomaly {
    /// The adapter is not up, so the prefixes of its addresses may be missing.
    NotOperational,
    /// The link connects exactly two machines, so the address has no network.
    PointToPoint,
    /// The address is a Teredo address. Windows reports a prefix of 64 bits, but it has 32.
    Teredo,
    /// The address is a link-local IPv4 address. Windows assigns one if no other address is configured.
    SelfAssigned,
    /// The address is a link-local IPv4 address, but the adapter also has another IPv4 address. Programs
    /// that count addresses count this adapter twice.
    SelfAssignedBeside,
    /// The reported prefix length is invalid. All bits of the address count as prefix instead.
    IllegalPrefix {
        /// Reported length.
        #[serde(rename = "told")]
        length: u8,
    },
    /// No function of the system reports the prefix length.
    UnknownPrefix,
    /// Two functions of Windows report different prefix lengths.
    DifferentPrefixes,
    /// A Windows function that lists IPv4 addresses does not list this address.
    #[serde(rename = "not_told")]
    NotListed {
        /// Windows function.
        api: Api,
    },
    /// An older Windows function lists this address, but GetAdaptersAddresses does not.
    #[serde(rename = "only_told")]
    OnlyListed {
        /// Windows function.
        api: Api,
    },
    /// The mask is no prefix, because it has ones after zeros.
    ScatteredMask,
}
