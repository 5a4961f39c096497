//! Joins an IPv6 group for a single source (RFC 3678), on Linux. Unsafe code is allowed here because no
//! library that this crate uses wraps this option. The code is sound for two reasons. The call gets one value
//! in the layout of `group_source_req` and the size of this value. The call does not keep the address of the
//! value.
#![allow(unsafe_code)]

use std::{
    io,
    net::{Ipv6Addr, UdpSocket},
    os::fd::AsRawFd,
};

use nix::libc;

/// C structure `group_source_req`.
#[repr(C)]
struct Request {
    interface: u32,
    group: Address,
    source: Address,
}

/// C structure `sockaddr_storage` of 128 bytes, which contains an IPv6 address.
#[repr(C, align(8))]
struct Address {
    v6: libc::sockaddr_in6,
    rest: [u8; 128 - size_of::<libc::sockaddr_in6>()],
}

impl Address {
    fn from_v6(address: Ipv6Addr) -> Address {
        Address {
            v6: libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: address.octets(),
                },
                sin6_scope_id: 0,
            },
            rest: [0; _],
        }
    }
}

/// Joins `group` on an interface to receive packets of one source. Further calls add sources.
pub(super) fn join_source(
    socket: &UdpSocket,
    interface: u32,
    group: Ipv6Addr,
    source: Ipv6Addr,
) -> io::Result<()> {
    let request = Request {
        interface,
        group: Address::from_v6(group),
        source: Address::from_v6(source),
    };
    // SAFETY: the request has the layout that the option requires, it outlives the call, and its
    // size is passed.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::MCAST_JOIN_SOURCE_GROUP,
            (&raw const request).cast(),
            size_of::<Request>() as libc::socklen_t,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
