//! Traces whose expected content is known from the source code of the programs that wrote them.

use events::{Decoded, Value};
use serde_json::Value as Json;

use crate::golden::trace::Decodable;

/// Compares the TraceLogging events of a C# program with the expected events. The expected events are in
/// `expected-tracelogging.json`.
#[test]
fn tracelogging() {
    let expected = testdata::json("etl/expected-tracelogging.json");
    let trace = Decodable::open(&[expected["file"].as_str().unwrap()]);
    let first_of_each_kind = expected["first_of_each_kind"].as_array().unwrap();
    let (mut count, mut kinds) = (0, Vec::new());
    trace.for_each(|event, decoded| {
        if decoded.identity.provider.as_deref() != expected["provider"].as_str() {
            return;
        }
        count += 1;
        let values = &decoded.fields.values;
        let kind: Vec<_> = values.iter().map(|(name, _)| name.clone()).collect();
        if !kinds.contains(&kind) {
            let first = first_of_each_kind[kinds.len()].as_object().unwrap();
            assert_eq!(values.len(), first.len(), "{:?}", event.place());
            for (name, value) in values {
                assert!(is(value, &first[&**name]), "{name}: {value:?}");
            }
            kinds.push(kind);
        }
    });
    assert_eq!(expected["events"], count);
    assert_eq!(expected["kinds"], kinds.len());
    assert_eq!(first_of_each_kind.len(), kinds.len());
}

fn is(value: &Value<'_>, expected: &Json) -> bool {
    match (value, expected) {
        (Value::Array(values), Json::Array(expected)) => {
            values.len() == expected.len() && values.iter().zip(expected).all(|(v, e)| is(v, e))
        }
        (Value::Bool(value), expected) => expected == value,
        (Value::Int(value), expected) => expected == value,
        (Value::UInt(value), expected) => expected == value,
        (Value::Float(value), expected) => expected == value,
        (value, Json::String(expected)) => value.to_string() == *expected,
        _ => false,
    }
}

/// Compares the WPP messages of a program with the expected texts. The program logs 20 numbered work items.
/// It also logs a detail for every second work item.
#[test]
fn wpp() {
    let mut trace = Decodable::open(&["findneedle__wppemitter-nonselfdesc.etl"]);
    let tmf = include_str!("../data/wpp_emitter.tmf");
    assert_eq!(trace.decoder.add_tmf(tmf), Ok(2));
    let expected = (0..20).flat_map(|i| {
        let work =
            format!("WppEmitter work item id={i} status=0x{i:x} phase=startup provider=WppEmitter");
        let detail =
            format!("WppEmitter detail seq={i} note=processing-record value={i} category=Detail");
        [Some(work), (i % 2 == 0).then_some(detail)]
    });
    let mut messages = Vec::new();
    trace.for_each(|event, decoded: &Decoded<'_>| {
        if event.message_number().is_some() {
            assert_eq!(decoded.identity.provider.as_deref(), Some("findneedle"));
            messages.extend(decoded.message.clone());
        }
    });
    assert_eq!(messages, expected.flatten().collect::<Vec<_>>());
}
