//! Scope of addresses.

use std::net::IpAddr;

use serde::Serialize;

/// Scope of an address: the area in which it is unique (RFC 4007, 4193, 1918, 3927).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The address is valid on this machine only.
    Host,
    /// The address is valid on one link only.
    Link,
    /// The address is valid in a site or an organisation.
    Private,
    /// The address is valid in the whole Internet.
    Global,
}

impl Scope {
    /// Returns the scope of an address.
    pub fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) if v4.is_loopback() => Self::Host,
            IpAddr::V4(v4) if v4.is_link_local() => Self::Link,
            IpAddr::V4(v4) if v4.is_private() => Self::Private,
            IpAddr::V6(v6) if v6.is_loopback() => Self::Host,
            IpAddr::V6(v6) if v6.is_unicast_link_local() => Self::Link,
            IpAddr::V6(v6) if v6.is_unique_local() => Self::Private,
            _ => Self::Global,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the scopes of example addresses from ranges that RFCs reserve.
    #[test]
    fn scopes_match_the_registries() {
        for (address, scope) in [
            ("127.0.0.1", Scope::Host),
            ("::1", Scope::Host),
            ("169.254.7.7", Scope::Link),
            ("fe80::1", Scope::Link),
            ("172.31.0.1", Scope::Private),
            ("172.32.0.1", Scope::Global),
            ("fd00::1", Scope::Private),
            ("2001:db8::1", Scope::Global),
        ] {
            assert_eq!(
                Scope::from_address(address.parse().unwrap()),
                scope,
                "{address}"
            );
        }
    }
}
