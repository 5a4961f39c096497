//! Where OpenPGM differs from the RFC.

/// How the few bits are read and written that OpenPGM 5 has otherwise than RFC 3208.
///
/// Everything else is alike. All members of a session that uses FEC must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As the RFC has them, and Wireshark shows them.
    #[default]
    Rfc3208,
    /// As OpenPGM 5 has them: `OP_ENCODED` as 0x08, and the proactive and on-demand bits of
    /// `OPT_PARITY_PRM` swapped.
    OpenPgm,
}

impl Dialect {
    /// The bit in an option's second byte after its length that says that it is FEC-encoded.
    pub(super) fn encoded(self) -> u8 {
        match self {
            Dialect::Rfc3208 => 0x04,
            Dialect::OpenPgm => 0x08,
        }
    }

    /// The bits for proactive and for on-demand parity.
    pub(super) fn parity_bits(self) -> (u8, u8) {
        match self {
            Dialect::Rfc3208 => (0x02, 0x01),
            Dialect::OpenPgm => (0x01, 0x02),
        }
    }
}
