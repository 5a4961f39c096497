//! Reads any bytes as a recording of Linux (`perf.data`, `trace.dat`, text).
#![no_main]

use libfuzzer_sys::fuzz_target;
use linux::EventKind;

fuzz_target!(|data: &[u8]| {
    let Ok(recording) = linux::Recording::open(Box::new(data.to_vec())) else {
        return;
    };
    let (mut events, mut addresses) = (0, 0);
    for chunk in recording.chunks() {
        let read = recording.read(chunk, &mut |event| {
            events += 1;
            if let EventKind::Tracepoint { chain, .. } | EventKind::Sample { chain, .. } =
                &event.kind
            {
                addresses += chain.addresses().count();
            }
        });
        read.expect("bytes in memory can be read");
    }
    (recording.kernel_symbols()).expect("bytes in memory can be read");
    // Expanded records may be larger than the data, but not without a limit.
    assert!(addresses <= 1 << 30 && events <= 1 << 30);
});
