//! `cargo xtask test`: runs everything that must succeed before a change is merged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::command::{self, cargo, root, target};
use crate::steps::{self, Lane, Step, is_ci, left_out};
use crate::verdicts::{self, Verdicts};
use crate::wine::{self, Wine};
use crate::{
    apt, assistants, browser, built, deny, exports, page, peers, same_bytes, tidy, workflows,
};

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

/// Test programs of the packages in [`ON_WINDOWS`] that call the system. The unit tests of these packages also run.
/// Other test programs of these packages only pass bytes to functions. They are left out, because some of them test
/// thousands of cases, which would take long under Wine.
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

/// Examples that replace I/O rings and recorders in the tests of `ioring`, `measure` and `record`. They are built
/// separately, because cargo only builds examples for tests if it tests everything.
const STAND_INS: &[&str] = &["standin", "ioring-standin", "stand-in"];

/// Test programs of `app` that do not run on Windows. Some would take long under Wine: they run many simulations and
/// comparisons, which only compute, or compare numbers in hundreds of megabytes of output, which Wine's server passes on
/// in small pieces. [`same_bytes()`] compares the explanations of all shipped scenarios with those of this system. For the
/// tests of the server, it is unknown whether they work under Wine.
const APP_TESTS_NOT_ON_WINDOWS: &[&str] = &[
    "explain",
    "hostile_names",
    "prove",
    "record_judged",
    "real_traces",
    "scenarios",
    "server",
    "server_samples",
];

/// Suffix of the names of tests that ran under Wine. Wine lacks parts of Windows, so these tests may leave something
/// out, even in CI.
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
    side("workflows", &["tools"], workflows::are_valid),
    side("Wine prefix", &["tools"], || Wine::start().map(drop)),
    side("readers of traces", &["build"], peers::agree),
    side("readers of exports", &["build"], exports::agree),
    side("assistants", &["tools", "build"], assistants::are_answered),
    side("browser", &["tools", "page", "build"], || {
        browser::shows_reports()?;
        page::works()
    }),
];

/// Names of the steps in the side lane for which the tests wait.
const SIDE: &[&str] = &[
    "assistants",
    "browser",
    "dependencies",
    "readers of exports",
];

/// Steps of `--quick`. They need no program except cargo. [`FAST_TESTS`] follows them.
const QUICK: &[&str] = &[
    "format",
    "tidy",
    "lint",
    "documentation",
    "fuzz targets compile",
];

/// Last step of `--quick`.
const FAST_TESTS: Step = main("fast tests", &[], fast_tests);

/// Test programs that take about half of the time of all test programs. They run at the same time as the others.
const FIRST_LANE: &[&str] = &[
    "compare",
    "detail",
    "explain",
    "power",
    "prove",
    "simulations",
    "twins",
];

/// Test programs that measure times of this machine. They run alone.
const ALONE: &[&str] = &[
    "files",
    "linux",
    "linux_faults",
    "measure",
    "measure_files",
    "measure_net",
    "measure_why",
    "net",
    "net_throughput",
    "perf",
    "record_now",
    "recordings",
    "ring",
    "sockets",
];

