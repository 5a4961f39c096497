//! Network interfaces, and their search by name or address.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use super::{SocketError, error::Context};

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
    addresses: Vec<IpAddr>,
}

impl Interface {
    /// Returns all interfaces that have an address, sorted by index.
    ///
    /// # Errors
    /// Returns an error if the system does not list its interfaces.
    pub fn list() -> Result<Vec<Interface>, SocketError> {
        let addresses =
            if_addrs::get_if_addrs().context(|| "list network interfaces".to_owned())?;
        let mut interfaces: BTreeMap<u32, Interface> = BTreeMap::new();
        for one in addresses {
            let index = one.index.unwrap_or(0);
            let interface = interfaces.entry(index).or_insert_with(|| Interface {
                name: one.name.clone(),
                index,
                addresses: Vec::new(),
            });
            interface.addresses.push(one.ip());
        }
        Ok(interfaces.into_values().collect())
    }

    /// Returns the interface with the given name (`eth0`) or address (`10.0.0.1`). If an address is
    /// given, the result has only this address. All addresses of 127.0.0.0/8 belong to the loopback
    /// interface.
    ///
    /// # Errors
    /// Returns an error if there is no such interface. The error lists the existing interfaces.
    pub fn find(requested: &str) -> Result<Interface, SocketError> {
        let interfaces = Self::list()?;
        let address: Option<IpAddr> = requested.parse().ok();
        let has = |interface: &&Interface| match address {
            Some(IpAddr::V4(v4)) if v4.is_loopback() => interface
                .addresses
                .contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Some(address) => interface.addresses.contains(&address),
            None => interface.name == requested,
        };
        match interfaces.iter().find(has) {
            Some(interface) => Ok(Interface {
                addresses: address.map_or_else(|| interface.addresses.clone(), |a| vec![a]),
                ..interface.clone()
            }),
            None => Err(SocketError::NoInterface {
                requested: requested.to_owned(),
                known: interfaces
                    .iter()
                    .map(|interface| format!("{} {:?}", interface.name, interface.addresses))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the index of the interface in the system.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the interface's first address in the address family (IPv4 or IPv6) of the group.
    pub fn address_for(&self, group: IpAddr) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().copied();
        addresses.find(|address| address.is_ipv4() == group.is_ipv4())
    }
}
