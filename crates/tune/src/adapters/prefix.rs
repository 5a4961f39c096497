//! How many bits of an address are the network's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use super::{Kind, Status};

/// A prefix length and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prefix {
    /// In bits; none if nobody knows.
    pub length: Option<u8>,
    /// Who says so.
    pub source: PrefixSource,
}

/// Who says how long a prefix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixSource {
    /// Windows, with the address.
    OnLink,
    /// RFC 4380: Windows says 64 of Teredo's 2001::/32.
    Teredo,
    /// Nobody legally, so the whole address is meant.
    Illegal,
    /// Windows, in the list of the adapter's prefixes.
    List,
    /// That list, which has the address alone: there is no network.
    HostOnly,
    /// RFC 3927: IPv4 link-local addresses are of 169.254.0.0/16.
    LinkLocal,
    /// The mask that GetAdaptersInfo tells.
    AdaptersInfo,
    /// The mask that the system tells.
    Mask,
    /// Nobody.
    Unknown,
}

/// What is known of an address whose prefix is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The address.
    pub address: IpAddr,
    /// What kind of adapter has it.
    pub kind: Kind,
    /// Whether that works.
    pub status: Status,
    /// OnLinkPrefixLength, which there is since Vista.
    pub on_link: Option<u8>,
    /// The adapter's list of prefixes.
    pub list: &'a [(IpAddr, u32)],
    /// The mask of the address by GetAdaptersInfo.
    pub info_mask: Option<Ipv4Addr>,
}

/// The prefix length of an address by what Windows tells.
///
/// Since Vista the length comes with the address. It may be illegal, and that of Teredo is wrong. Before,
/// the adapter's list of prefixes has to be searched: default routes, groups and broadcast addresses are
/// in it too, its order means nothing, and since Vista each address has an entry of its own. Of an
/// adapter that does not work, IPv4 prefixes are hidden.
pub fn prefix_length(question: &Question<'_>) -> Prefix {
    let Question {
        address,
        kind,
        status,
        on_link,
        list,
        info_mask,
    } = *question;
    let bits = bits_of(address);
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
    let of_it = list
        .iter()
        .filter(|(network, length)| holds(*network, *length, address));
    let longest = of_it
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
    match (of_it.count(), on_link) {
        (1.., _) => prefix(bits, PrefixSource::HostOnly),
        (0, Some(_)) => prefix(bits, PrefixSource::Illegal),
        (0, None) => Prefix {
            length: None,
            source: PrefixSource::Unknown,
        },
    }
}

/// The length of the prefix that a mask stands for; none if ones come after zeros.
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
    (ones + zeros == u32::from(bits_of(mask))).then(|| u8::try_from(ones).ok())?
}

