//! `cargo xtask test`: runs everything that must succeed before a change is merged. With `--full`, it also runs what
//! takes long, or needs Wine, other programs or rights of the system.

use std::process::Command;
use std::time::Instant;

use crate::command::{self, cargo, target};
use crate::junit::Report;
use crate::nextest;
use crate::steps::{self, Extent, Lane, Outcome, Step, StepResult, Work, left_out};
use crate::summary;
use crate::wine::{self, Wine};
use crate::{apt, assistants, built, deny, exports, page, peers, same_bytes, tidy, workflows};

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

/// Examples that replace I/O rings and recorders in the tests of `ioring`, `measure` and `record`. They are built
/// separately, because cargo only builds examples for tests if it tests everything.
const STAND_INS: &[&str] = &["standin", "ioring-standin", "stand-in"];

/// All steps. Steps of the same lane run in this order.
const STEPS: &[Step] = &[
    step("format", |_| {
        command::run(&mut cargo(&["fmt", "--all", "--check"]))
    }),
    step("tidy", |_| tidy::run()),
    step("lint", |_| clippy(&["--workspace"])),
    step("documentation", |_| documentation()),
    step("Windows compiles", |_| compiles_for(wine::TARGET)),
    step("build", |_| built::compile()),
    step("fuzz targets compile", |_| fuzz_targets_compile()).only_full(),
    step("macOS compiles", |_| compiles_for(MACOS)).only_full(),
    step("Windows lint", |_| {
        clippy(&[&["--target", wine::TARGET], WORKSPACE_WITHOUT_SQL].concat())
    })
    .only_full()
    .needs(&["tools"]),
    step("Windows build", |_| windows_build())
        .only_full()
        .needs(&["tools"]),
    tests("Windows tests", windows_tests, |_| {
        nextest::report("windows")
    })
    .skipping()
    .only_full()
    .needs(&["Windows build", "Wine prefix"]),
    step("same bytes on Windows", |_| same_bytes())
        .only_full()
        .needs(&["build", "Windows build", "Wine prefix"]),
    tests("tests", host_tests, |extent| {
        nextest::report(profile(extent))
    })
    .needs(&["build", "tools"])
    .after(SIDE),
    step("documentation tests", |_| documentation_tests())
        .only_full()
        .needs(&["build"]),
    step("tools", tools).side(),
    step("page", |_| page::is_sound()).side().needs(&["tools"]),
    step("dependencies", |_| deny::check()).side(),
    step("workflows", |_| workflows::are_valid())
        .side()
        .needs(&["tools"]),
    step("Wine prefix", |_| Wine::start().map(drop))
        .only_full()
        .side()
        .needs(&["tools"]),
    step("readers of traces", |_| peers::agree())
        .only_full()
        .side()
        .needs(&["build"]),
    step("readers of exports", |_| exports::agree())
        .only_full()
        .side()
        .needs(&["build"]),
    step("assistants", |_| assistants::are_answered())
        .only_full()
        .side()
        .needs(&["tools", "build"]),
    tests("browser", page::works, |_| page::report())
        .side()
        .needs(&["page", "build"]),
];

