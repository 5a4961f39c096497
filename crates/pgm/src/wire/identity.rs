//! Who sends: sessions and their names.

use std::fmt;

/// A source's globally unique identifier: six bytes, the same for all sessions of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gsi(pub [u8; 6]);

/// What names one session of one source: its [`Gsi`] and data-source port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tsi {
    /// The host's part.
    pub gsi: Gsi,
    /// The data-source port.
    pub port: u16,
}

impl Tsi {
    /// A name that nobody else is likely to have, with a port beyond the well-known ones.
    pub fn random() -> Tsi {
        let mut gsi = [0; 6];
        fastrand::fill(&mut gsi);
        Tsi {
            gsi: Gsi(gsi),
            port: fastrand::u16(32_768..),
        }
    }
}

impl fmt::Display for Tsi {
    /// Six numbers of the host and the port, separated by dots: `1.2.3.4.5.6.40000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.gsi.0 {
            write!(f, "{byte}.")?;
        }
        write!(f, "{}", self.port)
    }
}
