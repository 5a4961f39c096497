//! Types of WPP arguments, and how each lies in the payload.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etl::{Guid, le};

use crate::Value;
use crate::schema::ValueMap;

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
                let named = set_bits(bits, names, ",");
                (
                    named.map_or(Value::Hex(bits), |names| Value::Named(bits, names)),
                    rest,
                )
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
                let named = set_bits(bits, names, " | ");
                (
                    named.map_or(Value::Hex(bits), |names| Value::Named(bits, names)),
                    rest,
                )
            }
            Item::Unknown => return None,
        };
        *payload = rest;
        Some(value)
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

/// Longest text that names a value's bits, in bytes.
const MAX_BIT_NAMES: usize = 4096;

/// Names of the set bits, and of 0 if no bit is set; bits without a name follow as one hexadecimal
/// number. `None` when no name applies.
fn set_bits(bits: u64, names: &ValueMap, between: &str) -> Option<Arc<str>> {
    let mut unnamed = bits;
    let mut out = String::new();
    for (mask, name) in &names.entries {
        // A mask must name a bit that none did before: however many names a file lists, a value
        // shows one per bit at most.
        let applies = match mask {
            0 => bits == 0,
            mask => bits & mask == *mask && unnamed & mask != 0,
        };
        if applies && out.len().saturating_add(name.len()) <= MAX_BIT_NAMES {
            if !out.is_empty() {
                out.push_str(between);
            }
            out.push_str(name);
            unnamed &= !mask;
            if unnamed == 0 {
                break;
            }
        }
    }
    if out.is_empty() {
        return None;
    }
    if unnamed != 0 {
        let _ = write!(out, "{between}{unnamed:#x}");
    }
    Some(out.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_bits_are_not_hidden() {
        let set = Item::named("ItemSetByte", Some("a, b"), |_| None);
        let words = |bits: u8| {
            let payload = [bits];
            let value = set.take(&mut &payload[..], 8).unwrap();
            set.words(&value, 8).into_owned()
        };
        assert_eq!(words(0b11), "[a,b]");
        assert_eq!(words(0b1000_0010), "[b,0x80]");
        assert_eq!(words(0b1000_0000), "[0x80]");
        assert_eq!(words(0), "[]");
    }

    #[test]
    fn bit_names_stay_short() {
        let listed = vec!["x".repeat(1000); 64].join(",");
        let set = Item::named("ItemSetLong", Some(&listed), |_| None);
        let Some(Value::Named(_, names)) = set.take(&mut &[0xFF; 4][..], 8) else {
            panic!()
        };
        assert!(
            names.len() < MAX_BIT_NAMES + 32 && names.ends_with(",0xfffffff0"),
            "{names}"
        );
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
