//! `cargo xtask test`: runs everything that must succeed before a change is merged.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::command::{self, cargo, root, target};
use crate::steps::{self, Lane, Step, is_ci, left_out};
use crate::verdicts::{self, Verdicts};
use crate::wine::{self, Wine};
use crate::{apt, browser, built, deny, exports, page, peers, same_bytes, tidy};

/// Target for macOS. The sources must compile for it.
const MACOS: &str = "aarch64-apple-darwin";

/// Target of a driver that tests of `symbols` compile, to get PDBs of a real linker.
const DRIVERS: &str = "x86_64-pc-windows-msvc";

/// Options of cargo for builds without SQL. The engine of SQL takes longer to compile than everything else.
pub(crate) const WITHOUT_SQL: &[&str] = &["--no-default-features", "--features", "app/standard"];

/// Options of cargo for the whole workspace without SQL.
const WORKSPACE_WITHOUT_SQL: &[&str] = &[
    "--workspace",
    "--exclude",
    "sql",
    "--no-default-features",
    "--features",
    "app/standard",
];

/// Packages whose tests also run as Windows programs, because these packages call the system: files, folders
/// shared with other processes, servers, consoles, the registry, sockets, clocks, rings. All other packages
/// only compute on bytes. They must compile for Windows, and [`same_bytes()`] checks that their arithmetic
/// has the same results.
const ON_WINDOWS: &[&str] = &[
    "adapters", "app", "etl", "ioring", "measure", "pgm", "record", "serve", "session", "store",
    "symbols", "tables", "tune",
];

/// Test programs of these packages that call the system. The unit tests of the packages also run. The other
/// test programs only pass bytes to functions. Some of them test thousands of cases.
const LIBRARY_TESTS_ON_WINDOWS: &[&str] = &[
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

/// Examples (package, name) that replace I/O rings and recorders in the tests of `ioring`, `measure` and
/// `record`. They are built separately, because cargo only builds examples for tests if it tests everything.
const STAND_INS: &[(&str, &str)] = &[
    ("ioring", "standin"),
    ("measure", "ioring-standin"),
    ("record", "stand-in"),
];

/// Test programs of `app` that do not run on Windows. Some compare numbers in hundreds of megabytes of
/// output, which Wine's server passes on in small pieces. Others run many simulations. The remaining tests of
/// `app` run every command, and they run `info`, `stats` and `explain` on every real trace. The tests of the
/// server have not been tried under Wine yet.
const APP_TESTS_NOT_ON_WINDOWS: &[&str] = &[
    "hostile_names",
    "record_judged",
    "real_traces",
    "scenarios",
    "server",
    "server_samples",
];

/// Suffix of the names of tests that ran under Wine. Wine lacks parts of Windows, so these tests may leave
/// something out even in CI.
const UNDER_WINE: &str = " under Wine";

/// All steps. Steps of the same lane run in this order.
const STEPS: &[Step] = &[
    main("format", &[], || {
        command::run(&mut cargo(&["fmt", "--all", "--check"]))
    }),
    main("tidy", &[], tidy::run),
    main("lint", &[], || clippy(&["--workspace"])),
    main("documentation", &[], documentation),
    main("fuzz targets compile", &[], fuzz_targets_compile),
    main("build", &[], built::compile),
    main("macOS compiles", &[], macos),
    main("Windows lint", &["tools"], || {
        clippy(&[&["--target", wine::TARGET], WORKSPACE_WITHOUT_SQL].concat())
    }),
    main("Windows build", &["tools"], windows_build),
    main("Windows tests", &["Wine prefix"], windows_tests),
    main("same bytes on Windows", &["Windows build"], same_bytes),
    main("tests", SIDE, host_tests),
    side("tools", &[], tools),
    side("page", &["tools"], page::is_sound),
    side("dependencies", &[], deny::check),
    side("Wine prefix", &["tools"], || Wine::start().map(drop)),
    side("readers of traces", &["build"], peers::agree),
    side("readers of exports", &["build"], exports::agree),
    side("browser", &["tools", "page", "build"], || {
        browser::shows_reports()?;
        page::works()
    }),
];

/// Names of the steps in the side lane for which the tests wait.
const SIDE: &[&str] = &["browser", "dependencies", "readers of exports"];

/// Steps of `--quick`. They need no program except cargo.
const QUICK: &[&str] = &[
    "format",
    "tidy",
    "lint",
    "documentation",
    "fuzz targets compile",
    "tests",
];

/// Steps that only run on Linux.
const LINUX: &[&str] = &[
    "Windows lint",
    "Windows build",
    "Windows tests",
    "same bytes on Windows",
    "Wine prefix",
];

/// Sum of the verdicts of all test programs that have run.
static VERDICTS: Mutex<Option<Verdicts>> = Mutex::new(None);

const fn main(
    name: &'static str,
    after: &'static [&'static str],
    work: fn() -> Result<(), String>,
) -> Step {
    Step {
        name,
        lane: Lane::Main,
        after,
        work,
    }
}

