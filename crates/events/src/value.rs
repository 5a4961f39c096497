//! Decoded values.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etl::{Guid, le};

/// A decoded value. It borrows text and bytes from the payload if possible.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// Signed integer of any width.
    Int(i64),
    /// Unsigned integer of any width.
    UInt(u64),
    /// Unsigned integer that is shown in hexadecimal (hex types, status codes, error codes).
    Hex(u64),
    /// Address.
    Pointer(u64),
    /// Floating-point number of 32 or 64 bits.
    Float(f64),
    /// Boolean.
    Bool(bool),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// GUID.
    Guid(Guid),
    /// FILETIME: units of 100 ns since 1601-01-01 UTC.
    FileTime(u64),
    /// SYSTEMTIME: year, month, day of week, day, hour, minute, second, millisecond.
    SystemTime([u16; 8]),
    /// Bytes of a SID (revision, count, authority, sub-authorities).
    Sid(&'a [u8]),
    /// IPv4 address.
    Ipv4(Ipv4Addr),
    /// IPv6 address.
    Ipv6(Ipv6Addr),
    /// Number with one or more names from a value map. A name belongs to the number itself or to its set
    /// bits. Contains the number and the name or names.
    Named(u64, Arc<str>),
    /// Elements of an array.
    Array(Vec<Value<'a>>),
    /// Names and values of a struct's members, or of an integer's bit fields.
    Struct(Vec<(Arc<str>, Value<'a>)>),
}

impl Value<'_> {
    /// Returns the value as an unsigned number, or `None` if it is negative or not a number.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(value) => u64::try_from(*value).ok(),
            Value::UInt(value)
            | Value::Hex(value)
            | Value::Pointer(value)
            | Value::FileTime(value)
            | Value::Named(value, _) => Some(*value),
            Value::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// Returns the text of a text value, or the name of a named value. Returns `None` for other values.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Named(_, name) => Some(name),
            _ => None,
        }
    }
}

