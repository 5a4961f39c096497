//! Where in a payload its values stand, for those who change payloads in place.

use std::ops::Range;
use std::sync::Arc;

use crate::schema::{Count, Field, InType, OutType};

/// The place of one value that is no structure and no array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Name of the value's field.
    pub name: Arc<str>,
    /// What its bytes are.
    pub content: Content,
    /// Where they are in the payload. Lengths before them, and the image of a TOKEN_USER before a
    /// SID, are not among them; a NUL behind text is.
    pub bytes: Range<usize>,
}

/// What the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text in UTF-16.
    Utf16,
    /// Text of 8-bit units.
    Ansi,
    /// A security identifier, or nothing.
    Sid,
    /// An IPv4 or IPv6 address.
    IpAddress,
    /// A socket address (`SOCKADDR`).
    SocketAddress,
    /// Bytes of whatever meaning, a lone character, or an element of an array of small integers.
    Opaque,
    /// A number, GUID, time or boolean.
    Number,
}

/// Where the values of a payload stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// In the order of the payload, without overlap.
    pub values: Vec<Span>,
    /// Where the bytes begin that no field describes.
    pub tail: usize,
    /// All fields fitted into the payload.
    pub is_complete: bool,
}

impl Span {
    /// The span of a value that took the bytes `from..to`.
    pub(crate) fn new(field: &Field, from: usize, to: usize, pointer_size: usize) -> Span {
        let content = content(field);
        let before = match field.in_type {
            InType::CountedUtf16
            | InType::CountedAnsi
            | InType::ReverseCountedUtf16
            | InType::ReverseCountedAnsi
            | InType::CountedBinary => 2,
            InType::HexDump => 4,
            // No SID is a lone zero u32.
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
        // The out-type says that these 16 bytes are a GUID.
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
