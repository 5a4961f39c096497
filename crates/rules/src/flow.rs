//! Addresses and ports of packets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// Addresses and ports of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Addresses of sender and receiver.
    pub addresses: Addresses,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

/// Addresses of sender and receiver, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// IPv4 addresses.
    V4 {
        /// Address of the sender.
        source: Ipv4Addr,
        /// Address of the receiver.
        destination: Ipv4Addr,
    },
    /// IPv6 addresses.
    V6 {
        /// Address of the sender.
        source: Ipv6Addr,
        /// Address of the receiver.
        destination: Ipv6Addr,
    },
}

/// Error: one endpoint has an IPv4 address and the other an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{source_endpoint} and {destination} have different address families: use IPv4 or IPv6 for both"
)]
pub struct MixedFamilies {
    source_endpoint: SocketAddr,
    destination: SocketAddr,
}

impl Flow {
    /// Makes the flow of packets from `source` to `destination`.
    ///
    /// # Errors
    /// Returns an error if one endpoint has an IPv4 address and the other an IPv6 address.
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
            "10.0.0.1:80 and [::1]:443 have different address families: use IPv4 or IPv6 for both"
        );
    }
}
