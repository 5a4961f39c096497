//! Interfaces by name, index or address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::NetError;

/// An interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number; none if the system does not say.
    pub index: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    /// The interface that has this name, index or address.
    ///
    /// # Errors
    /// When there is none, naming those that there are, or the system does not list them.
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

    /// Every interface that has an address.
    fn all() -> Result<Vec<Interface>, NetError> {
        let listed =
            if_addrs::get_if_addrs().map_err(NetError::while_doing("listing the interfaces"))?;
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

    /// Its first IPv4 address, by which IPv4 multicast names an interface.
    ///
    /// # Errors
    /// When it has none.
    pub fn ipv4(&self) -> Result<Ipv4Addr, NetError> {
        self.addresses
            .iter()
            .find_map(|address| match address {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            })
            .ok_or_else(|| self.lacks(4))
    }

    /// Its first IPv6 address.
    ///
    /// # Errors
    /// When it has none.
    pub fn ipv6(&self) -> Result<Ipv6Addr, NetError> {
        self.addresses
            .iter()
            .find_map(|address| match address {
                IpAddr::V6(address) => Some(*address),
                IpAddr::V4(_) => None,
            })
            .ok_or_else(|| self.lacks(6))
    }

    /// Its first address of the family of another.
    pub(super) fn address(&self, of: IpAddr) -> Result<IpAddr, NetError> {
        match of {
            IpAddr::V4(_) => self.ipv4().map(IpAddr::V4),
            IpAddr::V6(_) => self.ipv6().map(IpAddr::V6),
        }
    }

    /// Its number, by which IPv6 multicast names an interface.
    ///
    /// # Errors
    /// When it has no IPv6 address or the system gave it no number.
    pub fn ipv6_index(&self) -> Result<u32, NetError> {
        self.index
            .filter(|_| self.ipv6().is_ok())
            .ok_or_else(|| self.lacks(6))
    }

    /// Whether it leads to this machine itself.
    pub fn is_loopback(&self) -> bool {
        self.addresses.iter().any(IpAddr::is_loopback)
    }

    fn lacks(&self, version: u8) -> NetError {
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
    fn an_unknown_one_is_refused_with_those_that_there_are() {
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
