//! `cargo xtask bench`: how fast laglab is, beside a peer or a physical limit.

/// Runs the named benchmarks.
///
/// # Errors
///
/// Always, as yet: there are no benchmarks.
pub(crate) fn run() -> Result<(), String> {
    Err("there are no benchmarks yet".to_owned())
}
