//! Decoding of a payload by the fields of a [`crate::schema::Schema`].
//!
//! Fields follow each other without padding, as TDH and the kernel write them. Payloads are untrusted input.
//! If a count or a length exceeds the payload, reading ends at this field. The values of earlier fields are
//! kept.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use etl::{Guid, le};

use crate::schema::{Count, Field, InType, Length, OutType, ValueMap};
use crate::sid;
use crate::span::{Span, Spans};
use crate::text;
use crate::value::Value;

/// Maximum depth of nested structs. Real events have one or two levels.
const MAX_DEPTH: usize = 16;

/// Maximum number of values without bytes (empty text, empty structs) in one payload. The payload's size
/// limits the number of all other values.
const MAX_EMPTY_VALUES: usize = 4096;

/// Maximum work per payload for names. The work is the number of bytes in the names of fields and values,
/// plus the number of names that are compared. Real payloads need far less. Without this limit, a description
/// and a payload of a few KiB each could require gigabytes of memory or hours of time.
const MAX_WORK: usize = 4 << 20;

/// Decoded fields of a payload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields<'a> {
    /// Names and values in payload order. Missing optional fields are left out.
    pub values: Vec<(Arc<str>, Value<'a>)>,
    /// Bytes after the last readable field. They are padding, or fields that are not in the schema.
    pub tail: &'a [u8],
    /// Name of the field at which reading ended because the payload was too short. The values before this
    /// field are correct. If the field is an array or a struct, the value of the field may be incomplete.
    pub truncated: Option<Arc<str>>,
}

impl<'a> Fields<'a> {
    /// Returns the first value with this name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        find(&self.values, name)
    }
}

fn find<'v, 'a>(values: &'v [(Arc<str>, Value<'a>)], name: &str) -> Option<&'v Value<'a>> {
    values
        .iter()
        .find(|(n, _)| &**n == name)
        .map(|(_, value)| value)
}

/// Decodes `payload` with the layout `fields`. Pointers have 4 bytes if `pointer_size` is 4, otherwise 8
/// bytes.
pub fn decode<'a>(fields: &[Field], payload: &'a [u8], pointer_size: usize) -> Fields<'a> {
    let mut reader = Reader::new(payload, pointer_size);
    let values = reader.members(fields, None, 0);
    Fields {
        values,
        tail: reader.rest,
        truncated: reader.truncated,
    }
}

/// Returns the byte ranges of the values in `payload`, for the layout `fields`.
pub(crate) fn spans(fields: &[Field], payload: &[u8], pointer_size: usize) -> Spans {
    let mut reader = Reader::new(payload, pointer_size);
    reader.spans = Some(Vec::new());
    reader.members(fields, None, 0);
    let tail = payload.len() - reader.rest.len();
    let mut values = reader.spans.unwrap_or_default();
    // This removes the spans after `tail`. Such spans belong to an optional field for which the payload was
    // too short, or to padding that was read as an array element.
    values.retain(|span| span.bytes.end <= tail);
    Spans {
        values,
        tail,
        is_complete: reader.truncated.is_none(),
    }
}

/// Function that splits a text from the front of the bytes and drops the NUL of the text; see [`text`].
type Split = fn(&[u8]) -> (&[u8], &[u8]);

/// Values that were already read in a struct and in the structs that contain it. Counts and lengths of later
/// fields refer to these values by name.
struct Scope<'s, 'a> {
    outer: Option<&'s Scope<'s, 'a>>,
    values: &'s [(Arc<str>, Value<'a>)],
}

struct Reader<'a> {
    payload: &'a [u8],
    rest: &'a [u8],
    pointer_size: usize,
    truncated: Option<Arc<str>>,
    empty_values: usize,
    /// Remaining work. It starts at [`MAX_WORK`] and decreases to 0.
    work: usize,
    /// Byte ranges of the values. They are collected only if the caller needs them.
    spans: Option<Vec<Span>>,
}

