//! The adapters of the machine that runs the tests.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use tune::adapters::{Kind, Scope, Status, adapters};

#[test]
fn loopback_is_there_with_its_network() {
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

/// Only own addresses can be listened at.
#[test]
fn addresses_of_adapters_that_work_are_the_machines_own() {
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