const fn side(
    name: &'static str,
    after: &'static [&'static str],
    work: fn() -> Result<(), String>,
) -> Step {
    Step {
        lane: Lane::Side,
        ..main(name, after, work)
    }
}

/// Runs all steps, or the steps of [`QUICK`], and prints the duration of each step.
///
/// # Errors
///
/// Returns an error if a step fails. The message has the name and the error of the first step that
/// fails.
pub(crate) fn run(is_quick: bool) -> Result<(), String> {
    let started = Instant::now();
    let mut selected: Vec<&Step> = STEPS.iter().collect();
    selected.retain(|step| !is_quick || QUICK.contains(&step.name));
    if !is_quick && !cfg!(target_os = "linux") {
        selected.retain(|step| !LINUX.contains(&step.name));
        left_out("Windows under Wine", "this needs a Linux host")?;
    }
    let done = steps::run(&selected)?;
    println!("\n{}", steps::table(&done));
    println!("{:8.1} s  in all", started.elapsed().as_secs_f64());
    report()
}

/// Runs one step, without the steps that must end before it.
///
/// # Errors
///
/// Returns an error if the step fails, or if there is no step with this name.
pub(crate) fn run_step(name: &str) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name);
    let step = step.ok_or_else(|| {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        format!("unknown step {name}; the steps are: {}", names.join(", "))
    })?;
    (step.work)()
}

/// Prints the sums of all verdicts as the last line.
///
/// # Errors
///
/// Returns an error in CI if a test of this system left something out.
fn report() -> Result<(), String> {
    let verdicts = VERDICTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let verdicts = verdicts.unwrap_or_default();
    let mut forbidden = 0;
    for (test, reason) in &verdicts.left_out {
        println!("skipped in {test}: {reason}");
        forbidden += usize::from(!test.ends_with(UNDER_WINE));
    }
    let left_out = verdicts.left_out.len() as u64;
    println!(
        "\n{} passed, {} failed, {} skipped",
        verdicts.passed.saturating_sub(left_out),
        verdicts.failed,
        verdicts.ignored + left_out
    );
    match is_ci() && forbidden > 0 {
        true => Err(format!(
            "{forbidden} parts of tests were skipped, which CI does not allow"
        )),
        false => Ok(()),
    }
}

fn add(verdicts: Verdicts) {
    let mut sums = VERDICTS.lock().unwrap_or_else(PoisonError::into_inner);
    *sums.get_or_insert_default() += verdicts;
}

/// Runs the tests for this system.
fn host_tests() -> Result<(), String> {
    command::add_target(DRIVERS)?;
    add(verdicts::of(&mut cargo(&["test", "--workspace"]))?);
    Ok(())
}

