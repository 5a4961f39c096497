//! Checks that the commands in docs/linux.md that record this machine work, and that laglab answers from their files.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use testdata::perf;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/linux.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the blocks of shell commands in the page.
fn shell_blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

/// Returns true if trace-cmd is installed and may record this machine. Some virtual machines forbid it.
fn trace_cmd_records(folder: &Path) -> bool {
    let mut probe = Command::new("trace-cmd");
    probe.args([
        "record",
        "-o",
        "probe.dat",
        "-e",
        "sched:sched_switch",
        "true",
    ]);
    let output = probe.current_dir(folder).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs shell commands in a folder. `laglab` is the program under test.
fn run(folder: &Path, commands: &str) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_laglab"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(program.parent().unwrap().to_owned());
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
    // Code 1 is a result, such as a problem that was found.
    let script = format!("laglab() {{ command laglab \"$@\" || [ $? = 1 ]; }}\n{commands}");
    let output = Command::new("sh")
        .args(["-ec", &script])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{commands}\n{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[cfg(feature = "sql")]
#[test]
fn the_shown_commands_record_and_answer() {
    let folder = tempfile::tempdir().unwrap();
    if perf::record(folder.path(), "sched:sched_switch", &[], "true").is_none() {
        return;
    }
    let page = page();
    let blocks = shell_blocks(&page);
    assert!(blocks.len() >= 4, "{blocks:?}");
    for block in blocks {
        if block.contains("trace-cmd record") && !trace_cmd_records(folder.path()) {
            continue;
        }
        // Half a second is enough to see that a command works.
        let commands = (block.replace("sleep 5", "sleep 0.5")).replace("--for 5s", "--for 500ms");
        let printed = run(folder.path(), &commands);
        assert!(
            printed.contains(" CPUs, Linux") || printed.contains(" CPU, Linux"),
            "{commands}\n{printed}"
        );
    }
}

#[test]
fn the_shown_options_of_perf_record() {
    let folder = tempfile::tempdir().unwrap();
    if perf::record(folder.path(), "sched:sched_switch", &[], "true").is_none() {
        return;
    }
    let page = page();
    let cells = page.lines().filter_map(|line| line.split_once("| `-"));
    let mut count = 0;
    for (_, cell) in cells {
        let options = cell.split('`').next().unwrap();
        let command = format!("perf record -q -a -{options} -o x.data -- sleep 0.1");
        run(folder.path(), &command);
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
