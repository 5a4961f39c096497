//! Two ends on one machine: in two network namespaces joined by a virtual cable, or on the loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::namespaces::Namespaces;
use super::{Interface, NetError};

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The source's.
    Near,
    /// The reflector's.
    Far,
}

/// Which addresses are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// That of an address.
    pub(super) fn of(address: SocketAddr) -> Family {
        match address {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        }
    }
}

/// Where both ends of a test are.
///
/// Namespaces are made for it and vanish with it, and with the program however that ends: nothing
/// holds them but its open files. A socket belongs to the namespace that it was made in, so only
/// sockets and other programs need to be made there.
#[derive(Debug)]
pub struct Testbed(Kind);

#[derive(Debug)]
enum Kind {
    Loopback,
    Namespaces(Namespaces),
}

impl Testbed {
    /// Both ends on the loopback, which has no queue, no driver and no interrupts.
    pub fn loopback() -> Testbed {
        Testbed(Kind::Loopback)
    }

    /// Each end in a network namespace of its own, joined by a `veth` pair.
    ///
    /// # Errors
    /// Without the rights to make them, without the program `ip`, and anywhere but on Linux.
    pub fn namespaces() -> Result<Testbed, NetError> {
        Ok(Testbed(Kind::Namespaces(Namespaces::new()?)))
    }

    /// What it is, in words.
    pub fn describe(&self) -> &'static str {
        match self.0 {
            Kind::Loopback => "loopback of this machine",
            Kind::Namespaces(_) => "two network namespaces of this machine, joined by a veth pair",
        }
    }

    /// Whether packets stay within the loopback.
    pub fn is_loopback(&self) -> bool {
        matches!(self.0, Kind::Loopback)
    }

    /// The address of a side.
    pub fn address(&self, side: Side, family: Family) -> IpAddr {
        match (&self.0, family) {
            (Kind::Loopback, Family::V4) => Ipv4Addr::LOCALHOST.into(),
            (Kind::Loopback, Family::V6) => Ipv6Addr::LOCALHOST.into(),
            (Kind::Namespaces(_), _) => end_of_cable(side, family),
        }
    }

    /// The address of a side as a member of a group, of which PGM needs one each; the loopback has
    /// many over IPv4.
    ///
    /// # Errors
    /// Over IPv6 on the loopback.
    pub(super) fn member(&self, side: Side, group: SocketAddr) -> Result<IpAddr, NetError> {
        let family = Family::of(group);
        match (&self.0, family, side) {
            (Kind::Loopback, Family::V6, _) => Err(NetError::OneAddress),
            (Kind::Loopback, Family::V4, Side::Far) => Ok(Ipv4Addr::new(127, 0, 0, 2).into()),
            _ => Ok(self.address(side, family)),
        }
    }

    /// Does something on a side: whatever sockets and programs it makes are there.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn on<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        match &self.0 {
            Kind::Loopback => Ok(work()),
            Kind::Namespaces(namespaces) => namespaces.within(side, work),
        }
    }

    /// The interface of a side through which the other is reached.
    ///
    /// # Errors
    /// When the system does not list it.
    pub fn interface(&self, side: Side, family: Family) -> Result<Interface, NetError> {
        let address = self.address(side, family).to_string();
        self.on(side, || Interface::find(&address))?
    }
}

/// The addresses of two namespaces, which nobody else has: for documentation (RFC 5737), and unique
/// local ones (RFC 4193).
pub(super) fn end_of_cable(side: Side, family: Family) -> IpAddr {
    let host = match side {
        Side::Near => 1,
        Side::Far => 2,
    };
    match family {
        Family::V4 => Ipv4Addr::new(192, 0, 2, host).into(),
        Family::V6 => Ipv6Addr::new(0xfd6c, 0x6c61, 0x6200, 0, 0, 0, 0, host.into()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// Says so and gives none where the rights are missing.
    fn namespaces() -> Option<Testbed> {
        let testbed = Testbed::namespaces();
        if let Err(error) = &testbed {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "left out: {error}");
        }
        testbed.ok()
    }

    #[test]
    fn the_two_sides_reach_each_other_and_not_this_machine() {
        let Some(testbed) = namespaces() else { return };
        for family in [Family::V4, Family::V6] {
            let at = |side| (testbed.address(side, family), 0);
            let bind = |side| {
                let socket = testbed.on(side, || UdpSocket::bind(at(side)));
                socket.expect("entered").expect("bound")
            };
            let (near, far) = (bind(Side::Near), bind(Side::Far));
            let to = far.local_addr().expect("an address");
            near.send_to(b"hello", to).expect("sent");
            let mut buffer = [0; 16];
            far.set_read_timeout(Some(std::time::Duration::from_secs(10)))
                .expect("set");
            let (len, from) = far.recv_from(&mut buffer).expect("received");
            assert_eq!(&buffer[..len], b"hello");
            assert_eq!(from, near.local_addr().expect("an address"));
            assert!(
                UdpSocket::bind(at(Side::Near)).is_err(),
                "not of this namespace"
            );
        }
    }

    #[test]
    fn interfaces_are_those_of_the_side() {
        let Some(testbed) = namespaces() else { return };
        let near = testbed
            .interface(Side::Near, Family::V4)
            .expect("there is one");
        let far = testbed
            .interface(Side::Far, Family::V4)
            .expect("there is one");
        assert_ne!(near.name, far.name);
        assert!(!near.is_loopback());
        near.ipv6_index().expect("it has IPv6 too");
    }
}
