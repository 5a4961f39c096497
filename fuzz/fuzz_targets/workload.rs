//! Reads any text as a workload of `laglab prove what-if`. Writes a valid workload, and reads it again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(recorded) = replay::read(text) else {
        return;
    };
    let mut written = Vec::new();
    replay::write(&recorded, &mut written).expect("memory can be written");
    replay::read(&*written).expect("a written workload can be read");
});
