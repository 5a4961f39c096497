//! Types of WPP arguments: how each lies in the payload, and how it is worded.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etl::{Guid, le};

use super::format::Spec;
use crate::schema::ValueMap;
use crate::{Value, status};

/// The type of an argument. Multi-byte numbers are little-endian unless said otherwise, and
/// arguments follow each other without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An integer of 1, 2, 4 or 8 bytes (`ItemChar` to `ItemLongLongO`). [`Value::Int`],
    /// [`Value::UInt`] or [`Value::Hex`] by its base.
    Integer {
        /// Bytes it takes.
        bytes: u8,
        /// How the message means it.
        base: Base,
    },
    /// 32-bit float (`ItemFloat`).
    Float,
    /// 64-bit float (`ItemDouble`).
    Double,
    /// Address: 4 or 8 bytes by the event's width (`ItemPtr`).
    Pointer,
    /// Bytes of text and a NUL (`ItemString`, `ItemRString`): UTF-8 where valid, else Latin-1.
    Ansi,
    /// UTF-16 and a NUL (`ItemWString`, `ItemRWString`).
    Utf16,
    /// u16 length in bytes and bytes of text (`ItemPString`).
    CountedAnsi,
    /// u16 length in bytes and UTF-16 (`ItemPWString`).
    CountedUtf16,
    /// GUID (`ItemGuid`, `ItemCLSID`, `ItemIID`, `ItemLIBID`).
    Guid,
    /// NTSTATUS (`ItemNTSTATUS`): [`Value::Hex`].
    NtStatus,
    /// HRESULT (`ItemHRESULT`): [`Value::Hex`].
    HResult,
    /// Win32 error code (`ItemWINERROR`): [`Value::UInt`].
    Win32Error,
    /// NDIS status (`ItemNDIS_STATUS`): [`Value::Hex`].
    NdisStatus,
    /// NDIS object identifier (`ItemNDIS_OID`): [`Value::Hex`].
    NdisOid,
    /// IPv4 address in network order (`ItemIPAddr`).
    Ipv4,
    /// IPv6 address (`ItemIPV6Addr`).
    Ipv6,
    /// Six bytes of a MAC address (`ItemMACAddr`): [`Value::Bytes`].
    MacAddress,
    /// Port: big-endian u16 (`ItemPort`).
    Port,
    /// Security identifier (`ItemSid`).
    Sid,
    /// Four characters (`ItemChar4`): [`Value::Text`].
    FourCharacters,
    /// FILETIME (`ItemTimestamp`).
    Timestamp,
    /// When something is due (`ItemWaitTime`): a FILETIME, or negative and then a time from now
    /// in units of 100 ns, [`Value::Int`], as in the kernel's wait functions.
    WaitTime,
    /// A difference of times in units of 100 ns (`ItemTimeDelta`): [`Value::Int`].
    TimeDelta,
    /// u16 length and bytes (`ItemHexDump`).
    HexDump,
    /// Index into the names (`ItemListByte`, `ItemListShort`, `ItemListLong`).
    List {
        /// Bytes it takes.
        bytes: u8,
        /// Names from index 0 on.
        names: Arc<ValueMap>,
    },
    /// Named bits (`ItemSetByte`, `ItemSetShort`, `ItemSetLong`).
    Set {
        /// Bytes it takes.
        bytes: u8,
        /// Names from bit 0 on.
        names: Arc<ValueMap>,
    },
    /// u32 with names from an `#enumv` block (`ItemEnum`).
    Enum(Arc<ValueMap>),
    /// u32 of flags with names from an `#enumv` block (`ItemFlagsEnum`).
    Flags(Arc<ValueMap>),
    /// A type whose layout is not publicly known; it and all behind it stay bytes.
    Unknown,
}

/// How an integer is meant: by its type or, where the format string prints it, by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Signed decimal.
    Signed,
    /// Unsigned decimal.
    Unsigned,
    /// Hexadecimal.
    Hex,
    /// Octal.
    Octal,
}

