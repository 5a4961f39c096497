//! Checks the decoding of real kernel payloads. The expected values are from the tests of another decoder,
//! Google's libtrace.
//!
//! Payloads and expected values are from libtrace's unit tests (`vectors/kernel-payload-vectors.json`). The
//! tables here list the names that differ between libtrace and our decoder, and the fields that only our
//! decoder reads.

use events::schema::{Field, InType, OutType};
use events::{Value, decode};
use serde_json::Value as Json;

use crate::vectors;

use vectors::vectors;

/// Classes with different names. Each entry has the name in libtrace and our name.
const CLASSES: &[(&str, &str)] = &[
    ("EventTraceEvent", "EventTrace"),
    ("Tcplp", "TcpIp"),
    ("FileIO", "FileIo"),
    ("DiskIO", "DiskIo"),
];

/// Events with different names. Each entry has the name in libtrace and our name.
const EVENTS: &[(&str, &str)] = &[
    ("SampleProf", "SampledProfile"),
    ("SysClEnter", "SysCallEnter"),
    ("SysClExit", "SysCallExit"),
    ("AutoBoostEntryExhaustion", "AutoBoostNoEntries"),
];

/// Fields with different names. Each entry has the event, the name in libtrace and our names. If several of
/// our fields share the bytes of one field of libtrace, the entry lists all of them.
const FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "Header",
        "Version",
        &[
            "VersionMajor",
            "VersionMinor",
            "SubVersion",
            "SubMinorVersion",
        ],
    ),
    ("Header", "LoggerName", &["LoggerNamePtr"]),
    ("Header", "LogFileName", &["LogFileNamePtr"]),
    ("Header", "Padding", &["Pad"]),
    ("Header", "SessionNameString", &["SessionName"]),
    ("Header", "LogFileNameString", &["LogFileName"]),
    ("SampledProfile", "Reserved", &["Flags", "Rank"]),
    (
        "CSwitch",
        "PreviousCState",
        &["PreviousCStateOrOldThreadRank"],
    ),
    ("CSwitch", "SpareByte", &["NewThreadPriorityDecrement"]),
    (
        "CSwitch",
        "OldThreadWaitIdealProcessor",
        &["OldThreadIdealProcessor"],
    ),
    ("CSwitch", "Reserved", &["OldThreadRemainingQuantum"]),
    ("SpinLock", "Flag", &["Flags"]),
    ("SetPriority", "Reserved", &["DynamicPriority", "Reserved"]),
    (
        "SetBasePriority",
        "Reserved",
        &["DynamicPriority", "Reserved"],
    ),
    (
        "SetPagePriority",
        "Reserved",
        &["DynamicPriority", "Reserved"],
    ),
    (
        "SetIoPriority",
        "Reserved",
        &["DynamicPriority", "Reserved"],
    ),
    ("ReadyThread", "Flag", &["Flags"]),
    ("ReadyThread", "Reserved", &["Spare"]),
    ("AutoBoostSetFloor", "BoostFlags", &["Flags"]),
    ("AutoBoostClearFloor", "LockAddress", &["Lock"]),
    ("Stack", "Stack", &["Addresses"]),
    // These names are for image events of version 1 and later. For version 0, our names are equal to the
    // names in libtrace.
    ("*", "BaseAddress", &["ImageBase"]),
    ("*", "ModuleSize", &["ImageSize"]),
    ("*", "ImageCheckSum", &["ImageChecksum"]),
    ("*", "ImageFileName", &["FileName"]),
];

/// Fields that only our decoder reads. Each entry has the event and the name of the field. A comment states
/// the reason.
const ONLY_OURS: &[(&str, &str)] = &[
    ("DebuggerEnabled", "Unknown"), // libtrace leaves the payload's only byte unread
    ("Start", "Pad"),               // padding of the C structure
    ("AutoBoostNoEntries", "Pad"),  // padding of the C structure
    ("Read", "ExtraFlags"),         // appended without a new version
    ("Write", "ExtraFlags"),        // appended without a new version
];

fn renamed<'a>(names: &[(&str, &'a str)], theirs: &'a str) -> &'a str {
    names
        .iter()
        .find(|(name, _)| *name == theirs)
        .map_or(theirs, |(_, ours)| ours)
}

/// Returns the text of the C++ string literals in `code`. The literals are joined as a C++ compiler joins
/// them.
fn literals(code: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => inside = !inside,
            '\\' => text.push(chars.next().unwrap()),
            _ if inside => text.push(c),
            _ => {}
        }
    }
    text
}

