//! Numbers and names of the field types in manifests and in `TRACE_EVENT_INFO`.
//!
//! Source: `TDH_IN_TYPE` and `TDH_OUT_TYPE` of the public `tdh.h`, and the manifest schema's
//! `inType`/`outType` names (Microsoft's ETW reference).

use crate::schema::{InType, Length, OutType};

/// In-types (layouts of fields). Each entry has the number in `TRACE_EVENT_INFO`, the name in a manifest
/// without its prefix (`win:`, `trace:`), and the type in this crate.
const IN_TYPES: [(u16, &str, InType); 37] = [
    (0, "Null", InType::Null),
    (1, "UnicodeString", InType::Utf16),
    (2, "AnsiString", InType::Ansi),
    (3, "Int8", InType::I8),
    (4, "UInt8", InType::U8),
    (5, "Int16", InType::I16),
    (6, "UInt16", InType::U16),
    (7, "Int32", InType::I32),
    (8, "UInt32", InType::U32),
    (9, "Int64", InType::I64),
    (10, "UInt64", InType::U64),
    (11, "Float", InType::F32),
    (12, "Double", InType::F64),
    (13, "Boolean", InType::Bool32),
    (14, "Binary", InType::Binary),
    (15, "GUID", InType::Guid),
    (16, "Pointer", InType::Pointer),
    (17, "FILETIME", InType::FileTime),
    (18, "SYSTEMTIME", InType::SystemTime),
    (19, "SID", InType::Sid),
    (20, "HexInt32", InType::Hex32),
    (21, "HexInt64", InType::Hex64),
    (22, "CountedUnicodeString", InType::CountedUtf16),
    (23, "CountedAnsiString", InType::CountedAnsi),
    (25, "CountedBinary", InType::CountedBinary),
    (300, "CountedString", InType::CountedUtf16),
    (301, "CountedAnsiString", InType::CountedAnsi),
    (302, "ReversedCountedString", InType::ReverseCountedUtf16),
    (303, "ReversedCountedAnsiString", InType::ReverseCountedAnsi),
    (304, "NonNullTerminatedString", InType::Utf16Rest),
    (305, "NonNullTerminatedAnsiString", InType::AnsiRest),
    (306, "UnicodeChar", InType::Utf16Char),
    (307, "AnsiChar", InType::AnsiChar),
    (308, "SizeT", InType::SizeT),
    (309, "HexDump", InType::HexDump),
    (310, "WBEMSid", InType::WbemSid),
    (310, "WbemSid", InType::WbemSid),
];

/// Out-types (display formats of fields). Each entry has the number in `TRACE_EVENT_INFO`, the name in a
/// manifest without its prefix (`xs:`, `win:`), and the type in this crate. Numbers 3 to 10 alternate between
/// signed and unsigned integers.
const OUT_TYPES: [(u16, &str, OutType); 38] = [
    (1, "string", OutType::String),
    (2, "dateTime", OutType::DateTime),
    (3, "byte", OutType::Signed),
    (4, "unsignedByte", OutType::Unsigned),
    (5, "short", OutType::Signed),
    (6, "unsignedShort", OutType::Unsigned),
    (7, "int", OutType::Signed),
    (8, "unsignedInt", OutType::Unsigned),
    (9, "long", OutType::Signed),
    (10, "unsignedLong", OutType::Unsigned),
    (13, "boolean", OutType::Boolean),
    (14, "GUID", OutType::Guid),
    (15, "hexBinary", OutType::Default),
    (16, "HexInt8", OutType::Hex),
    (17, "HexInt16", OutType::Hex),
    (18, "HexInt32", OutType::Hex),
    (19, "HexInt64", OutType::Hex),
    (20, "PID", OutType::ProcessId),
    (21, "TID", OutType::ThreadId),
    (22, "Port", OutType::Port),
    (23, "IPv4", OutType::Ipv4),
    (24, "IPv6", OutType::Ipv6),
    (25, "SocketAddress", OutType::SocketAddress),
    (26, "CIMDateTime", OutType::DateTime),
    (27, "ETWTIME", OutType::DateTime),
    (28, "Xml", OutType::Xml),
    (29, "ErrorCode", OutType::Win32Error),
    (30, "Win32Error", OutType::Win32Error),
    (31, "NTSTATUS", OutType::NtStatus),
    (32, "HResult", OutType::HResult),
    (33, "DateTimeCultureInsensitive", OutType::DateTime),
    (34, "Json", OutType::Json),
    (35, "Utf8", OutType::Utf8),
    (37, "CodePointer", OutType::CodePointer),
    (38, "DateTimeUtc", OutType::DateTime),
    (300, "ReducedString", OutType::String),
    (301, "NoPrint", OutType::NoPrint),
    (301, "noPrint", OutType::NoPrint),
];

/// Returns the in-type with number `number` and the out-type with number `out`. Returns `None` if
/// the in-type is unknown.
pub(crate) fn by_number(number: u16, out: u16) -> Option<(InType, OutType)> {
    let (_, _, in_type) = IN_TYPES.iter().find(|(n, ..)| *n == number)?;
    let out_type = OUT_TYPES
        .iter()
        .find(|(n, ..)| *n == out)
        .map(|(.., out_type)| *out_type);
    Some(shown(in_type.clone(), out_type))
}

