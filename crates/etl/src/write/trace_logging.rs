//! TraceLogging events: schema and payload made together, so that they cannot disagree.
//!
//! Source: the public TraceLogging headers (microsoft/TraceLogging, MIT) and the "provider traits"
//! page of Microsoft's documentation.

use super::payload::Payload;
use crate::guid::Guid;

/// A value of a TraceLogging field, with the type it is logged as.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Text in UTF-16, ended by a NUL.
    Utf16(&'a str),
    /// Text in UTF-8, ended by a NUL.
    Utf8(&'a str),
    /// Text in UTF-16, its length before it. At most 32767 units are kept.
    CountedUtf16(&'a str),
    /// Signed 8-bit number.
    I8(i8),
    /// Unsigned 8-bit number.
    U8(u8),
    /// Signed 16-bit number.
    I16(i16),
    /// Unsigned 16-bit number.
    U16(u16),
    /// Signed 32-bit number.
    I32(i32),
    /// Unsigned 32-bit number.
    U32(u32),
    /// Signed 64-bit number.
    I64(i64),
    /// Unsigned 64-bit number.
    U64(u64),
    /// Single-precision number.
    F32(f32),
    /// Double-precision number.
    F64(f64),
    /// Boolean, 4 bytes wide.
    Bool(bool),
    /// Bytes. At most 65535 are kept.
    Binary(&'a [u8]),
    /// GUID.
    Guid(Guid),
    /// 100 ns since 1601 UTC.
    FileTime(i64),
    /// 32-bit number to be shown in hexadecimal.
    Hex32(u32),
    /// 64-bit number or pointer to be shown in hexadecimal.
    Hex64(u64),
}

/// Set in the in-type if an out-type follows.
const HAS_OUT_TYPE: u8 = 0x80;

/// Set in the in-type of an array whose count stands in the payload.
const VARIABLE_COUNT: u8 = 0x40;

/// In-type of a structure; the number of its fields stands where others have an out-type.
const STRUCT: u8 = 24;

/// Most fields that a structure can say it has.
const MAX_MEMBERS: usize = 0x7F;

impl Value<'_> {
    /// In-type and out-type, 0 for the default one.
    fn types(&self) -> (u8, u8) {
        match self {
            Value::Utf16(_) => (1, 0),
            Value::Utf8(_) => (2, 0x23),
            Value::CountedUtf16(_) => (22, 0),
            Value::I8(_) => (3, 0),
            Value::U8(_) => (4, 0),
            Value::I16(_) => (5, 0),
            Value::U16(_) => (6, 0),
            Value::I32(_) => (7, 0),
            Value::U32(_) => (8, 0),
            Value::I64(_) => (9, 0),
            Value::U64(_) => (10, 0),
            Value::F32(_) => (11, 0),
            Value::F64(_) => (12, 0),
            Value::Bool(_) => (13, 0),
            Value::Binary(_) => (14, 0),
            Value::Guid(_) => (15, 0),
            Value::FileTime(_) => (17, 0),
            Value::Hex32(_) => (20, 0),
            Value::Hex64(_) => (21, 0),
        }
    }

    fn put(&self, payload: &mut Payload) {
        match *self {
            Value::Utf16(text) => payload.utf16_z(text),
            Value::Utf8(text) => payload.utf8_z(text),
            Value::CountedUtf16(text) => {
                let units: Vec<u16> = text.encode_utf16().take(0x7FFF).collect();
                payload.u16(2 * units.len() as u16);
                units
                    .iter()
                    .fold(payload, |payload, unit| payload.u16(*unit))
            }
            Value::I8(x) => payload.bytes(&x.to_le_bytes()),
            Value::U8(x) => payload.u8(x),
            Value::I16(x) => payload.bytes(&x.to_le_bytes()),
            Value::U16(x) => payload.u16(x),
            Value::I32(x) => payload.bytes(&x.to_le_bytes()),
            Value::U32(x) | Value::Hex32(x) => payload.u32(x),
            Value::I64(x) | Value::FileTime(x) => payload.i64(x),
            Value::U64(x) | Value::Hex64(x) => payload.u64(x),
            Value::F32(x) => payload.bytes(&x.to_le_bytes()),
            Value::F64(x) => payload.bytes(&x.to_le_bytes()),
            Value::Bool(x) => payload.u32(x.into()),
            Value::Binary(bytes) => {
                let bytes = &bytes[..bytes.len().min(0xFFFF)];
                payload.u16(bytes.len() as u16).bytes(bytes)
            }
            Value::Guid(guid) => payload.guid(guid),
        };
    }
}

/// A TraceLogging event in the making: its schema and its payload, field by field.
#[derive(Clone, Debug)]
pub struct TraceLogging {
    /// Name and fields, behind the size and the tags.
    names: Payload,
    payload: Payload,
}

impl TraceLogging {
    /// An event of this name, without fields.
    pub fn new(name: &str) -> TraceLogging {
        let mut names = Payload::new();
        names.utf8_z(name);
        TraceLogging {
            names,
            payload: Payload::new(),
        }
    }

    /// Adds a field.
    pub fn field(&mut self, name: &str, value: Value<'_>) -> &mut TraceLogging {
        self.declare(name, value.types(), 0);
        value.put(&mut self.payload);
        self
    }

    /// Adds an array. Its values are of one type, that of `like`; at most 65535 are kept.
    ///
    /// # Panics
    /// If a value is of another type.
    pub fn array(
        &mut self,
        name: &str,
        like: Value<'_>,
        values: &[Value<'_>],
    ) -> &mut TraceLogging {
        let types = like.types();
        assert!(
            values.iter().all(|value| value.types() == types),
            "the values of an array are of one type"
        );
        self.declare(name, types, VARIABLE_COUNT);
        let values = &values[..values.len().min(0xFFFF)];
        self.payload.u16(values.len() as u16);
        for value in values {
            value.put(&mut self.payload);
        }
        self
    }

    /// Adds a structure of the `members` fields that are added next. A structure inside counts as
    /// one.
    ///
    /// # Panics
    /// If there are more than 127.
    pub fn structure(&mut self, name: &str, members: usize) -> &mut TraceLogging {
        assert!(
            members <= MAX_MEMBERS,
            "a structure has at most 127 members"
        );
        self.names.utf8_z(name);
        self.names.u8(STRUCT | HAS_OUT_TYPE).u8(members as u8);
        self
    }

    fn declare(&mut self, name: &str, (in_type, out_type): (u8, u8), count: u8) {
        self.names.utf8_z(name);
        match out_type {
            0 => self.names.u8(in_type | count),
            _ => self.names.u8(in_type | count | HAS_OUT_TYPE).u8(out_type),
        };
    }

    /// Data of the [`crate::ext_type::TRACELOGGING_SCHEMA`] item. It is the same for all events
    /// with these fields, so it can be kept where many are logged.
    pub fn schema(&self) -> Payload {
        let mut schema = Payload::new();
        let size = 3 + self.names.len();
        // A record is no larger than a u16 says, so a larger schema is refused when it is logged.
        schema.u16(size as u16).u8(0).bytes(&self.names);
        schema
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Data of a [`crate::ext_type::PROVIDER_TRAITS`] item: the provider's name, and the group it
/// belongs to. A name too long for a record makes an item that no record can hold.
pub fn provider_traits(name: &str, group: Option<Guid>) -> Payload {
    /// Size and type of a trait's head.
    const HEAD: u16 = 3;
    const GROUP: u8 = 1;
    let mut body = Payload::new();
    body.utf8_z(name);
    if let Some(group) = group {
        body.u16(HEAD + 16).u8(GROUP).guid(group);
    }
    let mut traits = Payload::new();
    traits.u16((2 + body.len()) as u16).bytes(&body);
    traits
}
