//! `cargo xtask test`: everything that must hold before a change goes in.

use std::time::Instant;

use crate::command::{self, cargo, program, root, target};
use crate::wine::{self, Wine};
use crate::{browser, exports, network, page, peers, same_bytes, tidy};

/// cargo-deny at the version whose verdicts `deny.toml` was written for.
const CARGO_DENY: &str = "0.20.2";

/// The macOS that the sources are compiled for.
const MACOS: &str = "aarch64-apple-darwin";

/// The target that the tests of `symbols` compile a driver for, to have PDBs of a real linker.
const DRIVERS: &str = "x86_64-pc-windows-msvc";

/// Builds all but SQL, whose engine takes longer to compile than everything else together. Whatever
/// could differ between systems is in the other crates.
pub(crate) const WITHOUT_SQL: &[&str] = &["--no-default-features"];

/// [`WITHOUT_SQL`] of the whole workspace.
const WORKSPACE_WITHOUT_SQL: &[&str] =
    &["--workspace", "--exclude", "sql", "--no-default-features"];

/// Packages whose tests run as Windows programs: those that open files, share folders with other
/// processes, call servers, talk to a console, read the registry, or have sockets, clocks and rings. The
/// others compute on what they are handed and touch no system, so that what their tests find on the
/// host holds on Windows. For them it is enough that they compile there, and that [`same_bytes`] finds
/// their arithmetic to be the same.
const ON_WINDOWS: [&str; 9] = [
    "app", "etl", "ioring", "measure", "pgm", "record", "symbols", "tables", "tune",
];

/// Test programs of those libraries that are about files, folders, servers, scripts, sockets and rings;
/// all their unit tests run, too. The other programs feed them bytes, thousands of cases of some.
const LIBRARY_TESTS_ON_WINDOWS: [&str; 10] = [
    "files",
    "net",
    "net_throughput",
    "open",
    "ring",
    "scripts",
    "servers",
    "sockets",
    "store",
    "stores",
];

/// What stands in for the system's rings and for recorders in the tests of `ioring`, `measure` and
/// `record`, which cargo knows as examples: package and name. It builds those for tests by itself only
/// where it tests everything.
const STAND_INS: [(&str, &str); 3] = [
    ("ioring", "standin"),
    ("measure", "ioring-standin"),
    ("record", "stand-in"),
];

/// Test programs of the app that are left out on Windows. They compare figures, of hundreds of
/// megabytes of output which Wine's one server hands on piece by piece, or of many simulations. The
/// app's other tests run every command, and `info`, `stats` and `explain` on every real trace. Of
/// those of the server it is not known yet whether they hold under Wine.
const APP_TESTS_LEFT_OUT: [&str; 10] = [
    "explain_causes",
    "explain_scenarios",
    "explain_troubled",
    "explain_variants",
    "explain_waits",
    "record_judged",
    "real_traces",
    "scenarios",
    "server",
    "server_samples",
];

/// How much to test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Everything,
    /// What needs nothing but cargo: no dependency check, no independent readers, no Windows.
    Quick,
}

/// Runs the steps in order, cheapest first, and stops at the first that fails.
///
/// The host's tests come last, so that the output ends with the test runners' own verdict.
///
/// # Errors
///
/// The failing step's name and what it was running.
pub(crate) fn run(extent: Extent) -> Result<(), String> {
    let started = Instant::now();
    step("format", || {
        command::run(&mut cargo(&["fmt", "--all", "--check"]))
    })?;
    step("tidy", tidy::run)?;
    if extent == Extent::Everything {
        // Before the first build, which holds the page.
        step("page", page::is_sound)?;
    }
    step("lint", || clippy(&["--workspace"]))?;
    step("documentation", documentation)?;
    if root().join("fuzz/Cargo.toml").is_file() {
        step("fuzz targets compile", fuzz_targets_compile)?;
    }
    if extent == Extent::Everything {
        step("dependencies", dependencies)?;
        step("independent readers", peers::agree)?;
        step("independent readers of exports", exports::agree)?;
        step("reports in a browser", browser::shows_reports)?;
        step("page in a browser", page::works)?;
        // Nothing here can link or run for macOS; that it compiles is worth knowing.
        step("macOS: compiles", || {
            // Without its tools the C of dependencies cannot be compiled; checking links nothing.
            let mut check = cargo(&[&["check", "--target", MACOS], WORKSPACE_WITHOUT_SQL].concat());
            let tools = ["CC", "AR"].map(|tool| format!("{tool}_{}", MACOS.replace('-', "_")));
            command::run(check.envs(tools.map(|tool| (tool, "true"))))
        })?;
        if cfg!(target_os = "linux") {
            step("Windows: tools", wine::install)?;
            step("Windows: lint", || {
                clippy(&[&["--target", wine::TARGET], WORKSPACE_WITHOUT_SQL].concat())
            })?;
            step("Windows: tests", windows)?;
        } else {
            println!("\n── Windows under Wine: left out, it is for Linux hosts");
        }
    }
    command::add_target(DRIVERS)?;
    if extent == Extent::Everything && cfg!(target_os = "linux") {
        network::install();
    }
    println!(
        "\n── tests (the steps before took {:.1} s)",
        started.elapsed().as_secs_f64()
    );
    let counts = host_tests().map_err(|error| format!("tests: {error}"))?;
    println!(
        "\n{} passed, {} failed, {} skipped",
        counts[0], counts[1], counts[2]
    );
    Ok(())
}