impl Item {
    /// The type written as `name` or `name(parameters)` in a TMF. Letter case is ignored: both
    /// `ItemHexDump` and `ItemHEXDump` are in use. `enums` are the file's `#enumv` blocks.
    pub(super) fn named(
        name: &str,
        parameters: Option<&str>,
        enums: impl Fn(&str) -> Option<Arc<ValueMap>>,
    ) -> Item {
        let integer = |bytes, base| Item::Integer { bytes, base };
        let index = |i: u32| Some(u64::from(i));
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "itemchar" => integer(1, Base::Signed),
            "itemuchar" => integer(1, Base::Unsigned),
            "itemshort" => integer(2, Base::Signed),
            "itemushort" => integer(2, Base::Unsigned),
            "itemlong" => integer(4, Base::Signed),
            "itemulong" => integer(4, Base::Unsigned),
            "itemulongx" | "itemlongx" => integer(4, Base::Hex),
            "itemlonglong" => integer(8, Base::Signed),
            "itemulonglong" => integer(8, Base::Unsigned),
            "itemlonglongx" | "itemlonglongxx" => integer(8, Base::Hex),
            "itemlonglongo" => integer(8, Base::Octal),
            "itemfloat" => Item::Float,
            "itemdouble" => Item::Double,
            "itemptr" => Item::Pointer,
            "itemstring" | "itemrstring" => Item::Ansi,
            "itemwstring" | "itemrwstring" => Item::Utf16,
            "itempstring" => Item::CountedAnsi,
            "itempwstring" => Item::CountedUtf16,
            "itemguid" | "itemclsid" | "itemiid" | "itemlibid" => Item::Guid,
            "itemntstatus" => Item::NtStatus,
            "itemhresult" => Item::HResult,
            "itemwinerror" => Item::Win32Error,
            "itemndis_status" => Item::NdisStatus,
            "itemndis_oid" => Item::NdisOid,
            "itemipaddr" => Item::Ipv4,
            "itemipv6addr" => Item::Ipv6,
            "itemmacaddr" => Item::MacAddress,
            "itemport" => Item::Port,
            "itemsid" => Item::Sid,
            "itemchar4" => Item::FourCharacters,
            "itemtimestamp" => Item::Timestamp,
            "itemwaittime" => Item::WaitTime,
            "itemtimedelta" => Item::TimeDelta,
            "itemhexdump" => Item::HexDump,
            "itemenum" | "itemflagsenum" => {
                let wanted = parameters.unwrap_or("").trim();
                let map = enums(wanted).unwrap_or_else(|| names(wanted, None, index));
                if lower == "itemenum" {
                    Item::Enum(map)
                } else {
                    Item::Flags(map)
                }
            }
            _ => {
                let bytes = match &lower {
                    l if l.ends_with("byte") => 1,
                    l if l.ends_with("short") => 2,
                    l if l.ends_with("long") => 4,
                    _ => return Item::Unknown,
                };
                if lower.starts_with("itemlist") {
                    Item::List {
                        bytes,
                        names: names(name, parameters, index),
                    }
                } else if lower.starts_with("itemset") {
                    Item::Set {
                        bytes,
                        names: names(name, parameters, |bit| 1u64.checked_shl(bit)),
                    }
                } else {
                    Item::Unknown
                }
            }
        }
    }

    /// This type as a format string that prints it by `conversion` means it.
    pub(super) fn printed_by(self, conversion: char) -> Item {
        match (self, conversion) {
            (Item::Integer { bytes, .. }, 'd' | 'i') => Item::Integer {
                bytes,
                base: Base::Signed,
            },
            (Item::Integer { bytes, .. }, 'u') => Item::Integer {
                bytes,
                base: Base::Unsigned,
            },
            (Item::Integer { bytes, .. }, 'x' | 'X' | 'p') => Item::Integer {
                bytes,
                base: Base::Hex,
            },
            (Item::Integer { bytes, .. }, 'o') => Item::Integer {
                bytes,
                base: Base::Octal,
            },
            (item, _) => item,
        }
    }

    /// Takes a value of this type off the front of `payload`; `None`, and nothing taken, when the
    /// payload ends within it or the type is unknown.
    pub(super) fn take<'a>(
        &self,
        payload: &mut &'a [u8],
        pointer_size: usize,
    ) -> Option<Value<'a>> {
        let bytes = *payload;
        let take = |length: usize| bytes.split_at_checked(length);
        let (value, rest) = match self {
            Item::Integer { bytes: size, base } => {
                let (raw, rest) = take_uint(bytes, *size)?;
                let unused = 64 - 8 * u32::from(*size);
                let value = match base {
                    Base::Signed => Value::Int((raw << unused) as i64 >> unused),
                    Base::Unsigned | Base::Octal => Value::UInt(raw),
                    Base::Hex => Value::Hex(raw),
                };
                (value, rest)
            }
            Item::Float => {
                let (raw, rest) = take_uint(bytes, 4)?;
                (Value::Float(f64::from(f32::from_bits(raw as u32))), rest)
            }
            Item::Double => {
                let (raw, rest) = take_uint(bytes, 8)?;
                (Value::Float(f64::from_bits(raw)), rest)
            }
            Item::Pointer => {
                let (raw, rest) = take_uint(bytes, if pointer_size == 4 { 4 } else { 8 })?;
                (Value::Pointer(raw), rest)
            }
            Item::Ansi => {
                let end = bytes.iter().position(|b| *b == 0);
                let (text, rest) = take(end.unwrap_or(bytes.len()))?;
                (Value::Text(ansi(text)), rest.get(1..).unwrap_or(&[]))
            }
            Item::Utf16 => {
                let end = bytes
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .position(|unit| *unit == [0, 0]);
                let (text, rest) = take(end.map_or(bytes.len(), |units| units * 2))?;
                (Value::Text(utf16(text)), rest.get(2..).unwrap_or(&[]))
            }
            Item::CountedAnsi => {
                let (text, rest) = take_counted(bytes)?;
                (Value::Text(ansi(text)), rest)
            }
            Item::CountedUtf16 => {
                let (text, rest) = take_counted(bytes)?;
                (Value::Text(utf16(text)), rest)
            }
            Item::Guid => {
                let (guid, rest) = take(16)?;
                (Value::Guid(Guid::read(guid)?), rest)
            }
            Item::NtStatus | Item::HResult | Item::NdisStatus | Item::NdisOid => {
                let (code, rest) = take_uint(bytes, 4)?;
                (Value::Hex(code), rest)
            }
            Item::Win32Error => {
                let (code, rest) = take_uint(bytes, 4)?;
                (Value::UInt(code), rest)
            }
            Item::Ipv4 => {
                let (octets, rest) = bytes.split_first_chunk::<4>()?;
                (Value::Ipv4(Ipv4Addr::from(*octets)), rest)
            }
            Item::Ipv6 => {
                let (octets, rest) = bytes.split_first_chunk::<16>()?;
                (Value::Ipv6(Ipv6Addr::from(*octets)), rest)
            }
            Item::MacAddress => {
                let (octets, rest) = take(6)?;
                (Value::Bytes(octets), rest)
            }
            Item::Port => {
                let (port, rest) = bytes.split_first_chunk::<2>()?;
                (Value::UInt(u16::from_be_bytes(*port).into()), rest)
            }
            Item::Sid => {
                // Revision, count of sub-authorities (15 at most), authority, sub-authorities.
                let count = usize::from(*bytes.get(1).filter(|count| **count <= 15)?);
                let (sid, rest) = take(8 + 4 * count)?;
                (Value::Sid(sid), rest)
            }
            Item::FourCharacters => {
                let (four, rest) = take(4)?;
                let printable = |b: &u8| {
                    if b.is_ascii_graphic() || *b == b' ' {
                        *b
                    } else {
                        b'.'
                    }
                };
                let text = four.iter().map(|b| char::from(printable(b))).collect();
                (Value::Text(Cow::Owned(text)), rest)
            }
            Item::Timestamp => {
                let (time, rest) = take_uint(bytes, 8)?;
                (Value::FileTime(time), rest)
            }
            Item::WaitTime => {
                let (time, rest) = take_uint(bytes, 8)?;
                let relative = time as i64;
                (
                    if relative < 0 {
                        Value::Int(relative)
                    } else {
                        Value::FileTime(time)
                    },
                    rest,
                )
            }
            Item::TimeDelta => {
                let (delta, rest) = take_uint(bytes, 8)?;
                (Value::Int(delta as i64), rest)
            }
            Item::HexDump => {
                let (dump, rest) = take_counted(bytes)?;
                (Value::Bytes(dump), rest)
            }
            Item::List { bytes: size, names } => {
                let (index, rest) = take_uint(bytes, *size)?;
                let name = usize::try_from(index)
                    .ok()
                    .and_then(|i| names.entries.get(i));
                (
                    name.map_or(Value::UInt(index), |(_, n)| Value::Named(index, n.clone())),
                    rest,
                )
            }
            Item::Set { bytes: size, names } => {
                let (bits, rest) = take_uint(bytes, *size)?;
                (Value::Named(bits, set_bits(bits, names, ",")), rest)
            }
            Item::Enum(names) => {
                let (number, rest) = take_uint(bytes, 4)?;
                let name = names.entries.iter().find(|(value, _)| *value == number);
                (
                    name.map_or(Value::UInt(number), |(_, n)| {
                        Value::Named(number, n.clone())
                    }),
                    rest,
                )
            }
            Item::Flags(names) => {
                let (bits, rest) = take_uint(bytes, 4)?;
                let value = match set_bits(bits, names, " | ") {
                    none if none.is_empty() => Value::Hex(bits),
                    names => Value::Named(bits, names),
                };
                (value, rest)
            }
            Item::Unknown => return None,
        };
        *payload = rest;
        Some(value)
    }

    /// Appends `value`, which [`Item::take`] read, as `spec` says.
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

    /// Bytes of an integer type.
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

    /// The value in words, as `tracefmt` puts it where that is known. Some things differ on
    /// purpose: times are in UTC, a SID is not looked up in this machine's accounts, a hex dump
    /// is shown, and NDIS codes stay numbers.
    fn words<'v>(&self, value: &'v Value<'_>, pointer_size: usize) -> Cow<'v, str> {
        let owned = match (self, value) {
            (_, Value::Text(text)) => return Cow::Borrowed(text),
            (Item::List { .. }, Value::Named(index, name)) => format!("{index:#010x}({name})"),
            (Item::List { .. }, Value::UInt(index)) => format!("{index:#010x}"),
            (Item::Set { .. }, Value::Named(_, names)) => format!("[{names}]"),
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

/// Bytes in hexadecimal, with `between` between them.
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

/// A code and its name, as `0xc0000022(STATUS_ACCESS_DENIED)`.
fn coded(code: u64, name: fn(u32) -> Option<&'static str>) -> String {
    match u32::try_from(code).ok().and_then(name) {
        Some(name) => format!("{code:#010x}({name})"),
        None => format!("{code:#010x}"),
    }
}

/// The listed names: of `value(0)`, `value(1)` and so on, as far as there are values.
fn names(map: &str, listed: Option<&str>, value: impl Fn(u32) -> Option<u64>) -> Arc<ValueMap> {
    let listed = listed.into_iter().flat_map(|names| names.split(','));
    let values = (0..).map_while(&value);
    let entries = values
        .zip(listed)
        .map(|(value, name)| (value, name.trim().into()))
        .collect();
    Arc::new(ValueMap {
        name: map.into(),
        is_bitmap: value(0) == Some(1),
        entries,
    })
}

/// Names of the set bits; bits without a name follow as one hexadecimal number, and no bit at all
/// has the name of 0 if there is one.
fn set_bits(bits: u64, names: &ValueMap, between: &str) -> Arc<str> {
    let mut left = bits;
    let mut out = String::new();
    let mut add = |text: &str| {
        if !out.is_empty() {
            out.push_str(between);
        }
        out.push_str(text);
    };
    for (mask, name) in &names.entries {
        // A mask that names nothing new is skipped, so that a value of 64 bits shows 64 names at
        // most, however many a file lists.
        if (*mask != 0 && bits & mask == *mask && left & mask != 0) || (*mask == 0 && bits == 0) {
            add(name);
            left &= !mask;
            if left == 0 {
                break;
            }
        }
    }
    if left != 0 && left != bits {
        add(&format!("{left:#x}"));
    }
    out.into()
}

fn integer(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::Int(number) => Some(*number as u64),
        Value::UInt(n) | Value::Hex(n) | Value::Pointer(n) | Value::FileTime(n) => Some(*n),
        Value::Named(n, _) => Some(*n),
        _ => None,
    }
}

fn take_uint(bytes: &[u8], size: u8) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size.into())?;
    let mut raw = [0; 8];
    raw.get_mut(..head.len())?.copy_from_slice(head);
    Some((u64::from_le_bytes(raw), rest))
}

