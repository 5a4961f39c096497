//! Identifiers of hosts and sessions.

use std::fmt;

/// Globally unique source identifier: six bytes, shared by all sessions of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gsi(pub [u8; 6]);

/// Transport session identifier: a [`Gsi`] and a data-source port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tsi {
    /// Identifier of the host.
    pub gsi: Gsi,
    /// Data-source port.
    pub port: u16,
}

impl Tsi {
    /// Returns a random identifier, with a port from 32,768 on.
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
    /// Writes the six numbers of the host identifier and the port, for example `1.2.3.4.5.6.40000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.gsi.0 {
            write!(f, "{byte}.")?;
        }
        write!(f, "{}", self.port)
    }
}
