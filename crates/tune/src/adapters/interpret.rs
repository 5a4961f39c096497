//! Adapters made of what Windows said of them.

use std::net::{IpAddr, Ipv4Addr};

use super::prefix::{Question, bits_of, prefix_length, prefix_of_mask};
use super::{
    Adapter, Address, Anomaly, Api, Kind, PrefixSource, Recorded, RecordedAdapter, Scope, Status,
    Told,
};

/// Numbers of IANA's types of interfaces (ipifcons.h).
const ETHERNET: u32 = 6;
const PPP: u32 = 23;
const LOOPBACK: u32 = 24;
const WIRELESS: u32 = 71;
const TUNNEL: u32 = 131;

/// TUNNEL_TYPE_TEREDO (ifdef.h).
const TEREDO: i32 = 14;

/// IP_ADAPTER_NO_MULTICAST (iptypes.h).
const NO_MULTICAST: u32 = 0x10;

/// Adapters of what Windows' three interfaces said, with what is odd about them.
pub fn interpret(recorded: &Recorded) -> Vec<Adapter> {
    let mut adapters: Vec<Adapter> = recorded
        .adapters
        .iter()
        .map(|adapter| one(adapter, recorded))
        .collect();
    let known = |address: Ipv4Addr| {
        recorded
            .adapters
            .iter()
            .any(|adapter| adapter.unicast.iter().any(|(other, ..)| *other == address))
    };
    // What only the older interfaces know goes to the adapter that they name.
    for (api, rows) in [
        (Api::AdaptersInfo, &recorded.infos),
        (Api::IpAddrTable, &recorded.table),
    ] {
        for (index, address, mask) in rows {
            if address.is_unspecified() || known(*address) {
                continue;
            }
            let length = prefix_of_mask((*mask).into()).filter(|length| *length > 0);
            let told = Told { api, length };
            let adapter = adapters
                .iter_mut()
                .find(|adapter| adapter.index == Some(*index));
            let Some(adapter) = adapter else { continue };
            let same = adapter
                .addresses
                .iter_mut()
                .find(|one| one.address == *address);
            match same {
                Some(one) => {
                    one.told.push(told);
                    one.anomalies.push(Anomaly::OnlyTold { api });
                }
                None => adapter.addresses.push(Address {
                    address: (*address).into(),
                    prefix: super::Prefix {
                        length,
                        source: match length {
                            Some(_) => PrefixSource::Mask,
                            None => PrefixSource::Unknown,
                        },
                    },
                    scope: Scope::of((*address).into()),
                    scope_id: None,
                    broadcast: None,
                    peer: None,
                    told: vec![told],
                    anomalies: vec![Anomaly::OnlyTold { api }],
                }),
            }
        }
    }
    adapters
}

