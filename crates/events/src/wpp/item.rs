//! Types of WPP arguments and their layouts.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etl::{Guid, le};

use crate::Value;
use crate::schema::ValueMap;

/// Type of an argument. Numbers are little-endian unless the type states another order. Arguments follow each
/// other without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An integer of 1, 2, 4 or 8 bytes (`ItemChar` to `ItemLongLongO`). Decoded as [`Value::Int`],
    /// [`Value::UInt`] or [`Value::Hex`], depending on the base.
    Integer {
        /// Size of the integer in bytes.
        bytes: u8,
        /// Base in which the value is shown.
        base: Base,
    },
    /// 32-bit float (`ItemFloat`).
    Float,
    /// 64-bit float (`ItemDouble`).
    Double,
    /// Address (`ItemPtr`). It has 4 or 8 bytes, like all pointers of the event.
    Pointer,
    /// Text of 8-bit characters that ends with a NUL (`ItemString`, `ItemRString`). The text is decoded as
    /// UTF-8 if it is valid UTF-8, otherwise as Latin-1.
    Ansi,
    /// UTF-16 text that ends with a NUL (`ItemWString`, `ItemRWString`).
    Utf16,
    /// Text of 8-bit characters (`ItemPString`). A u16 before the text contains its length in bytes.
    CountedAnsi,
    /// UTF-16 text (`ItemPWString`). A u16 before the text contains its length in bytes.
    CountedUtf16,
    /// GUID (`ItemGuid`, `ItemCLSID`, `ItemIID`, `ItemLIBID`).
    Guid,
    /// NTSTATUS (`ItemNTSTATUS`), decoded as [`Value::Hex`].
    NtStatus,
    /// HRESULT (`ItemHRESULT`), decoded as [`Value::Hex`].
    HResult,
    /// Win32 error code (`ItemWINERROR`), decoded as [`Value::UInt`].
    Win32Error,
    /// NDIS status (`ItemNDIS_STATUS`), decoded as [`Value::Hex`].
    NdisStatus,
    /// NDIS object identifier (`ItemNDIS_OID`), decoded as [`Value::Hex`].
    NdisOid,
    /// IPv4 address in network order (`ItemIPAddr`).
    Ipv4,
    /// IPv6 address (`ItemIPV6Addr`).
    Ipv6,
    /// MAC address of six bytes (`ItemMACAddr`), decoded as [`Value::Bytes`].
    MacAddress,
    /// Network port (`ItemPort`), a big-endian u16.
    Port,
    /// Security identifier (`ItemSid`).
    Sid,
    /// Four characters (`ItemChar4`), decoded as [`Value::Text`].
    FourCharacters,
    /// FILETIME (`ItemTimestamp`).
    Timestamp,
    /// Due time of a wait (`ItemWaitTime`), as in the kernel's wait functions. A positive value is a
    /// FILETIME. A negative value is relative to the present, in units of 100 ns. It is decoded as
    /// [`Value::Int`].
    WaitTime,
    /// Time difference in units of 100 ns (`ItemTimeDelta`), decoded as [`Value::Int`].
    TimeDelta,
    /// Bytes (`ItemHexDump`). A u16 before the bytes contains their number.
    HexDump,
    /// Index into a list of names (`ItemListByte`, `ItemListShort`, `ItemListLong`).
    List {
        /// Size of the index in bytes.
        bytes: u8,
        /// Names of the values. The first name belongs to index 0.
        names: Arc<ValueMap>,
    },
    /// Bit field whose bits have names (`ItemSetByte`, `ItemSetShort`, `ItemSetLong`).
    Set {
        /// Size of the bit field in bytes.
        bytes: u8,
        /// Names of the bits. The first name belongs to bit 0.
        names: Arc<ValueMap>,
    },
    /// u32 whose values have names in an `#enumv` block (`ItemEnum`).
    Enum(Arc<ValueMap>),
    /// u32 of flags that have names in an `#enumv` block (`ItemFlagsEnum`).
    Flags(Arc<ValueMap>),
    /// Type whose layout is not public. The decoder does not decode this argument and all later arguments.
    /// They stay bytes.
    Unknown,
}

