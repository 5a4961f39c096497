//! Parses any text as a TMF file, and any payload as one of its messages.
#![no_main]

use events::wpp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (text, payload) = data.split_at(data.len() - data.len() / 4);
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    for tmf in wpp::parse_tmf(text).unwrap_or_default() {
        for message in tmf.messages.values() {
            let read = wpp::decode_payload(message, payload, 8);
            assert!(read.tail.len() <= payload.len());
        }
    }
});