impl<'a> Reader<'a> {
    fn new(payload: &'a [u8], pointer_size: usize) -> Reader<'a> {
        Reader {
            payload,
            rest: payload,
            pointer_size: if pointer_size == 4 { 4 } else { 8 },
            truncated: None,
            empty_values: MAX_EMPTY_VALUES,
            work: MAX_WORK,
            spans: None,
        }
    }

    /// Reads `fields` in order. Ends at the first field for which the payload is too short.
    fn members(
        &mut self,
        fields: &[Field],
        outer: Option<&Scope<'_, 'a>>,
        depth: usize,
    ) -> Vec<(Arc<str>, Value<'a>)> {
        let mut values = Vec::with_capacity(fields.len().min(self.rest.len() + 1));
        for field in fields {
            if field.in_type == InType::Align {
                self.align();
                continue;
            }
            let before = self.rest;
            let value = self.field(
                field,
                &Scope {
                    outer,
                    values: &values,
                },
                depth,
            );
            let value = self.bounded(before, value);
            if field.optional && (value.is_none() || self.truncated.is_some()) {
                self.rest = before;
                self.truncated = None;
                break;
            }
            let value = value.filter(|_| self.spend(field.name.len()).is_some());
            if value.is_none() && self.truncated.is_none() {
                self.truncated = Some(field.name.clone());
            }
            values.extend(value.map(|value| (field.name.clone(), value)));
            if self.truncated.is_some() {
                break;
            }
        }
        values
    }

    /// Reads one field, which may be an array. Returns `None` if the payload is too short for the field.
    fn field(&mut self, field: &Field, scope: &Scope<'_, 'a>, depth: usize) -> Option<Value<'a>> {
        let count = match &field.count {
            Count::One => return self.element(field, scope, depth),
            Count::Fixed(count) => Some(*count as usize),
            Count::Field(name) => Some(self.number(scope, name)?),
            Count::Prefix16 => Some(usize::from(self.u16()?)),
            Count::Rest => None,
        };
        let mut values = Vec::with_capacity(count.unwrap_or(0).min(self.rest.len()).min(64));
        while count.map_or(!self.rest.is_empty(), |count| values.len() < count) {
            let before = self.rest;
            let value = self.element(field, scope, depth);
            let value = self.bounded(before, value);
            if count.is_none() && (value.is_none() || self.truncated.is_some()) {
                // The remaining bytes are fewer than one element, so they are padding.
                self.rest = before;
                self.truncated = None;
                break;
            }
            let Some(value) = value else {
                self.truncated.get_or_insert_with(|| field.name.clone());
                break;
            };
            values.push(value);
            if self.truncated.is_some() {
                break;
            }
        }
        Some(Value::Array(values))
    }

