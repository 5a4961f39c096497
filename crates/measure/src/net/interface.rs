//! Interfaces by name, index or address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::NetError;

/// A network interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface. `None` if the system does not report it.
    pub index: Option<u32>,
    /// Addresses of the interface.
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    /// Returns the interface with this name, index or address.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, with a list of the existing interfaces. Also
    /// returns an error if the system cannot list its interfaces.
    pub fn find(asked: &str) -> Result<Interface, NetError> {
        let all = Interface::all()?;
        let address: Option<IpAddr> = asked.parse().ok();
        let number: Option<u32> = asked.parse().ok();
        let position = all.iter().position(|interface| {
            interface.name == asked
                || number.is_some() && interface.index == number
                || address.is_some_and(|address| interface.addresses.contains(&address))
        });
        match position.and_then(|position| all.get(position)) {
            Some(interface) => Ok(interface.clone()),
            None => Err(NetError::UnknownInterface {
                asked: asked.to_owned(),
                known: all
                    .iter()
                    .map(|interface| interface.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Returns all interfaces that have an address.
    fn all() -> Result<Vec<Interface>, NetError> {
        let listed =
            if_addrs::get_if_addrs().map_err(NetError::context("listing the interfaces"))?;
        let mut all: Vec<Interface> = Vec::new();
        for entry in listed {
            let address = entry.ip();
            match all.iter_mut().find(|known| known.name == entry.name) {
                Some(known) => known.addresses.push(address),
                None => all.push(Interface {
                    index: entry.index,
                    addresses: vec![address],
                    name: entry.name,
                }),
            }
        }
        Ok(all)
    }

    /// Returns the first IPv4 address, which identifies the interface for IPv4 multicast.
    ///
    /// # Errors
    /// Returns an error if the interface has no IPv4 address.
    pub fn ipv4(&self) -> Result<Ipv4Addr, NetError> {
        self.addresses
            .iter()
            .find_map(|address| match address {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            })
            .ok_or_else(|| self.no_address(4))
    }

    /// Returns the first IPv6 address.
    ///
    /// # Errors
    /// Returns an error if the interface has no IPv6 address.
    pub fn ipv6(&self) -> Result<Ipv6Addr, NetError> {
        self.addresses
            .iter()
            .find_map(|address| match address {
                IpAddr::V6(address) => Some(*address),
                IpAddr::V4(_) => None,
            })
            .ok_or_else(|| self.no_address(6))
    }

    /// Returns the first address of the same family as the address `of`.
    pub(super) fn address(&self, address: IpAddr) -> Result<IpAddr, NetError> {
        match address {
            IpAddr::V4(_) => self.ipv4().map(IpAddr::V4),
            IpAddr::V6(_) => self.ipv6().map(IpAddr::V6),
        }
    }

    /// Returns the index, which identifies the interface for IPv6 multicast.
    ///
    /// # Errors
    /// Returns an error if the interface has no IPv6 address, or if the system reports no index.
    pub fn ipv6_index(&self) -> Result<u32, NetError> {
        self.index
            .filter(|_| self.ipv6().is_ok())
            .ok_or_else(|| self.no_address(6))
    }

    /// Returns true if this is the loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.addresses.iter().any(IpAddr::is_loopback)
    }

    fn no_address(&self, version: u8) -> NetError {
        NetError::NoAddress {
            interface: self.name.clone(),
            version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_found_by_address_name_and_number() {
        let by_address = Interface::find("127.0.0.1").expect("every machine has it");
        assert!(by_address.is_loopback());
        assert_eq!(
            Interface::find(&by_address.name).expect("by name"),
            by_address
        );
        if let Some(index) = by_address.index {
            assert_eq!(
                Interface::find(&index.to_string()).expect("by number"),
                by_address
            );
        }
        assert_eq!(by_address.ipv4().expect("an address"), Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn an_unknown_interface_is_refused_with_a_list() {
        let known = Interface::find("127.0.0.1")
            .expect("every machine has it")
            .name;
        let error = Interface::find("nosuch0")
            .expect_err("there is none")
            .to_string();
        assert!(
            error.contains("`nosuch0`") && error.contains(&known),
            "{error}"
        );
    }
}
