//! Combination of the results of the three Windows functions into a list of adapters.

use std::net::{IpAddr, Ipv4Addr};

use super::prefix::{PrefixInput, bit_length, prefix_length, prefix_of_mask};
use super::{
    Adapter, Address, Anomaly, Api, ApiReport, Kind, Prefix, PrefixSource, RawResults,
    RecordedAdapter, Scope, Status,
};

// IANA interface types (ipifcons.h).

const ETHERNET: u32 = 6;
const PPP: u32 = 23;
const LOOPBACK: u32 = 24;
const WIRELESS: u32 = 71;
const TUNNEL: u32 = 131;

/// TUNNEL_TYPE_TEREDO (ifdef.h).
const TEREDO: i32 = 14;

/// IP_ADAPTER_NO_MULTICAST (iptypes.h).
const NO_MULTICAST: u32 = 0x10;

/// Rows of GetAdaptersInfo or GetIpAddrTable: interface index, address and mask.
type Rows = [(u32, Ipv4Addr, Ipv4Addr)];

/// Combines the results of the three Windows functions into adapters, and finds their anomalies.
pub fn interpret(recorded: &RawResults) -> Vec<Adapter> {
    let adapters = recorded.adapters.iter();
    let mut adapters: Vec<Adapter> = adapters
        .map(|adapter| convert_adapter(adapter, recorded))
        .collect();
    for (api, rows) in [
        (Api::AdaptersInfo, &recorded.infos),
        (Api::IpAddrTable, &recorded.table),
    ] {
        add_unknown_addresses(&mut adapters, recorded, api, rows);
    }
    adapters
}

/// Adds the addresses that the older function `api` lists, but GetAdaptersAddresses does not. Each row of
/// `rows` contains the interface index of the adapter to which its address belongs.
fn add_unknown_addresses(adapters: &mut [Adapter], recorded: &RawResults, api: Api, rows: &Rows) {
    let is_known = |address: Ipv4Addr| {
        let mut unicast = recorded.adapters.iter().flat_map(|one| &one.unicast);
        unicast.any(|(other, ..)| *other == address)
    };
    for (index, address, mask) in rows {
        if address.is_unspecified() || is_known(*address) {
            continue;
        }
        let mut adapters = adapters.iter_mut();
        let Some(adapter) = adapters.find(|adapter| adapter.index == Some(*index)) else {
            continue;
        };
        let length = prefix_of_mask((*mask).into()).filter(|length| *length > 0);
        let report = ApiReport { api, length };
        let anomaly = Anomaly::OnlyListed { api };
        let mut addresses = adapter.addresses.iter_mut();
        if let Some(known) = addresses.find(|one| one.address == *address) {
            known.reports.push(report);
            known.anomalies.push(anomaly);
            continue;
        }
        adapter.addresses.push(Address {
            address: (*address).into(),
            prefix: Prefix {
                length,
                source: match length {
                    Some(_) => PrefixSource::Mask,
                    None => PrefixSource::Unknown,
                },
            },
            scope: Scope::from_address((*address).into()),
            scope_id: None,
            broadcast: None,
            peer: None,
            reports: vec![report],
            anomalies: vec![anomaly],
        });
    }
}

fn convert_adapter(adapter: &RecordedAdapter, recorded: &RawResults) -> Adapter {
    let kind = match (adapter.if_type, adapter.tunnel_type) {
        (_, TEREDO) => Kind::Teredo,
        (ETHERNET, _) => Kind::Ethernet,
        (WIRELESS, _) => Kind::Wireless,
        (LOOPBACK, _) => Kind::Loopback,
        (PPP, _) => Kind::PointToPoint,
        (TUNNEL, _) => Kind::Tunnel,
        (other, _) => Kind::Other(Some(other)),
    };
    // The numbers are the values of the Windows enumeration IF_OPER_STATUS (ifdef.h).
    let status = match adapter.oper_status {
        1 => Status::Up,
        5 | 7 => Status::NoCarrier,
        2 | 3 | 6 => Status::Down,
        _ => Status::Unknown,
    };
    let mut anomalies = Vec::new();
    if status != Status::Up {
        anomalies.push(Anomaly::NotOperational);
    }
    if kind == Kind::PointToPoint {
        anomalies.push(Anomaly::PointToPoint);
    }
    let addresses = adapter.unicast.iter();
    Adapter {
        name: adapter.name.clone(),
        description: Some(adapter.description.clone()).filter(|text| !text.is_empty()),
        index: Some(adapter.index).filter(|index| *index != 0),
        kind,
        status,
        broadcast: can_broadcast(kind),
        multicast: adapter.flags & NO_MULTICAST == 0,
        addresses: addresses
            .map(|unicast| convert_address(adapter, unicast, kind, status, recorded))
            .collect(),
        anomalies,
    }
}

fn can_broadcast(kind: Kind) -> bool {
    matches!(kind, Kind::Ethernet | Kind::Wireless)
}

