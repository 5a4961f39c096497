//! Builder of TraceLogging events. The builder adds each field to the schema and to the payload, so the two
//! are consistent.
//!
//! Source: the public TraceLogging headers (microsoft/TraceLogging, MIT) and the "provider traits" page of
//! Microsoft's documentation.

use super::payload::Payload;
use crate::guid::Guid;

/// A value of a TraceLogging field, with its type.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// UTF-16 text that ends with a NUL.
    Utf16(&'a str),
    /// UTF-8 text that ends with a NUL.
    Utf8(&'a str),
    /// UTF-16 text with its length before it; cut to 32767 units.
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
    /// Boolean of 4 bytes.
    Bool(bool),
    /// Bytes; cut to 65535 bytes.
    Binary(&'a [u8]),
    /// GUID.
    Guid(Guid),
    /// FILETIME: units of 100 ns since 1601 UTC.
    FileTime(i64),
    /// 32-bit number shown in hexadecimal.
    Hex32(u32),
    /// 64-bit number or pointer shown in hexadecimal.
    Hex64(u64),
}

/// Flag in the in-type. It means that an out-type follows.
const HAS_OUT_TYPE: u8 = 0x80;

/// Flag in the in-type of an array. It means that the payload contains the number of elements.
const VARIABLE_COUNT: u8 = 0x40;

/// In-type of a structure. A structure has its number of fields in the byte of the out-type.
const STRUCT: u8 = 24;

/// Maximum number of fields in a structure.
const MAX_MEMBERS: usize = 0x7F;

impl Value<'_> {
    /// Returns the in-type and the out-type as numbers. Out-type 0 means the default.
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

/// A TraceLogging event under construction: its schema and its payload.
#[derive(Clone, Debug)]
pub struct TraceLogging {
    /// Name and fields of the schema. In the complete schema, the size and the tags come before them.
    names: Payload,
    payload: Payload,
}

impl TraceLogging {
    /// Creates an event with this name and no fields.
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

    /// Adds an array. All values have the type of `like`. At most 65535 values are kept.
    ///
    /// # Panics
    /// Panics if a value has another type.
    pub fn array(
        &mut self,
        name: &str,
        like: Value<'_>,
        values: &[Value<'_>],
    ) -> &mut TraceLogging {
        let types = like.types();
        assert!(
            values.iter().all(|value| value.types() == types),
            "all values of an array must have one type"
        );
        self.declare(name, types, VARIABLE_COUNT);
        let values = &values[..values.len().min(0xFFFF)];
        self.payload.u16(values.len() as u16);
        for value in values {
            value.put(&mut self.payload);
        }
        self
    }

    /// Adds a structure. The next `members` fields that the caller adds belong to the structure. A nested
    /// structure counts as one field.
    ///
    /// # Panics
    /// Panics if `members` is more than 127.
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

    /// Returns the data of the [`crate::ext_type::TRACELOGGING_SCHEMA`] item. All events with these fields
    /// have the same schema, so the caller can reuse the data.
    pub fn schema(&self) -> Payload {
        let mut schema = Payload::new();
        let size = 3 + self.names.len();
        // If the size exceeds the range of a u16, the schema is too large for a record. The writer then returns an
        // error.
        schema.u16(size as u16).u8(0).bytes(&self.names);
        schema
    }

    /// Returns the payload.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Returns the data of a [`crate::ext_type::PROVIDER_TRAITS`] item: the provider's name and its
/// group. If the name is too long for a record, the writer returns an error.
pub fn provider_traits(name: &str, group: Option<Guid>) -> Payload {
    /// Size of a trait's header in bytes: its size and type fields.
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
