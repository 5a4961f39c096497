//! Seeded sessions with hostile members. The tests check that the bytes and packets sent, the number of
//! sources, and the memory stay within their limits.

#[path = "hostile/memory.rs"]
mod memory;
#[path = "hostile/session.rs"]
mod session;

use testdata::Rng;

#[test]
fn hostile_members_stay_within_the_limits() {
    let mut script = Vec::new();
    let mut most = 0;
    for seed in 0..2_500 {
        let mut rng = Rng(seed);
        script.clear();
        let length = 40 + rng.below(800);
        script.extend((0..length).map(|_| rng.bits() as u8));
        most = most.max(session::run(&script));
    }
    // The memory limit is a useful check only if sessions come near it.
    assert!(most > session::MEMORY / 10, "{most} bytes");
}
