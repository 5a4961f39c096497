//! Formatting of the values of WPP arguments.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::format::Spec;
use super::item::{Base, Item};
use crate::{Value, status};

impl Item {
    /// Appends `value` in the format `spec`. `value` must be a result of [`Item::take`] of the same item.
    pub(super) fn write(
        &self,
        value: &Value<'_>,
        spec: &Spec,
        pointer_size: usize,
        out: &mut String,
    ) {
        match (self, value, spec.conversion) {
            (_, Value::Float(number), _) => spec.write_float(*number, out),
            (_, _, 's' | 'S') => spec.write_text(&self.words(value, pointer_size), out),
            _ => match integer(value) {
                Some(number) => spec.write_integer(number, self.bytes(pointer_size), out),
                None => spec.write_text(&self.words(value, pointer_size), out),
            },
        }
    }

    /// Returns the size of an integer type in bytes.
    fn bytes(&self, pointer_size: usize) -> u8 {
        match self {
            Item::Integer { bytes, .. } | Item::List { bytes, .. } | Item::Set { bytes, .. } => {
                *bytes
            }
            Item::Port => 2,
            Item::Timestamp | Item::WaitTime | Item::TimeDelta => 8,
            Item::Pointer if pointer_size != 4 => 8,
            _ => 4,
        }
    }

    /// Formats the value like Microsoft's tool `tracefmt`, if the format of `tracefmt` is known. There are
    /// intentional differences. Times are in UTC. A SID is not looked up in this machine's accounts. The
    /// bytes of a hex dump are shown. NDIS codes stay numbers.
    pub(super) fn words<'v>(&self, value: &'v Value<'_>, pointer_size: usize) -> Cow<'v, str> {
        let owned = match (self, value) {
            (_, Value::Text(text)) => return Cow::Borrowed(text),
            (Item::List { .. }, Value::Named(index, name)) => format!("{index:#010x}({name})"),
            (Item::List { .. }, Value::UInt(index)) => format!("{index:#010x}"),
            (Item::Set { .. }, Value::Named(_, names)) => format!("[{names}]"),
            (Item::Set { .. }, Value::Hex(0)) => "[]".to_owned(),
            (Item::Set { .. }, Value::Hex(bits)) => format!("[{bits:#x}]"),
            (Item::Flags(_), Value::Named(bits, names)) => format!("{names}({bits:#x})"),
            (Item::Enum(_), Value::Named(_, name)) => return Cow::Borrowed(name),
            (Item::Enum(_), Value::UInt(number)) | (Item::Flags(_), Value::Hex(number)) => {
                format!("{number:#x}")
            }
            (
                Item::Integer {
                    base: Base::Octal, ..
                },
                Value::UInt(number),
            ) => format!("{number:o}"),
            (Item::Integer { .. }, Value::Hex(number)) => format!("{number:x}"),
            (Item::TimeDelta | Item::WaitTime, Value::Int(ticks)) => seconds(*ticks),
            (Item::NtStatus, Value::Hex(code)) => coded(*code, status::ntstatus_name),
            (Item::HResult, Value::Hex(code)) => coded(*code, status::hresult_name),
            (Item::Win32Error, Value::UInt(code)) => {
                let name = u32::try_from(*code).ok().and_then(status::win32_error_name);
                name.map_or_else(|| code.to_string(), |name| format!("{code}({name})"))
            }
            (_, Value::Int(number)) => number.to_string(),
            (_, Value::UInt(number)) => number.to_string(),
            (_, Value::Hex(code)) => format!("{code:#010x}"),
            (_, Value::Pointer(address)) => {
                format!(
                    "{address:0width$X}",
                    width = if pointer_size == 4 { 8 } else { 16 }
                )
            }
            (_, Value::Guid(guid)) => guid.to_string(),
            (_, Value::Ipv4(address)) => address.to_string(),
            (_, Value::Ipv6(address)) => address.to_string(),
            (_, Value::FileTime(time)) => utc(*time),
            (_, Value::Sid(sid)) => sid_text(sid),
            (Item::MacAddress, Value::Bytes(octets)) => hex(octets, ":"),
            (_, Value::Bytes(dump)) => hex(dump, " "),
            _ => String::new(),
        };
        Cow::Owned(owned)
    }
}

/// Formats bytes in hexadecimal, with `between` as separator.
pub(super) fn hex(bytes: &[u8], between: &str) -> String {
    let mut out = String::with_capacity(bytes.len().saturating_mul(2 + between.len()));
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push_str(between);
        }
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Formats a code and its name, as in `0xc0000022(STATUS_ACCESS_DENIED)`.
fn coded(code: u64, name: fn(u32) -> Option<&'static str>) -> String {
    match u32::try_from(code).ok().and_then(name) {
        Some(name) => format!("{code:#010x}({name})"),
        None => format!("{code:#010x}"),
    }
}

fn integer(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::Int(number) => Some(*number as u64),
        Value::UInt(n) | Value::Hex(n) | Value::Pointer(n) | Value::FileTime(n) => Some(*n),
        Value::Named(n, _) => Some(*n),
        _ => None,
    }
}

/// Formats a time difference in seconds, as in `5.000s`. `ticks` are units of 100 ns.
fn seconds(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let ms = ticks.unsigned_abs() / 10_000;
    format!("{sign}{}.{:03}s", ms / 1000, ms % 1000)
}

/// Formats a SID as `S-1-5-18`: revision, authority (big-endian), sub-authorities.
fn sid_text(sid: &[u8]) -> String {
    let Some((head, rest)) = sid.split_first_chunk::<8>() else {
        return String::new();
    };
    let authority = head[2..]
        .iter()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let mut out = format!("S-{}-{authority}", head[0]);
    for sub in rest.as_chunks::<4>().0 {
        let _ = write!(out, "-{}", u32::from_le_bytes(*sub));
    }
    out
}

/// Formats a FILETIME in UTC with 100 ns resolution: `2020-01-01T00:00:00.0000000Z`.
fn utc(filetime: u64) -> String {
    let (seconds, fraction) = (filetime / 10_000_000, filetime % 10_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The year 1601 begins a 400-year cycle of the Gregorian calendar. If years begin on 1 March, the leap
    // day is the last day of a year. 1601-01-01 is 306 days after 1600-03-01.
    let since_march_1600 = days + 306;
    let (cycle, day) = (since_march_1600 / 146_097, since_march_1600 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = 1600 + 400 * cycle + year + carry;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks FILETIMEs of known dates. The FILETIME of the Unix epoch (116444736000000000) is from
    /// Microsoft's documentation. The other dates are from `date -u`.
    #[test]
    fn filetimes_are_dates() {
        assert_eq!(utc(0), "1601-01-01T00:00:00.0000000Z");
        assert_eq!(utc(116_444_736_000_000_000), "1970-01-01T00:00:00.0000000Z");
        let unix = |seconds: u64| utc(116_444_736_000_000_000 + seconds * 10_000_000);
        assert_eq!(unix(951_782_400), "2000-02-29T00:00:00.0000000Z");
        assert_eq!(unix(4_107_542_399), "2100-02-28T23:59:59.0000000Z");
        assert_eq!(unix(4_107_542_400), "2100-03-01T00:00:00.0000000Z");
        assert_eq!(unix(1_735_689_599), "2024-12-31T23:59:59.0000000Z");
        assert!(utc(u64::MAX).ends_with('Z'));
    }
}
