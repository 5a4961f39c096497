//! Makes large files with `laglab simulate load` and measures how long this takes.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Outcome;
use crate::process::{self, Run};

/// Number of events of the scenario `load` in a file of about one GiB.
pub(crate) const EVENTS_PER_GIB: u64 = 14_200_000;

/// Sizes of the files for the other benchmarks, in GiB.
const SIZES: [u64; 3] = [1, 2, 4];

/// Returns the path of the file with `gib` GiB.
pub(crate) fn path(scratch: &Path, gib: u64) -> PathBuf {
    scratch.join(format!("load-{gib}g.etl"))
}

/// Simulates `events` events of the scenario `load`.
pub(crate) fn simulate(laglab: &Path, path: &Path, events: u64, more: &[&str]) -> io::Result<Run> {
    let events = events.to_string();
    let mut args: Vec<&OsStr> = vec!["simulate".as_ref(), "load".as_ref(), "--json".as_ref()];
    args.extend([
        "--events".as_ref(),
        events.as_ref(),
        "-o".as_ref(),
        path.as_os_str(),
    ]);
    args.extend(more.iter().map(|arg| OsStr::new(*arg)));
    process::median(laglab, &args, 1)
}

/// Makes the files, and reports the number of events per second.
pub(crate) fn files(report: &mut String, laglab: &Path, scratch: &Path) -> Outcome<Vec<PathBuf>> {
    *report += "\n## Simulating\n\n`laglab simulate load`, one thread. Limits: at least 3 M events/s, at \
        most 15 s for 1 GiB and 500 MB of memory. The last column compares with plainly writing the same \
        number of bytes.\n\n\
        | GiB | M events | seconds | CPU seconds | M events/CPU s | peak memory | \
        simulating / writing |\n|---|---|---|---|---|---|---|\n";
    let mut paths = Vec::new();
    for gib in SIZES {
        let path = path(scratch, gib);
        let run = simulate(laglab, &path, gib * EVENTS_PER_GIB, &[])?;
        let output: serde_json::Value = serde_json::from_slice(&run.output)?;
        let number = |name: &str| output[name].as_u64().unwrap_or(0) as f64;
        let plain = scratch.join("plain.bin");
        let start = Instant::now();
        write(&plain, number("bytes") as u64)?;
        let written = start.elapsed().as_secs_f64();
        writeln!(
            report,
            "| {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} MB | {:.1} |",
            number("bytes") / f64::from(1 << 30),
            number("events") / 1e6,
            run.seconds,
            run.cpu_seconds,
            number("events") / run.cpu_seconds / 1e6,
            run.peak_bytes as f64 / 1e6,
            run.seconds / written,
        )?;
        std::fs::remove_file(plain)?;
        paths.push(path);
    }
    Ok(paths)
}

/// Writes a file with this number of bytes without simulating anything.
fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let block = vec![0xA5; 1 << 20];
    let mut file = File::create(path)?;
    for _ in 0..bytes >> 20 {
        file.write_all(&block)?;
    }
    Ok(())
}
