//! Checks that hostile event descriptions do no harm. Descriptions are untrusted input. No change to their
//! bytes may make a parser panic, or make it produce much more output than the input. Random seeds are fixed,
//! so failures are reproducible.

use etl::Trace;
use etl::ext_type::{PROVIDER_TRAITS, TRACELOGGING_SCHEMA};
use events::schema::{Field, InType};
use events::{event_info, manifest, tracelogging};
use testdata::Rng;

/// Returns a copy of `bytes` with some random changes. The copy is sometimes cut short.
fn mutate(random: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len());
        let interesting = [0, 1, 0x18, 0x20, 0x7F, 0x80, 0xE0, 0xFF];
        bytes[at] = match random.below(3) {
            0 => interesting[random.below(interesting.len())],
            1 => bytes[at] ^ 1 << random.below(8),
            _ => random.below(256) as u8,
        };
    }
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

/// Returns the distinct results of `pick` for the events of a trace. The tests change these results at
/// random.
fn seeds(name: &str, pick: impl Fn(&etl::Event<'_>) -> Option<Vec<u8>>) -> Vec<Vec<u8>> {
    let bytes = testdata::bytes(&format!("etl/{name}"));
    let trace = Trace::from_sources(vec![(name.into(), Box::new(bytes))]).unwrap();
    let mut events = trace.events();
    let mut seeds = Vec::new();
    while let Some(event) = events.next() {
        seeds.extend(pick(&event));
    }
    seeds.sort();
    seeds.dedup();
    assert!(!seeds.is_empty());
    seeds
}

fn field_count(fields: &[Field]) -> usize {
    let members = fields.iter().map(|field| match &field.in_type {
        InType::Struct(members) => field_count(members),
        _ => 0,
    });
    fields.len() + members.sum::<usize>()
}

#[test]
fn tracelogging() {
    let items = |ext_type| {
        seeds("etwanalyzer__TraceLoggingTester.etl", |event| {
            let item = event
                .extended_items()
                .find(|item| item.ext_type == ext_type);
            item.map(|item| item.data.to_vec())
        })
    };
    let mut random = Rng(1);
    for seed in items(TRACELOGGING_SCHEMA) {
        for _ in 0..5000 {
            let blob = mutate(&mut random, &seed);
            if let Ok((_, fields)) = tracelogging::parse_schema(&blob) {
                // A field has at least two bytes: the NUL of its name and a type.
                assert!(field_count(&fields) * 2 <= blob.len());
            }
        }
    }
    for seed in items(PROVIDER_TRAITS) {
        for _ in 0..5000 {
            let _ = tracelogging::provider_traits(&mutate(&mut random, &seed));
        }
    }
}

#[test]
fn event_and_map_info() {
    let payloads = |opcode| {
        seeds("perfview__diaghub__diaghub.etl", |event| {
            let is_wanted = event.guid() == Some(events::ids::class::EVENT_METADATA)
                && event.opcode() == Some(opcode);
            is_wanted.then(|| event.payload().to_vec())
        })
    };
    let mut random = Rng(2);
    for seed in payloads(event_info::EVENT_INFO_OPCODE) {
        for _ in 0..2000 {
            let blob = mutate(&mut random, &seed);
            if let Ok(info) = event_info::parse_event_info(&blob) {
                assert!(field_count(&info.schema.fields) * 24 <= blob.len());
            }
        }
    }
    for seed in payloads(event_info::MAP_INFO_OPCODE) {
        for _ in 0..2000 {
            let blob = mutate(&mut random, &seed);
            if let Ok((_, map)) = event_info::parse_map_info(&blob) {
                assert!(map.entries.len() * 8 <= blob.len());
            }
        }
    }
}

#[test]
fn manifests() {
    let mut random = Rng(3);
    for seed in [
        include_str!("data/lamp.man"),
        include_str!("data/event_source.man"),
    ] {
        let mut read = 0;
        for _ in 0..5000 {
            let xml = mutate(&mut random, seed.as_bytes());
            let xml = String::from_utf8_lossy(&xml);
            match manifest::parse_manifest(&xml) {
                Ok(_) => read += 1,
                Err(error) => {
                    assert!(error.line >= 1 && error.line as usize <= xml.lines().count() + 1)
                }
            }
        }
        assert!(read > 100, "{read}");
    }
}