/// Formats values for people:
///
/// * Addresses and codes are hexadecimal with `0x`.
/// * FILETIMEs are in UTC as ISO 8601 with seven decimal places.
/// * SIDs look like `S-1-5-18`.
/// * Text is unchanged.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => Ok(()),
            Value::Int(value) => write!(f, "{value}"),
            Value::UInt(value) => write!(f, "{value}"),
            Value::Hex(value) | Value::Pointer(value) => write!(f, "{value:#x}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
            Value::Bytes(bytes) => write_bytes(f, bytes),
            Value::Guid(guid) => write!(f, "{guid}"),
            Value::FileTime(time) => write_file_time(f, *time),
            Value::SystemTime([year, month, _, day, hour, minute, second, millisecond]) => write!(
                f,
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}"
            ),
            Value::Sid(sid) => write_sid(f, sid),
            Value::Ipv4(address) => write!(f, "{address}"),
            Value::Ipv6(address) => write!(f, "{address}"),
            Value::Named(_, name) => f.write_str(name),
            Value::Array(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Struct(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str(if bytes.is_empty() { "" } else { "0x" })?;
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

fn write_file_time(f: &mut fmt::Formatter<'_>, time: u64) -> fmt::Result {
    const TICKS_PER_SECOND: u64 = 10_000_000;
    const DAYS_PER_400_YEARS: u64 = 146_097;
    const DAYS_PER_100_YEARS: u64 = 36_524;
    const DAYS_PER_4_YEARS: u64 = 1_461;
    let (seconds, ticks) = (time / TICKS_PER_SECOND, time % TICKS_PER_SECOND);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // FILETIME 0 is the start of a 400-year cycle of the Gregorian calendar. The last year of each 4-year
    // cycle is a leap year. The exception is the last year of a century: it is a leap year only if it is also
    // the last year of a 400-year cycle.
    let (cycles, day) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let centuries = (day / DAYS_PER_100_YEARS).min(3);
    let day = day - centuries * DAYS_PER_100_YEARS;
    let (fours, day) = (day / DAYS_PER_4_YEARS, day % DAYS_PER_4_YEARS);
    let years = (day / 365).min(3);
    let mut day = day - years * 365;
    let year = 1601 + cycles * 400 + centuries * 100 + fours * 4 + years;
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut month = 1;
    for length in [
        31,
        28 + u64::from(is_leap),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
    ] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(
        f,
        "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{ticks:07}Z",
        day + 1
    )
}

fn write_sid(f: &mut fmt::Formatter<'_>, sid: &[u8]) -> fmt::Result {
    let Some(([revision, count, authority @ ..], parts)) = sid.split_first_chunk::<8>() else {
        return write_bytes(f, sid);
    };
    if parts.len() != usize::from(*count) * 4 {
        return write_bytes(f, sid);
    }
    let authority = authority
        .iter()
        .fold(0, |value, b| value << 8 | u64::from(*b));
    // MS-DTYP 2.4.2.1 requires that an authority of 2^32 or more is written in hexadecimal.
    if authority >> 32 == 0 {
        write!(f, "S-{revision}-{authority}")?;
    } else {
        write!(f, "S-{revision}-{authority:#014x}")?;
    }
    let mut parts = parts.chunks_exact(4).filter_map(|part| le::u32(part, 0));
    parts.try_for_each(|part| write!(f, "-{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_a_person_writes_them() {
        for (value, text) in [
            (Value::Null, ""),
            (Value::Int(-3), "-3"),
            (Value::Hex(0xc000_0005), "0xc0000005"),
            (Value::Pointer(0), "0x0"),
            (Value::Float(1.5), "1.5"),
            (Value::Bool(true), "true"),
            (Value::Text("a\"b".into()), "a\"b"),
            (Value::Bytes(&[1, 0xab]), "0x01ab"),
            (Value::Bytes(&[]), ""),
            (Value::Ipv6(Ipv6Addr::LOCALHOST), "::1"),
            (Value::Named(5, "Waiting".into()), "Waiting"),
            (Value::Array(vec![Value::UInt(1), Value::UInt(2)]), "[1, 2]"),
            (Value::Struct(vec![("A".into(), Value::UInt(1))]), "{A: 1}"),
            (
                Value::SystemTime([2014, 2, 2, 18, 7, 5, 9, 4]),
                "2014-02-18T07:05:09.004",
            ),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn file_times_are_utc() {
        // 116444736000000000 is the FILETIME of the Unix epoch (MSDN, "Converting a time_t value to
        // a FILETIME").
        const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
        for (unix_seconds, ticks, text) in [
            (0, 0, "1970-01-01T00:00:00.0000000Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.0000001Z"),
            (1_709_251_199, 9_999_999, "2024-02-29T23:59:59.9999999Z"),
            (4_102_444_800, 0, "2100-01-01T00:00:00.0000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.0000000Z"),
        ] {
            let value = Value::FileTime(UNIX_EPOCH + unix_seconds * 10_000_000 + ticks);
            assert_eq!(value.to_string(), text);
        }
        assert_eq!(
            Value::FileTime(0).to_string(),
            "1601-01-01T00:00:00.0000000Z"
        );
        assert!(!Value::FileTime(u64::MAX).to_string().is_empty());
    }

    #[test]
    fn sids_are_written_as_windows_writes_them() {
        // The SIDs of LocalSystem and Administrators are well-known SIDs of MS-DTYP 2.4.2.4.
        let local_system = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert_eq!(Value::Sid(&local_system).to_string(), "S-1-5-18");
        let administrators = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
        assert_eq!(Value::Sid(&administrators).to_string(), "S-1-5-32-544");
        let large = [1, 0, 0, 1, 0, 0, 0, 5];
        assert_eq!(Value::Sid(&large).to_string(), "S-1-0x000100000005");
        assert_eq!(Value::Sid(&[1, 9]).to_string(), "0x0109");
    }
}
