//! Parses any bytes as a TraceLogging schema, and as a payload that this schema describes.
#![no_main]

use events::{decode, tracelogging};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (blob, payload) = data.split_at(data.len() / 2);
    let _ = tracelogging::provider_traits(blob);
    if let Ok((_, fields)) = tracelogging::parse_schema(blob) {
        for pointer_size in [4, 8] {
            let read = decode(&fields, payload, pointer_size);
            assert!(read.tail.len() <= payload.len());
        }
    }
});