    /// Reads one element of a field: a struct or a single value.
    fn element(&mut self, field: &Field, scope: &Scope<'_, 'a>, depth: usize) -> Option<Value<'a>> {
        match &field.in_type {
            InType::Struct(_) if depth >= MAX_DEPTH => None,
            InType::Struct(fields) => {
                let members = self.members(fields, Some(scope), depth + 1);
                (!members.is_empty() || self.truncated.is_none()).then_some(Value::Struct(members))
            }
            _ => {
                let from = self.payload.len() - self.rest.len();
                let value = self.leaf(field, scope)?;
                let to = self.payload.len() - self.rest.len();
                let pointer_size = self.pointer_size;
                if let Some(spans) = &mut self.spans {
                    spans.push(Span::new(field, from, to, pointer_size));
                }
                Some(value)
            }
        }
    }

    /// Returns `value`, but limits the number of empty values in a payload. `before` are the bytes that remained
    /// before `value` was read. If reading `value` used none of these bytes, `value` is empty. Returns `None` if the
    /// payload has too many empty values.
    fn bounded(&mut self, before: &[u8], value: Option<Value<'a>>) -> Option<Value<'a>> {
        if value.is_some() && self.rest.len() == before.len() {
            self.empty_values = self.empty_values.checked_sub(1)?;
        }
        value
    }

    /// Returns the number in the field `name`. The number is a count or a length. Searches the current struct
    /// first, then the structs around it.
    fn number(&mut self, mut scope: &Scope<'_, 'a>, name: &str) -> Option<usize> {
        loop {
            self.spend(scope.values.len())?;
            match find(scope.values, name) {
                Some(value) => return value.as_u64()?.try_into().ok(),
                None => scope = scope.outer?,
            }
        }
    }

    /// Subtracts `cost` from the remaining work. Returns `None` if too little work remains.
    fn spend(&mut self, cost: usize) -> Option<()> {
        self.work = self.work.checked_sub(cost)?;
        Some(())
    }

    /// Returns the name of a value. Returns `None` if less than half of the allowed work remains. The last
    /// half of the work is reserved for reading all fields, because fields are more important than the names
    /// of values.
    fn value_name(&mut self, map: &ValueMap, value: u64) -> Option<Arc<str>> {
        let room = self.work.checked_sub(MAX_WORK / 2)?;
        let room = room.checked_sub(map.entries.len())?;
        self.spend(map.entries.len())?;
        let name = value_name(map, value, room)?;
        self.spend(name.len())?;
        Some(name)
    }

    /// Reads a value that is not a struct.
    fn leaf(&mut self, field: &Field, scope: &Scope<'_, 'a>) -> Option<Value<'a>> {
        let out = field.out_type;
        let length = match &field.length {
            Length::Natural => None,
            Length::Fixed(length) => Some(*length as usize),
            Length::Field(name) => Some(self.number(scope, name)?),
        };
        Some(match &field.in_type {
            InType::Null | InType::Align => Value::Null,
            InType::Struct(_) => return None,
            InType::Utf16 => match length {
                Some(length) => utf16(self.take(length.checked_mul(2)?)?),
                None => utf16(self.split(2, text::split_utf16)?),
            },
            InType::Ansi => match length {
                Some(length) => ansi(self.take(length)?),
                None => ansi(self.split(1, text::split_ansi)?),
            },
            InType::Utf16Rest => utf16(self.take(self.rest.len() & !1)?),
            InType::AnsiRest => ansi(self.take(self.rest.len())?),
            InType::CountedUtf16 => utf16(self.counted(2, u16_le)?),
            InType::CountedAnsi => ansi(self.counted(2, u16_le)?),
            InType::ReverseCountedUtf16 => utf16(self.counted(2, u16_be)?),
            InType::ReverseCountedAnsi => ansi(self.counted(2, u16_be)?),
            InType::Utf16Char => utf16(self.take(2)?),
            InType::AnsiChar => ansi(self.take(1)?),
            InType::I8 => self.signed(field, 1)?,
            InType::U8 => self.unsigned(field, 1)?,
            InType::I16 => self.signed(field, 2)?,
            InType::U16 => self.unsigned(field, 2)?,
            InType::I32 => self.signed(field, 4)?,
            InType::U32 => self.unsigned(field, 4)?,
            InType::I64 => self.signed(field, 8)?,
            InType::U64 => self.unsigned(field, 8)?,
            InType::SizeT => self.unsigned(field, self.pointer_size)?,
            InType::Hex32 => self.unsigned(field, 4)?,
            InType::Hex64 => self.unsigned(field, 8)?,
            InType::Pointer => self.unsigned(field, self.pointer_size)?,
            InType::F32 => Value::Float(f32::from_bits(self.u32()?).into()),
            InType::F64 => Value::Float(f64::from_bits(self.u64()?)),
            InType::Bool32 => self.unsigned(field, 4)?,
            InType::Bool8 => self.unsigned(field, 1)?,
            InType::Binary => {
                let length = length.unwrap_or(match out {
                    OutType::Ipv6 | OutType::Guid => 16,
                    OutType::Ipv4 => 4,
                    _ => self.rest.len(),
                });
                binary(out, self.take(length)?)
            }
            InType::CountedBinary => binary(out, self.counted(2, u16_le)?),
            InType::HexDump => binary(out, self.counted(4, u32_le)?),
            InType::Guid => Value::Guid(Guid::read(self.take(16)?)?),
            InType::FileTime => Value::FileTime(self.u64()?),
            InType::SystemTime => {
                let (words, _) = self.take(16)?.as_chunks::<2>();
                let mut time = [0; 8];
                for (part, word) in time.iter_mut().zip(words) {
                    *part = u16::from_le_bytes(*word);
                }
                Value::SystemTime(time)
            }
            InType::Sid => Value::Sid(self.take(sid::size(self.rest)?)?),
            InType::WbemSid => {
                let (sid, rest) = sid::split_token_user(self.rest, self.pointer_size)?;
                self.rest = rest;
                sid.map_or(Value::Null, Value::Sid)
            }
        })
    }

    fn signed(&mut self, field: &Field, size: usize) -> Option<Value<'a>> {
        let bytes = self.take(size)?;
        Some(self.integer(field, Integer::signed(bytes)))
    }

    fn unsigned(&mut self, field: &Field, size: usize) -> Option<Value<'a>> {
        let bytes = self.take(size)?;
        Some(self.integer(field, Integer::unsigned(bytes)))
    }

    /// Converts an integer into a value. The field can define bit fields, value names, an out-type and an
    /// in-type. The first of these four that applies to the integer decides the kind of the value.
    fn integer(&mut self, field: &Field, integer: Integer<'a>) -> Value<'a> {
        let bits = integer.bits;
        if !field.bits.is_empty() {
            let named = field.bits.iter().take(64).map(|part| {
                let value = bits.checked_shr(part.low.into()).unwrap_or(0);
                let mask = 1u64
                    .checked_shl(part.width.into())
                    .unwrap_or(0)
                    .wrapping_sub(1);
                (part.name.clone(), Value::UInt(value & mask))
            });
            return Value::Struct(named.collect());
        }
        if let Some(map) = field.map.as_deref()
            && let Some(name) = self.value_name(map, bits)
        {
            return Value::Named(bits, name);
        }
        match (field.out_type, &field.in_type) {
            (OutType::Boolean, _) => Value::Bool(bits != 0),
            (OutType::Hex | OutType::Win32Error | OutType::NtStatus | OutType::HResult, _) => {
                Value::Hex(bits)
            }
            (OutType::CodePointer, _) => Value::Pointer(bits),
            (OutType::Signed, _) => Value::Int(integer.sign_extended()),
            (OutType::Unsigned | OutType::ProcessId | OutType::ThreadId, _) => Value::UInt(bits),
            (OutType::DateTime, InType::I64 | InType::U64) => Value::FileTime(bits),
            (OutType::Port, _) if let Ok(port) = integer.bytes.try_into() => {
                Value::UInt(u16::from_be_bytes(port).into())
            }
            (OutType::Ipv4, _) if let Ok(address) = <[u8; 4]>::try_from(integer.bytes) => {
                Value::Ipv4(address.into())
            }
            (OutType::String, InType::I8 | InType::U8) => ansi(integer.bytes),
            (OutType::String, InType::I16 | InType::U16) => utf16(integer.bytes),
            (_, InType::Bool8 | InType::Bool32) => Value::Bool(bits != 0),
            (_, InType::Hex32 | InType::Hex64) => Value::Hex(bits),
            (_, InType::Pointer) => Value::Pointer(bits),
            _ if integer.signed => Value::Int(integer.sign_extended()),
            _ => Value::UInt(bits),
        }
    }

    /// Takes the next `size` bytes. Returns `None` if fewer bytes are left.
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes the text that `split` separates from the other bytes. `unit` is the size of a NUL in bytes. If
    /// fewer than `unit` bytes are left, returns `None`, not an empty text.
    fn split(&mut self, unit: usize, split: Split) -> Option<&'a [u8]> {
        if self.rest.len() < unit {
            return None;
        }
        let (taken, rest) = split(self.rest);
        self.rest = rest;
        Some(taken)
    }

    /// Takes a length of `prefix` bytes, and then as many bytes as the length states.
    fn counted(&mut self, prefix: usize, length: fn(&[u8]) -> Option<usize>) -> Option<&'a [u8]> {
        let size = prefix.checked_add(length(self.rest)?)?;
        self.take(size)?.get(prefix..)
    }

    fn u16(&mut self) -> Option<u16> {
        le::u16(self.take(2)?, 0)
    }

    fn u32(&mut self) -> Option<u32> {
        le::u32(self.take(4)?, 0)
    }

    fn u64(&mut self) -> Option<u64> {
        le::u64(self.take(8)?, 0)
    }

    /// Skips padding. After it, the offset from the payload's start is a multiple of the pointer size.
    fn align(&mut self) {
        let at = self.payload.len() - self.rest.len();
        let padding = at.next_multiple_of(self.pointer_size) - at;
        self.rest = self.rest.get(padding..).unwrap_or(&[]);
    }
}

