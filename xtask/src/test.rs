//! `cargo xtask test`: runs everything that must succeed before a change is merged. With `--full`, it also runs what
//! takes long, or needs Wine, other programs or rights of the system.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::command::{self, cargo, root, target};
use crate::nextest;
use crate::steps::{self, Ended, Lane, Step, When, Work, is_ci, left_out};
use crate::summary;
use crate::verdicts::{self, Failure, Verdicts};
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

/// All steps. Steps of the same lane run in this order.
const STEPS: &[Step] = &[
    step("format", || {
        command::run(&mut cargo(&["fmt", "--all", "--check"]))
    }),
    step("tidy", tidy::run),
    step("lint", || clippy(&["--workspace"])),
    step("documentation", documentation),
    step("Windows compiles", || compiles_for(wine::TARGET)),
    step("build", built::compile),
    step("fuzz targets compile", fuzz_targets_compile).full(),
    step("macOS compiles", || compiles_for(MACOS)).full(),
    step("Windows lint", || {
        clippy(&[&["--target", wine::TARGET], WORKSPACE_WITHOUT_SQL].concat())
    })
    .full()
    .needs(&["all tools"]),
    step("Windows build", windows_build)
        .full()
        .needs(&["all tools"]),
    tests("Windows tests", windows_tests)
        .full()
        .needs(&["Windows build", "Wine prefix"]),
    step("same bytes on Windows", same_bytes).full().needs(&[
        "build",
        "Windows build",
        "Wine prefix",
    ]),
    tests("tests", || host_tests("default", &[]))
        .needs(&["build"])
        .after(SIDE),
    tests("slow tests", || {
        host_tests("slow", &["--ignore-default-filter", "-E", "not default()"])
    })
    .full()
    .needs(&["build", "all tools"])
    .after(SIDE),
    step("documentation tests", || {
        command::run(&mut cargo(&[
            "test",
            "--workspace",
            "--doc",
            "--no-fail-fast",
        ]))
    })
    .full()
    .needs(&["build"]),
    step("tools", || tools(&[apt::NPM, apt::CHROMIUM])).side(),
    step("page", page::is_sound).side().needs(&["tools"]),
    step("dependencies", deny::check).side(),
    step("workflows", workflows::are_valid)
        .side()
        .needs(&["tools"]),
    step("all tools", all_tools).full().side(),
    step("Wine prefix", || Wine::start().map(drop))
        .full()
        .side()
        .needs(&["all tools"]),
    step("reports in a browser", browser::shows_reports)
        .side()
        .needs(&["tools", "build"]),
    step("browser", || page::works(&["kept"]))
        .side()
        .needs(&["page", "build"]),
    step("readers of traces", peers::agree)
        .full()
        .side()
        .needs(&["build"]),
    step("readers of exports", exports::agree)
        .full()
        .side()
        .needs(&["build"]),
    step("assistants", assistants::are_answered)
        .full()
        .side()
        .needs(&["tools", "build"]),
    step("all of the page in browsers", || page::works(&[]))
        .full()
        .side()
        .needs(&["all tools", "page", "build"]),
];

/// Names of the steps in the side lane for which the tests wait, because some tests measure times.
const SIDE: &[&str] = &[
    "browser",
    "all of the page in browsers",
    "assistants",
    "dependencies",
    "readers of exports",
];

/// Steps that only run on Linux.
const LINUX: &[&str] = &[
    "Windows lint",
    "Windows build",
    "Windows tests",
    "same bytes on Windows",
    "Wine prefix",
];

/// Returns a step of the gate in the main lane.
const fn step(name: &'static str, check: fn() -> Result<(), String>) -> Step {
    Step {
        name,
        lane: Lane::Main,
        when: When::Gate,
        needs: &[],
        after: &[],
        work: Work::Check(check),
    }
}

/// Returns a step of the gate that runs tests.
const fn tests(name: &'static str, work: fn() -> Result<Verdicts, String>) -> Step {
    Step {
        work: Work::Tests(work),
        ..step(name, || Ok(()))
    }
}

impl Step {
    const fn full(self) -> Self {
        Self {
            when: When::Full,
            ..self
        }
    }

    const fn side(self) -> Self {
        Self {
            lane: Lane::Side,
            ..self
        }
    }