fn one(adapter: &RecordedAdapter, recorded: &Recorded) -> Adapter {
    let kind = match (adapter.if_type, adapter.tunnel_type) {
        (_, TEREDO) => Kind::Teredo,
        (ETHERNET, _) => Kind::Ethernet,
        (WIRELESS, _) => Kind::Wireless,
        (LOOPBACK, _) => Kind::Loopback,
        (PPP, _) => Kind::PointToPoint,
        (TUNNEL, _) => Kind::Tunnel,
        (other, _) => Kind::Other(Some(other)),
    };
    // IF_OPER_STATUS (ifdef.h).
    let status = match adapter.oper_status {
        1 => Status::Up,
        5 | 7 => Status::NoCarrier,
        2 | 3 | 6 => Status::Down,
        _ => Status::Unknown,
    };
    let broadcast = matches!(kind, Kind::Ethernet | Kind::Wireless);
    let several_v4 = adapter
        .unicast
        .iter()
        .filter(|(address, ..)| address.is_ipv4())
        .count()
        > 1;
    let addresses = adapter.unicast.iter().map(|&(address, scope_id, on_link)| {
        let mask_in = |rows: &[(u32, Ipv4Addr, Ipv4Addr)]| {
            rows.iter()
                .find(|(_, other, _)| address == *other)
                .map(|(_, _, mask)| *mask)
        };
        let (info, table) = (mask_in(&recorded.infos), mask_in(&recorded.table));
        let prefix = prefix_length(&Question {
            address,
            kind,
            status,
            on_link,
            list: &adapter.prefixes,
            info_mask: info,
        });
        let told_of = |api, mask: Ipv4Addr| Told {
            api,
            length: prefix_of_mask(mask.into()).filter(|_| !mask.is_unspecified()),
        };
        let mut told = vec![Told {
            api: Api::AdaptersAddresses,
            length: on_link.filter(|length| (1..=bits_of(address)).contains(length)),
        }];
        told.extend(info.map(|mask| told_of(Api::AdaptersInfo, mask)));
        told.extend(table.map(|mask| told_of(Api::IpAddrTable, mask)));

        let mut anomalies = Vec::new();
        match prefix.source {
            PrefixSource::Teredo => anomalies.push(Anomaly::Teredo),
            PrefixSource::Unknown => anomalies.push(Anomaly::UnknownPrefix),
            PrefixSource::Illegal => {
                anomalies.extend(on_link.map(|told| Anomaly::IllegalPrefix { told }))
            }
            _ => {}
        }
        if let IpAddr::V4(v4) = address {
            if v4.is_link_local() {
                anomalies.push(match several_v4 {
                    true => Anomaly::SelfAssignedBeside,
                    false => Anomaly::SelfAssigned,
                });
            }
            // GetAdaptersInfo leaves loopback out, which is as documented.
            if info.is_none() && kind != Kind::Loopback {
                anomalies.push(Anomaly::NotTold {
                    api: Api::AdaptersInfo,
                });
            }
            if table.is_none() {
                anomalies.push(Anomaly::NotTold {
                    api: Api::IpAddrTable,
                });
            }
            let masks = [info, table].into_iter().flatten();
            if masks
                .clone()
                .any(|mask| prefix_of_mask(mask.into()).is_none())
            {
                anomalies.push(Anomaly::ScatteredMask);
            }
            let mut lengths: Vec<u8> = told.iter().filter_map(|told| told.length).collect();
            lengths.dedup();
            if lengths.len() > 1 {
                anomalies.push(Anomaly::DifferentPrefixes);
            }
        }
        Address {
            address,
            prefix,
            scope: Scope::of(address),
            scope_id: Some(scope_id).filter(|id| address.is_ipv6() && *id != 0),
            broadcast: match (address, prefix.length) {
                (IpAddr::V4(v4), Some(length @ 1..=30)) if broadcast => {
                    Some(Ipv4Addr::from_bits(v4.to_bits() | u32::MAX >> length))
                }
                _ => None,
            },
            peer: None,
            told,
            anomalies,
        }
    });
    let mut anomalies = Vec::new();
    if status != Status::Up {
        anomalies.push(Anomaly::NotOperational);
    }
    if kind == Kind::PointToPoint {
        anomalies.push(Anomaly::PointToPoint);
    }
    Adapter {
        name: adapter.name.clone(),
        description: Some(adapter.description.clone()).filter(|text| !text.is_empty()),
        index: Some(adapter.index).filter(|index| *index != 0),
        kind,
        status,
        broadcast,
        multicast: adapter.flags & NO_MULTICAST == 0,
        addresses: addresses.collect(),
        anomalies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    /// An adapter without cable that has a static address: GetAdaptersAddresses has it beside a
    /// link-local one and says no prefix; GetAdaptersInfo has the mask or 0.0.0.0.
    fn without_cable(infos: Vec<(u32, Ipv4Addr, Ipv4Addr)>) -> Adapter {
        let recorded = Recorded {
            adapters: vec![RecordedAdapter {
                name: "Local Area Connection".to_owned(),
                index: 11,
                if_type: ETHERNET,
                oper_status: 2,
                unicast: vec![
                    (v4("169.254.80.9").into(), 0, None),
                    (v4("10.6.28.31").into(), 0, None),
                ],
                prefixes: vec![
                    (v4("224.0.0.0").into(), 4),
                    (v4("255.255.255.255").into(), 32),
                ],
                ..RecordedAdapter::default()
            }],
            infos,
            table: Vec::new(),
        };
        interpret(&recorded).remove(0)
    }

    #[test]
    fn an_adapter_without_cable_has_what_the_older_interface_knows() {
        let adapter = without_cable(vec![(11, v4("10.6.28.31"), v4("255.255.0.0"))]);
        assert_eq!(adapter.anomalies, [Anomaly::NotOperational]);
        let [own, fixed] = &adapter.addresses[..] else {
            panic!("{adapter:?}")
        };
        assert_eq!(
            (own.prefix.length, own.prefix.source),
            (Some(16), PrefixSource::LinkLocal)
        );
        assert!(own.anomalies.contains(&Anomaly::SelfAssignedBeside));
        assert_eq!(
            (fixed.prefix.length, fixed.prefix.source),
            (Some(16), PrefixSource::AdaptersInfo)
        );
        assert_eq!(fixed.broadcast, Some(v4("10.6.255.255")));
        let adapter = without_cable(vec![(11, v4("0.0.0.0"), v4("0.0.0.0"))]);
        assert_eq!(adapter.addresses[1].prefix.length, None);
        assert!(
            adapter.addresses[1]
                .anomalies
                .contains(&Anomaly::UnknownPrefix)
        );
        assert_eq!(adapter.addresses.len(), 2);
    }

    #[test]
    fn interfaces_that_disagree_are_told_of() {
        let recorded = Recorded {
            adapters: vec![RecordedAdapter {
                index: 7,
                if_type: ETHERNET,
                oper_status: 1,
                unicast: vec![(v4("10.0.0.7").into(), 0, Some(24))],
                ..RecordedAdapter::default()
            }],
            infos: vec![
                (7, v4("10.0.0.7"), v4("255.0.0.0")),
                (7, v4("10.0.0.8"), v4("255.255.255.0")),
            ],
            table: vec![(7, v4("10.0.0.8"), v4("255.255.255.0"))],
        };
        let adapter = interpret(&recorded).remove(0);
        assert_eq!(adapter.anomalies, []);
        let expected = [
            Anomaly::NotTold {
                api: Api::IpAddrTable,
            },
            Anomaly::DifferentPrefixes,
        ];
        assert_eq!(adapter.addresses[0].anomalies, expected);
        let only = [
            Anomaly::OnlyTold {
                api: Api::AdaptersInfo,
            },
            Anomaly::OnlyTold {
                api: Api::IpAddrTable,
            },
        ];
        assert_eq!(adapter.addresses[1].anomalies, only);
        assert_eq!(adapter.addresses[1].prefix.length, Some(24));
    }

    #[test]
    fn kinds_and_flags_are_those_of_the_headers() {
        let of = |if_type, tunnel_type, flags| {
            let adapter = RecordedAdapter {
                if_type,
                tunnel_type,
                flags,
                oper_status: 1,
                ..RecordedAdapter::default()
            };
            let recorded = Recorded {
                adapters: vec![adapter],
                ..Recorded::default()
            };
            let adapter = interpret(&recorded).remove(0);
            (adapter.kind, adapter.broadcast, adapter.multicast)
        };
        assert_eq!(of(6, 0, 0), (Kind::Ethernet, true, true));
        assert_eq!(of(71, 0, 0x10), (Kind::Wireless, true, false));
        assert_eq!(of(24, 0, 0), (Kind::Loopback, false, true));
        assert_eq!(of(23, 0, 0x10), (Kind::PointToPoint, false, false));
        assert_eq!(of(131, 14, 0x10), (Kind::Teredo, false, false));
        assert_eq!(of(131, 13, 0), (Kind::Tunnel, false, true));
        assert_eq!(of(1, 0, 0), (Kind::Other(Some(1)), false, true));
    }
}
