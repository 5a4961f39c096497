//! TraceLogging: events that describe themselves.
//!
//! Extended item 11 of a TraceLogging event contains the event's name and fields. Item 12 contains
//! the name and group of the provider. Layouts follow the public TraceLogging headers
//! (`TraceLoggingProvider.h`, MIT) and the provider-traits page of Microsoft's ETW reference.

use std::sync::Arc;

use etl::{Event, Guid, ext_type, le};

use crate::schema::{Count, Field, InType, Length, OutType, Schema, Source};

/// Maximum depth of nested structs. Programs that write events have much lower limits.
const MAX_DEPTH: usize = 32;

/// Error in a TraceLogging schema. Offsets are in bytes from the start of the blob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceLoggingError {
    /// The blob states a size that exceeds its real size.
    #[error("TraceLogging schema states a size of {declared} bytes, found {found}")]
    Size {
        /// Size that the blob states.
        declared: usize,
        /// Real size in bytes.
        found: usize,
    },
    /// The blob ends inside an item.
    #[error("TraceLogging schema ends at byte {offset}, expected {expected}")]
    Truncated {
        /// Name of the missing item.
        expected: &'static str,
        /// Offset at which the item should begin.
        offset: usize,
    },
    /// A field has a type that the format does not define.
    #[error("field `{field}` has unknown TraceLogging type {in_type} at byte {offset}")]
    UnknownType {
        /// Name of the field.
        field: String,
        /// Type number of the field.
        in_type: u8,
        /// Offset of the type number.
        offset: usize,
    },
    /// Structs are nested too deeply.
    #[error("field `{field}` is nested in more than {MAX_DEPTH} structs")]
    TooDeep {
        /// Name of the field that is nested too deeply.
        field: String,
    },
}

/// Provider name and group (extended item 12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTraits<'a> {
    /// Name of the provider.
    pub name: &'a str,
    /// Provider group, if the provider belongs to one.
    pub group: Option<Guid>,
}

/// Returns the schema inside an event. Returns `None` if the event contains no schema.
///
/// # Errors
/// Returns the errors of [`parse_schema`].
pub fn schema(event: &Event<'_>) -> Option<Result<Schema, TraceLoggingError>> {
    let mut blob = None;
    let mut traits = None;
    for item in event.extended_items() {
        match item.ext_type {
            ext_type::TRACELOGGING_SCHEMA => blob = Some(item.data),
            ext_type::PROVIDER_TRAITS => traits = provider_traits(item.data),
            _ => {}
        }
    }
    let parsed = parse_schema(blob?);
    Some(parsed.map(|(name, fields)| Schema {
        provider: event.guid().unwrap_or_default(),
        provider_name: traits.map(|traits| traits.name.into()),
        name,
        message: None,
        source: Source::TraceLogging,
        fields,
    }))
}

/// Reads the data of extended item 12: the provider's name and group. Returns `None` if the name is not valid
/// UTF-8.
pub fn provider_traits(blob: &[u8]) -> Option<ProviderTraits<'_>> {
    let size = usize::from(le::u16(blob, 0)?);
    let body = blob.get(2..size.min(blob.len()))?;
    let end = body.iter().position(|b| *b == 0)?;
    let name = std::str::from_utf8(&body[..end]).ok()?;
    let mut rest = &body[end + 1..];
    let mut group = None;
    while let Some(size) = le::u16(rest, 0) {
        let Some(item) = rest.get(..usize::from(size)).filter(|item| item.len() >= 3) else {
            break;
        };
        if item[2] == 1 {
            group = Guid::read(&item[3..]);
        }
        rest = &rest[item.len()..];
    }
    Some(ProviderTraits { name, group })
}

/// Reads the data of extended item 11: the event's name and its fields.
///
/// # Errors
/// Returns an error if the blob is cut short, nests structs too deeply or has an undefined type.
pub fn parse_schema(blob: &[u8]) -> Result<(Arc<str>, Vec<Field>), TraceLoggingError> {
    let truncated = TraceLoggingError::Truncated {
        expected: "the schema's size",
        offset: 0,
    };
    let declared = usize::from(le::u16(blob, 0).ok_or(truncated)?);
    let bytes = blob.get(..declared).ok_or(TraceLoggingError::Size {
        declared,
        found: blob.len(),
    })?;
    let mut cursor = Cursor { bytes, at: 2 };
    cursor.skip_tags()?;
    let name = cursor.name("the event's name")?;
    let mut fields = Vec::new();
    while cursor.at < cursor.bytes.len() {
        fields.push(cursor.field(0)?);
    }
    Ok((name, fields))
}

