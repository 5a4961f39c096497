//! Network interfaces, by name or address.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use super::{SocketError, error::Doing};

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
    addresses: Vec<IpAddr>,
}

impl Interface {
    /// All interfaces that have an address, by their numbers.
    ///
    /// # Errors
    /// When the system does not list them.
    pub fn list() -> Result<Vec<Interface>, SocketError> {
        let found = if_addrs::get_if_addrs().doing(|| "list network interfaces".to_owned())?;
        let mut interfaces: BTreeMap<u32, Interface> = BTreeMap::new();
        for one in found {
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

    /// The interface of a name (`eth0`) or an address (`10.0.0.1`), which is then the one that is
    /// used. Any address of 127.0.0.0/8 is the loopback interface's.
    ///
    /// # Errors
    /// When there is no such interface; what there is, is said.
    pub fn find(asked: &str) -> Result<Interface, SocketError> {
        let interfaces = Self::list()?;
        let address: Option<IpAddr> = asked.parse().ok();
        let has = |interface: &&Interface| match address {
            Some(IpAddr::V4(v4)) if v4.is_loopback() => interface
                .addresses
                .contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Some(address) => interface.addresses.contains(&address),
            None => interface.name == asked,
        };
        match interfaces.iter().find(has) {
            Some(interface) => Ok(Interface {
                addresses: address.map_or_else(|| interface.addresses.clone(), |a| vec![a]),
                ..interface.clone()
            }),
            None => Err(SocketError::NoInterface {
                asked: asked.to_owned(),
                known: interfaces
                    .iter()
                    .map(|interface| format!("{} {:?}", interface.name, interface.addresses))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The system's number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The first address of a group's family.
    pub fn address_for(&self, group: IpAddr) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().copied();
        addresses.find(|address| address.is_ipv4() == group.is_ipv4())
    }
}