/// Test programs that each take more than 10 s on 2 CPUs. `--quick` leaves them out.
const SLOW_TESTS: &[&str] = &[
    "brief",
    "change_plan",
    "compare",
    "explain",
    "generated",
    "hostile",
    "linux",
    "linux_faults",
    "measure",
    "measure_why",
    "missing",
    "model",
    "namespaces",
    "net",
    "parquet",
    "perf",
    "pictures",
    "power",
    "protocol",
    "prove",
    "readme",
    "real_traces",
    "redaction",
    "requests",
    "session",
    "simulations",
    "twins",
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

/// Runs all steps, or the steps of `--quick`, and prints the duration of each step.
///
/// # Errors
///
/// Returns an error if a step fails. The message has the name and the error of the first step that
/// fails.
pub(crate) fn run(is_quick: bool) -> Result<(), String> {
    let started = Instant::now();
    let mut selected: Vec<&Step> = STEPS.iter().collect();
    if is_quick {
        selected.retain(|step| QUICK.contains(&step.name));
        selected.push(&FAST_TESTS);
    }
    if !is_quick && !cfg!(target_os = "linux") {
        selected.retain(|step| !LINUX.contains(&step.name));
        left_out("Windows under Wine", "this needs a Linux host")?;
    }
    let outcome = steps::run(&selected);
    println!("{:8.1} s  in all", started.elapsed().as_secs_f64());
    outcome?;
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

/// Runs the tests for this system. Two commands run at the same time, because some test programs have one long test,
/// which uses one CPU. The unit tests and [`ALONE`] follow.
fn host_tests() -> Result<(), String> {
    command::add_target(DRIVERS)?;
    // Some tests start examples, which the commands below do not compile.
    built::compile()?;
    let mut others = all_test_programs()?;
    others.retain(|name| ![FIRST_LANE, ALONE].concat().contains(&name.as_str()));
    let outcomes = thread::scope(|scope| {
        let first = scope.spawn(|| host_tests_of(&[], FIRST_LANE));
        let second = host_tests_of(&[], &others);
        [
            first
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".to_owned())),
            second,
        ]
    });
    let alone = host_tests_of(&["--lib", "--bins"], ALONE);
    let examples = host_tests_of::<&str>(&["--doc"], &[]);
    let outcomes = outcomes.into_iter().chain([alone, examples]);
    let failures: Vec<_> = outcomes.filter_map(Result::err).collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// Runs the unit tests and the test programs for this system, except [`SLOW_TESTS`].
fn fast_tests() -> Result<(), String> {
    command::add_target(DRIVERS)?;
    let mut names = all_test_programs()?;
    names.retain(|name| !SLOW_TESTS.contains(&name.as_str()));
    println!("left out, because they are slow: {}", SLOW_TESTS.join(", "));
    host_tests_of(&["--lib", "--bins"], &names)
}

/// Runs tests for this system: those that the arguments select, and the test programs with these names. The whole
/// workspace is selected, because cargo would choose other features for some packages, and compile them again.
fn host_tests_of<N: AsRef<str>>(arguments: &[&str], names: &[N]) -> Result<(), String> {
    let mut tests = cargo(&[&["test", "--workspace"], arguments].concat());
    for name in names {
        tests.args(["--test", name.as_ref()]);
    }
    verdicts::of(&mut tests).map(add)
}

/// Returns the names of all test programs, without repetition.
fn all_test_programs() -> Result<Vec<String>, String> {
    let mut names = BTreeSet::new();
    for package in entries(&root().join("crates"))? {
        let folder = package.join("tests");
        if folder.is_dir() {
            names.extend(test_programs(&folder)?);
        }
    }
    Ok(names.into_iter().collect())
}

/// Returns the names of the test programs in the folder `tests` of a package.
fn test_programs(folder: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for path in entries(folder)? {
        let is_file = path.extension().is_some_and(|extension| extension == "rs");
        if is_file || path.join("main.rs").is_file() {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            names.push(name.into_owned());
        }
    }
    Ok(names)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<Result<_, _>>().map_err(unreadable)
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
        // Each step that needs a missing tool also reports that it is missing.
        Err(why) => left_out("parts of tests that need more than cargo", &why),
    }
}

/// Compiles the tests that run under Wine.
fn windows_build() -> Result<(), String> {
    wine::install()?;
    let mut stand_ins = windows_command("build");
    for name in STAND_INS {
        stand_ins.args(["--example", name]);
    }
    command::run(&mut stand_ins)?;
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

/// Returns `cargo SUBCOMMAND …` for the packages in [`ON_WINDOWS`]. All builds for Windows choose the same packages.
/// With fewer packages, cargo would choose other features for dependencies, and compile them again.
fn windows_command(subcommand: &str) -> std::process::Command {
    let mut command = wine::cargo(subcommand, WITHOUT_SQL);
    for package in ON_WINDOWS {
        command.args(["--package", package]);
    }
    command
}

/// Returns `cargo test …` for the tests that run on Windows. For `app`, these are all tests except
/// [`APP_TESTS_NOT_ON_WINDOWS`]. Cargo selects test programs by name in all packages, so it also runs test programs of
/// other packages that have one of these names.
fn windows_test_command() -> Result<std::process::Command, String> {
    let mut tests = windows_command("test");
    tests.args(["--lib", "--bins"]);
    for name in LIBRARY_TESTS_ON_WINDOWS {
        tests.args(["--test", name]);
    }
    for name in test_programs(&root().join("crates/app/tests"))? {
        if !APP_TESTS_NOT_ON_WINDOWS.contains(&name.as_str()) {
            tests.args(["--test", &name]);
        }
    }
    Ok(tests)
}
