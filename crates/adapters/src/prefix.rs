//! Prefix lengths of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use super::{Kind, Status};

/// Prefix length of an address, and the source from which the length was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prefix {
    /// Length in bits, if known.
    pub length: Option<u8>,
    /// Source of the length.
    pub source: PrefixSource,
}

/// Source of a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixSource {
    /// `OnLinkPrefixLength`, which Windows reports with the address.
    OnLink,
    /// RFC 4380, which defines a prefix of 32 bits for Teredo addresses. Windows reports a prefix of 64 bits.
    Teredo,
    /// Windows reported an invalid length, so the program treats all bits of the address as prefix.
    Illegal,
    /// Prefix list of the adapter.
    List,
    /// Prefix list of the adapter. The list contains the address itself, but no network that contains the
    /// address.
    HostOnly,
    /// RFC 3927, which defines the prefix 169.254.0.0/16 for IPv4 link-local addresses.
    LinkLocal,
    /// Mask that GetAdaptersInfo reports.
    AdaptersInfo,
    /// Mask that the system reports with the address.
    Mask,
    /// The prefix length is unknown, because no source contains it.
    Unknown,
}

/// Data from which the prefix length of an address is derived.
#[derive(Clone, Copy, Debug)]
pub struct PrefixInput<'a> {
    /// Address for which the prefix length is derived.
    pub address: IpAddr,
    /// Kind of the address's adapter.
    pub kind: Kind,
    /// Status of the address's adapter.
    pub status: Status,
    /// `OnLinkPrefixLength` of the address, available since Windows Vista.
    pub on_link: Option<u8>,
    /// Prefix list of the adapter.
    pub list: &'a [(IpAddr, u32)],
    /// Mask of the address that GetAdaptersInfo returned.
    pub info_mask: Option<Ipv4Addr>,
}

/// Derives the prefix length of an address on Windows.
///
/// Since Vista, Windows reports the prefix length with the address. The reported length can be invalid, and
/// it is wrong for Teredo addresses. Before Vista, the prefix list of the adapter must be searched. The list
/// has no order and also contains default routes, multicast groups and broadcast addresses. Since Vista, the
/// list also has an entry for each address of the adapter. For an adapter that is not up, Windows does not
/// list IPv4 prefixes.
pub fn prefix_length(input: &PrefixInput<'_>) -> Prefix {
    let PrefixInput {
        address,
        kind,
        status,
        on_link,
        list,
        info_mask,
    } = *input;
    let bits = bit_length(address);
    let prefix = |length, source| Prefix {
        length: Some(length),
        source,
    };
    if let IpAddr::V6(v6) = address
        && kind == Kind::Teredo
        && v6.segments()[..2] == [0x2001, 0]
    {
        return prefix(32, PrefixSource::Teredo);
    }
    if let Some(length) = on_link.filter(|length| (1..=bits).contains(length)) {
        return prefix(length, PrefixSource::OnLink);
    }
    let containing = list
        .iter()
        .filter(|(network, length)| contains(*network, *length, address));
    let longest = containing
        .clone()
        .filter(|(_, length)| *length < u32::from(bits))
        .map(|(_, length)| *length)
        .max();
    if let Some(length) = longest.and_then(|length| u8::try_from(length).ok()) {
        return prefix(length, PrefixSource::List);
    }
    if let IpAddr::V4(v4) = address
        && status != Status::Up
    {
        let mask = info_mask
            .filter(|mask| !mask.is_unspecified())
            .and_then(|mask| prefix_of_mask(mask.into()));
        return match (v4.is_link_local(), mask) {
            (true, _) => prefix(16, PrefixSource::LinkLocal),
            (false, Some(length)) => prefix(length, PrefixSource::AdaptersInfo),
            (false, None) => Prefix {
                length: None,
                source: PrefixSource::Unknown,
            },
        };
    }
    match (containing.count(), on_link) {
        (1.., _) => prefix(bits, PrefixSource::HostOnly),
        (0, Some(_)) => prefix(bits, PrefixSource::Illegal),
        (0, None) => Prefix {
            length: None,
            source: PrefixSource::Unknown,
        },
    }
}

