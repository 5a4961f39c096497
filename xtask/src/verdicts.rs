//! Verdicts of Rust's test programs: counts of tests, and tests that left something out.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::process::Command;

use crate::{command, steps};

/// Counts of tests, and the tests that could not check everything on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdicts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// Names and reasons of tests that left something out. A test prints `left out: ` before the reason.
    pub(crate) left_out: BTreeSet<(String, String)>,
}

impl AddAssign for Verdicts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.left_out.extend(other.left_out);
    }
}

/// Runs `cargo test …`, even if a test program fails, and prints its output. Output of tests that passed is not
/// printed. The output of each test program is printed when the program has ended, so that several calls may run at the
/// same time.
///
/// # Errors
///
/// Returns an error if a test fails or the tests cannot be compiled. If tests fail, the message has the end of their
/// output, because the output of many other tests may follow in the log.
pub(crate) fn of(cargo_test: &mut Command) -> Result<Verdicts, String> {
    let mut reader = Reader::default();
    let mut of_program = String::new();
    let arguments = ["--no-fail-fast", "--", "--show-output"];
    let outcome = command::watch(cargo_test.args(arguments), |line| {
        if reader.read(line) {
            of_program += line;
            of_program.push('\n');
        }
        if line.starts_with(END_OF_PROGRAM) {
            print!("{}", std::mem::take(&mut of_program));
        }
    });
    print!("{of_program}");
    match outcome {
        Ok(()) => Ok(reader.verdicts),
        Err(error) if reader.failures.is_empty() => Err(error),
        Err(_) => Err(format!(
            "{} tests failed; the end of their output:\n{}",
            reader.verdicts.failed,
            steps::last_lines(&reader.failures, steps::REPEATED_LINES)
        )),
    }
}

/// Start of the last line that a test program prints.
const END_OF_PROGRAM: &str = "test result: ";

/// Reader of the output of test programs, line by line.
#[derive(Default)]
struct Reader {
    verdicts: Verdicts,
    /// True if the current lines are output of tests that passed.
    is_output: bool,
    /// True if the current lines are output of tests that failed, or their names.
    is_failure: bool,
    /// Output of all tests that failed.
    failures: String,
    /// Name of the test whose output is being read.
    test: String,
}

impl Reader {
    /// Reads a line. Returns true if the line should be printed for the user.
    fn read(&mut self, line: &str) -> bool {
        if line == "successes:" {
            self.is_output = true;
        } else if line == "failures:" || line.starts_with(END_OF_PROGRAM) {
            self.is_output = false;
            self.is_failure = line == "failures:";
        }
        if self.is_failure {
            self.failures += line;
            self.failures.push('\n');
        }
        if let Some(counts) = counts(line) {
            self.verdicts.passed += counts[0];
            self.verdicts.failed += counts[1];
            self.verdicts.ignored += counts[2];
        }
        let output_of = line.strip_prefix("---- ");
        if let Some(test) = output_of.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            test.clone_into(&mut self.test);
        }
        if let Some(reason) = line.strip_prefix("left out: ") {
            let reason = (self.test.clone(), reason.to_owned());
            self.verdicts.left_out.insert(reason);
        }
        !self.is_output
    }
}

/// Parses the counts in `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn counts(line: &str) -> Option<[u64; 3]> {
    let (_, counts) = line.strip_prefix(END_OF_PROGRAM)?.split_once(". ")?;
    let mut numbers = counts
        .split("; ")
        .map(|part| part.split(' ').next()?.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
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
panicked

test result: FAILED. 2 passed; 1 failed; 4 ignored; 0 measured; 0 filtered out
test result: unclear";
        let mut reader = Reader::default();
        let printed: Vec<_> = lines.lines().filter(|line| reader.read(line)).collect();
        let left_out = [("a".to_owned(), "no right to do it".to_owned())];
        assert_eq!(
            reader.verdicts,
            Verdicts {
                passed: 2,
                failed: 1,
                ignored: 4,
                left_out: left_out.into(),
            }
        );
        let expected = [
            "running 3 tests",
            "test a ... ok",
            "",
            "failures:",
            "",
            "---- c stdout ----",
            "panicked",
            "",
            "test result: FAILED. 2 passed; 1 failed; 4 ignored; 0 measured; 0 filtered out",
            "test result: unclear",
        ];
        assert_eq!(printed, expected);
        assert_eq!(
            reader.failures,
            "failures:\n\n---- c stdout ----\npanicked\n\n"
        );
    }
}
