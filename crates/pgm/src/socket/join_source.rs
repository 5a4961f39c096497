//! Joining a group of IPv6 of one source only (RFC 3678), on Linux.
//!
//! This file has unsafe code, because no library that we use wraps this option. It is sound because the call
//! is given one value, laid out as the system's `group_source_req`, and its size, and keeps no address.
#![allow(unsafe_code)]

use std::{
    io,
    net::{Ipv6Addr, UdpSocket},
    os::fd::AsRawFd,
};

use nix::libc;

/// `struct group_source_req`.
#[repr(C)]
struct Request {
    interface: u32,
    group: Address,
    source: Address,
}

/// `struct sockaddr_storage`, which has 128 bytes.
#[repr(C, align(8))]
struct Address {
    v6: libc::sockaddr_in6,
    rest: [u8; 128 - size_of::<libc::sockaddr_in6>()],
}

impl Address {
    fn of(address: Ipv6Addr) -> Address {
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

/// Joins `group` on the interface with this number, to hear `source`; further calls add sources.
pub(super) fn join_source(
    socket: &UdpSocket,
    interface: u32,
    group: Ipv6Addr,
    source: Ipv6Addr,
) -> io::Result<()> {
    let request = Request {
        interface,
        group: Address::of(group),
        source: Address::of(source),
    };
    // SAFETY: the request is laid out as the option wants it, lives longer than the call, and its size
    // is told.
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
