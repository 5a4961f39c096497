//! Which two endpoints a packet goes between.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// The addresses and ports of one direction of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Where from and where to.
    pub addresses: Addresses,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

/// Two addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// The sender.
        source: Ipv4Addr,
        /// The receiver.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// The sender.
        source: Ipv6Addr,
        /// The receiver.
        destination: Ipv6Addr,
    },
}

/// One endpoint speaks IPv4 and the other IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{source_endpoint} and {destination} are not of one family: use IPv4 or IPv6 for both")]
pub struct MixedFamilies {
    source_endpoint: SocketAddr,
    destination: SocketAddr,
}

impl Flow {
    /// The flow from one endpoint to the other.
    ///
    /// # Errors
    /// When one is IPv4 and the other IPv6.
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Result<Flow, MixedFamilies> {
        let addresses = match (source, destination) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => Addresses::V4 {
                source: *from.ip(),
                destination: *to.ip(),
            },
            (SocketAddr::V6(from), SocketAddr::V6(to)) => Addresses::V6 {
                source: *from.ip(),
                destination: *to.ip(),
            },
            _ => {
                return Err(MixedFamilies {
                    source_endpoint: source,
                    destination,
                });
            }
        };
        Ok(Flow {
            addresses,
            source_port: source.port(),
            destination_port: destination.port(),
        })
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination): (IpAddr, IpAddr) = match self.addresses {
            Addresses::V4 {
                source,
                destination,
            } => (source.into(), destination.into()),
            Addresses::V6 {
                source,
                destination,
            } => (source.into(), destination.into()),
        };
        let from = SocketAddr::new(source, self.source_port);
        write!(
            f,
            "{from} to {}",
            SocketAddr::new(destination, self.destination_port)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_do_not_mix() {
        let endpoint = |text: &str| text.parse::<SocketAddr>().expect("an endpoint");
        let error = Flow::new(endpoint("10.0.0.1:80"), endpoint("[::1]:443")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "10.0.0.1:80 and [::1]:443 are not of one family: use IPv4 or IPv6 for both"
        );
    }
}
