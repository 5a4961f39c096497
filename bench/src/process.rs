//! Runs a program and measures its time, its peak memory and its output.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

/// Maximum number of bytes of output that are kept. Further bytes are counted, but not kept.
const KEPT_BYTES: u64 = 64 << 20;

/// Result of one run of a program.
#[derive(Debug)]
pub(crate) struct Run {
    /// Wall-clock time.
    pub(crate) seconds: f64,
    /// CPU time in user and kernel mode.
    pub(crate) cpu_seconds: f64,
    /// Peak resident memory, as the operating system reports it.
    pub(crate) peak_bytes: u64,
    /// Part of the standard output that is kept.
    pub(crate) output: Vec<u8>,
    /// Size of the whole standard output in bytes.
    pub(crate) printed_bytes: u64,
}

/// Runs `program` `times` times, and returns the run with the median time.
pub(crate) fn median(program: &Path, args: &[&OsStr], times: usize) -> io::Result<Run> {
    let mut runs = (0..times)
        .map(|_| once(program, args))
        .collect::<io::Result<Vec<_>>>()?;
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(runs.swap_remove(times / 2))
}

fn once(program: &Path, args: &[&OsStr]) -> io::Result<Run> {
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (mut output, mut printed_bytes) = (Vec::new(), 0);
    if let Some(mut stdout) = child.stdout.take() {
        (&mut stdout).take(KEPT_BYTES).read_to_end(&mut output)?;
        let dropped = io::copy(&mut stdout, &mut io::sink())?;
        printed_bytes = output.len() as u64 + dropped;
    }
    let used = child.wait4()?;
    Ok(Run {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        peak_bytes: used.rusage.maxrss,
        output,
        printed_bytes,
    })
}
