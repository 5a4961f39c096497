//! Parses and checks any bytes as a recording profile, and lists its recordings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::wprp;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = wprp::text(bytes) {
        let remarks = wprp::check(&text).unwrap_or_default();
        assert!(remarks.len() <= wprp::MAX_REMARKS);
        let _ = wprp::select(&text, None);
    }
});
