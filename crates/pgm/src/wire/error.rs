//! Why bytes are no packet.

/// What is wrong with a packet. Whoever receives one drops it and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends too early.
    #[error("{what} at offset {offset} needs {needed} bytes and the packet has {found} there")]
    Short {
        /// What was being read.
        what: &'static str,
        /// Where, from the packet's start.
        offset: usize,
        /// How many bytes it takes.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// A version of PGM that is not known.
    #[error("version {0} of PGM is not known, only 0 is")]
    Version(u8),
    /// A packet type that is not known.
    #[error("packet type {0:#04x} is not known")]
    Type(u8),
    /// The checksum does not fit the bytes.
    #[error("the checksum is {found:#06x} and the bytes have {computed:#06x}")]
    Checksum {
        /// As in the packet.
        found: u16,
        /// As the bytes have it.
        computed: u16,
    },
    /// Data without a checksum, which the RFC forbids.
    #[error("a data packet has no checksum")]
    NoChecksum,
    /// An address that is neither IPv4 nor IPv6.
    #[error("address family {found} at offset {offset} is neither 1 (IPv4) nor 2 (IPv6)")]
    AddressFamily {
        /// Where, from the packet's start.
        offset: usize,
        /// The family that is said.
        found: u16,
    },
    /// The list of options does not begin with its length.
    #[error(
        "the options at offset {offset} begin with option {found:#04x} and not with their length"
    )]
    NoOptionsLength {
        /// Where, from the packet's start.
        offset: usize,
        /// The option that is there.
        found: u8,
    },
    /// More options than a packet may have, or none that says that it is the last.
    #[error("the options at offset {offset} have no last one where they should end")]
    OptionsEnd {
        /// Where, from the packet's start.
        offset: usize,
    },
    /// An option whose length is not one that it can have.
    #[error("option {code:#04x} at offset {offset} has {found} bytes, which it cannot have")]
    OptionLength {
        /// Where, from the packet's start.
        offset: usize,
        /// Which option.
        code: u8,
        /// Its length as it says.
        found: usize,
    },
    /// The payload is not as long as the header says.
    #[error("the header says {announced} bytes of payload and there are {found}")]
    PayloadLength {
        /// As the header says.
        announced: usize,
        /// As it is.
        found: usize,
    },
    /// The size of a transmission group is no power of two from 2 to 128.
    #[error("a transmission group of {0} packets is not possible: powers of two from 2 to 128 are")]
    GroupSize(u32),
}