pub(super) fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Whether an entry of a list of prefixes is one of an address's network or the address alone.
fn holds(network: IpAddr, length: u32, address: IpAddr) -> bool {
    // Of the default route, which Windows lists for IPv6, and of groups, no address is.
    if length == 0 || length > u32::from(bits_of(network)) || network.is_multicast() {
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

    /// An Ethernet adapter that works and tells nothing with the address.
    fn question(address: &str) -> Question<'static> {
        Question {
            address: ip(address),
            kind: Kind::Ethernet,
            status: Status::Up,
            on_link: None,
            list: &[],
            info_mask: None,
        }
    }

    fn found(question: &Question<'_>) -> (Option<u8>, PrefixSource) {
        let prefix = prefix_length(question);
        (prefix.length, prefix.source)
    }

    #[test]
    fn since_vista_the_length_comes_with_the_address() {
        for (address, told, length, source) in [
            ("10.0.0.7", 24, 24, PrefixSource::OnLink),
            ("10.0.0.7", 32, 32, PrefixSource::OnLink),
            ("fe80::7", 64, 64, PrefixSource::OnLink),
            ("10.0.0.7", 255, 32, PrefixSource::Illegal),
            ("10.0.0.7", 33, 32, PrefixSource::Illegal),
            ("10.0.0.7", 0, 32, PrefixSource::Illegal),
            ("fe80::7", 255, 128, PrefixSource::Illegal),
            ("fe80::7", 0, 128, PrefixSource::Illegal),
        ] {
            let on_link = Some(told);
            let question = Question {
                on_link,
                ..question(address)
            };
            assert_eq!(found(&question), (Some(length), source), "{address} {told}");
        }
    }

    /// RFC 4380, 2.6: the prefix of Teredo addresses has 32 bits.
    #[test]
    fn teredo_is_corrected() {
        let on_link = Some(64);
        let teredo = Question {
            kind: Kind::Teredo,
            on_link,
            ..question("2001:0:4137:9e76::1")
        };
        assert_eq!(found(&teredo), (Some(32), PrefixSource::Teredo));
        let link_local = Question {
            kind: Kind::Teredo,
            on_link,
            ..question("fe80::1")
        };
        assert_eq!(found(&link_local), (Some(64), PrefixSource::OnLink));
        let elsewhere = Question {
            on_link,
            ..question("2001:0:4137:9e76::1")
        };
        assert_eq!(found(&elsewhere), (Some(64), PrefixSource::OnLink));
    }

    #[test]
    fn on_xp_the_list_has_one_entry_for_each_address() {
        let list = list(&["fe80::/64", "192.168.1.0/24", "10.0.0.0/8"]);
        let of = |address| {
            found(&Question {
                list: &list,
                ..question(address)
            })
        };
        assert_eq!(of("10.1.2.3"), (Some(8), PrefixSource::List));
        assert_eq!(of("192.168.1.9"), (Some(24), PrefixSource::List));
        assert_eq!(of("172.16.0.1"), (None, PrefixSource::Unknown));
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
        let of = |address| {
            found(&Question {
                list: &list,
                ..question(address)
            })
        };
        assert_eq!(of("10.0.0.7"), (Some(24), PrefixSource::List));
        assert_eq!(of("fe80::7"), (Some(64), PrefixSource::List));
        // The default route is nobody's network.
        assert_eq!(of("2001:db8::7"), (None, PrefixSource::Unknown));
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
        let of = |address| {
            found(&Question {
                kind: Kind::Loopback,
                list: &list,
                ..question(address)
            })
        };
        assert_eq!(of("::1"), (Some(128), PrefixSource::HostOnly));
        assert_eq!(of("127.0.0.1"), (Some(8), PrefixSource::List));
    }

    #[test]
    fn links_to_one_machine_have_the_host_alone() {
        let list = list(&["fe80::5efe:10.0.0.7/128", "10.0.0.7/32"]);
        let kind = Kind::PointToPoint;
        let of = |address| {
            found(&Question {
                kind,
                list: &list,
                ..question(address)
            })
        };
        assert_eq!(
            of("fe80::5efe:10.0.0.7"),
            (Some(128), PrefixSource::HostOnly)
        );
        assert_eq!(of("10.0.0.7"), (Some(32), PrefixSource::HostOnly));
    }

    /// Groups and broadcast addresses stay in the list of an adapter without cable.
    #[test]
    fn of_an_adapter_that_does_not_work_only_masks_help() {
        let list = list(&["224.0.0.0/4", "255.255.255.255/32"]);
        let down = |address| Question {
            status: Status::Down,
            list: &list,
            ..question(address)
        };
        assert_eq!(
            found(&down("169.254.1.2")),
            (Some(16), PrefixSource::LinkLocal)
        );
        assert_eq!(found(&down("10.0.0.7")), (None, PrefixSource::Unknown));
        let mask = |mask| Question {
            info_mask: Some(mask),
            on_link: Some(255),
            ..down("10.0.0.7")
        };
        let told = mask(Ipv4Addr::new(255, 255, 252, 0));
        assert_eq!(found(&told), (Some(22), PrefixSource::AdaptersInfo));
        let none = mask(Ipv4Addr::UNSPECIFIED);
        assert_eq!(found(&none), (None, PrefixSource::Unknown));
    }

    #[test]
    fn masks_are_prefixes_or_none() {
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
