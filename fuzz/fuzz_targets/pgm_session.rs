//! Runs a session with hostile members whose script is the input: nothing panics, both ends come to rest, and
//! bytes, packets, sources and memory stay within their limits.
#![no_main]

#[path = "../../crates/pgm/tests/hostile/memory.rs"]
mod memory;
#[path = "../../crates/pgm/tests/hostile/session.rs"]
mod session;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    session::run(data);
});
