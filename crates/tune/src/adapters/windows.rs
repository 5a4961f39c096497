//! Adapters by GetAdaptersAddresses, GetAdaptersInfo and GetIpAddrTable.
//!
//! Its allowance of unsafe code is for these calls, which fill a buffer with structures that point to
//! each other. The buffer is as large as the system asked for and aligned for 64 bits, lives until all was
//! copied out of it, and is read only along the pointers that the system wrote after it said that the call
//! went well.

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

use super::{Adapter, AdaptersError, Recorded, RecordedAdapter, interpret};

/// The machine's adapters.
///
/// # Errors
/// If the system does not tell.
pub fn adapters() -> Result<Vec<Adapter>, AdaptersError> {
    Ok(interpret(&record()?))
}

/// What the system's interfaces say.
///
/// # Errors
/// If one of them fails.
pub fn record() -> Result<Recorded, AdaptersError> {
    Ok(Recorded {
        adapters: adapters_addresses()?,
        infos: adapters_info()?,
        table: ip_addr_table()?,
    })
}

/// The documentation advises a first guess of 15 KB.
const FIRST_GUESS: u32 = 15_000;

/// Calls until the buffer is large enough; adapters may appear between two calls. The buffer, or none
/// where there is nothing to tell.
fn filled(
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
        error: io::Error::from_raw_os_error(status.cast_signed()),
    })
}

fn adapters_addresses() -> Result<Vec<RecordedAdapter>, AdaptersError> {
    let flags = GAA_FLAG_INCLUDE_PREFIX
        | GAA_FLAG_SKIP_ANYCAST
        | GAA_FLAG_SKIP_MULTICAST
        | GAA_FLAG_SKIP_DNS_SERVER;
    // SAFETY: the buffer has the size that is handed over with it.
    let buffer = filled("GetAdaptersAddresses", |buffer, size| unsafe {
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
    // SAFETY: the call went well, so the buffer holds a list that ends with null.
    while let Some(adapter) = unsafe { next.as_ref() } {
        // SAFETY: both halves of the unions are plain numbers.
        let (index, flags) = unsafe {
            (
                adapter.Anonymous1.Anonymous.IfIndex,
                adapter.Anonymous2.Flags,
            )
        };
        let mut recorded = RecordedAdapter {
            // SAFETY: texts of the buffer, ended by 0.
            name: unsafe { wide(adapter.FriendlyName) },
            // SAFETY: the same.
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
        // SAFETY: a list in the buffer that ends with null.
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
        // SAFETY: a list in the buffer that ends with null.
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
    // SAFETY: the buffer has the size that is handed over with it.
    let buffer = filled("GetAdaptersInfo", |buffer, size| unsafe {
        GetAdaptersInfo(buffer.cast(), size)
    })?;
    let mut rows = Vec::new();
    let mut next = buffer.as_ref().map_or(std::ptr::null(), |buffer| {
        buffer.as_ptr().cast::<IP_ADAPTER_INFO>()
    });
    // SAFETY: the call went well, so the buffer holds a list that ends with null.
    while let Some(adapter) = unsafe { next.as_ref() } {
        let mut address: *const _ = &raw const adapter.IpAddressList;
        // SAFETY: the first is part of the adapter, others are in the buffer.
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
    // SAFETY: the buffer has the size that is handed over with it.
    let buffer = filled("GetIpAddrTable", |buffer, size| unsafe {
        GetIpAddrTable(buffer.cast(), size, 0)
    })?;
    let Some(buffer) = buffer else {
        return Ok(Vec::new());
    };
    let table = buffer.as_ptr().cast::<MIB_IPADDRTABLE>();
    let room = (buffer.len() * 8 - size_of::<u32>()) / size_of::<MIB_IPADDRROW_XP>();
    // SAFETY: the call went well, so the table begins the buffer.
    let count = unsafe { (*table).dwNumEntries as usize }.min(room);
    // SAFETY: there is room for so many rows after the count.
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

/// A text that ends with 0, or nothing.
///
/// # Safety
/// It must point to such a text or be null.
unsafe fn wide(text: *const u16) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as promised.
    let length = (0..)
        .take_while(|&at| unsafe { *text.add(at) } != 0)
        .count();
    // SAFETY: so many were just read.
    String::from_utf16_lossy(unsafe { std::slice::from_raw_parts(text, length) })
}

/// An address and its scope id.
///
/// # Safety
/// It must point to as many bytes as it says, or be null.
unsafe fn socket_address(address: &SOCKET_ADDRESS) -> Option<(IpAddr, u32)> {
    // SAFETY: as promised; every address has a family.
    let family =
        unsafe { address.lpSockaddr.as_ref::<'_>() }.map(|any: &SOCKADDR| any.sa_family)?;
    let length = address.iSockaddrLength as usize;
    if family == AF_INET && length >= size_of::<SOCKADDR_IN>() {
        // SAFETY: it is one by its family and length.
        let v4 = unsafe { address.lpSockaddr.cast::<SOCKADDR_IN>().read_unaligned() };
        // SAFETY: all parts of the union are the same 4 bytes.
        let bytes = unsafe { v4.sin_addr.S_un.S_addr }.to_ne_bytes();
        return Some((Ipv4Addr::from(bytes).into(), 0));
    }
    if family == AF_INET6 && length >= size_of::<SOCKADDR_IN6>() {
        // SAFETY: it is one by its family and length.
        let v6 = unsafe { address.lpSockaddr.cast::<SOCKADDR_IN6>().read_unaligned() };
        // SAFETY: all parts of the unions are the same bytes.
        let (bytes, scope_id) = unsafe { (v6.sin6_addr.u.Byte, v6.Anonymous.sin6_scope_id) };
        return Some((Ipv6Addr::from(bytes).into(), scope_id));
    }
    None
}

/// An address in dotted form; none if it is not.
fn dotted(text: &IP_ADDRESS_STRING) -> Option<Ipv4Addr> {
    let bytes = text.String.map(i8::cast_unsigned);
    let text = bytes.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
