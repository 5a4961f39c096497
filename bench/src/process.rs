//! Running a program to its end: its time, its peak memory and what it printed.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

/// Reports of gigabytes are counted, not kept.
const KEPT_BYTES: u64 = 64 << 20;

/// One run of a program.
#[derive(Debug)]
pub(crate) struct Run {
    /// Wall-clock time.
    pub(crate) seconds: f64,
    /// Processor time, of the program and of the system on its behalf.
    pub(crate) cpu_seconds: f64,
    /// Peak resident memory, as the operating system accounts it.
    pub(crate) peak_bytes: u64,
    /// Standard output, as far as it is kept.
    pub(crate) output: Vec<u8>,
    /// How much it was.
    pub(crate) printed_bytes: u64,
}

/// Runs `program` so many times and returns the run of median time.
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
