//! Adapters on Windows, from GetAdaptersAddresses, GetAdaptersInfo and GetIpAddrTable.
//!
//! This module has unsafe code to call these functions. They fill a buffer with structures that point to each
//! other. Each call gets the size of its buffer. The buffer is aligned for 64 bits, and lives until all data is
//! copied from it. The code reads the pointers only if the call succeeded.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windows_sys::Win32::Foundation::{
    ERROR_BUFFER_OVERFLOW, ERROR_INSUFFICIENT_BUFFER, ERROR_NO_DATA,
};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GAA_FLAG_INCLUDE_PREFIX, GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER,
    GAA_FLAG_SKIP_MULTICAST, GetAdaptersAddresses, GetAdaptersInfo, GetIpAddrTable,
    IP_ADAPTER_ADDRESSES_LH, IP_ADAPTER_INFO, IP_ADDRESS_STRING, MIB_IPADDRROW_XP, MIB_IPADDRTABLE,
};
use windows_sys::Win32::Networking::WinSock::{
    AF_INET, AF_INET6, AF_UNSPEC, SOCKADDR, SOCKADDR_IN, SOCKADDR_IN6, SOCKET_ADDRESS,
};

use super::{Adapter, AdaptersError, RawResults, RecordedAdapter, interpret};

/// Lists the adapters of this machine.
///
/// # Errors
/// Returns an error if a system call fails.
pub fn adapters() -> Result<Vec<Adapter>, AdaptersError> {
    Ok(interpret(&record()?))
}

/// Calls the three Windows functions and returns their results.
///
/// # Errors
/// Returns an error if one of the calls fails.
pub fn record() -> Result<RawResults, AdaptersError> {
    Ok(RawResults {
        adapters: adapters_addresses()?,
        infos: adapters_info()?,
        table: ip_addr_table()?,
    })
}

/// Initial size of the buffer in bytes, as the documentation advises.
const FIRST_GUESS: u32 = 15_000;

/// Repeats a call until the buffer is large enough, because new adapters can appear between two calls.
/// Returns `None` if the system has no data.
fn fill_buffer(
    call: &'static str,
    mut fill: impl FnMut(*mut u64, &mut u32) -> u32,
) -> Result<Option<Vec<u64>>, AdaptersError> {
    let mut size = FIRST_GUESS;
    let mut status = ERROR_BUFFER_OVERFLOW;
    for _ in 0..8 {
        let mut buffer = vec![0u64; (size as usize).div_ceil(8)];
        status = fill(buffer.as_mut_ptr(), &mut size);
        match status {
            0 => return Ok(Some(buffer)),
            ERROR_NO_DATA => return Ok(None),
            ERROR_BUFFER_OVERFLOW | ERROR_INSUFFICIENT_BUFFER => {}
            _ => break,
        }
    }
    Err(AdaptersError {
        call,
        source: io::Error::from_raw_os_error(status.cast_signed()),
    })
}

fn adapters_addresses() -> Result<Vec<RecordedAdapter>, AdaptersError> {
    let flags = GAA_FLAG_INCLUDE_PREFIX
        | GAA_FLAG_SKIP_ANYCAST
        | GAA_FLAG_SKIP_MULTICAST
        | GAA_FLAG_SKIP_DNS_SERVER;
    // SAFETY: the call gets the size of the buffer, so the call does not write after the end of the buffer.
    let buffer = fill_buffer("GetAdaptersAddresses", |buffer, size| unsafe {
        GetAdaptersAddresses(
            u32::from(AF_UNSPEC),
            flags,
            std::ptr::null(),
            buffer.cast(),
            size,
        )
    })?;
    let Some(buffer) = buffer else {
        return Ok(Vec::new());
    };
    let mut adapters = Vec::new();
    let mut next = buffer.as_ptr().cast::<IP_ADAPTER_ADDRESSES_LH>();
    // SAFETY: the call succeeded, so the buffer has a list whose last pointer is null.
    while let Some(adapter) = unsafe { next.as_ref() } {
        // SAFETY: all variants of the unions are plain numbers.
        let (index, flags) = unsafe {
            (
                adapter.Anonymous1.Anonymous.IfIndex,
                adapter.Anonymous2.Flags,
            )
        };
        let mut recorded = RecordedAdapter {
            // SAFETY: the text is in the buffer and ends with 0.
            name: unsafe { wide(adapter.FriendlyName) },
            // SAFETY: the text is in the buffer and ends with 0.
            description: unsafe { wide(adapter.Description) },
            index: if index == 0 {
                adapter.Ipv6IfIndex
            } else {
                index
            },
            if_type: adapter.IfType,
            tunnel_type: adapter.TunnelType,
            oper_status: adapter.OperStatus,
            flags,
            ..RecordedAdapter::default()
        };
        let mut unicast = adapter.FirstUnicastAddress;
        // SAFETY: the list is in the buffer, and its last pointer is null.
        while let Some(one) = unsafe { unicast.as_ref() } {
            // SAFETY: the address is in the buffer.
            if let Some((address, scope_id)) = unsafe { socket_address(&one.Address) } {
                recorded
                    .unicast
                    .push((address, scope_id, Some(one.OnLinkPrefixLength)));
            }
            unicast = one.Next;
        }
        let mut prefix = adapter.FirstPrefix;
        // SAFETY: the list is in the buffer, and its last pointer is null.
        while let Some(one) = unsafe { prefix.as_ref() } {
            // SAFETY: the address is in the buffer.
            if let Some((address, _)) = unsafe { socket_address(&one.Address) } {
                recorded.prefixes.push((address, one.PrefixLength));
            }
            prefix = one.Next;
        }
        adapters.push(recorded);
        next = adapter.Next;
    }
    Ok(adapters)
}

