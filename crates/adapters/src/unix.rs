//! Adapters on Unix systems, from getifaddrs.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

use super::prefix::prefix_of_mask;
use super::{Adapter, AdaptersError, Address, Anomaly, Kind, Prefix, PrefixSource, Scope, Status};

/// Lists the adapters of this machine.
///
/// # Errors
/// Returns an error if the system call fails.
pub fn adapters() -> Result<Vec<Adapter>, AdaptersError> {
    let entries = getifaddrs().map_err(|error| AdaptersError {
        call: "getifaddrs",
        source: io::Error::from(error),
    })?;
    let mut adapters: Vec<Adapter> = Vec::new();
    for entry in entries {
        let place = adapters
            .iter()
            .position(|adapter| adapter.name == entry.interface_name);
        let place = place.unwrap_or_else(|| {
            adapters.push(new_adapter(&entry.interface_name, entry.flags));
            adapters.len() - 1
        });
        let Some((address, scope_id)) = entry.address.as_ref().and_then(ip) else {
            continue;
        };
        let mask = entry.netmask.as_ref().and_then(ip).map(|(mask, _)| mask);
        let length = mask.and_then(prefix_of_mask);
        let mut anomalies = Vec::new();
        if length.is_none() {
            anomalies.push(match mask {
                Some(_) => Anomaly::ScatteredMask,
                None => Anomaly::UnknownPrefix,
            });
        }
        if matches!(address, IpAddr::V4(v4) if v4.is_link_local()) {
            anomalies.push(Anomaly::SelfAssigned);
        }
        let other =
            |storage: &Option<SockaddrStorage>| storage.as_ref().and_then(ip).map(|(ip, _)| ip);
        adapters[place].addresses.push(Address {
            address,
            prefix: Prefix {
                length,
                source: match length {
                    Some(_) => PrefixSource::Mask,
                    None => PrefixSource::Unknown,
                },
            },
            scope: Scope::from_address(address),
            scope_id,
            broadcast: match other(&entry.broadcast) {
                // Linux reports 0.0.0.0 if no broadcast address is set.
                Some(IpAddr::V4(broadcast)) if broadcast != Ipv4Addr::UNSPECIFIED => {
                    Some(broadcast)
                }
                _ => None,
            },
            peer: other(&entry.destination).filter(|peer| *peer != address),
            reports: Vec::new(),
            anomalies,
        });
    }
    Ok(adapters)
}

fn new_adapter(name: &str, flags: InterfaceFlags) -> Adapter {
    let has = |flag| flags.contains(flag);
    let kind = if has(InterfaceFlags::IFF_LOOPBACK) {
        Kind::Loopback
    } else if has(InterfaceFlags::IFF_POINTOPOINT) {
        Kind::PointToPoint
    } else if has(InterfaceFlags::IFF_BROADCAST) {
        Kind::Ethernet
    } else {
        Kind::Other(None)
    };
    let status = match (
        has(InterfaceFlags::IFF_UP),
        has(InterfaceFlags::IFF_RUNNING),
    ) {
        (true, true) => Status::Up,
        (true, false) => Status::NoCarrier,
        (false, _) => Status::Down,
    };
    let mut anomalies = Vec::new();
    if status != Status::Up {
        anomalies.push(Anomaly::NotOperational);
    }
    if kind == Kind::PointToPoint {
        anomalies.push(Anomaly::PointToPoint);
    }
    Adapter {
        name: name.to_owned(),
        description: None,
        index: if_nametoindex(name).ok(),
        kind,
        status,
        broadcast: has(InterfaceFlags::IFF_BROADCAST),
        multicast: has(InterfaceFlags::IFF_MULTICAST),
        addresses: Vec::new(),
        anomalies,
    }
}

/// Converts a socket address to an IP address and its scope id. Returns `None` if the socket address is not
/// an IP address.
fn ip(storage: &SockaddrStorage) -> Option<(IpAddr, Option<u32>)> {
    if let Some(v4) = storage.as_sockaddr_in() {
        return Some((v4.ip().into(), None));
    }
    let v6 = storage.as_sockaddr_in6()?;
    Some((v6.ip().into(), Some(v6.scope_id()).filter(|id| *id != 0)))
}