fn take_counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = le::u16(bytes, 0)?;
    bytes.get(2..)?.split_at_checked(length.into())
}

fn ansi(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()),
    }
}

fn utf16(bytes: &[u8]) -> Cow<'static, str> {
    let units = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    Cow::Owned(text.collect())
}

/// A time difference of `ticks` 100 ns in seconds, as `5.000s`.
fn seconds(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let ms = ticks.unsigned_abs() / 10_000;
    format!("{sign}{}.{:03}s", ms / 1000, ms % 1000)
}

/// `S-1-5-18`: revision, authority (big-endian), sub-authorities.
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

/// A FILETIME in UTC to the 100 ns it counts: `2020-01-01T00:00:00.0000000Z`.
fn utc(filetime: u64) -> String {
    let (seconds, fraction) = (filetime / 10_000_000, filetime % 10_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // 1601 begins a 400-year cycle of the Gregorian calendar. Counting years from 1 March puts
    // the leap day last; 1601-01-01 is 306 days after 1600-03-01.
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

    /// FILETIMEs of known dates: the Unix epoch from RFC-style arithmetic in Microsoft's
    /// documentation (116444736000000000), others from `date -u`.
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

    #[test]
    fn unnamed_bits_are_not_hidden() {
        let set = Item::named("ItemSetByte", Some("a, b"), |_| None);
        let value = set.take(&mut &[0b1000_0010][..], 8).unwrap();
        assert_eq!(set.words(&value, 8), "[b,0x80]");
    }

    #[test]
    fn short_payloads_take_nothing() {
        for name in [
            "ItemLong",
            "ItemPtr",
            "ItemGuid",
            "ItemSid",
            "ItemPString",
            "ItemHexDump",
        ] {
            let mut payload: &[u8] = &[9, 0, 1];
            assert_eq!(
                Item::named(name, None, |_| None).take(&mut payload, 8),
                None,
                "{name}"
            );
            assert_eq!(payload.len(), 3, "{name}");
        }
    }
}
