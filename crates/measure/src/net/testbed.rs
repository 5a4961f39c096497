//! Test bed with two ends on one machine: in two network namespaces with a virtual cable, or on the
//! loopback interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::namespaces::Namespaces;
use super::{Interface, NetError};

/// Side of a test bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Side of the source.
    Near,
    /// Side of the reflector.
    Far,
}

/// Address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub(super) fn of_address(address: SocketAddr) -> Family {
        match address {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        }
    }
}

/// Test bed: the location of both ends of a test.
///
/// Namespaces are created for the test bed. Only open files keep the namespaces alive, so the namespaces
/// vanish with the test bed, even if the program crashes. A socket belongs to the namespace in which it was
/// created. Therefore only the creation of sockets and programs must happen in the namespace.
#[derive(Debug)]
pub struct Testbed(Kind);

#[derive(Debug)]
enum Kind {
    Loopback,
    Namespaces(Namespaces),
}

impl Testbed {
    /// Returns a test bed with both ends on the loopback interface. The loopback interface has no queue,
    /// driver or interrupts.
    pub fn loopback() -> Testbed {
        Testbed(Kind::Loopback)
    }

    /// Creates a test bed whose ends are in two network namespaces. A `veth` pair connects the namespaces.
    ///
    /// # Errors
    /// Returns an error if the privilege or the program `ip` is missing, and on systems other than
    /// Linux.
    pub fn namespaces() -> Result<Testbed, NetError> {
        Ok(Testbed(Kind::Namespaces(Namespaces::new()?)))
    }

    /// Returns a description for the report.
    pub fn describe(&self) -> &'static str {
        match self.0 {
            Kind::Loopback => "loopback of this machine",
            Kind::Namespaces(_) => "two network namespaces of this machine, joined by a veth pair",
        }
    }

    /// Returns true if packets stay on the loopback interface.
    pub fn is_loopback(&self) -> bool {
        matches!(self.0, Kind::Loopback)
    }

    /// Returns the address of a side.
    pub fn address(&self, side: Side, family: Family) -> IpAddr {
        match (&self.0, family) {
            (Kind::Loopback, Family::V4) => Ipv4Addr::LOCALHOST.into(),
            (Kind::Loopback, Family::V6) => Ipv6Addr::LOCALHOST.into(),
            (Kind::Namespaces(_), _) => end_of_cable(side, family),
        }
    }

    /// Returns the address of a side as a member of a multicast group. PGM needs different addresses for the
    /// two sides. The loopback interface has several IPv4 addresses, but only one IPv6 address.
    ///
    /// # Errors
    /// Returns an error for IPv6 on the loopback interface.
    pub(super) fn member(&self, side: Side, group: SocketAddr) -> Result<IpAddr, NetError> {
        let family = Family::of_address(group);
        match (&self.0, family, side) {
            (Kind::Loopback, Family::V6, _) => Err(NetError::OneAddress),
            (Kind::Loopback, Family::V4, Side::Far) => Ok(Ipv4Addr::new(127, 0, 0, 2).into()),
            _ => Ok(self.address(side, family)),
        }
    }

    /// Runs `work` on a side. Sockets and programs that `work` creates belong to that side.
    ///
    /// # Errors
    /// Returns an error if the namespace cannot be entered.
    pub fn on<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        match &self.0 {
            Kind::Loopback => Ok(work()),
            Kind::Namespaces(namespaces) => namespaces.within(side, work),
        }
    }

    /// Returns the interface through which a side reaches the other side.
    ///
    /// # Errors
    /// Returns an error if the system does not list the interface.
    pub fn interface(&self, side: Side, family: Family) -> Result<Interface, NetError> {
        let address = self.address(side, family).to_string();
        self.on(side, || Interface::find(&address))?
    }
}

/// Returns the address of a side in the namespaces. The addresses are from ranges that no other
/// machine uses: the documentation range (RFC 5737) and a unique local range (RFC 4193).
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

    /// Returns a test bed with namespaces. If the privilege is missing, skips the test.
    fn namespaces() -> Option<Testbed> {
        let testbed = Testbed::namespaces();
        if let Err(error) = &testbed {
            testdata::skip(&error.to_string());
        }
        testbed.ok()
    }

    #[test]
    fn both_sides_reach_each_other_only() {
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
            far.set_read_timeout(Some(std::time::Duration::from_secs(60)))
                .expect("set");
            let (len, from) = far.recv_from(&mut buffer).expect("received");
            assert_eq!(&buffer[..len], b"hello");
            assert_eq!(from, near.local_addr().expect("an address"));
            assert!(
                UdpSocket::bind(at(Side::Near)).is_err(),
                "the address is not in this namespace"
            );
        }
    }

    #[test]
    fn interfaces_belong_to_the_side() {
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
