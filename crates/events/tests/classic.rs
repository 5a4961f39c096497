//! Checks that classic events of any class can be decoded with a WBEM description in the trace.

use std::io::Cursor;

use etl::write::{ClassicEvent, Session, Writer};
use etl::{Guid, Trace};
use events::event_info::EVENT_INFO_OPCODE;
use events::ids::class::EVENT_METADATA;
use events::schema::Source;
use events::{Decoder, Value};

const PROVIDER: Guid = Guid([3; 16]);
const CLASS: Guid = Guid([5; 16]);

/// Returns a `TRACE_EVENT_INFO` in the layout of TDH. It describes two properties: `Count`, a u32,
/// and `Text`, a NUL-terminated UTF-16 string.
fn description() -> Vec<u8> {
    let mut blob = vec![0; 112 + 2 * 24];
    blob[0..16].copy_from_slice(&PROVIDER.0);
    blob[16..32].copy_from_slice(&CLASS.0);
    blob[34] = 1; // version
    blob[37] = 12; // opcode
    blob[48] = 1; // WBEM
    let put = |blob: &mut Vec<u8>, at: usize, text: &str| {
        let offset = blob.len() as u32;
        blob[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        blob.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    };
    put(&mut blob, 52, "Spooler");
    put(&mut blob, 68, "Job");
    put(&mut blob, 72, "Printed");
    blob[100] = 2;
    blob[104] = 2;
    for (at, name, in_type, length) in [(112, "Count", 8u8, 4u8), (136, "Text", 1, 0)] {
        put(&mut blob, at + 4, name);
        blob[at + 8] = in_type;
        blob[at + 16] = 1; // count
        blob[at + 18] = length;
    }
    blob
}

#[test]
fn a_classic_event_decodes_by_its_description() {
    let mut log = Writer::new(Cursor::new(Vec::new()), Session::default()).unwrap();
    let event = |class, opcode, version| ClassicEvent {
        class,
        opcode,
        version,
        time: 7,
        thread_id: 40,
        process_id: 44,
    };
    let payload = [&9u32.to_le_bytes()[..], b"A\0b\0\0\0"].concat();
    log.classic(0, event(CLASS, 12, 1), &payload).unwrap();
    log.classic(0, event(CLASS, 13, 1), &payload).unwrap();
    // A description may come after the events that it describes.
    let metadata = event(EVENT_METADATA, EVENT_INFO_OPCODE, 0);
    log.classic(0, metadata, &description()).unwrap();
    let bytes = log.finish().unwrap().into_inner();

    let trace = Trace::from_sources(vec![("made".into(), Box::new(bytes))]).unwrap();
    let mut decoder = Decoder::new();
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        decoder.learn(&event);
    }
    decoder.finish_learning();
    assert_eq!(decoder.faults(), []);
    let mut walk = trace.events();
    let mut seen = Vec::new();
    while let Some(event) = walk.next() {
        if event.guid() == Some(CLASS) {
            let decoded = decoder.decode(&event);
            seen.push(decoded.source);
            if event.opcode() == Some(12) {
                assert_eq!(decoded.identity.provider.as_deref(), Some("Spooler"));
                assert_eq!(decoded.identity.name.as_deref(), Some("Job/Printed"));
                assert_eq!(decoded.fields.get("Count"), Some(&Value::UInt(9)));
                assert_eq!(decoded.fields.get("Text"), Some(&Value::Text("Ab".into())));
                assert!(decoded.fields.tail.is_empty());
            } else {
                assert_eq!(decoded.fields.tail, payload);
            }
        }
    }
    assert_eq!(seen, [Some(Source::TraceMetadata), None]);
}
