//! Checks that the decoder reads the events and descriptions that `etl::write` writes.

use std::io::Cursor;

use etl::write::{
    Count, EventInfo, EventMap, FileVersion, ImageId, Injected, Length, Property, PropertyKind,
    ProviderEvent, Rsds, Session, TraceLogging, Value as Logged, Writer, extended, provider_traits,
};
use etl::{Descriptor, Guid, Trace, ext_type};
use events::{Decoder, Value};
use testdata::Rng;

const PROVIDER: Guid = Guid([7; 16]);

fn writer() -> Writer<Cursor<Vec<u8>>> {
    Writer::new(Cursor::new(Vec::new()), Session::default()).unwrap()
}

/// Content of an event that is written and then read: the event's names, and the names and values of its
/// fields as text.
#[derive(Debug, PartialEq)]
struct EventContent {
    provider: String,
    name: String,
    fields: Vec<(String, String)>,
}

/// Returns the content of each event except the trace's header event.
fn decode(writer: Writer<Cursor<Vec<u8>>>) -> Vec<EventContent> {
    let bytes = writer.finish().unwrap().into_inner();
    let trace = Trace::from_sources(vec![("made".into(), Box::new(bytes))]).unwrap();
    let mut decoder = Decoder::new();
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        decoder.learn(&event);
    }
    decoder.finish_learning();
    assert!(decoder.faults().is_empty(), "{:?}", decoder.faults());
    let mut events = Vec::new();
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        if event.hook() == Some(0) {
            continue;
        }
        let decoded = decoder.decode(&event);
        assert_eq!(decoded.fields.truncated, None);
        assert!(decoded.fields.tail.is_empty(), "{decoded:?}");
        let name = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or("").to_owned();
        let fields = decoded.fields.values.iter();
        events.push(EventContent {
            provider: name(&decoded.identity.provider),
            name: name(&decoded.identity.name),
            fields: fields.map(|(n, v)| (n.to_string(), show(v))).collect(),
        });
    }
    assert!(walk.damage().is_empty());
    events
}

