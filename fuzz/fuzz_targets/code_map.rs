//! Reads any bytes as a map of generated code (`perf-PID.map`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbols::CodeMap;

const MOST: usize = 100;

fuzz_target!(|bytes: &[u8]| {
    let map = CodeMap::parse(bytes, MOST);
    assert!(map.functions() <= MOST);
    // A function that contains the address at the start of a line has a name.
    for line in String::from_utf8_lossy(bytes).lines() {
        let start = line.split(' ').next().unwrap_or_default();
        let start = start.strip_prefix("0x").unwrap_or(start);
        let found = u64::from_str_radix(start, 16).ok().and_then(|it| map.find(it));
        assert!(found.is_none_or(|(name, _)| !name.is_empty()));
    }
});
