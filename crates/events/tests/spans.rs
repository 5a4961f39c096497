//! Checks that values are in the byte ranges that the decoder reports.

use etl::Trace;
use events::{Content, Decoder, Span, Utf16, Value};
use files::FileSource;

/// Appends `value` to `leaves` if it is not an array. For an array, appends its elements.
fn leaves<'v, 'a>(value: &'v Value<'a>, leaves: &mut Vec<&'v Value<'a>>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| self::leaves(value, leaves)),
        other => leaves.push(other),
    }
}

fn agrees(span: &Span, bytes: &[u8], value: &Value<'_>) -> bool {
    match (span.content, value) {
        (Content::Utf16, Value::Text(text)) => Utf16(bytes).to_string() == **text,
        (Content::Ansi, Value::Text(text)) => {
            bytes.starts_with(text.as_bytes()) || !text.is_ascii()
        }
        (Content::Sid, Value::Sid(sid)) => bytes == *sid,
        (Content::Opaque, Value::Bytes(opaque)) => bytes == *opaque,
        (Content::IpAddress, Value::Ipv4(address)) => bytes == address.octets(),
        (Content::IpAddress, Value::Ipv6(address)) => bytes == address.octets(),
        (Content::Number, Value::Guid(guid)) => bytes == guid.0,
        (Content::SocketAddress, Value::Text(_)) => matches!(bytes.len(), 16 | 28 | 128),
        (Content::Number, Value::SystemTime(_)) => bytes.len() == 16,
        _ => bytes.len() <= 8,
    }
}

#[test]
fn spans_of_real_events_hold_the_values_that_decoding_gives() {
    let mut compared = [0_u64; 7];
    for (name, _) in testdata::traces() {
        let file = std::fs::File::open(testdata::path(&name)).unwrap();
        let source = FileSource::new(file).unwrap();
        let trace = Trace::from_sources(vec![(name.clone(), Box::new(source))]).unwrap();
        let mut decoder = Decoder::new();
        let mut walk = trace.events();
        while let Some(event) = walk.next() {
            decoder.learn(&event);
        }
        decoder.finish_learning();
        let mut walk = trace.events();
        while let Some(event) = walk.next() {
            let Some(spans) = decoder.spans(&event) else {
                continue;
            };
            let decoded = decoder.decode(&event);
            let (fields, payload) = (&decoded.fields, event.payload());
            if decoded.message.is_some() {
                continue;
            }
            assert_eq!(spans.is_complete, fields.truncated.is_none(), "{name}");
            assert_eq!(payload.len() - spans.tail, fields.tail.len(), "{name}");
            let mut end = 0;
            for span in &spans.values {
                assert!(
                    end <= span.bytes.start && span.bytes.start <= span.bytes.end,
                    "{name}"
                );
                end = span.bytes.end;
            }
            assert!(end <= spans.tail, "{name}");
            let mut values = Vec::new();
            for (_, value) in &fields.values {
                leaves(value, &mut values);
            }
            // The test compares only events without structures and without integers with named bits. In other
            // events, the number of values and the number of ranges differ.
            let flat = values
                .iter()
                .all(|value| !matches!(value, Value::Struct(_)));
            if !flat || !spans.is_complete {
                continue;
            }
            assert_eq!(values.len(), spans.values.len(), "{name}: {decoded:?}");
            for (value, span) in values.iter().zip(&spans.values) {
                let bytes = &payload[span.bytes.clone()];
                assert!(
                    agrees(span, bytes, value),
                    "{name}: {span:?} {value:?} {bytes:?}"
                );
                compared[span.content as usize] += 1;
            }
        }
    }
    // At least five of the seven kinds of content must occur in the traces. Otherwise, the comparison would
    // have no meaning.
    let rare = compared.iter().filter(|count| **count == 0).count();
    assert!(rare <= 2, "{compared:?}");
}
