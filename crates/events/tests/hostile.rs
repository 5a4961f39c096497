//! Descriptions of events are input like any other: no change to their bytes may panic a parser,
//! or make it give more than the bytes can pay for. Seeds are fixed, so that failures repeat.

mod records;

use etl::ext_type::{PROVIDER_TRAITS, TRACELOGGING_SCHEMA};
use events::schema::{Field, InType};
use events::{event_info, manifest, tracelogging};
use records::records;

/// xorshift64*: enough to pick bytes, the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit.max(1)
    }

    /// `bytes` with a few of them changed, and perhaps cut short.
    fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            let interesting = [0, 1, 0x18, 0x20, 0x7F, 0x80, 0xE0, 0xFF];
            if let Some(byte) = bytes.get_mut(at) {
                *byte = match self.below(3) {
                    0 => interesting[self.below(interesting.len())],
                    1 => *byte ^ 1 << self.below(8),
                    _ => self.below(256) as u8,
                };
            }
        }
        if self.below(8) == 0 {
            bytes.truncate(self.below(bytes.len()));
        }
        bytes
    }
}

fn field_count(fields: &[Field]) -> usize {
    let members = fields.iter().map(|field| match &field.in_type {
        InType::Struct(members) => field_count(members),
        _ => 0,
    });
    fields.len() + members.sum::<usize>()
}

fn distinct(mut seeds: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    seeds.sort();
    seeds.dedup();
    seeds
}

#[test]
fn tracelogging() {
    let records = records("etwanalyzer__TraceLoggingTester.etl");
    let items = |ext_type| {
        let items = records.iter().filter_map(|record| record.item(ext_type));
        distinct(items.map(<[u8]>::to_vec).collect())
    };
    let mut random = Random(1);
    for seed in items(TRACELOGGING_SCHEMA) {
        for _ in 0..5000 {
            let blob = random.mutate(&seed);
            if let Ok((_, fields)) = tracelogging::parse_schema(&blob) {
                // A field takes a NUL and a type at least.
                assert!(field_count(&fields) * 2 <= blob.len());
            }
        }
    }
    for seed in items(PROVIDER_TRAITS) {
        for _ in 0..5000 {
            let _ = tracelogging::provider_traits(&random.mutate(&seed));
        }
    }
}

#[test]
fn event_and_map_info() {
    let records = records("perfview__diaghub__diaghub.etl");
    let of_metadata = records
        .iter()
        .filter(|r| !r.is_manifest && r.provider == event_info::EVENT_METADATA);
    let mut random = Random(2);
    for record in of_metadata {
        for _ in 0..2000 {
            let blob = random.mutate(&record.payload);
            if record.opcode == event_info::MAP_INFO_OPCODE {
                if let Ok((_, map)) = event_info::parse_map_info(&blob) {
                    assert!(map.entries.len() * 8 <= blob.len());
                }
            } else if let Ok(info) = event_info::parse_event_info(&blob) {
                assert!(field_count(&info.schema.fields) * 24 <= blob.len());
            }
        }
    }
}

#[test]
fn manifests() {
    let mut random = Random(3);
    for seed in [
        include_str!("data/lamp.man"),
        include_str!("data/event_source.man"),
    ] {
        let mut read = 0;
        for _ in 0..5000 {
            let xml = random.mutate(seed.as_bytes());
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
