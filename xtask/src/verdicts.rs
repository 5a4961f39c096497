//! Verdicts of Rust's test programs: counts of tests, and tests that left something out.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::process::Command;

use crate::command;

/// Counts of tests, and the tests that failed, needed several tries or could not check everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdicts {
    pub(crate) passed: u64,
    pub(crate) failures: Vec<Failure>,
    /// Tests that passed after one or more failures.
    pub(crate) flaky: Vec<Failure>,
    /// Tests that left something out, with the reasons. A test prints `left out: ` before the reason.
    pub(crate) left_out: BTreeSet<(String, String)>,
}

/// Failure of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Name of the test program and of the test.
    pub(crate) test: String,
    /// Number of times that the test ran.
    pub(crate) tries: usize,
    pub(crate) cause: String,
    /// Command that runs the test again.
    pub(crate) command: String,
}

impl AddAssign for Verdicts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.flaky.extend(other.flaky);
        self.left_out.extend(other.left_out);
    }
}

/// Start of a line of a test's output that says what the test left out.
pub(crate) const LEFT_OUT: &str = "left out: ";

/// Returns the cause of a failure from the output of a test: the message of the first panic, in one line.
pub(crate) fn cause(output: &str) -> String {
    let mut lines = output.lines();
    let panic = lines
        .by_ref()
        .find_map(|line| line.split_once(" panicked at "));
    let Some((_, place)) = panic else {
        let last = output.trim_end().lines().next_back();
        return last.unwrap_or("no output").to_owned();
    };
    let is_message =
        |line: &&str| !line.starts_with("stack backtrace:") && !line.starts_with("note: ");
    let message: Vec<_> = lines.take_while(is_message).map(str::trim).collect();
    let message = message.join(" ");
    format!("{} ({})", message.trim(), place.trim_end_matches(':'))
}

/// Runs `cargo test …` to the end, even if tests fail, and prints the output of tests that failed. `step` is the step
/// that runs the tests again.
///
/// # Errors
///
/// Returns an error if the tests cannot be compiled, or if no test explains that the command failed.
pub(crate) fn of(cargo_test: &mut Command, step: &str) -> Result<Verdicts, String> {
    let mut reader = Reader::default();
    let arguments = ["--no-fail-fast", "--", "--show-output"];
    let outcome = command::watch(cargo_test.args(arguments), |line| {
        if reader.read(line) {
            println!("{line}");
        }
    });
    for failure in &mut reader.verdicts.failures {
        failure.command = format!("cargo xtask test --step '{step}'");
    }
    match outcome {
        Err(error) if reader.verdicts.failures.is_empty() => Err(error),
        _ => Ok(reader.verdicts),
    }
}

/// Start of the last line that a test program prints.
const END_OF_PROGRAM: &str = "test result: ";

/// Reader of the output of test programs, line by line.
#[derive(Default)]
struct Reader {
    verdicts: Verdicts,
    section: Section,
    /// Name and output of the test whose output is being read.
    test: Option<(String, String)>,
}

/// Part of the output of a test program.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Start,
    Successes,
    Failures,
}

impl Reader {
    /// Reads a line. Returns true if the line should be printed for the user.
    fn read(&mut self, line: &str) -> bool {
        let section = match line {
            "successes:" => Some(Section::Successes),
            "failures:" => Some(Section::Failures),
            line if line.starts_with(END_OF_PROGRAM) => Some(Section::Start),
            _ => None,
        };
        let output_of = line.strip_prefix("---- ");
        let test = output_of.and_then(|rest| rest.strip_suffix(" stdout ----"));
        if section.is_some() || test.is_some() {
            self.end_test();
        }
        self.section = section.unwrap_or(self.section);
        if let Some(test) = test {
            self.test = Some((test.to_owned(), String::new()));
        } else if let Some((_, output)) = &mut self.test {
            *output += line;
            output.push('\n');
        }
        self.verdicts.passed += passed(line).unwrap_or(0);
        self.section != Section::Successes
    }

    /// Adds the test whose output was read.
    fn end_test(&mut self) {
        let Some((test, output)) = self.test.take() else {
            return;
        };
        self.verdicts.add_left_out(&test, &output);
        if self.section == Section::Failures {
            self.verdicts.failures.push(Failure {
                test,
                tries: 1,
                cause: cause(&output),
                command: String::new(),
            });
        }
    }
}

impl Verdicts {
    /// Adds what a test left out, by its output.
    pub(crate) fn add_left_out(&mut self, test: &str, output: &str) {
        let reasons = output
            .lines()
            .filter_map(|line| line.strip_prefix(LEFT_OUT));
        let reasons = reasons.map(|reason| (test.to_owned(), reason.to_owned()));
        self.left_out.extend(reasons);
    }
}

/// Parses the first count in `test result: ok. 3 passed; 0 failed; …`.
fn passed(line: &str) -> Option<u64> {
    let (_, counts) = line.strip_prefix(END_OF_PROGRAM)?.split_once(". ")?;
    counts.split_once(" passed;")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_passed_tests_is_read_but_not_printed() {
        let lines = "\
running 3 tests
test a ... ok

successes:

---- a stdout ----
left out: no right to do it
more

successes:
    a
    b

failures:

---- c stdout ----

thread 'c' (7) panicked at src/c.rs:1:2:
assertion failed: 1 == 2
note: run with `RUST_BACKTRACE=1`


failures:
    c

test result: FAILED. 2 passed; 1 failed; 4 ignored; 0 measured; 0 filtered out
test result: unclear";
        let mut reader = Reader::default();
        let printed: Vec<_> = lines.lines().filter(|line| reader.read(line)).collect();
        let left_out = [("a".to_owned(), "no right to do it".to_owned())];
        let failure = Failure {
            test: "c".to_owned(),
            tries: 1,
            cause: "assertion failed: 1 == 2 (src/c.rs:1:2)".to_owned(),
            command: String::new(),
        };
        let expected = Verdicts {
            passed: 2,
            failures: vec![failure],
            flaky: Vec::new(),
            left_out: left_out.into(),
        };
        assert_eq!(reader.verdicts, expected);
        assert!(!printed.contains(&"more"));
        assert!(printed.contains(&"assertion failed: 1 == 2"));
        assert!(printed.contains(&"running 3 tests"));
    }

    #[test]
    fn the_cause_of_a_failure_is_the_message_of_its_first_panic() {
        let output = "left out: x\n\nthread 'a' (1) panicked at a.rs:1:2:\nassertion `left == right` failed: why\n  left: 1\n right: 2\nstack backtrace:\n   0: x";
        let expected = "assertion `left == right` failed: why left: 1 right: 2 (a.rs:1:2)";
        assert_eq!(cause(output), expected);
        assert_eq!(cause("Error: no file\n"), "Error: no file");
        assert_eq!(cause(""), "no output");
    }
}
