//! Any bytes as a hive of the registry.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tune::inputs::read("hive", &[b"regf", bytes].concat());
});