fn u16_le(bytes: &[u8]) -> Option<usize> {
    le::u16(bytes, 0).map(usize::from)
}

fn u16_be(bytes: &[u8]) -> Option<usize> {
    bytes
        .first_chunk()
        .map(|b| usize::from(u16::from_be_bytes(*b)))
}

fn u32_le(bytes: &[u8]) -> Option<usize> {
    le::u32(bytes, 0)?.try_into().ok()
}

fn utf16(bytes: &[u8]) -> Value<'_> {
    Value::Text(Cow::Owned(text::utf16(bytes)))
}

fn ansi(bytes: &[u8]) -> Value<'_> {
    Value::Text(text::ansi(bytes))
}

/// Integer of one to eight bytes. It is not converted into a value yet.
struct Integer<'a> {
    bytes: &'a [u8],
    /// Bits of the integer, zero-extended to 64 bits.
    bits: u64,
    signed: bool,
}

impl<'a> Integer<'a> {
    fn unsigned(bytes: &'a [u8]) -> Self {
        let bits = bytes
            .iter()
            .rev()
            .fold(0, |bits, b| bits << 8 | u64::from(*b));
        Integer {
            bytes,
            bits,
            signed: false,
        }
    }

    fn signed(bytes: &'a [u8]) -> Self {
        Integer {
            signed: true,
            ..Integer::unsigned(bytes)
        }
    }