/// Runs the host's tests, showing what they print, and adds up their verdicts: tests passed,
/// failed and ignored.
fn host_tests() -> Result<[u64; 3], String> {
    let mut counts = [0; 3];
    command::watch(&mut cargo(&["test", "--workspace"]), |line| {
        println!("{line}");
        for (count, more) in counts.iter_mut().zip(verdict(line).unwrap_or_default()) {
            *count += more;
        }
    })?;
    Ok(counts)
}

/// The counts in `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn verdict(line: &str) -> Option<[u64; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = counts
        .split("; ")
        .map(|part| part.split(' ').next()?.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Announces a step, runs it, and says how long it took.
fn step(name: &str, work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    println!("\n── {name}");
    let started = Instant::now();
    work().map_err(|error| format!("{name}: {error}"))?;
    println!("── {name}: fine, {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn clippy(arguments: &[&str]) -> Result<(), String> {
    let mut clippy = cargo(&["clippy", "--all-targets"]);
    command::run(clippy.args(arguments).args(["--", "--deny", "warnings"]))
}

fn documentation() -> Result<(), String> {
    command::run(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn fuzz_targets_compile() -> Result<(), String> {
    command::run(&mut cargo(&["check", "--manifest-path", "fuzz/Cargo.toml"]))
}

/// Checks licences and sources of all dependencies, with a cargo-deny of our own.
fn dependencies() -> Result<(), String> {
    let home = target().join(format!("cargo-deny-{CARGO_DENY}"));
    let deny = home
        .join("bin")
        .join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !deny.is_file() {
        println!("building cargo-deny {CARGO_DENY}, once");
        // Unoptimised: it compiles in half the time and checks in no more than a second.
        let mut install = cargo(&["install", "--quiet", "--locked", "--debug", "cargo-deny"]);
        command::run(install.args(["--version", CARGO_DENY, "--root"]).arg(&home))?;
    }
    command::run(program(deny).args(["check", "licenses", "bans", "sources"]))
}

/// Tests as Windows programs, and the finished program once by hand.
fn windows() -> Result<(), String> {
    let wine = Wine::start()?;
    for (package, example) in STAND_INS {
        let stand_in = ["--package", package, "--example", example];
        command::run(&mut wine.cargo("build", &stand_in))?;
    }
    let mut tests = wine.cargo("test", WITHOUT_SQL);
    tests.args(["--lib", "--bins"]);
    for package in ON_WINDOWS {
        tests.args(["--package", package]);
    }
    for test in windows_tests()? {
        tests.args(["--test", &test]);
    }
    command::run(&mut tests)?;
    let trace = "../shared/data/etl/perfview__smallEtlFile.etl";
    for arguments in [&["--help"][..], &["info", trace]] {
        let laglab = ["--quiet", "--bin", "laglab", "--"];
        let run = [WITHOUT_SQL, &laglab, arguments].concat();
        command::run(&mut wine.cargo("run", &run))?;
    }
    same_bytes::on_windows_too(&wine)
}

/// Names of the test programs that run on Windows. The app's are all that it has, save those left
/// out, so that none is forgotten. Cargo takes a name for the programs of all packages that have one
/// so called, so that a few more run.
fn windows_tests() -> Result<Vec<String>, String> {
    let folder = root().join("crates/app/tests");
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut tests = LIBRARY_TESTS_ON_WINDOWS.map(str::to_owned).to_vec();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_program = path.extension().is_some_and(|extension| extension == "rs");
        if is_program && !APP_TESTS_LEFT_OUT.contains(&&*name) {
            tests.push(name.into_owned());
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read() {
        let line = "test result: ok. 28 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
        assert_eq!(verdict(line), Some([28, 1, 2]));
        assert_eq!(verdict("test tidy::tests::result ... ok"), None);
        assert_eq!(verdict("test result: unclear"), None);
    }
}
