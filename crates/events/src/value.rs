//! Decoded values.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etl::Guid;

/// One decoded value, borrowing text and bytes from the payload where it can.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// Signed integer of any width.
    Int(i64),
    /// Unsigned integer of any width.
    UInt(u64),
    /// Unsigned integer meant to be read in hexadecimal (hex types, statuses, error codes).
    Hex(u64),
    /// Address.
    Pointer(u64),
    /// Floating-point number of either width.
    Float(f64),
    /// Boolean.
    Bool(bool),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// GUID.
    Guid(Guid),
    /// FILETIME: 100 ns since 1601-01-01 UTC.
    FileTime(u64),
    /// SYSTEMTIME: year, month, day of week, day, hour, minute, second, millisecond.
    SystemTime([u16; 8]),
    /// SID: its bytes (revision, count, authority, sub-authorities).
    Sid(&'a [u8]),
    /// IPv4 address.
    Ipv4(Ipv4Addr),
    /// IPv6 address.
    Ipv6(Ipv6Addr),
    /// Number with its name in a value map, or the names of its set bits.
    Named(u64, Arc<str>),
    /// Elements of an array.
    Array(Vec<Value<'a>>),
    /// Members of a struct (or named bits of an integer).
    Struct(Vec<(Arc<str>, Value<'a>)>),
}