/// Formats a value in a simple form for the comparison with the expected text.
fn show(value: &Value<'_>) -> String {
    match value {
        Value::Int(x) => x.to_string(),
        Value::UInt(x) => x.to_string(),
        Value::Hex(x) | Value::Pointer(x) => format!("{x:#x}"),
        Value::Float(x) => x.to_string(),
        Value::Bool(x) => x.to_string(),
        Value::Text(text) => format!("'{text}'"),
        Value::Bytes(bytes) => format!("{bytes:?}"),
        Value::Guid(guid) => guid.to_string(),
        Value::FileTime(x) => format!("at {x}"),
        Value::Named(x, name) => format!("{x} is {name}"),
        Value::Array(values) => format!("[{}]", join(values.iter().map(show))),
        Value::Struct(fields) => {
            let fields = fields.iter().map(|(n, v)| format!("{n}: {}", show(v)));
            format!("{{{}}}", join(fields))
        }
        other => format!("{other:?}"),
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn provider_event<'a>(id: u16, extended: &'a [(u16, &'a [u8])]) -> ProviderEvent<'a> {
    ProviderEvent {
        provider: PROVIDER,
        descriptor: Descriptor {
            id,
            channel: 11,
            level: 5,
            ..Descriptor::default()
        },
        time: 5,
        thread_id: 8,
        process_id: 4,
        activity: Guid::ZERO,
        extended,
    }
}

/// Returns a random value in two forms: for the writer, and as the text that `show` should return.
fn random_value<'a>(rng: &mut Rng, text: &'a str) -> (Logged<'a>, String) {
    let bits = rng.bits();
    let quoted = format!("'{text}'");
    match rng.below(19) {
        0 => (Logged::Utf16(text), quoted),
        1 => (Logged::Utf8(text), quoted),
        2 => (Logged::CountedUtf16(text), quoted),
        3 => (Logged::I8(bits as i8), (bits as i8).to_string()),
        4 => (Logged::U8(bits as u8), (bits as u8).to_string()),
        5 => (Logged::I16(bits as i16), (bits as i16).to_string()),
        6 => (Logged::U16(bits as u16), (bits as u16).to_string()),
        7 => (Logged::I32(bits as i32), (bits as i32).to_string()),
        8 => (Logged::U32(bits as u32), (bits as u32).to_string()),
        9 => (Logged::I64(bits as i64), (bits as i64).to_string()),
        10 => (Logged::U64(bits), bits.to_string()),
        11 => (Logged::F32(bits as u16 as f32), (bits as u16).to_string()),
        12 => (Logged::F64(bits as u32 as f64), (bits as u32).to_string()),
        13 => (Logged::Bool(bits & 1 == 1), (bits & 1 == 1).to_string()),
        14 => (
            Logged::Binary(text.as_bytes()),
            format!("{:?}", text.as_bytes()),
        ),
        15 => {
            let guid = Guid([bits as u8; 16]);
            (Logged::Guid(guid), guid.to_string())
        }
        16 => (
            Logged::FileTime((bits >> 1) as i64),
            format!("at {}", bits >> 1),
        ),
        17 => (Logged::Hex32(bits as u32), format!("{:#x}", bits as u32)),
        _ => (Logged::Hex64(bits), format!("{bits:#x}")),
    }
}

#[test]
fn tracelogging_events_say_what_was_logged() {
    let mut rng = Rng(17);
    let texts = ["", "plain", "Zürich ☃ 🦀"];
    let mut log = writer();
    let mut expected = Vec::new();
    for round in 0..300 {
        let name = format!("Event{round}");
        let mut event = TraceLogging::new(&name);
        let mut fields = Vec::new();
        for i in 0..rng.below(8) {
            let name = format!("field{i}");
            let (value, words) = random_value(&mut rng, texts[i % 3]);
            match rng.below(4) {
                0 => {
                    let count = rng.below(4);
                    event.array(&name, value, &vec![value; count]);
                    let words = format!("[{}]", vec![words; count].join(", "));
                    fields.push((name, words));
                }
                1 => {
                    event.structure(&name, 2);
                    event.field("a", value).field("b", Logged::U8(3));
                    fields.push((name, format!("{{a: {words}, b: 3}}")));
                }
                _ => {
                    event.field(&name, value);
                    fields.push((name, words));
                }
            }
        }
        let schema = event.schema();
        let traits = provider_traits("Game", Some(Guid([1; 16])));
        let stack = extended::stack_trace_64(0, &[0x1000, 0x2000]);
        let sid = extended::sid(5, &[18]);
        let items: &[(u16, &[u8])] = &[
            (ext_type::STACK_TRACE_64, &stack),
            (ext_type::SID, &sid),
            (ext_type::TRACELOGGING_SCHEMA, &schema),
            (ext_type::PROVIDER_TRAITS, &traits),
        ];
        log.provider(0, provider_event(0, items), event.payload())
            .unwrap();
        expected.push(EventContent {
            provider: "Game".to_owned(),
            name,
            fields,
        });
    }
    let events = decode(log);
    assert_eq!(events.len(), expected.len());
    for (event, expected) in events.iter().zip(&expected) {
        assert_eq!(event, expected);
    }
}

fn value(name: &str, in_type: u16) -> Property<'_> {
    let (out_type, map) = (0, "");
    Property {
        name,
        kind: PropertyKind::Value {
            in_type,
            out_type,
            map,
        },
        count: Count::One,
        length: Length::OfType,
    }
}

fn inject(log: &mut Writer<Cursor<Vec<u8>>>, event: &Injected) {
    log.classic(0, event.at(5, 8, 4), &event.payload).unwrap();
}

#[test]
fn described_events_say_what_was_logged() {
    let properties = [
        Property {
            kind: PropertyKind::Value {
                in_type: 8,
                out_type: 0,
                map: "Colours",
            },
            ..value("Colour", 8)
        },
        value("Name", 1),
        value("Size", 6),
        Property {
            length: Length::Property(2),
            ..value("Blob", 14)
        },
        value("Points", 4),
        Property {
            kind: PropertyKind::Struct {
                first: 6,
                members: 2,
            },
            count: Count::Property(4),
            ..value("Point", 0)
        },
        value("X", 7),
        Property {
            count: Count::Fixed(2),
            ..value("Y", 7)
        },
    ];
    let info = EventInfo {
        provider: PROVIDER,
        descriptor: provider_event(42, &[]).descriptor,
        provider_name: "Paint",
        level: "Verbose",
        keywords: &["Brush", "Ink"],
        task: "Stroke",
        opcode: "Begin",
        message: "Stroke of %1",
        properties: &properties,
        top_level: 6,
        ..EventInfo::default()
    };
    let map = EventMap {
        provider: PROVIDER,
        name: "Colours",
        is_bitmap: false,
        entries: &[(1, "Red"), (2, "Green")],
    };
    let mut payload = etl::write::Payload::new();
    payload.u32(2).utf16_z("line").u16(3).bytes(&[9, 8, 7]);
    payload.u8(2);
    for [x, y, z] in [[1, 2, 3], [4, 5, 6]] {
        payload.u32(x).u32(y).u32(z);
    }
    let mut log = writer();
    log.provider(0, provider_event(42, &[]), &payload).unwrap();
    inject(&mut log, &info.event());
    inject(&mut log, &map.event());

    let events = decode(log);
    let said = &events[0];
    assert_eq!(
        (said.provider.as_str(), said.name.as_str()),
        ("Paint", "Stroke/Begin")
    );
    let fields: Vec<_> = said.fields.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(
        fields,
        [
            ("Colour", "2 is Green"),
            ("Name", "'line'"),
            ("Size", "3"),
            ("Blob", "[9, 8, 7]"),
            ("Points", "2"),
            ("Point", "[{X: 1, Y: [2, 3]}, {X: 4, Y: [5, 6]}]"),
        ]
    );
}

#[test]
fn identities_of_images_are_read() {
    let mut log = writer();
    let image = ImageId {
        base: 0xFFFF_F800_0000_0000,
        size: 0x9000,
        process_id: 0,
        time_stamp: 0x5EED,
        file_name: "tcpip.sys",
    };
    let pdb = Rsds {
        base: 0xFFFF_F800_0000_0000,
        process_id: 0,
        guid: Guid([4; 16]),
        age: 2,
        pdb: "tcpip.pdb",
    };
    let version = FileVersion {
        size: 0x9000,
        time_stamp: 0x5EED,
        original_name: "tcpip.sys",
        company: "Microsoft Corporation",
        ..FileVersion::default()
    };
    for event in [image.event(), pdb.event(), version.event()] {
        inject(&mut log, &event);
    }
    let events = decode(log);
    let all = |i: usize| -> Vec<(&str, &str)> {
        let fields = events[i].fields.iter();
        fields.map(|(n, v)| (n.as_str(), v.as_str())).collect()
    };
    assert_eq!(
        all(0),
        [
            ("ImageBase", "0xfffff80000000000"),
            ("ImageSize", "0x9000"),
            ("ProcessId", "0"),
            ("TimeDateStamp", "24301"),
            ("OriginalFileName", "'tcpip.sys'"),
        ]
    );
    assert_eq!(
        all(1)[2..],
        [
            ("GuidSig", "04040404-0404-0404-0404-040404040404"),
            ("Age", "2"),
            ("PdbFileName", "'tcpip.pdb'"),
        ]
    );
    assert_eq!(all(2)[2], ("OrigFileName", "'tcpip.sys'"));
    assert_eq!(all(2)[8], ("CompanyName", "'Microsoft Corporation'"));
}