fn convert_address(
    adapter: &RecordedAdapter,
    &(address, scope_id, on_link): &(IpAddr, u32, Option<u8>),
    kind: Kind,
    status: Status,
    recorded: &RawResults,
) -> Address {
    let mask_in = |rows: &Rows| {
        let row = rows.iter().find(|(_, other, _)| address == *other);
        row.map(|(_, _, mask)| *mask)
    };
    let (info, table) = (mask_in(&recorded.infos), mask_in(&recorded.table));
    let prefix = prefix_length(&PrefixInput {
        address,
        kind,
        status,
        on_link,
        list: &adapter.prefixes,
        info_mask: info,
    });
    let of_mask = |api, mask: Ipv4Addr| ApiReport {
        api,
        length: prefix_of_mask(mask.into()).filter(|_| !mask.is_unspecified()),
    };
    let mut reports = vec![ApiReport {
        api: Api::AdaptersAddresses,
        length: on_link.filter(|length| (1..=bit_length(address)).contains(length)),
    }];
    reports.extend(info.map(|mask| of_mask(Api::AdaptersInfo, mask)));
    reports.extend(table.map(|mask| of_mask(Api::IpAddrTable, mask)));

    let mut anomalies = Vec::new();
    match prefix.source {
        PrefixSource::Teredo => anomalies.push(Anomaly::Teredo),
        PrefixSource::Unknown => anomalies.push(Anomaly::UnknownPrefix),
        PrefixSource::Illegal => {
            anomalies.extend(on_link.map(|length| Anomaly::IllegalPrefix { length }));
        }
        _ => {}
    }
    if let IpAddr::V4(v4) = address {
        if v4.is_link_local() {
            let mut unicast = adapter.unicast.iter();
            let has_others = unicast.any(|(other, ..)| other.is_ipv4() && *other != address);
            anomalies.push(if has_others {
                Anomaly::SelfAssignedBeside
            } else {
                Anomaly::SelfAssigned
            });
        }
        // The documentation of GetAdaptersInfo states that the function does not list loopback adapters.
        let info_is_missing = info.is_none() && kind != Kind::Loopback;
        for (is_missing, api) in [
            (info_is_missing, Api::AdaptersInfo),
            (table.is_none(), Api::IpAddrTable),
        ] {
            anomalies.extend(is_missing.then_some(Anomaly::NotListed { api }));
        }
        let mut masks = [info, table].into_iter().flatten();
        if masks.any(|mask| prefix_of_mask(mask.into()).is_none()) {
            anomalies.push(Anomaly::ScatteredMask);
        }
        let mut lengths: Vec<u8> = reports.iter().filter_map(|report| report.length).collect();
        lengths.dedup();
        if lengths.len() > 1 {
            anomalies.push(Anomaly::DifferentPrefixes);
        }
    }
    Address {
        address,
        prefix,
        scope: Scope::from_address(address),
        scope_id: Some(scope_id).filter(|id| address.is_ipv6() && *id != 0),
        broadcast: match (address, prefix.length) {
            (IpAddr::V4(v4), Some(length @ 1..=30)) if can_broadcast(kind) => {
                Some(Ipv4Addr::from_bits(v4.to_bits() | u32::MAX >> length))
            }
            _ => None,
        },
        peer: None,
        reports,
        anomalies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    /// Returns an adapter without cable that has a static address. GetAdaptersAddresses lists two addresses
    /// for this adapter: the static address and a link-local address, both without prefix. `infos` is the
    /// result of GetAdaptersInfo: the static address with its mask, or 0.0.0.0.
    fn without_cable(infos: Vec<(u32, Ipv4Addr, Ipv4Addr)>) -> Adapter {
        let recorded = RawResults {
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
    fn an_adapter_without_cable_uses_the_older_interface() {
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
    fn disagreeing_interfaces_are_anomalies() {
        let recorded = RawResults {
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
            Anomaly::NotListed {
                api: Api::IpAddrTable,
            },
            Anomaly::DifferentPrefixes,
        ];
        assert_eq!(adapter.addresses[0].anomalies, expected);
        let only = [
            Anomaly::OnlyListed {
                api: Api::AdaptersInfo,
            },
            Anomaly::OnlyListed {
                api: Api::IpAddrTable,
            },
        ];
        assert_eq!(adapter.addresses[1].anomalies, only);
        assert_eq!(adapter.addresses[1].prefix.length, Some(24));
    }

    #[test]
    fn kinds_and_flags_match_the_headers() {
        let adapter_kind = |if_type, tunnel_type, flags| {
            let adapter = RecordedAdapter {
                if_type,
                tunnel_type,
                flags,
                oper_status: 1,
                ..RecordedAdapter::default()
            };
            let recorded = RawResults {
                adapters: vec![adapter],
                ..RawResults::default()
            };
            let adapter = interpret(&recorded).remove(0);
            (adapter.kind, adapter.broadcast, adapter.multicast)
        };
        assert_eq!(adapter_kind(6, 0, 0), (Kind::Ethernet, true, true));
        assert_eq!(adapter_kind(71, 0, 0x10), (Kind::Wireless, true, false));
        assert_eq!(adapter_kind(24, 0, 0), (Kind::Loopback, false, true));
        assert_eq!(
            adapter_kind(23, 0, 0x10),
            (Kind::PointToPoint, false, false)
        );
        assert_eq!(adapter_kind(131, 14, 0x10), (Kind::Teredo, false, false));
        assert_eq!(adapter_kind(131, 13, 0), (Kind::Tunnel, false, true));
        assert_eq!(adapter_kind(1, 0, 0), (Kind::Other(Some(1)), false, true));
    }
}
