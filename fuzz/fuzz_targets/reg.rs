//! Parses any bytes as a `.reg` export.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tune::inputs::read("a.reg", &[b"Windows Registry Editor Version 5.00\r\n", bytes].concat());
});