    const fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    const fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }
}

/// Runs the steps of the gate, or all steps, and prints a summary.
///
/// # Errors
///
/// Returns an error if a step fails.
pub(crate) fn run(is_full: bool) -> Result<(), String> {
    let started = Instant::now();
    let mut selected: Vec<&Step> = STEPS.iter().collect();
    selected.retain(|step| is_full || step.when == When::Gate);
    if is_full && !cfg!(target_os = "linux") {
        selected.retain(|step| !LINUX.contains(&step.name));
        left_out("Windows under Wine", "this needs a Linux host")?;
    }
    let ended = steps::run(&selected)?;
    summary::print(&ended, started.elapsed())
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
    let started = Instant::now();
    let outcome = steps::outcome_of(step.work);
    if let (Work::Check(_), steps::Outcome::Failed(error)) = (step.work, &outcome) {
        return Err(error.clone());
    }
    let took = started.elapsed();
    match step.work {
        Work::Check(_) => Ok(()),
        Work::Tests(_) => summary::print(
            &[Ended {
                step: step.name,
                took,
                outcome,
            }],
            took,
        ),
    }
}

/// Runs tests for this system, with a profile of `.config/nextest.toml`, and with options that select tests.
fn host_tests(profile: &str, selected: &[&str]) -> Result<Verdicts, String> {
    command::add_target(DRIVERS)?;
    let mut verdicts = nextest::run(profile, selected)?;
    if is_ci() {
        let left_out = std::mem::take(&mut verdicts.left_out).into_iter();
        verdicts
            .failures
            .extend(left_out.map(|(test, reason)| Failure {
                test,
                tries: 1,
                cause: format!("left out, which CI does not allow: {reason}"),
                command: "cargo xtask test --step tests".to_owned(),
            }));
    }
    Ok(verdicts)
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
    // `--examples` makes cargo choose the features of the lint, so that dependencies are not checked again.
    let mut doc = cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--lib",
        "--bins",
        "--examples",
    ]);
    command::run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Checks that the fuzz targets compile. They use the workspace's build folder, so that dependencies are
/// compiled once.
fn fuzz_targets_compile() -> Result<(), String> {
    let mut check = cargo(&["check", "--manifest-path", "fuzz/Cargo.toml"]);
    command::run(check.env("CARGO_TARGET_DIR", target()))
}

/// Checks that the sources compile for another system.
fn compiles_for(system: &str) -> Result<(), String> {
    command::add_target(system)?;
    // The program `true` replaces the system's C compiler, which may be missing. A check does not need the compiled
    // C code of dependencies.
    let arguments = ["check", "--target", system, "--lib", "--bins"];
    let mut check = cargo(&[&arguments, WORKSPACE_WITHOUT_SQL].concat());
    let tools = ["CC", "AR"].map(|tool| format!("{tool}_{}", system.replace('-', "_")));
    command::run(check.envs(tools.map(|tool| (tool, "true"))))
}

/// Installs tools that Debian has as packages.
fn tools(tools: &[apt::Tool]) -> Result<(), String> {
    match apt::provide(tools) {
        Ok(()) => Ok(()),
        // Each step that needs a missing tool also reports that it is missing.
        Err(why) => left_out("parts of tests that need more than cargo", &why),
    }
}

/// Installs the tools that only `--full` needs.
fn all_tools() -> Result<(), String> {
    let mut all = vec![apt::FIREFOX];
    if cfg!(target_os = "linux") {
        all.extend(apt::WINDOWS);
        all.extend(apt::NETWORK);
        all.push(apt::PERF);
    }
    tools(&all)
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
fn windows_tests() -> Result<Verdicts, String> {
    let wine = Wine::start()?;
    let mut tests = windows_test_command()?;
    // If the variable `CI` is set, tests fail where Wine lacks something, so it is removed.
    let tests = wine.surround(&mut tests).env_remove("CI");
    let verdicts = verdicts::of(tests, "Windows tests")?;
    let trace = "../shared/data/etl/perfview__smallEtlFile.etl";
    for arguments in [&["--help"][..], &["info", trace]] {
        command::read(wine.laglab().args(arguments))?;
    }
    Ok(verdicts)
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