/// Names of the steps in the side lane for which the tests wait, because some tests measure times.
const SIDE: &[&str] = &[
    "browser",
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

/// Returns a step of the main lane.
const fn step(name: &'static str, check: fn(Extent) -> Result<(), String>) -> Step {
    Step {
        name,
        lane: Lane::Main,
        is_only_full: false,
        needs: &[],
        after: &[],
        work: Work::Check(check),
    }
}

/// Returns a step of the main lane that runs tests.
const fn tests(
    name: &'static str,
    run: fn(Extent) -> Result<(), String>,
    report: fn(Extent) -> Report,
) -> Step {
    Step {
        work: Work::Tests {
            run,
            report,
            may_skip: false,
        },
        ..step(name, run)
    }
}

impl Step {
    const fn only_full(self) -> Self {
        Self {
            is_only_full: true,
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

    /// Returns the step with tests that may leave something out even in CI.
    const fn skipping(self) -> Self {
        let work = match self.work {
            Work::Tests { run, report, .. } => Work::Tests {
                run,
                report,
                may_skip: true,
            },
            work @ Work::Check(_) => work,
        };
        Self { work, ..self }
    }
}

/// Runs the steps of the gate, or all steps, and prints a summary.
///
/// # Errors
///
/// Returns an error if a step fails.
pub(crate) fn run(extent: Extent) -> Result<(), String> {
    let started = Instant::now();
    let mut selected: Vec<&Step> = STEPS.iter().collect();
    selected.retain(|step| extent == Extent::Full || !step.is_only_full);
    if extent == Extent::Full && !cfg!(target_os = "linux") {
        selected.retain(|step| !LINUX.contains(&step.name));
        left_out("Windows under Wine", "this needs a Linux host")?;
    }
    let ended = steps::run(&selected, extent)?;
    summary::print(&ended, started.elapsed())
}

/// Runs one step, without the steps that must end before it.
///
/// # Errors
///
/// Returns an error if the step fails, or if there is no step with this name.
pub(crate) fn run_step(name: &str, extent: Extent) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name);
    let step = step.ok_or_else(|| {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        format!("unknown step {name}; the steps are: {}", names.join(", "))
    })?;
    let started = Instant::now();
    let outcome = steps::outcome_of(step.work, extent);
    let took = started.elapsed();
    match outcome {
        Outcome::Failed(error) => Err(error),
        outcome if matches!(step.work, Work::Tests { .. }) => {
            let step = step.name;
            let ended = StepResult {
                step,
                took,
                outcome,
            };
            summary::print(&[ended], took)
        }
        _ => Ok(()),
    }
}

/// Runs the tests of this system.
fn host_tests(extent: Extent) -> Result<(), String> {
    command::add_target(DRIVERS)?;
    let mut tests = nextest::run(profile(extent))?;
    tests.arg("--workspace");
    if extent == Extent::Full {
        tests.env("LAGLAB_FULL", "1");
    }
    command::run(&mut tests)
}

/// Returns the profile of `.config/nextest.toml` for the tests of this system.
fn profile(extent: Extent) -> &'static str {
    match extent {
        Extent::Gate => "default",
        Extent::Full => "full",
    }
}

fn documentation_tests() -> Result<(), String> {
    command::run(&mut cargo(&[
        "test",
        "--workspace",
        "--doc",
        "--no-fail-fast",
    ]))
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
fn tools(extent: Extent) -> Result<(), String> {
    let mut tools = vec![apt::NPM, apt::CHROMIUM];
    if extent == Extent::Full {
        tools.push(apt::FIREFOX);
        if cfg!(target_os = "linux") {
            tools.extend(apt::WINDOWS);
            tools.extend(apt::NETWORK);
            tools.push(apt::PERF);
        }
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
    let mut stand_ins = wine::cargo("build", WITHOUT_SQL);
    on_windows(&mut stand_ins);
    for name in STAND_INS {
        stand_ins.args(["--example", name]);
    }
    command::run(&mut stand_ins)?;
    // cargo-nextest would start each test program, which needs Wine.
    let mut tests = wine::cargo("test", WITHOUT_SQL);
    command::run(on_windows(&mut tests).arg("--no-run"))
}

/// Runs tests as Windows programs. Also runs the finished program once.
fn windows_tests(_: Extent) -> Result<(), String> {
    let wine = Wine::start()?;
    let mut tests = nextest::run("windows")?;
    tests.args(["--target", wine::TARGET]).args(WITHOUT_SQL);
    on_windows(&mut tests);
    // If the variable `CI` is set, tests fail where Wine lacks something, so it is removed.
    command::run(wine.surround(&mut tests).env_remove("CI"))?;
    let trace = "../shared/data/etl/perfview__smallEtlFile.etl";
    for arguments in [&["--help"][..], &["info", trace]] {
        command::read(wine.laglab().args(arguments))?;
    }
    Ok(())
}

fn same_bytes() -> Result<(), String> {
    same_bytes::on_windows_too(&Wine::start()?)
}

/// Selects the packages in [`ON_WINDOWS`]. All builds for Windows choose the same packages. With fewer packages, cargo
/// would choose other features for dependencies, and compile them again.
fn on_windows(command: &mut Command) -> &mut Command {
    let packages = ON_WINDOWS.iter().flat_map(|package| ["--package", package]);
    // Tests look for examples next to their program. A separate build folder has none.
    command.args(packages).env_remove("CARGO_BUILD_BUILD_DIR")
}