/// Returns a part of a test's code. The part begins after `start` and ends before the next `end`.
fn after<'a>(code: &'a str, start: &str, end: &str) -> &'a str {
    let rest = code
        .split_once(start)
        .unwrap_or_else(|| panic!("no `{start}` in {code}"))
        .1;
    rest.split_once(end).unwrap().0
}

fn text_of(body: &str, value: &str) -> String {
    if value.contains('"') {
        return literals(value);
    }
    // The value is not a literal, but the name of a constant in the test. The constant is defined as `const
    // std::wstring name = L"…";` or `name(L"…");`
    let constants = ["string ", "wstring "]
        .into_iter()
        .flat_map(|ty| body.split(ty).skip(1));
    let constant = constants
        .filter_map(|code| code.strip_prefix(value))
        .find(|code| code.trim_start().starts_with(['=', '(']));
    let code = constant.unwrap_or_else(|| panic!("no constant {value}"));
    let mut inside = false;
    let end = code.find(|c| {
        inside ^= c == '"';
        c == ';' && !inside
    });
    literals(&code[..end.unwrap()])
}

fn numbers(code: &str) -> Vec<u64> {
    let words = code
        .split([',', ' ', '\n'])
        .map(str::trim)
        .filter(|word| !word.is_empty());
    words
        .map(
            |word| match word.trim_end_matches("ULL").strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                None => word.trim_end_matches("ULL").parse().unwrap(),
            },
        )
        .collect()
}

/// Converts the decoded value of an integer field back to the bytes of the payload.
fn bytes(field: &Field, value: &Value<'_>, pointer_size: usize) -> Vec<u8> {
    let width = match field.in_type {
        InType::I8 | InType::U8 | InType::Bool8 => 1,
        InType::I16 | InType::U16 => 2,
        InType::I32 | InType::U32 | InType::Hex32 => 4,
        InType::I64 | InType::U64 | InType::FileTime => 8,
        InType::Pointer | InType::SizeT => pointer_size,
        InType::Binary => match value {
            Value::Bytes(bytes) => return bytes.to_vec(),
            _ => panic!("{field:?}"),
        },
        _ => panic!("{field:?} is no integer"),
    };
    let bits = match value {
        Value::Int(value) => *value as u64,
        Value::Ipv4(address) => u32::from_le_bytes(address.octets()).into(),
        Value::Struct(bits) => field
            .bits
            .iter()
            .zip(bits)
            .map(|(bit, (_, v))| v.as_u64().unwrap() << bit.low)
            .sum(),
        value => value.as_u64().unwrap(),
    };
    let mut bytes = bits.to_le_bytes()[..width].to_vec();
    if field.out_type == OutType::Port {
        bytes.reverse();
    }
    bytes
}

/// Returns the bytes that the payload must have for a number in the JSON file.
fn expected_bytes(expected: &Json) -> Vec<u8> {
    let width = match expected["type"].as_str().unwrap() {
        "CharValue" | "UCharValue" => 1,
        "ShortValue" | "UShortValue" => 2,
        "IntValue" | "UIntValue" => 4,
        "LongValue" | "ULongValue" => 8,
        other => panic!("{other}"),
    };
    let value = &expected["value"];
    let value = value.as_u64().or(value.as_i64().map(|v| v as u64)).unwrap();
    value.to_le_bytes()[..width].to_vec()
}

