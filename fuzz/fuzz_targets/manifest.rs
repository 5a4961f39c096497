//! Parses any text as an instrumentation manifest, and any bytes as a payload of its events.
#![no_main]

use events::{decode, manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for provider in manifest::parse_manifest(text).unwrap_or_default() {
        for schema in provider.events.values() {
            let _ = decode(&schema.fields, text.as_bytes(), 4);
        }
    }
});