fn clippy(arguments: &[&str]) -> Result<(), String> {
    let mut clippy = cargo(&["clippy", "--all-targets"]);
    command::run(clippy.args(arguments).args(["--", "--deny", "warnings"]))
}

fn documentation() -> Result<(), String> {
    command::run(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Checks that the fuzz targets compile. They use the workspace's build folder, so that dependencies are
/// compiled once.
fn fuzz_targets_compile() -> Result<(), String> {
    let mut check = cargo(&["check", "--manifest-path", "fuzz/Cargo.toml"]);
    command::run(check.env("CARGO_TARGET_DIR", target()))
}

/// Checks that the sources compile for macOS. On this system, no macOS program can be linked or run.
fn macos() -> Result<(), String> {
    // The C compiler for macOS is missing, so the program `true` replaces it. A check does not need the
    // compiled C code of dependencies.
    let mut check = cargo(&[&["check", "--target", MACOS], WORKSPACE_WITHOUT_SQL].concat());
    let tools = ["CC", "AR"].map(|tool| format!("{tool}_{}", MACOS.replace('-', "_")));
    command::run(check.envs(tools.map(|tool| (tool, "true"))))
}

/// Installs all tools that steps need and that Debian has as packages.
fn tools() -> Result<(), String> {
    command::add_target(MACOS)?;
    let mut tools = vec![apt::NPM, apt::CHROMIUM];
    if cfg!(target_os = "linux") {
        command::add_target(wine::TARGET)?;
        tools.extend(apt::WINDOWS);
        tools.extend(apt::NETWORK);
        tools.push(apt::PERF);
    }
    match apt::provide(&tools) {
        Ok(()) => Ok(()),
        // Each step that needs a missing tool reports this again.
        Err(why) => left_out("parts of tests that need more than cargo", &why),
    }
}

/// Compiles the tests that run under Wine.
fn windows_build() -> Result<(), String> {
    wine::install()?;
    for (package, example) in STAND_INS {
        let stand_in = ["--package", package, "--example", example];
        command::run(&mut wine::cargo("build", &stand_in))?;
    }
    command::run(windows_test_command()?.arg("--no-run"))
}

/// Runs tests as Windows programs. Also runs the finished program once.
fn windows_tests() -> Result<(), String> {
    let wine = Wine::start()?;
    let mut tests = windows_test_command()?;
    // If the variable `CI` is set, tests fail where Wine lacks something, so it is removed.
    let mut verdicts = verdicts::of(wine.surround(&mut tests).env_remove("CI"))?;
    let left_out = std::mem::take(&mut verdicts.left_out).into_iter();
    verdicts.left_out = left_out
        .map(|(test, reason)| (test + UNDER_WINE, reason))
        .collect();
    add(verdicts);
    let trace = "../shared/data/etl/perfview__smallEtlFile.etl";
    for arguments in [&["--help"][..], &["info", trace]] {
        command::read(wine.laglab().args(arguments))?;
    }
    Ok(())
}

fn same_bytes() -> Result<(), String> {
    same_bytes::on_windows_too(&Wine::start()?)
}

/// Returns `cargo test …` for the tests that run on Windows. For `app`, these are all tests except
/// [`APP_TESTS_NOT_ON_WINDOWS`]. Cargo runs the test programs with these names in all packages, so a few more
/// programs run than necessary.
fn windows_test_command() -> Result<std::process::Command, String> {
    let mut tests = wine::cargo("test", WITHOUT_SQL);
    tests.args(["--lib", "--bins"]);
    for package in ON_WINDOWS {
        tests.args(["--package", package]);
    }
    for name in LIBRARY_TESTS_ON_WINDOWS {
        tests.args(["--test", name]);
    }
    let folder = root().join("crates/app/tests");
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_program = path.extension().is_some_and(|extension| extension == "rs");
        if is_program && !APP_TESTS_NOT_ON_WINDOWS.contains(&&*name) {
            tests.args(["--test", &name]);
        }
    }
    Ok(tests)
}
