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
    /// The address is a Teredo address. Windows reports a prefix of 64 bits, but the prefix of Teredo
    /// addresses has 32 bits.
    Teredo,
    /// The address is a link-local IPv4 address. Windows assigns one if no other address is configured.
    SelfAssigned,
    /// The address is a link-local IPv4 address, but the adapter also has another IPv4 address. Programs
    /// that count addresses count this adapter twice.
    SelfAssignedBeside,
    /// Windows reports an invalid prefix length. The program therefore treats all bits of the address as
    /// prefix.
    IllegalPrefix {
        /// Prefix length in bits that Windows reports.
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
        /// Windows function that does not list the address.
        api: Api,
    },
    /// An older Windows function lists this address, but GetAdaptersAddresses does not.
    #[serde(rename = "only_told")]
    OnlyListed {
        /// Windows function that lists the address.
        api: Api,
    },
    /// The mask has 1 bits after 0 bits, so the mask does not describe a prefix.
    ScatteredMask,
}