/// Base in which an integer is shown. The integer's type or the format string determines the base.
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
    /// Returns the type that a TMF file writes as `name` or `name(parameters)`. Ignores case, because both
    /// `ItemHexDump` and `ItemHEXDump` are in use. `enums` returns an `#enumv` block of the file for a name.
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

    /// Returns this type with the base that the format string's `conversion` implies.
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

    /// Removes a value of this type from the front of `payload`. Returns `None` if `payload` is too short or
    /// the type is unknown. `payload` is then unchanged.
    pub(super) fn take<'a>(
        &self,
        payload: &mut &'a [u8],
        pointer_size: usize,
    ) -> Option<Value<'a>> {
        let bytes = *payload;
        let (value, rest) = if let Some(size) = self.number_size(pointer_size) {
            let (raw, rest) = take_uint(bytes, size)?;
            (self.number(raw), rest)
        } else {
            self.take_text(bytes).or_else(|| self.take_bytes(bytes))?
        };
        *payload = rest;
        Some(value)
    }

    /// Returns the size in bytes if this type is a little-endian number.
    fn number_size(&self, pointer_size: usize) -> Option<u8> {
        Some(match self {
            Item::Integer { bytes, .. } | Item::List { bytes, .. } | Item::Set { bytes, .. } => {
                *bytes
            }
            Item::Pointer if pointer_size == 4 => 4,
            Item::Float
            | Item::NtStatus
            | Item::HResult
            | Item::Win32Error
            | Item::NdisStatus
            | Item::NdisOid
            | Item::Enum(_)
            | Item::Flags(_) => 4,
            Item::Pointer | Item::Double | Item::Timestamp | Item::WaitTime | Item::TimeDelta => 8,
            _ => return None,
        })
    }

    /// Converts the raw number `raw` into a value of this type.
    fn number(&self, raw: u64) -> Value<'static> {
        let named = |name: Option<Arc<str>>, otherwise: fn(u64) -> Value<'static>| match name {
            Some(name) => Value::Named(raw, name),
            None => otherwise(raw),
        };
        match self {
            Item::Integer {
                bytes,
                base: Base::Signed,
            } => {
                let unused = 64 - 8 * u32::from(*bytes);
                Value::Int((raw << unused) as i64 >> unused)
            }
            Item::Integer {
                base: Base::Hex, ..
            }
            | Item::NtStatus
            | Item::HResult
            | Item::NdisStatus
            | Item::NdisOid => Value::Hex(raw),
            Item::Float => Value::Float(f64::from(f32::from_bits(raw as u32))),
            Item::Double => Value::Float(f64::from_bits(raw)),
            Item::Pointer => Value::Pointer(raw),
            Item::WaitTime if (raw as i64) < 0 => Value::Int(raw as i64),
            Item::WaitTime | Item::Timestamp => Value::FileTime(raw),
            Item::TimeDelta => Value::Int(raw as i64),
            Item::List { names, .. } => {
                let index = usize::try_from(raw).ok();
                let entry = index.and_then(|index| names.entries.get(index));
                named(entry.map(|(_, name)| name.clone()), Value::UInt)
            }
            Item::Enum(names) => {
                let entry = names.entries.iter().find(|(value, _)| *value == raw);
                named(entry.map(|(_, name)| name.clone()), Value::UInt)
            }
            Item::Set { names, .. } => named(set_bits(raw, names, ","), Value::Hex),
            Item::Flags(names) => named(set_bits(raw, names, " | "), Value::Hex),
            _ => Value::UInt(raw),
        }
    }

    /// Reads a value if this type is text. Returns the value and the bytes after it.
    fn take_text<'a>(&self, bytes: &'a [u8]) -> Option<(Value<'a>, &'a [u8])> {
        let (text, rest) = match self {
            Item::Ansi => {
                let end = bytes.iter().position(|b| *b == 0);
                let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                (ansi(text), rest.get(1..).unwrap_or(&[]))
            }
            Item::Utf16 => {
                let (units, _) = bytes.as_chunks::<2>();
                let end = units.iter().position(|unit| *unit == [0, 0]);
                let (text, rest) = bytes.split_at(end.map_or(bytes.len(), |units| units * 2));
                (utf16(text), rest.get(2..).unwrap_or(&[]))
            }
            Item::CountedAnsi => {
                let (text, rest) = take_counted(bytes)?;
                (ansi(text), rest)
            }
            Item::CountedUtf16 => {
                let (text, rest) = take_counted(bytes)?;
                (utf16(text), rest)
            }
            Item::FourCharacters => {
                let (four, rest) = bytes.split_at_checked(4)?;
                let is_printable = |b: u8| b.is_ascii_graphic() || b == b' ';
                let shown = |b: &u8| char::from(if is_printable(*b) { *b } else { b'.' });
                (Cow::Owned(four.iter().map(shown).collect()), rest)
            }
            _ => return None,
        };
        Some((Value::Text(text), rest))
    }

    /// Reads a value if this type is neither a little-endian number nor text. Returns the value and the bytes
    /// after it.
    fn take_bytes<'a>(&self, bytes: &'a [u8]) -> Option<(Value<'a>, &'a [u8])> {
        Some(match self {
            Item::Guid => {
                let (guid, rest) = bytes.split_at_checked(16)?;
                (Value::Guid(Guid::read(guid)?), rest)
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
                let (octets, rest) = bytes.split_at_checked(6)?;
                (Value::Bytes(octets), rest)
            }
            Item::Port => {
                let (port, rest) = bytes.split_first_chunk::<2>()?;
                (Value::UInt(u16::from_be_bytes(*port).into()), rest)
            }
            Item::Sid => {
                // A SID has a revision, the number of sub-authorities (15 at most), the authority
                // and the sub-authorities.
                let count = usize::from(*bytes.get(1).filter(|count| **count <= 15)?);
                let (sid, rest) = bytes.split_at_checked(8 + 4 * count)?;
                (Value::Sid(sid), rest)
            }
            Item::HexDump => {
                let (dump, rest) = take_counted(bytes)?;
                (Value::Bytes(dump), rest)
            }
            _ => return None,
        })
    }
}

/// Returns a map of the comma-separated names in `listed`. The value of the name with index `i` is
/// `value(i)`. The map ends before the first index for which `value` returns `None`.
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

/// Maximum length in bytes of a text with the names of set bits.
const MAX_BIT_NAMES: usize = 4096;

/// Returns the names of the set bits, separated by `between`. If no bit is set, returns the name of 0. Set
/// bits without a name are appended as one hexadecimal number. Returns `None` if no name applies.
fn set_bits(bits: u64, names: &ValueMap, between: &str) -> Option<Arc<str>> {
    let mut unnamed = bits;
    let mut out = String::new();
    for (mask, name) in &names.entries {
        // A mask applies only if it contains a set bit that no earlier mask contains. So a value has at most
        // one name per bit, even if the file lists a huge number of names.
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