    fn sign_extended(&self) -> i64 {
        let unused = 64 - 8 * self.bytes.len() as u32;
        (self.bits << unused) as i64 >> unused
    }
}

/// Returns the name of a value. If a bitmap has no name for the whole value, returns the names of the set bits,
/// with at most `room` bytes of names. Bits without a name are appended as a number. Returns `None` if no name
/// applies.
fn value_name(map: &ValueMap, value: u64, room: usize) -> Option<Arc<str>> {
    let exact = map.entries.iter().find(|(entry, _)| *entry == value);
    if !map.is_bitmap || exact.is_some() {
        return exact.map(|(_, name)| name.clone());
    }
    let mut unnamed = value;
    let mut names = String::new();
    for (mask, name) in &map.entries {
        let fits = names.len().saturating_add(name.len()) < room;
        if *mask != 0 && value & mask == *mask && unnamed & mask != 0 && fits {
            unnamed &= !mask;
            if !names.is_empty() {
                names.push('|');
            }
            names.push_str(name);
        }
    }
    if names.is_empty() {
        return None;
    }
    if unnamed != 0 {
        names.push_str(&format!("|0x{unnamed:x}"));
    }
    Some(names.into())
}

/// Converts bytes into a value of the out-type. If the number of bytes does not fit the out-type, the value
/// stays bytes.
fn binary(out: OutType, bytes: &[u8]) -> Value<'_> {
    match out {
        OutType::String | OutType::Utf8 | OutType::Xml | OutType::Json => ansi(bytes),
        OutType::Ipv4 if let Ok(address) = <[u8; 4]>::try_from(bytes) => {
            Value::Ipv4(address.into())
        }
        OutType::Ipv6 if let Ok(address) = <[u8; 16]>::try_from(bytes) => {
            Value::Ipv6(address.into())
        }
        OutType::Guid if bytes.len() == 16 => {
            Guid::read(bytes).map_or(Value::Bytes(bytes), Value::Guid)
        }
        OutType::SocketAddress => match socket_address(bytes) {
            Some(address) => Value::Text(Cow::Owned(address)),
            None => Value::Bytes(bytes),
        },
        _ => Value::Bytes(bytes),
    }
}

