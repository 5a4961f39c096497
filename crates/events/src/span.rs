//! Byte ranges of the values in a payload. With these ranges, a caller can change values in place.

use std::ops::Range;
use std::sync::Arc;

use crate::schema::{Count, Field, InType, OutType};

/// Byte range of one value. The value is neither a structure nor an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Name of the value's field.
    pub name: Arc<str>,
    /// Kind of the value.
    pub content: Content,
    /// Byte range in the payload. The range includes the NUL after a text. It excludes the length before a
    /// value and the TOKEN_USER image before a SID.
    pub bytes: Range<usize>,
}

/// Kind of a value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text in UTF-16.
    Utf16,
    /// Text of 8-bit characters.
    Ansi,
    /// A security identifier. The range is empty if there is no SID.
    Sid,
    /// An IPv4 or IPv6 address.
    IpAddress,
    /// A socket address (`SOCKADDR`).
    SocketAddress,
    /// Bytes of unknown meaning, a single character, or an element of an array of small integers.
    Opaque,
    /// A number, GUID, time or boolean.
    Number,
}

/// Byte ranges of all values in a payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Byte ranges in payload order, without overlap.
    pub values: Vec<Span>,
    /// Offset of the first byte that no field describes.
    pub tail: usize,
    /// True if the payload is long enough for all fields.
    pub is_complete: bool,
}

impl Span {
    /// Returns the span of a value that was read from the bytes `from..to`.
    pub(crate) fn new(field: &Field, from: usize, to: usize, pointer_size: usize) -> Span {
        let content = content(field);
        let before = match field.in_type {
            InType::CountedUtf16
            | InType::CountedAnsi
            | InType::ReverseCountedUtf16
            | InType::ReverseCountedAnsi
            | InType::CountedBinary => 2,
            InType::HexDump => 4,
            // If there is no SID, the value contains only a u32 with the value 0.
            InType::WbemSid => (2 * pointer_size).min(to - from),
            _ => 0,
        };
        Span {
            name: field.name.clone(),
            content,
            bytes: from + before..to,
        }
    }
}

fn content(field: &Field) -> Content {
    match field.out_type {
        OutType::Ipv4 | OutType::Ipv6 => return Content::IpAddress,
        OutType::SocketAddress => return Content::SocketAddress,
        _ => {}
    }
    match field.in_type {
        InType::Utf16 | InType::Utf16Rest | InType::CountedUtf16 | InType::ReverseCountedUtf16 => {
            Content::Utf16
        }
        InType::Ansi | InType::AnsiRest | InType::CountedAnsi | InType::ReverseCountedAnsi => {
            Content::Ansi
        }
        InType::Sid | InType::WbemSid => Content::Sid,
        // The out-type is GUID, so these 16 bytes are a GUID.
        InType::Binary if field.out_type == OutType::Guid => Content::Number,
        InType::Binary
        | InType::CountedBinary
        | InType::HexDump
        | InType::Utf16Char
        | InType::AnsiChar => Content::Opaque,
        InType::I8 | InType::U8 | InType::I16 | InType::U16
            if field.count != Count::One || field.out_type == OutType::String =>
        {
            Content::Opaque
        }
        _ => Content::Number,
    }
}
