//! Runs a program and measures its time, its peak memory, its reads and its output.

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
    /// Bytes that the program read from files with system calls; `None` if the operating system does not count them.
    pub(crate) read_bytes: Option<u64>,
    /// True if the exit code is 0.
    pub(crate) is_success: bool,
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

/// Returns the bytes that a process has read with system calls so far. `None` if the operating system does not count them.
pub(crate) fn read_bytes(process_id: u32) -> Option<u64> {
    let counts = std::fs::read_to_string(format!("/proc/{process_id}/io")).ok()?;
    let line = counts
        .lines()
        .find_map(|line| line.strip_prefix("rchar:"))?;
    line.trim().parse().ok()
}

/// Runs `program` once.
pub(crate) fn once(program: &Path, args: &[&OsStr]) -> io::Result<Run> {
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
    // The program has closed its output, so it has ended, but its counts exist until it is waited for.
    let read_bytes = read_bytes(child.id());
    let used = child.wait4()?;
    Ok(Run {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        peak_bytes: used.rusage.maxrss,
        read_bytes,
        is_success: used.status.success(),
        output,
        printed_bytes,
    })
}
