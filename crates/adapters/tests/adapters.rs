//! Checks the adapters of the machine that runs the tests.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use adapters::{Kind, Scope, Status, adapters};

#[test]
fn loopback_has_its_network() {
    let adapters = adapters().unwrap();
    let loopback = adapters
        .iter()
        .find(|adapter| adapter.kind == Kind::Loopback)
        .unwrap();
    assert_eq!(loopback.status, Status::Up);
    let localhost = IpAddr::from(Ipv4Addr::LOCALHOST);
    let address = loopback
        .addresses
        .iter()
        .find(|one| one.address == localhost)
        .unwrap();
    assert_eq!(
        (address.prefix.length, address.scope),
        (Some(8), Scope::Host)
    );
    assert!(!loopback.broadcast);
}

/// Binds a socket to each listed address. This succeeds only if the address belongs to this machine.
#[test]
fn sockets_can_be_bound_to_all_addresses() {
    for adapter in adapters().unwrap() {
        for one in adapter
            .addresses
            .iter()
            .filter(|_| adapter.status == Status::Up)
        {
            let address = match (one.address, one.scope_id) {
                (IpAddr::V6(v6), id) => {
                    std::net::SocketAddrV6::new(v6, 0, 0, id.unwrap_or(0)).into()
                }
                (v4, _) => (v4, 0).into(),
            };
            UdpSocket::bind::<std::net::SocketAddr>(address)
                .unwrap_or_else(|error| panic!("{}: {address}: {error}", adapter.name));
        }
    }
}