/// Reader of a schema blob. Every read checks the bounds. If a read fails, its error names the expected item.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn truncated(&self, expected: &'static str) -> TraceLoggingError {
        TraceLoggingError::Truncated {
            expected,
            offset: self.at,
        }
    }

    fn u8(&mut self, expected: &'static str) -> Result<u8, TraceLoggingError> {
        let byte = *self
            .bytes
            .get(self.at)
            .ok_or_else(|| self.truncated(expected))?;
        self.at += 1;
        Ok(byte)
    }

    fn u16(&mut self, expected: &'static str) -> Result<u16, TraceLoggingError> {
        let value = le::u16(self.bytes, self.at).ok_or_else(|| self.truncated(expected))?;
        self.at += 2;
        Ok(value)
    }

    /// Reads UTF-8 text up to a NUL. Invalid bytes are replaced, because an event with a bad name should
    /// still be decoded.
    fn name(&mut self, expected: &'static str) -> Result<Arc<str>, TraceLoggingError> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let end = rest
            .iter()
            .position(|b| *b == 0)
            .ok_or_else(|| self.truncated(expected))?;
        self.at += end + 1;
        Ok(String::from_utf8_lossy(&rest[..end]).into())
    }

    /// Skips tag bytes. The last tag byte is the byte whose high bit is 0.
    fn skip_tags(&mut self) -> Result<(), TraceLoggingError> {
        while self.u8("tag bytes")? & 0x80 != 0 {}
        Ok(())
    }

    fn field(&mut self, depth: usize) -> Result<Field, TraceLoggingError> {
        let name = self.name("a field's name")?;
        if depth > MAX_DEPTH {
            return Err(TraceLoggingError::TooDeep {
                field: name.to_string(),
            });
        }
        let type_offset = self.at;
        let in_meta = self.u8("a field's type")?;
        let out_meta = if in_meta & 0x80 != 0 {
            self.u8("a field's out-type")?
        } else {
            0
        };
        if out_meta & 0x80 != 0 {
            self.skip_tags()?;
        }
        let (out_meta, in_type) = (out_meta & 0x7F, in_meta & 0x1F);
        let count = match in_meta & 0x60 {
            0x00 => Count::One,
            0x20 => Count::Fixed(self.u16("a field's count")?.into()),
            0x40 => Count::Prefix16,
            _ => return self.custom(name),
        };
        let in_type = match in_type {
            24 => {
                let members = (0..out_meta).map(|_| self.field(depth + 1));
                InType::Struct(members.collect::<Result<_, _>>()?)
            }
            _ => scalar(in_type, out_meta).ok_or_else(|| TraceLoggingError::UnknownType {
                field: name.to_string(),
                in_type,
                offset: type_offset,
            })?,
        };
        let out_type = match in_type {
            InType::Struct(_) => OutType::Default,
            _ => out_type(out_meta),
        };
        Ok(Field {
            out_type,
            count,
            ..Field::new(name, in_type)
        })
    }

    /// Reads a field with a custom encoding. The description of such a field is skipped, because only special
    /// readers understand it. In the payload, the field is a u16 length and then this number of bytes.
    fn custom(&mut self, name: Arc<str>) -> Result<Field, TraceLoggingError> {
        let size = usize::from(self.u16("the size of a custom type's description")?);
        if self.bytes.len() - self.at < size {
            return Err(self.truncated("a custom type's description"));
        }
        self.at += size;
        Ok(Field {
            length: Length::Natural,
            ..Field::new(name, InType::CountedBinary)
        })
    }
}

/// Returns the layout of the TraceLogging in-type `in_type`, or `None` if the type is unknown. An integer of 8
/// or 16 bits is a character if its out-type is 2 (string).
fn scalar(in_type: u8, out_meta: u8) -> Option<InType> {
    let is_text = out_meta == 2;
    Some(match in_type {
        0 => InType::Null,
        1 => InType::Utf16,
        2 => InType::Ansi,
        3 | 4 if is_text => InType::AnsiChar,
        3 => InType::I8,
        4 => InType::U8,
        5 | 6 if is_text => InType::Utf16Char,
        5 => InType::I16,
        6 => InType::U16,
        7 => InType::I32,
        8 => InType::U32,
        9 => InType::I64,
        10 => InType::U64,
        11 => InType::F32,
        12 => InType::F64,
        13 => InType::Bool32,
        14 | 25 => InType::CountedBinary,
        15 => InType::Guid,
        16 => InType::Pointer,
        17 => InType::FileTime,
        18 => InType::SystemTime,
        19 => InType::Sid,
        20 => InType::Hex32,
        21 => InType::Hex64,
        22 => InType::CountedUtf16,
        23 => InType::CountedAnsi,
        _ => return None,
    })
}