/// Converts a mask to a prefix length. Returns `None` if the mask has ones after zeros.
pub fn prefix_of_mask(mask: IpAddr) -> Option<u8> {
    let (ones, zeros) = match mask {
        IpAddr::V4(mask) => (
            mask.to_bits().leading_ones(),
            mask.to_bits().trailing_zeros(),
        ),
        IpAddr::V6(mask) => (
            mask.to_bits().leading_ones(),
            mask.to_bits().trailing_zeros(),
        ),
    };
    (ones + zeros == u32::from(bit_length(mask))).then(|| u8::try_from(ones).ok())?
}

pub(super) fn bit_length(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Returns true if an entry of a prefix list is the network of an address, or the address itself.
fn contains(network: IpAddr, length: u32, address: IpAddr) -> bool {
    // This condition excludes multicast groups and the default route. Windows lists the default route for
    // IPv6.
    if length == 0 || length > u32::from(bit_length(network)) || network.is_multicast() {
        return false;
    }
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let mask = Ipv4Addr::from_bits(u32::MAX << (32 - length));
            network & mask == address & mask
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let mask = Ipv6Addr::from_bits(u128::MAX << (128 - length));
            network & mask == address & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn list(entries: &[&str]) -> Vec<(IpAddr, u32)> {
        let entry = |entry: &&str| {
            let (network, length) = entry.split_once('/').unwrap();
            (ip(network), length.parse().unwrap())
        };
        entries.iter().map(entry).collect()
    }

    /// Returns the input for an address of an Ethernet adapter that is up. Windows reports no prefix length
    /// for this address.
    fn input(address: &str) -> PrefixInput<'static> {
        PrefixInput {
            address: ip(address),
            kind: Kind::Ethernet,
            status: Status::Up,
            on_link: None,
            list: &[],
            info_mask: None,
        }
    }

    fn found(input: &PrefixInput<'_>) -> (Option<u8>, PrefixSource) {
        let prefix = prefix_length(input);
        (prefix.length, prefix.source)
    }

    #[test]
    fn since_vista_the_length_is_reported_with_the_address() {
        for (address, reported, length, source) in [
            ("10.0.0.7", 24, 24, PrefixSource::OnLink),
            ("10.0.0.7", 32, 32, PrefixSource::OnLink),
            ("fe80::7", 64, 64, PrefixSource::OnLink),
            ("10.0.0.7", 255, 32, PrefixSource::Illegal),
            ("10.0.0.7", 33, 32, PrefixSource::Illegal),
            ("10.0.0.7", 0, 32, PrefixSource::Illegal),
            ("fe80::7", 255, 128, PrefixSource::Illegal),
            ("fe80::7", 0, 128, PrefixSource::Illegal),
        ] {
            let on_link = Some(reported);
            let input = PrefixInput {
                on_link,
                ..input(address)
            };
            assert_eq!(
                found(&input),
                (Some(length), source),
                "{address} {reported}"
            );
        }
    }

    /// Checks that Teredo addresses get a prefix of 32 bits (RFC 4380, section 2.6).
    #[test]
    fn teredo_is_corrected() {
        let on_link = Some(64);
        let teredo = PrefixInput {
            kind: Kind::Teredo,
            on_link,
            ..input("2001:0:4137:9e76::1")
        };
        assert_eq!(found(&teredo), (Some(32), PrefixSource::Teredo));
        let link_local = PrefixInput {
            kind: Kind::Teredo,
            on_link,
            ..input("fe80::1")
        };
        assert_eq!(found(&link_local), (Some(64), PrefixSource::OnLink));
        let elsewhere = PrefixInput {
            on_link,
            ..input("2001:0:4137:9e76::1")
        };
        assert_eq!(found(&elsewhere), (Some(64), PrefixSource::OnLink));
    }

    #[test]
    fn on_xp_the_list_has_one_entry_for_each_address() {
        let list = list(&["fe80::/64", "192.168.1.0/24", "10.0.0.0/8"]);
        let prefix = |address| {
            found(&PrefixInput {
                list: &list,
                ..input(address)
            })
        };
        assert_eq!(prefix("10.1.2.3"), (Some(8), PrefixSource::List));
        assert_eq!(prefix("192.168.1.9"), (Some(24), PrefixSource::List));
        assert_eq!(prefix("172.16.0.1"), (None, PrefixSource::Unknown));
    }

    #[test]
    fn since_vista_the_list_has_hosts_broadcasts_groups_and_the_default_route_too() {
        let list = list(&[
            "::/0",
            "255.255.255.255/32",
            "10.0.0.255/32",
            "10.0.0.7/32",
            "224.0.0.0/4",
            "10.0.0.0/24",
            "fe80::7/128",
            "ff00::/8",
            "fe80::/64",
        ]);
        let prefix = |address| {
            found(&PrefixInput {
                list: &list,
                ..input(address)
            })
        };
        assert_eq!(prefix("10.0.0.7"), (Some(24), PrefixSource::List));
        assert_eq!(prefix("fe80::7"), (Some(64), PrefixSource::List));
        // The default route is not the network of an address.
        assert_eq!(prefix("2001:db8::7"), (None, PrefixSource::Unknown));
    }

    #[test]
    fn loopback_has_a_network_in_ipv4_only() {
        let list = list(&[
            "::1/128",
            "ff00::/8",
            "127.0.0.0/8",
            "127.0.0.1/32",
            "127.255.255.255/32",
            "224.0.0.0/4",
            "255.255.255.255/32",
        ]);
        let prefix = |address| {
            found(&PrefixInput {
                kind: Kind::Loopback,
                list: &list,
                ..input(address)
            })
        };
        assert_eq!(prefix("::1"), (Some(128), PrefixSource::HostOnly));
        assert_eq!(prefix("127.0.0.1"), (Some(8), PrefixSource::List));
    }

    #[test]
    fn point_to_point_links_have_only_the_host() {
        let list = list(&["fe80::5efe:10.0.0.7/128", "10.0.0.7/32"]);
        let kind = Kind::PointToPoint;
        let prefix = |address| {
            found(&PrefixInput {
                kind,
                list: &list,
                ..input(address)
            })
        };
        assert_eq!(
            prefix("fe80::5efe:10.0.0.7"),
            (Some(128), PrefixSource::HostOnly)
        );
        assert_eq!(prefix("10.0.0.7"), (Some(32), PrefixSource::HostOnly));
    }

    /// Checks that masks give the prefix lengths of adapters without cable. The prefix lists of such adapters
    /// still have multicast groups and broadcast addresses.
    #[test]
    fn masks_give_prefixes_of_adapters_that_are_not_up() {
        let list = list(&["224.0.0.0/4", "255.255.255.255/32"]);
        let down = |address| PrefixInput {
            status: Status::Down,
            list: &list,
            ..input(address)
        };
        assert_eq!(
            found(&down("169.254.1.2")),
            (Some(16), PrefixSource::LinkLocal)
        );
        assert_eq!(found(&down("10.0.0.7")), (None, PrefixSource::Unknown));
        let mask = |mask| PrefixInput {
            info_mask: Some(mask),
            on_link: Some(255),
            ..down("10.0.0.7")
        };
        let masked = mask(Ipv4Addr::new(255, 255, 252, 0));
        assert_eq!(found(&masked), (Some(22), PrefixSource::AdaptersInfo));
        let none = mask(Ipv4Addr::UNSPECIFIED);
        assert_eq!(found(&none), (None, PrefixSource::Unknown));
    }

    #[test]
    fn masks_are_converted_to_prefixes() {
        for (mask, length) in [
            ("255.255.255.0", Some(24)),
            ("0.0.0.0", Some(0)),
            ("255.255.255.255", Some(32)),
            ("255.0.255.0", None),
            ("0.255.255.255", None),
            ("ffff:ffff:ffff:ffff::", Some(64)),
            ("ffff::ffff", None),
        ] {
            assert_eq!(prefix_of_mask(ip(mask)), length, "{mask}");
        }
    }
}
