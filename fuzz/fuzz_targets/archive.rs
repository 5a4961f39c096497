//! Reads any bytes as an archive of traces (`.etl.zip`, `.cab`), and as an archive of settings.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tune::inputs::read("a.zip", bytes);
    // Traces are opened by the name of their file.
    let name = format!("laglab-fuzz-{}.etl.zip", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("temporary files can be written");
    if let Ok(trace) = etl::open(&[path]) {
        let mut events = trace.events();
        while events.next().is_some() {}
    }
});
