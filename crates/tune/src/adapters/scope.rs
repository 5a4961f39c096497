//! How far addresses reach.

use std::net::IpAddr;

use serde::Serialize;

/// How far an address reaches (RFC 4007, 4193, 1918, 3927).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The machine itself.
    Host,
    /// The link that it is on.
    Link,
    /// A site or an organisation.
    Private,
    /// The Internet.
    Global,
}

impl Scope {
    /// That of an address.
    pub fn of(address: IpAddr) -> Self {
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

    /// By the examples of the RFCs that reserve them.
    #[test]
    fn addresses_reach_as_far_as_their_registries_say() {
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
            assert_eq!(Scope::of(address.parse().unwrap()), scope, "{address}");
        }
    }
}