/// Checks a field that is not a plain number or text. Compares its value with the expected value in the
/// test's code. Returns the name of the field.
fn check_complex(body: &str, code: &str, value: &Value<'_>) -> &'static str {
    match (after(code, "AddField(\"", "\""), value) {
        ("UserSID", Value::Sid(sid)) => {
            let expected = numbers(after(body, "sid[] = {", "}"));
            assert_eq!(
                sid.iter().map(|b| u64::from(*b)).collect::<Vec<_>>(),
                expected
            );
            "UserSID"
        }
        ("Stack", Value::Array(addresses)) => {
            let expected = numbers(after(body, "kStackValues[] = {", "}"));
            assert_eq!(
                addresses
                    .iter()
                    .filter_map(Value::as_u64)
                    .collect::<Vec<_>>(),
                expected
            );
            "Stack"
        }
        ("Reserved", Value::Bytes(bytes)) => {
            assert!(body.contains("i < 5") && body.contains("Append<UCharValue>(0)"));
            assert_eq!(bytes, &[0; 5]);
            "Reserved"
        }
        ("TimeZoneInformation", Value::Struct(zone)) => {
            for (name, value) in zone {
                let code = after(body, &format!("(\"{name}\","), ";");
                match value {
                    Value::Int(value) => {
                        let text = code.trim().trim_end_matches(')');
                        let expected = match text.strip_prefix("0x") {
                            Some(hex) => i64::from_str_radix(hex, 16),
                            None => text.parse(),
                        };
                        assert_eq!(Ok(*value), expected, "{name}");
                    }
                    Value::Text(text) => {
                        assert_eq!(*text, text_of(body, code.trim().trim_end_matches(')')));
                    }
                    Value::SystemTime(time) => {
                        let expected = numbers(after(code, "MakeSystemTime(", ")"));
                        assert_eq!(time.map(u64::from).to_vec(), expected, "{name}");
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(zone.len(), 7);
            "TimeZoneInformation"
        }
        (name, value) => panic!("{name}: {value:?}"),
    }
}

#[test]
fn all_vectors_decode_to_their_expected_fields() {
    let (mut compared, mut fields_compared, mut complex_compared) = (0, 0, 0);
    for vector in vectors() {
        let (test, class, json) = (&vector.test, vector.class, &vector.json);
        let body = json["body"].as_str().unwrap_or_default();
        assert_eq!(
            class.name,
            renamed(CLASSES, json["category"].as_str().unwrap()),
            "{test}"
        );
        let event = class.event_name(vector.opcode).unwrap();
        let schema = class
            .layout(vector.opcode, vector.version)
            .unwrap_or_else(|| panic!("{test}: no layout"));
        // libtrace uses the names `CollectionStart` and `CollectionEnd` for two kinds of rundown. So the test
        // does not compare these names.
        if !event.contains("ProfileDC") && !event.contains("SpinLockDC") {
            assert_eq!(
                event,
                renamed(EVENTS, json["operation"].as_str().unwrap()),
                "{test}"
            );
        }

        let decoded = decode(&schema.fields, &vector.payload, vector.pointer_size);
        assert_eq!(
            (decoded.truncated.as_deref(), decoded.tail),
            (None, &[][..]),
            "{test}"
        );
        let mut unread: Vec<&str> = decoded.values.iter().map(|(name, _)| &**name).collect();
        let ours = |theirs: &str| -> Vec<String> {
            let renamed = FIELDS.iter().find(|(of, name, ours)| {
                (*of == event || *of == "*" && decoded.get(ours[0]).is_some()) && *name == theirs
            });
            match renamed {
                Some((_, _, ours)) => ours.iter().map(|name| name.to_string()).collect(),
                None => vec![theirs.to_owned()],
            }
        };
        let mut read = |name: &str| unread.retain(|unread| *unread != name);
        let value_of = |name: &str| {
            decoded
                .get(name)
                .unwrap_or_else(|| panic!("{test}: {name} was not decoded"))
        };

        for expected in json["fields"].as_array().unwrap() {
            let theirs = expected["name"].as_str().unwrap();
            let names = ours(theirs);
            if let Some(text) = expected["value"].as_str() {
                let value = value_of(&names[0]).as_str().unwrap();
                assert_eq!(value, text_of(body, text), "{test}: {theirs}");
                read(&names[0]);
            } else {
                let mut found = Vec::new();
                for name in &names {
                    let field = schema
                        .fields
                        .iter()
                        .find(|field| *field.name == **name)
                        .unwrap();
                    found.extend(bytes(field, value_of(name), vector.pointer_size));
                    read(name);
                }
                assert_eq!(found, expected_bytes(expected), "{test}: {theirs}");
            }
            fields_compared += 1;
        }
        for code in json["complex_fields"].as_array().unwrap() {
            let code = code.as_str().unwrap();
            let name = &ours(after(code, "AddField(\"", "\""))[0];
            check_complex(body, code, value_of(name));
            read(name);
            complex_compared += 1;
        }
        unread.retain(|name| !ONLY_OURS.contains(&(event, name)));
        assert_eq!(unread, [""; 0], "{test}: decoded but not expected");
        compared += 1;
    }
    // The test compares all 181 payloads. They have 1,162 plain fields, and 18 other fields: 14
    // SIDs, two time zones, one stack and one reserved array.
    assert_eq!(
        (compared, fields_compared, complex_compared),
        (181, 1162, 18)
    );
}
