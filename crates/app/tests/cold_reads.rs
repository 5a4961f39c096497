//! Reads of a trace whose tables do not exist yet. Each command reads the trace once for the key of the cache, and once in
//! each of the two passes that make tables.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::program;

/// Commands and reports that read a trace. `{trace}` and `{other}` stand for traces, `{folder}` for a folder.
const COMMANDS: &[&str] = &[
    "explain {trace}",
    "explain {trace} --all --evidence",
    "explain {trace} --process dwm.exe",
    "report {trace} -o {folder}/report.html",
    "info {trace}",
    "stats {trace}",
    "dpcisr {trace}",
    "cswitch {trace}",
    "cswitch {trace} --by process",
    "readythread {trace}",
    "cpudisk {trace}",
    "profile {trace}",
    "stack {trace} --event cswitch",
    "diskio {trace}",
    "hardfault {trace}",
    "focuschange {trace}",
    "marks {trace}",
    "process {trace}",
    "export {trace} -o {folder}/export.pftrace",
    "trim {trace} -o {folder}/part.etl --from 1s --to 2s",
    "prove diff {trace} -- {other}",
    "prove what-if {trace} --change priority:dwm.exe=high",
];

/// Runs a command. Returns the number of bytes that it read from files.
fn bytes_read(args: &[String], cache: &str) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(args)
        .env("LAGLAB_CACHE", cache)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    io::copy(&mut child.stdout.take().unwrap(), &mut io::sink()).unwrap();
    // The program has closed its output, so it has ended, but its counts exist until it is waited for.
    let counts = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    let read = counts.lines().find_map(|line| line.strip_prefix("rchar:"));
    // The code 1 is a negative answer, such as a table without rows.
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 1)), "{args:?}");
    read.unwrap().trim().parse().unwrap()
}

/// Runs each command twice. Only the first run reads the trace for the key and makes tables, so the difference of both
/// runs is what this reads: less than four times the trace, because the passes also read its headers.
#[test]
fn tables_are_made_in_two_passes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, other) = (path("trace.etl"), path("other.etl"));
    program::text(&["simulate", "healthy", "-o", &trace, "--duration", "4s"]);
    program::text(&[
        "simulate",
        "healthy",
        "-o",
        &other,
        "--duration",
        "4s",
        "--seed",
        "5",
    ]);
    // The key of a file that was written just now is not remembered, so that the second run would read the file for it.
    for path in [&trace, &other] {
        let file = File::options().write(true).open(path).unwrap();
        let an_hour_ago = SystemTime::now() - Duration::from_hours(1);
        file.set_modified(an_hour_ago).unwrap();
    }
    let size = |path: &str| std::fs::metadata(path).unwrap().len();
    let mut too_many = Vec::new();
    for (number, command) in COMMANDS.iter().enumerate() {
        let args: Vec<String> = (command.split(' '))
            .map(|word| {
                word.replace("{trace}", &trace)
                    .replace("{other}", &other)
                    .replace("{folder}", folder.path().to_str().unwrap())
            })
            .collect();
        let cache = path(&format!("cache-{number}"));
        let (cold, cached) = (bytes_read(&args, &cache), bytes_read(&args, &cache));
        let mut files = size(&trace);
        if command.contains("{other}") {
            files += size(&other);
        }
        let times = (cold as f64 - cached as f64) / files as f64;
        if times >= 4.0 {
            too_many.push(format!("{command}: {times:.2}"));
        }
    }
    assert_eq!(too_many, Vec::<String>::new());
}
