//! `cargo xtask bench`: compares laglab with other tools and with physical limits.

use std::path::{Path, PathBuf};

use crate::{command, peers};

/// Builds laglab for release and runs the benchmarks of `bench/`. Writes their report to `bench/runs/`. The
/// name of the report contains the date and the machine.
///
/// # Errors
///
/// Returns an error if something cannot be built or run, or `../shared/data` is missing.
pub(crate) fn run() -> Result<(), String> {
    let data = command::root().join("../shared/data");
    if !data.is_dir() {
        return Err("../shared/data is missing: the benchmarks read its traces".to_owned());
    }
    let release = build()?;
    let scratch = command::target().join("bench");
    let mut bench = command::program(release.join("bench"));
    bench
        .arg(release.join("laglab"))
        .arg(scratch.join("files"))
        .arg(&data)
        .env("LAGLAB_CACHE", scratch.join("cache"));
    bench.arg(peers::install()?);
    let results = command::read(&mut bench)?;
    let line = |program: &str, arguments: &[&str]| -> String {
        let text = command::read(command::program(program).args(arguments)).unwrap_or_default();
        text.lines().next().unwrap_or("unknown").trim().to_owned()
    };
    let date = line("date", &["-u", "+%Y-%m-%d"]);
    let commit = line("git", &["rev-parse", "--short", "HEAD"]);
    let machine = machine();
    let report = format!(
        "# Benchmarks of {date}\n\nMachine: {machine}. Commit {commit}. {}.\n{results}",
        line("rustc", &["--version"])
    );
    let model = machine
        .split(',')
        .next()
        .unwrap_or_default()
        .replace("(R)", "")
        .replace("(TM)", "");
    let name = model
        .to_ascii_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join("-");
    let folder = command::root().join("bench/runs");
    let path = folder.join(format!("{date}-{name}.md"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, &report))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    print!("{report}");
    println!("\nWrote {}", path.display());
    Ok(())
}

/// Builds laglab and an earlier commit of it for release, compares both, and prints the table. The earlier program is built
/// in `target/bench/earlier` and is reused.
///
/// # Errors
///
/// Returns an error if the revision is unknown, or if something cannot be built or run.
pub(crate) fn against(revision: &str) -> Result<(), String> {
    let commit = command::read(command::program("git").args([
        "rev-parse",
        "--verify",
        "--end-of-options",
        &format!("{revision}^{{commit}}"),
    ]))?;
    let commit = commit.trim();
    let scratch = command::target().join("bench");
    let earlier = earlier(commit, &scratch.join("earlier"))?;
    let release = build()?;
    let results = command::read(
        command::program(release.join("bench"))
            .arg("against")
            .arg(release.join("laglab"))
            .arg(earlier)
            .arg(scratch.join("files")),
    )?;
    println!(
        "Machine: {}. Earlier commit: {commit}.\n{results}",
        machine()
    );
    Ok(())
}

/// Builds laglab and the benchmarks for release. Returns the folder of the programs.
fn build() -> Result<PathBuf, String> {
    command::run(&mut command::cargo(&[
        "build",
        "--release",
        "--package",
        "app",
        "--package",
        "bench",
    ]))?;
    Ok(command::target().join("release"))
}

/// Builds the laglab of a commit in a checkout below `folder`. Returns the path of the program.
fn earlier(commit: &str, folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join(format!("laglab-{commit}"));
    if program.is_file() {
        return Ok(program);
    }
    let checkout = folder.join("checkout");
    if !checkout.is_dir() {
        let mut clone = command::program("git");
        clone.args(["clone", "--quiet", "--shared", "--no-checkout", "."]);
        command::run(clone.arg(&checkout))?;
    }
    let mut git = command::program("git");
    git.current_dir(&checkout)
        .args(["checkout", "--quiet", "--force", "--detach", commit]);
    command::run(&mut git)?;
    // The two builds must not share a folder: cargo compares times of files, and would mix the programs.
    let target = folder.join("target");
    let mut cargo = command::cargo(&["build", "--release", "--package", "app"]);
    cargo
        .current_dir(&checkout)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_BUILD_BUILD_DIR", &target);
    command::run(&mut cargo)?;
    let built = target.join("release/laglab");
    std::fs::copy(&built, &program).map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(program)
}

/// Returns the processor, the number of threads and the memory of this machine. Leaves out facts that are
/// unknown.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<String> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field(&read("/proc/cpuinfo"), "model name")
        .unwrap_or_else(|| std::env::consts::ARCH.into());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|kb| kb.trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(String::new(), |kb| format!(", {} GB", kb >> 20));
    format!(
        "{model}, {threads} threads{memory}, {}",
        std::env::consts::OS
    )
}