fn adapters_info() -> Result<Vec<(u32, Ipv4Addr, Ipv4Addr)>, AdaptersError> {
    // SAFETY: the call gets the size of the buffer, so the call does not write after the end of the buffer.
    let buffer = fill_buffer("GetAdaptersInfo", |buffer, size| unsafe {
        GetAdaptersInfo(buffer.cast(), size)
    })?;
    let mut rows = Vec::new();
    let mut next = buffer.as_ref().map_or(std::ptr::null(), |buffer| {
        buffer.as_ptr().cast::<IP_ADAPTER_INFO>()
    });
    // SAFETY: the call succeeded, so the buffer has a list whose last pointer is null.
    while let Some(adapter) = unsafe { next.as_ref() } {
        let mut address: *const _ = &raw const adapter.IpAddressList;
        // SAFETY: the first address is part of the adapter, the others are in the buffer.
        while let Some(one) = unsafe { address.as_ref() } {
            if let (Some(ip), Some(mask)) = (dotted(&one.IpAddress), dotted(&one.IpMask)) {
                rows.push((adapter.Index, ip, mask));
            }
            address = one.Next;
        }
        next = adapter.Next;
    }
    Ok(rows)
}

fn ip_addr_table() -> Result<Vec<(u32, Ipv4Addr, Ipv4Addr)>, AdaptersError> {
    // SAFETY: the call gets the size of the buffer, so the call does not write after the end of the buffer.
    let buffer = fill_buffer("GetIpAddrTable", |buffer, size| unsafe {
        GetIpAddrTable(buffer.cast(), size, 0)
    })?;
    let Some(buffer) = buffer else {
        return Ok(Vec::new());
    };
    let table = buffer.as_ptr().cast::<MIB_IPADDRTABLE>();
    let room = (buffer.len() * 8 - size_of::<u32>()) / size_of::<MIB_IPADDRROW_XP>();
    // SAFETY: the call succeeded, so the buffer starts with the table.
    let count = unsafe { (*table).dwNumEntries as usize }.min(room);
    // SAFETY: the buffer has room for `count` rows after the field `dwNumEntries`.
    let rows = unsafe {
        let first = (&raw const (*table).table).cast::<MIB_IPADDRROW_XP>();
        std::slice::from_raw_parts(first, count)
    };
    let address = |bytes: u32| Ipv4Addr::from(bytes.to_ne_bytes());
    Ok(rows
        .iter()
        .map(|row| (row.dwIndex, address(row.dwAddr), address(row.dwMask)))
        .collect())
}

/// Decodes a text that ends with 0. Returns an empty text for a null pointer.
///
/// # Safety
/// The pointer must be null or point to a text that ends with 0.
unsafe fn wide(text: *const u16) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees a text that ends with 0.
    let length = (0..)
        .take_while(|&at| unsafe { *text.add(at) } != 0)
        .count();
    // SAFETY: the first `length` units of the text were read above.
    String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(text, length) })
}

/// Converts a socket address to an IP address and its scope id (0 for IPv4).
///
/// # Safety
/// The pointer in `address` must be null, or point to `iSockaddrLength` bytes.
unsafe fn socket_address(address: &SOCKET_ADDRESS) -> Option<(IpAddr, u32)> {
    // SAFETY: the caller guarantees the bytes; every address has a family.
    let family =
        unsafe { address.lpSockaddr.as_ref::<'_>() }.map(|any: &SOCKADDR| any.sa_family)?;
    let length = address.iSockaddrLength as usize;
    if family == AF_INET && length >= size_of::<SOCKADDR_IN>() {
        // SAFETY: family and length identify the type of the structure.
        let v4 = unsafe { address.lpSockaddr.cast::<SOCKADDR_IN>().read_unaligned() };
        // SAFETY: all variants of the union are the same 4 bytes.
        let bytes = unsafe { v4.sin_addr.S_un.S_addr }.to_ne_bytes();
        return Some((Ipv4Addr::from(bytes).into(), 0));
    }
    if family == AF_INET6 && length >= size_of::<SOCKADDR_IN6>() {
        // SAFETY: family and length identify the type of the structure.
        let v6 = unsafe { address.lpSockaddr.cast::<SOCKADDR_IN6>().read_unaligned() };
        // SAFETY: all variants of the unions are the same bytes.
        let (bytes, scope_id) = unsafe { (v6.sin6_addr.u.Byte, v6.Anonymous.sin6_scope_id) };
        return Some((Ipv6Addr::from(bytes).into(), scope_id));
    }
    None
}

/// Parses an address in dotted form.
fn dotted(text: &IP_ADDRESS_STRING) -> Option<Ipv4Addr> {
    let bytes = text.String.map(i8::cast_unsigned);
    let text = bytes.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
