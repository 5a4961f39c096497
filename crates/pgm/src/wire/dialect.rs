//! Differences between the wire formats of OpenPGM and RFC 3208.

/// Encoding of the few bits in which OpenPGM 5 differs from RFC 3208. If a session uses FEC
/// (parity), all its members must use the same dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Encoding of RFC 3208, which Wireshark also uses.
    #[default]
    Rfc3208,
    /// Encoding of OpenPGM 5. The value of `OP_ENCODED` is 0x08, and the proactive bit and the on-demand bit
    /// of `OPT_PARITY_PRM` are swapped.
    OpenPgm,
}

impl Dialect {
    /// Returns the bit that marks an option as FEC-encoded. The bit is in the third byte of the option. This
    /// byte follows the length of the option.
    pub(super) fn encoded(self) -> u8 {
        match self {
            Dialect::Rfc3208 => 0x04,
            Dialect::OpenPgm => 0x08,
        }
    }

    /// Returns the bits for proactive parity and for parity on demand.
    pub(super) fn parity_bits(self) -> (u8, u8) {
        match self {
            Dialect::Rfc3208 => (0x02, 0x01),
            Dialect::OpenPgm => (0x01, 0x02),
        }
    }
}
