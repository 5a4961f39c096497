//! Parses any bytes as a `.PolicyRules` file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tune::inputs::read("a.PolicyRules", &[b"<PolicyRules>", bytes].concat());
});
