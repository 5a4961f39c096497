//! Runs a session with hostile members. The input is the script of these members. No part may panic, and both ends must
//! come to rest. Bytes, packets, sources and memory must stay within their limits.
#![no_main]

#[path = "../../crates/pgm/tests/hostile/memory.rs"]
mod memory;
#[path = "../../crates/pgm/tests/hostile/session.rs"]
mod session;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    session::run(data);
});