/// Returns the out-type for the TraceLogging number `out_meta`. Returns the default if the number is unknown.
fn out_type(out_meta: u8) -> OutType {
    match out_meta {
        1 => OutType::NoPrint,
        2 => OutType::String,
        3 => OutType::Boolean,
        4 => OutType::Hex,
        5 => OutType::ProcessId,
        6 => OutType::ThreadId,
        7 => OutType::Port,
        8 => OutType::Ipv4,
        9 => OutType::Ipv6,
        10 => OutType::SocketAddress,
        11 => OutType::Xml,
        12 => OutType::Json,
        13 => OutType::Win32Error,
        14 => OutType::NtStatus,
        15 => OutType::HResult,
        16 | 0x21 | 0x26 => OutType::DateTime,
        17 => OutType::Signed,
        18 => OutType::Unsigned,
        0x23 => OutType::Utf8,
        0x25 => OutType::CodePointer,
        _ => OutType::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a schema blob: its u16 size, then `body`.
    fn blob(body: &[u8]) -> Vec<u8> {
        let mut blob = ((body.len() + 2) as u16).to_le_bytes().to_vec();
        blob.extend_from_slice(body);
        blob
    }

    #[test]
    fn name_tags_and_scalars() {
        let blob = blob(b"\x81\x80\x00Start\0count\0\x08text\0\x81\x23letter\0\x86\x02");
        let (name, fields) = parse_schema(&blob).unwrap();
        assert_eq!(&*name, "Start");
        assert_eq!(fields[0], Field::new("count", InType::U32));
        let text = Field {
            out_type: OutType::Utf8,
            ..Field::new("text", InType::Utf16)
        };
        assert_eq!(fields[1], text);
        let letter = Field {
            out_type: OutType::String,
            ..Field::new("letter", InType::Utf16Char)
        };
        assert_eq!(fields[2], letter);
        assert_eq!(fields.len(), 3);
    }

    #[test]
    fn arrays_structs_custom_and_field_tags() {
        // The first field, `pair`, is an array of variable length with tags. Its elements are `struct { x u8;
        // inner struct { y f64 } }`. Three fields follow: a fixed array of three hex32, a custom field with a
        // description of two bytes, and a binary.
        let body = b"\0E\0pair\0\xD8\x82\x05x\0\x04inner\0\x98\x01y\0\x0Chex\0\x34\x03\0\
                     own\0\x6E\x02\0\xAA\xBBbin\0\x0E";
        let (_, fields) = parse_schema(&blob(body)).unwrap();
        let inner = InType::Struct(vec![Field::new("y", InType::F64)]);
        let members = vec![Field::new("x", InType::U8), Field::new("inner", inner)];
        let pair = Field::new("pair", InType::Struct(members));
        assert_eq!(
            fields[0],
            Field {
                count: Count::Prefix16,
                ..pair
            }
        );
        assert_eq!(
            fields[1],
            Field {
                count: Count::Fixed(3),
                ..Field::new("hex", InType::Hex32)
            }
        );
        assert_eq!(fields[2], Field::new("own", InType::CountedBinary));
        assert_eq!(fields[3], Field::new("bin", InType::CountedBinary));
        assert_eq!(fields.len(), 4);
    }

    #[test]
    fn malformed_blobs_are_refused() {
        use TraceLoggingError::*;
        assert!(matches!(
            parse_schema(&[5]),
            Err(Truncated { offset: 0, .. })
        ));
        assert_eq!(
            parse_schema(&[9, 0, 0]),
            Err(Size {
                declared: 9,
                found: 3
            })
        );
        assert!(matches!(
            parse_schema(&blob(b"\0E")),
            Err(Truncated { offset: 3, .. })
        ));
        assert!(matches!(
            parse_schema(&blob(b"\0E\0f\0")),
            Err(Truncated { offset: 7, .. })
        ));
        assert!(matches!(
            parse_schema(&blob(b"\0E\0f\0\x1F")),
            Err(UnknownType { in_type: 31, .. })
        ));
        // The struct states that it has two members, but only one member follows.
        assert!(matches!(
            parse_schema(&blob(b"\0E\0s\0\x98\x02x\0\x04")),
            Err(Truncated { .. })
        ));
        let deep = [b"\0E\0".to_vec(), b"s\0\x98\x01".repeat(10_000)].concat();
        assert!(matches!(parse_schema(&blob(&deep)), Err(TooDeep { .. })));
    }

    #[test]
    fn traits_name_provider_and_group() {
        let mut traits = blob(b"Contoso.Lamp\0\x13\0\x01");
        traits.extend_from_slice(&[7; 16]);
        traits[0] = traits.len() as u8;
        let expected = ProviderTraits {
            name: "Contoso.Lamp",
            group: Some(Guid([7; 16])),
        };
        assert_eq!(provider_traits(&traits), Some(expected));
        let plain = blob(b"Lamp\0");
        assert_eq!(
            provider_traits(&plain),
            Some(ProviderTraits {
                name: "Lamp",
                group: None
            })
        );
        for bad in [
            &b""[..],
            b"\x02\0",
            b"\x05\0abc",
            b"\x04\0\xFF\0",
            b"\0\0a\0",
        ] {
            assert_eq!(provider_traits(bad), None, "{bad:?}");
        }
    }
}
