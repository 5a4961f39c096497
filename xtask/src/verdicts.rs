//! Verdicts of tests: failures, flaky tests, and tests that left something out.

use std::collections::BTreeSet;

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

impl Verdicts {
    /// Counts tests that left something out as failed.
    pub(crate) fn refuse_skips(&mut self) {
        let left_out = std::mem::take(&mut self.left_out).into_iter();
        self.failures.extend(left_out.map(|(test, reason)| Failure {
            test,
            tries: 1,
            cause: format!("left out, which CI does not allow: {reason}"),
            command: String::new(),
        }));
    }

    /// Adds what a test left out, by its output.
    pub(crate) fn add_left_out(&mut self, test: &str, output: &str) {
        let reasons = output
            .lines()
            .filter_map(|line| line.strip_prefix(LEFT_OUT));
        let reasons = reasons.map(|reason| (test.to_owned(), reason.to_owned()));
        self.left_out.extend(reasons);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_failure_is_the_message_of_its_first_panic() {
        let output = "left out: x\n\nthread 'a' (1) panicked at a.rs:1:2:\nassertion `left == right` failed: why\n  left: 1\n right: 2\nstack backtrace:\n   0: x";
        let expected = "assertion `left == right` failed: why left: 1 right: 2 (a.rs:1:2)";
        assert_eq!(cause(output), expected);
        assert_eq!(cause("Error: no file\n"), "Error: no file");
        assert_eq!(cause(""), "no output");
    }
}
