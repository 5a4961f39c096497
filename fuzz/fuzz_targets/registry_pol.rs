//! Parses any bytes as a `registry.pol`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tune::inputs::read("Machine/registry.pol", &[b"PReg\x01\0\0\0", bytes].concat());
});
