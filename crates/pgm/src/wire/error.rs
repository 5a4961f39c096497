//! Errors of parsing.

/// Error of [`Packet::parse`](super::Packet::parse). Receivers drop and count such packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The packet ends too early.
    #[error("{what} at offset {offset} needs {needed} bytes; the packet has {found} left")]
    Short {
        /// Name of the field that was being read.
        what: &'static str,
        /// Offset of the field from the start of the packet, in bytes.
        offset: usize,
        /// Number of bytes that the field needs.
        needed: usize,
        /// Number of bytes that are left in the packet.
        found: usize,
    },
    /// The version of PGM is unknown.
    #[error("unknown PGM version {0}; only version 0 exists")]
    Version(u8),
    /// The packet type is unknown.
    #[error("unknown packet type {0:#04x}")]
    Type(u8),
    /// The checksum is wrong.
    #[error("wrong checksum {found:#06x}; the checksum of the bytes is {computed:#06x}")]
    Checksum {
        /// Checksum in the packet.
        found: u16,
        /// Checksum computed from the bytes of the packet.
        computed: u16,
    },
    /// A data packet has no checksum, which RFC 3208 forbids.
    #[error("the data packet has no checksum")]
    NoChecksum,
    /// The address is neither IPv4 nor IPv6.
    #[error("unknown address family {found} at offset {offset}; expected 1 (IPv4) or 2 (IPv6)")]
    AddressFamily {
        /// Offset of the field from the start of the packet, in bytes.
        offset: usize,
        /// Number of the address family in the packet.
        found: u16,
    },
    /// The options do not start with the option that contains their total length.
    #[error(
        "the options at offset {offset} start with option {found:#04x} instead of their length"
    )]
    NoOptionsLength {
        /// Offset of the field from the start of the packet, in bytes.
        offset: usize,
        /// Number of the first option.
        found: u8,
    },
    /// There are too many options, or the last option is not marked as the last.
    #[error("the options at offset {offset} do not end where their length says")]
    OptionsEnd {
        /// Offset of the field from the start of the packet, in bytes.
        offset: usize,
    },
    /// The length of an option is invalid.
    #[error("option {code:#04x} at offset {offset} has an invalid length of {found} bytes")]
    OptionLength {
        /// Offset of the field from the start of the packet, in bytes.
        offset: usize,
        /// Number of the option.
        code: u8,
        /// Length of the option in the packet, in bytes.
        found: usize,
    },
    /// The length of the payload differs from the length in the header.
    #[error("the header announces {announced} bytes of payload; the packet has {found}")]
    PayloadLength {
        /// Length of the payload in the header, in bytes.
        announced: usize,
        /// Number of bytes that are left in the packet.
        found: usize,
    },
    /// The size of a transmission group is not a power of two from 2 to 128.
    #[error("invalid transmission group size {0}; expected a power of two from 2 to 128")]
    GroupSize(u32),
}
