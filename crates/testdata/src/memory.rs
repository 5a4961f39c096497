//! Peak memory for reading forged files. Each file is read in a child process.

use std::path::Path;
use std::process::Command;

/// Variable with the path of the file that a child process reads.
const CHILD: &str = "LAGLAB_TEST_FORGED";

/// Text that a child process prints if it could open its file.
const OPENED: &str = "the file was opened";

/// Bound of the memory for reading a file.
#[derive(Clone, Copy)]
pub struct Bound {
    /// Memory in bytes that any file may need.
    pub base: u64,
    /// Bytes of memory for each byte of the file, or of its expanded contents.
    pub per_byte: u64,
}

/// File that was made to need much memory.
pub struct Forged {
    /// Name of the case.
    pub name: &'static str,
    /// Name of the file.
    pub file: &'static str,
    /// Contents of the file.
    pub bytes: Vec<u8>,
    /// Number of bytes of the expanded contents. 0 if nothing is expanded.
    pub expanded: u64,
    /// True if the file can be opened.
    pub opens: bool,
}

/// Checks that reading each file stays within a bound. `test` is the name of the calling test, which a child process runs
/// for each file. `read` returns an error if the file cannot be opened.
///
/// # Panics
/// Panics if a file needs more memory, or can be opened against [`Forged::opens`], or makes `read` panic.
pub fn check<E: std::fmt::Display>(
    test: &str,
    bound: Bound,
    read: impl Fn(&Path) -> Result<(), E>,
    forged: impl FnOnce() -> Vec<Forged>,
) {
    if let Some(path) = std::env::var_os(CHILD) {
        return in_child(Path::new(&path), read);
    }
    let folder = tempfile::tempdir().unwrap();
    for Forged {
        name,
        file,
        bytes,
        expanded,
        opens,
    } in forged()
    {
        let path = folder.path().join(file);
        std::fs::write(&path, &bytes).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1", test])
            .env(CHILD, &path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout).into_owned();
        let peak = text
            .split_once("peak ")
            .map(|(_, rest)| rest.split(' ').next().unwrap());
        let peak: u64 = peak.expect(&text).parse().unwrap();
        assert_eq!(text.contains(OPENED), opens, "{name}: {text}");
        let allowed = bound.base + bound.per_byte * expanded.max(bytes.len() as u64);
        assert!(
            peak <= allowed,
            "{name}: {} bytes need {peak} bytes of memory, more than {allowed}",
            bytes.len()
        );
    }
}

/// Reads a file, and prints the peak of the process's memory in bytes.
#[allow(clippy::print_stdout, reason = "the parent process reads it")]
fn in_child<E: std::fmt::Display>(path: &Path, read: impl Fn(&Path) -> Result<(), E>) {
    match read(path) {
        Ok(()) => println!("{OPENED}"),
        Err(error) => println!("{error}"),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("peak {} bytes", kib * 1024);
}
