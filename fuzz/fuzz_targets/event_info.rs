//! Parses any bytes as TRACE_EVENT_INFO and as EVENT_MAP_INFO. Also parses any bytes as a payload that the
//! TRACE_EVENT_INFO describes.
#![no_main]

use events::{decode, event_info};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = event_info::parse_map_info(data);
    if let Ok(info) = event_info::parse_event_info(data) {
        for payload in [data, &data[data.len() / 2..]] {
            let read = decode(&info.schema.fields, payload, 8);
            assert!(read.tail.len() <= payload.len());
        }
    }
});