/// Formats a Windows SOCKADDR as `1.2.3.4:80` or `[::1]:80`. A SOCKADDR has a u16 family, a big-endian u16
/// port, and the address. For IPv6, a u32 with flow information is before the address, and a u32 scope is
/// after the address.
fn socket_address(bytes: &[u8]) -> Option<String> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 23;
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match le::u16(bytes, 0)? {
        AF_INET => {
            let address: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(address), port).to_string())
        }
        AF_INET6 => {
            let address: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            let scope = le::u32(bytes, 24).unwrap_or(0);
            Some(SocketAddrV6::new(Ipv6Addr::from(address), port, 0, scope).to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::BitField;

    fn field(name: &str, in_type: InType) -> Field {
        Field::new(name, in_type)
    }

    fn shown(name: &str, in_type: InType, out_type: OutType) -> Field {
        Field {
            out_type,
            ..field(name, in_type)
        }
    }

    fn counted(name: &str, in_type: InType, count: Count) -> Field {
        Field {
            count,
            ..field(name, in_type)
        }
    }

    fn sized(name: &str, in_type: InType, length: Length) -> Field {
        Field {
            length,
            ..field(name, in_type)
        }
    }

    fn one(field: Field, payload: &[u8]) -> String {
        let fields = decode(std::slice::from_ref(&field), payload, 8);
        assert_eq!(fields.truncated, None, "{field:?}");
        assert!(fields.tail.is_empty(), "{field:?}");
        format!("{}", fields.get(&field.name).unwrap())
    }

    fn text(fields: &Fields<'_>) -> String {
        Value::Struct(fields.values.clone()).to_string()
    }

    #[test]
    fn names_of_values_are_bounded_together() {
        // The map has two names of 32 KiB each. In every byte of the payload, the bits of both names are set.
        let name: Arc<str> = "n".repeat(32 << 10).into();
        let map = ValueMap {
            name: "map".into(),
            is_bitmap: true,
            entries: vec![(1, name.clone()), (2, name)],
        };
        let flags = Field {
            map: Some(Arc::new(map)),
            ..counted("flags", InType::U8, Count::Rest)
        };
        let payload = vec![3; 60_000];
        let fields = decode(&[flags], &payload, 8);
        let Some(Value::Array(values)) = fields.get("flags") else {
            panic!("{fields:?}")
        };
        assert_eq!(values.len(), payload.len());
        assert!(values.iter().all(|value| value.as_u64() == Some(3)));
        let named = values.iter().filter_map(Value::as_str);
        assert!(named.map(str::len).sum::<usize>() <= MAX_WORK);
    }

    #[test]
    fn long_names_of_many_fields_end_the_reading() {
        let name = "n".repeat(60 << 10);
        let item = InType::Struct(vec![field(&name, InType::U8)]);
        let fields = [counted("items", item, Count::Rest)];
        let payload = vec![0; 60_000];
        let fields = decode(&fields, &payload, 8);
        let Some(Value::Array(items)) = fields.get("items") else {
            panic!("{fields:?}")
        };
        assert!(items.len() * name.len() <= MAX_WORK, "{}", items.len());
        assert!(!items.is_empty() && !fields.tail.is_empty());
    }

    #[test]
    fn looking_for_lengths_is_bounded() {
        let mut fields: Vec<Field> = (0..30_000)
            .map(|i| field(&format!("f{i}"), InType::U8))
            .collect();
        fields.extend((0..30_000).map(|i| {
            let length = Length::Field("f29999".into());
            sized(&format!("t{i}"), InType::Ansi, length)
        }));
        let payload = vec![1; 60_000];
        let fields = decode(&fields, &payload, 8);
        assert!(fields.truncated.is_some());
        assert!(fields.values.len() > 30_000);
    }

    #[test]
    fn every_type_reads_its_bytes() {
        use InType::*;
        let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        let user: Vec<u8> = [[7; 16].as_slice(), &sid].concat();
        for (in_type, payload, text) in [
            (I8, &[0xff][..], "-1"),
            (U8, &[0xff], "255"),
            (I16, &[0xfe, 0xff], "-2"),
            (U16, &[1, 2], "513"),
            (I32, &[0xfd, 0xff, 0xff, 0xff], "-3"),
            (U32, &[1, 0, 0, 0x80], "2147483649"),
            (I64, &[0, 0, 0, 0, 0, 0, 0, 0x80], "-9223372036854775808"),
            (U64, &[0xff; 8], "18446744073709551615"),
            (F32, &[0, 0, 0xc0, 0x3f], "1.5"),
            (F64, &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f], "1.5"),
            (Bool32, &[0, 1, 0, 0], "true"),
            (Bool8, &[0], "false"),
            (Hex32, &[5, 0, 0, 0xc0], "0xc0000005"),
            (Hex64, &[5, 0, 0, 0, 0, 0, 0, 0], "0x5"),
            (
                Pointer,
                &[0, 0x10, 0, 0, 0, 0xf8, 0xff, 0xff],
                "0xfffff80000001000",
            ),
            (SizeT, &[0, 0x10, 0, 0, 0, 0, 0, 0], "4096"),
            (Utf16, b"h\0i\0\0\0", "hi"),
            (Utf16, b"h\0i\0", "hi"),
            (Utf16Rest, b"h\0i\0", "hi"),
            (CountedUtf16, b"\x04\0h\0i\0", "hi"),
            (ReverseCountedUtf16, b"\0\x04h\0i\0", "hi"),
            (Ansi, b"hi\0", "hi"),
            (Ansi, b"\xe4\0", "ä"),
            (AnsiRest, b"hi", "hi"),
            (CountedAnsi, b"\x02\0hi", "hi"),
            (ReverseCountedAnsi, b"\0\x02hi", "hi"),
            (Utf16Char, b"h\0", "h"),
            (AnsiChar, b"h", "h"),
            (Binary, &[1, 2], "0x0102"),
            (CountedBinary, &[1, 0, 9], "0x09"),
            (HexDump, &[1, 0, 0, 0, 9], "0x09"),
            (FileTime, &[0; 8], "1601-01-01T00:00:00.0000000Z"),
            (SystemTime, &[0; 16], "0000-00-00T00:00:00.000"),
            (Sid, &sid, "S-1-5-18"),
            (WbemSid, &user, "S-1-5-18"),
            (WbemSid, &[0; 4], ""),
            (Null, &[], ""),
        ] {
            assert_eq!(one(field("x", in_type), payload), text);
        }
        let guid = one(
            field("x", Guid),
            &[
                0xd1, 0xa8, 0x6f, 0x3d, 5, 0xfe, 0xd0, 0x11, 1, 2, 3, 4, 5, 6, 7, 8,
            ],
        );
        assert_eq!(guid, "3d6fa8d1-fe05-11d0-0102-030405060708");
    }

    #[test]
    fn out_types_change_the_showing() {
        use InType::*;
        let v6 = [0u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let inet = [2, 0, 0, 80, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let inet6 = [&[23u8, 0, 1, 0xbb, 0, 0, 0, 0][..], &v6, &[0; 4]].concat();
        for (in_type, out, payload, text) in [
            (U16, OutType::Port, &[0, 80][..], "80"),
            (U32, OutType::Ipv4, &[10, 0, 0, 1], "10.0.0.1"),
            (Binary, OutType::Ipv6, &v6, "::1"),
            (Binary, OutType::SocketAddress, &inet, "10.0.0.1:80"),
            (Binary, OutType::SocketAddress, &inet6, "[::1]:443"),
            (Binary, OutType::SocketAddress, &[9, 0, 1], "0x090001"),
            (Binary, OutType::Utf8, b"a\xc3\xa4", "aä"),
            (U8, OutType::Boolean, &[2], "true"),
            (U8, OutType::String, b"A", "A"),
            (I32, OutType::HResult, &[5, 0x40, 0, 0x80], "0x80004005"),
            (U32, OutType::NtStatus, &[3, 1, 0, 0], "0x103"),
            (U32, OutType::Win32Error, &[5, 0, 0, 0], "0x5"),
            (U32, OutType::Signed, &[0xff; 4], "-1"),
            (I8, OutType::Unsigned, &[0xff], "255"),
            (U64, OutType::CodePointer, &[1, 0, 0, 0, 0, 0, 0, 0], "0x1"),
        ] {
            assert_eq!(one(shown("x", in_type, out), payload), text);
        }
    }

    #[test]
    fn arrays_structs_and_lengths_follow_earlier_fields() {
        let pair = InType::Struct(vec![
            field("Count", InType::U8),
            counted("Items", InType::U16, Count::Field("Count".into())),
            sized("Text", InType::Ansi, Length::Field("Size".into())),
        ]);
        let fields = [
            field("Size", InType::U8),
            counted("Pairs", pair, Count::Prefix16),
            counted("Ids", InType::Pointer, Count::Rest),
        ];
        let payload = b"\x02\x02\0\x01\x07\0ab\0cd\x01\0\0\0\x02\0\0\0\xee";
        let decoded = decode(&fields, payload, 4);
        assert_eq!(
            text(&decoded),
            "{Size: 2, Pairs: [{Count: 1, Items: [7], Text: ab}, \
             {Count: 0, Items: [], Text: cd}], Ids: [0x1, 0x2]}"
        );
        assert_eq!((decoded.tail, decoded.truncated), (&[0xee][..], None));
    }

    #[test]
    fn bits_and_names_are_shown() {
        let bit = |name: &str, low, width| BitField {
            name: name.into(),
            low,
            width,
        };
        let bits = vec![bit("Dpc", 0, 1), bit("Priority", 3, 5)];
        assert_eq!(
            one(
                Field {
                    bits,
                    ..field("Flags", InType::U8)
                },
                &[0b0100_0001]
            ),
            "{Dpc: 1, Priority: 8}"
        );
        let map = |is_bitmap| {
            let entries = vec![
                (1, "Read".into()),
                (2, "Write".into()),
                (4, "Create".into()),
            ];
            Some(Arc::new(ValueMap {
                name: "Access".into(),
                is_bitmap,
                entries,
            }))
        };
        for (is_bitmap, value, text) in [
            (false, 2, "Write"),
            (false, 3, "3"),
            (true, 5, "Read|Create"),
            (true, 0x12, "Write|0x10"),
            (true, 0, "0"),
        ] {
            assert_eq!(
                one(
                    Field {
                        map: map(is_bitmap),
                        ..field("x", InType::U8)
                    },
                    &[value]
                ),
                text
            );
        }
    }

    #[test]
    fn a_short_payload_keeps_what_it_holds() {
        let fields = [
            field("A", InType::U16),
            field("B", InType::U32),
            field("C", InType::U8),
        ];
        let decoded = decode(&fields, &[1, 0, 9, 9], 8);
        assert_eq!(text(&decoded), "{A: 1}");
        assert_eq!(decoded.tail, [9, 9]);
        assert_eq!(decoded.truncated.as_deref(), Some("B"));
        let wide = [counted("A", InType::U16, Count::Fixed(3))];
        let decoded = decode(&wide, &[1, 0, 2, 0, 3], 8);
        assert_eq!(text(&decoded), "{A: [1, 2]}");
        assert_eq!(
            (decoded.tail, decoded.truncated.as_deref()),
            (&[3][..], Some("A"))
        );
    }

    #[test]
    fn optional_fields_may_be_missing() {
        let fields = [
            field("A", InType::U8),
            Field {
                optional: true,
                ..field("B", InType::U32)
            },
            Field {
                optional: true,
                ..field("Name", InType::Utf16)
            },
        ];
        for (payload, text_, tail) in [
            (&[1][..], "{A: 1}", 0),
            (&[1, 2, 3], "{A: 1}", 2),
            (&[1, 2, 0, 0, 0], "{A: 1, B: 2}", 0),
            (&[1, 2, 0, 0, 0, 65, 0, 0, 0], "{A: 1, B: 2, Name: A}", 0),
        ] {
            let decoded = decode(&fields, payload, 8);
            assert_eq!((text(&decoded).as_str(), decoded.tail.len()), (text_, tail));
            assert_eq!(decoded.truncated, None);
        }
    }

    #[test]
    fn alignment_skips_to_the_next_pointer() {
        let fields = [
            field("A", InType::U32),
            field("", InType::Align),
            field("B", InType::Pointer),
        ];
        let wide = [1, 0, 0, 0, 9, 9, 9, 9, 2, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(text(&decode(&fields, &wide, 8)), "{A: 1, B: 0x2}");
        assert_eq!(
            text(&decode(&fields, &[1, 0, 0, 0, 2, 0, 0, 0], 4)),
            "{A: 1, B: 0x2}"
        );
        assert_eq!(
            decode(&fields, &wide[..6], 8).truncated.as_deref(),
            Some("B")
        );
    }

    #[test]
    fn hostile_counts_are_bounded() {
        let empty = InType::Struct(vec![]);
        let mut nested = counted("x", empty, Count::Fixed(u32::MAX));
        for _ in 0..100 {
            nested = counted("x", InType::Struct(vec![nested]), Count::Fixed(u32::MAX));
        }
        for fields in [
            vec![counted("x", InType::Null, Count::Fixed(u32::MAX))],
            vec![counted("x", InType::U64, Count::Fixed(u32::MAX))],
            vec![
                field("n", InType::U64),
                counted("x", InType::U8, Count::Field("n".into())),
            ],
            vec![
                field("n", InType::U64),
                sized("x", InType::Utf16, Length::Field("n".into())),
            ],
            vec![counted("x", InType::U8, Count::Field("absent".into()))],
            vec![nested],
        ] {
            let decoded = decode(&fields, &[0xff; 32], 8);
            assert_eq!(decoded.truncated.as_deref(), Some("x"));
        }
    }
}