/// Returns the in-type and out-type with the names `in_name` and `out_name` in a manifest. Ignores
/// the prefixes, because only two namespaces exist. Returns `None` if the in-type is unknown.
pub(crate) fn by_name(in_name: &str, out_name: Option<&str>) -> Option<(InType, OutType)> {
    let local = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
    let in_name = local(in_name);
    let (_, _, in_type) = IN_TYPES.iter().find(|(_, name, _)| *name == in_name)?;
    let out_type = out_name.map(local).and_then(|out_name| {
        let entry = OUT_TYPES
            .iter()
            .find(|(_, name, _)| name.eq_ignore_ascii_case(&out_name));
        entry.map(|(.., out_type)| *out_type)
    });
    Some(shown(in_type.clone(), out_type))
}

/// Simplifies a pair of types. If the out-type only repeats the in-type, the out-type becomes the default. If
/// an 8-bit or 16-bit integer has the out-type `string`, the in-type becomes a character.
fn shown(in_type: InType, out_type: Option<OutType>) -> (InType, OutType) {
    use InType::*;
    let out_type = out_type.unwrap_or(OutType::Default);
    match (in_type, out_type) {
        (I8 | U8, OutType::String) => (AnsiChar, OutType::Default),
        (I16 | U16, OutType::String) => (Utf16Char, OutType::Default),
        (t @ (I8 | I16 | I32 | I64), OutType::Signed) => (t, OutType::Default),
        (t @ (U8 | U16 | U32 | U64 | SizeT), OutType::Unsigned) => (t, OutType::Default),
        (t @ (Hex32 | Hex64 | Pointer), OutType::Hex) => (t, OutType::Default),
        (t @ (FileTime | SystemTime), OutType::DateTime) => (t, OutType::Default),
        (Bool32, OutType::Boolean) => (Bool32, OutType::Default),
        (Guid, OutType::Guid) => (Guid, OutType::Default),
        (t @ Binary, out) => (t, out),
        (t, OutType::String) => (t, OutType::Default),
        other => other,
    }
}

/// Returns the length of a field whose description states `length`. Only strings and binary fields use the
/// stated length. All other fields have the natural length of `in_type`, and so have strings with the stated
/// length 0. A binary IPv6 address without a stated length has 16 bytes.
pub(crate) fn length(in_type: &InType, out_type: OutType, length: Length) -> Length {
    match (in_type, length) {
        (InType::Utf16 | InType::Ansi, Length::Fixed(0)) => Length::Natural,
        (InType::Binary, Length::Fixed(0) | Length::Natural) if out_type == OutType::Ipv6 => {
            Length::Fixed(16)
        }
        (InType::Utf16 | InType::Ansi | InType::Binary, length) => length,
        _ => Length::Natural,
    }
}

/// Reads a number from a manifest. It is decimal, or hexadecimal after `0x`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the name that trace viewers show for an event. This is the task and the opcode, for example
/// `ProcessStart/Start`. The opcode `Info` is left out. If the event has no task, returns the event's name.
/// If the event also has no name, returns its number.
pub(crate) fn event_name(
    task: Option<&str>,
    opcode: Option<&str>,
    name: Option<&str>,
    id: u16,
) -> String {
    let plain = |text: &str| text.strip_prefix("win:").unwrap_or(text).trim().to_owned();
    let task = task
        .map(plain)
        .filter(|task| !task.is_empty() && task != "None");
    let opcode = opcode
        .map(plain)
        .filter(|opcode| !opcode.is_empty() && opcode != "Info");
    let name = name.map(plain).filter(|name| !name.is_empty());
    match (task, name, opcode) {
        (None, Some(name), _) => name,
        (Some(task), _, None) => task,
        (Some(task), _, Some(opcode)) => format!("{task}/{opcode}"),
        (None, None, None) => format!("EventID({id})"),
        (None, None, Some(opcode)) => format!("EventID({id})/{opcode}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(
            by_name("win:UInt64", Some("win:HexInt64")),
            by_number(10, 19)
        );
        assert_eq!(
            by_name("win:UInt64", Some("win:HexInt64")),
            Some((InType::U64, OutType::Hex))
        );
        assert_eq!(by_name("win:UInt16", Some("xs:string")), by_number(6, 1));
        assert_eq!(
            by_name("win:UInt32", Some("xs:unsignedInt")),
            by_number(8, 8)
        );
        assert_eq!(by_number(8, 8), Some((InType::U32, OutType::Default)));
        assert_eq!(by_name("trace:SizeT", None), by_number(308, 0));
        assert_eq!(by_name("win:Nonsense", None), None);
        assert_eq!(by_number(24, 0), None);
    }

    #[test]
    fn events_are_named_like_viewers_do() {
        assert_eq!(
            event_name(Some("ProcessStart"), Some("win:Start"), None, 1),
            "ProcessStart/Start"
        );
        assert_eq!(
            event_name(Some("DnsServer"), Some("win:Info"), None, 1),
            "DnsServer"
        );
        assert_eq!(
            event_name(None, Some("win:Info"), None, 1001),
            "EventID(1001)"
        );
        assert_eq!(event_name(None, None, Some("Tick"), 5), "Tick");
        assert_eq!(event_name(Some("win:None"), None, None, 5), "EventID(5)");
    }
}
