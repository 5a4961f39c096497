//! Network-layer addresses (NLAs) with their family.

use std::net::IpAddr;

use super::{WireError, cursor::Cursor};

const IPV4: u16 = 1;
const IPV6: u16 = 2;

/// Returns the number that packets use for the family of an address.
pub(super) fn family(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(_) => IPV4,
        IpAddr::V6(_) => IPV6,
    }
}

/// Reads an address family, the 16-bit field after it, and the address. Returns the address and the 16-bit
/// field. In most packets, the field is reserved. In the other packets, the meaning of the field depends on
/// the packet type.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<(IpAddr, u16), WireError> {
    let offset = cursor.offset();
    let family = cursor.u16("an address family")?;
    let field = cursor.u16("the field after an address family")?;
    let address = match family {
        IPV4 => IpAddr::from(cursor.array::<4>("an IPv4 address")?),
        IPV6 => IpAddr::from(cursor.array::<16>("an IPv6 address")?),
        found => return Err(WireError::AddressFamily { offset, found }),
    };
    Ok((address, field))
}

/// Writes an address family, a 16-bit field and the address, in the layout that [`read`] expects.
pub(super) fn write(address: IpAddr, field: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&family(address).to_be_bytes());
    out.extend_from_slice(&field.to_be_bytes());
    write_bare(address, out);
}

/// Writes an address without its family.
pub(super) fn write_bare(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}
