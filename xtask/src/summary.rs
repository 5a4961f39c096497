//! End of the output of `cargo xtask test`: durations, each failure with the command that repeats it, and counts.

use std::fmt::Write;
use std::time::Duration;

use crate::command::{root, target};
use crate::steps::{Outcome, StepResult, log_of};
use crate::verdicts::Failure;

/// Maximum number of failures that are printed. All of them are in a file.
const MOST_FAILURES: usize = 12;

/// Maximum number of flaky tests, and of parts that were left out, that are printed. All of them are in a file.
const MOST_OTHERS: usize = 4;

/// Maximum length of a printed line in characters.
const MOST_CHARACTERS: usize = 300;

/// Prints the summary of all steps. The last line has the counts of tests.
///
/// # Errors
///
/// Returns an error if something failed, or if the file with all failures cannot be written.
pub(crate) fn print(ended: &[StepResult], in_all: Duration) -> Result<(), String> {
    let summary = Summary::of(ended);
    let file = target().join("failures.txt");
    let all = [&summary.failures[..], &summary.others].concat().concat();
    std::fs::write(&file, all).map_err(|error| format!("{}: {error}", file.display()))?;
    let file = file
        .strip_prefix(root())
        .unwrap_or(&file)
        .display()
        .to_string();
    println!("\n{}", durations(ended, in_all));
    print!("{}", first_of(&summary.failures, MOST_FAILURES, &file));
    print!("{}", first_of(&summary.others, MOST_OTHERS, &file));
    println!("\n{}", summary.counts);
    match summary.failures.len() {
        0 => Ok(()),
        failures => Err(format!("{failures} checks failed or were not run")),
    }
}

/// Texts of a summary. Each entry is one or two lines.
struct Summary {
    failures: Vec<String>,
    /// Flaky tests, and parts of tests that were left out.
    others: Vec<String>,
    counts: String,
}

impl Summary {
    fn of(ended: &[StepResult]) -> Self {
        let (mut failures, mut others, mut not_run) = (Vec::new(), Vec::new(), Vec::new());
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        for StepResult { step, outcome, .. } in ended {
            match outcome {
                Outcome::NotRun(missing) => {
                    not_run.push(entry("NOT RUN", step, &format!("needs {missing}"), None));
                }
                Outcome::Failed(cause) => {
                    let log = log_of(step);
                    let log = log.strip_prefix(root()).unwrap_or(&log).display();
                    let command = if log_of(step).exists() {
                        format!("cargo xtask test --step '{step}'   (output: {log})")
                    } else {
                        format!("cargo xtask test --step '{step}'")
                    };
                    failures.push(entry("FAILED", step, cause, Some(&command)));
                }
                Outcome::Ran(verdicts) => {
                    passed += verdicts.passed;
                    failed += verdicts.failures.len();
                    skipped += verdicts.left_out.len();
                    failures.extend(
                        verdicts
                            .failures
                            .iter()
                            .map(|it| of_test("FAILED", step, it)),
                    );
                    others.extend(verdicts.flaky.iter().map(|it| of_test("FLAKY", step, it)));
                    others.extend(verdicts.left_out.iter().map(|(test, reason)| {
                        entry("SKIPPED", step, &format!("{test}: {reason}"), None)
                    }));
                }
            }
        }
        failures.extend(not_run);
        let counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
        Self {
            failures,
            others,
            counts,
        }
    }
}

fn of_test(verdict: &str, step: &str, failure: &Failure) -> String {
    let Failure {
        test,
        tries,
        cause,
        command,
    } = failure;
    let tries = match tries {
        1 => String::new(),
        tries => format!(" ({tries} tries)"),
    };
    let command = (!command.is_empty()).then_some(&command[..]);
    entry(verdict, step, &format!("{test}{tries}: {cause}"), command)
}

/// Formats an entry of the summary: one line, and the command in a second line.
fn entry(verdict: &str, step: &str, text: &str, command: Option<&str>) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = text.chars().take(MOST_CHARACTERS).collect();
    let more = if cut.len() < text.len() { " …" } else { "" };
    let mut entry = format!("{verdict:8} {step:14} {cut}{more}\n");
    if let Some(command) = command {
        let _ = writeln!(entry, "{:23} {command}", "");
    }
    entry
}

/// Joins the first entries, and counts the others.
fn first_of(entries: &[String], most: usize, file: &str) -> String {
    let mut text = entries.iter().take(most).cloned().collect::<String>();
    if entries.len() > most {
        let _ = writeln!(text, "and {} more: {file}", entries.len() - most);
    }
    text
}

/// Formats the duration of each step, the longest first, and of all steps.
fn durations(ended: &[StepResult], in_all: Duration) -> String {
    let mut ended: Vec<_> = ended.iter().collect();
    ended.sort_by_key(|ended| std::cmp::Reverse(ended.took));
    let steps = ended
        .iter()
        .map(|ended| format!("{} {:.1}", ended.step, ended.took.as_secs_f64()));
    let steps: Vec<_> = steps.collect();
    format!("{:.1} s in all: {}", in_all.as_secs_f64(), steps.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdicts::Verdicts;

    fn ended(step: &'static str, outcome: Outcome) -> StepResult {
        let took = Duration::from_millis(1_500);
        StepResult {
            step,
            took,
            outcome,
        }
    }

    #[test]
    fn a_failure_has_two_lines_and_its_command() {
        let failure = Failure {
            test: "linux::perf all".to_owned(),
            tries: 3,
            cause: "129 kB,\nnot below 125 kB".to_owned(),
            command: "cargo test -p linux --test perf -- --exact all".to_owned(),
        };
        let verdicts = Verdicts {
            passed: 7,
            failures: vec![failure.clone()],
            flaky: vec![failure],
            left_out: [("a".to_owned(), "no right".to_owned())].into(),
        };
        let summary = Summary::of(&[
            ended("browser", Outcome::NotRun("page")),
            ended("tests", Outcome::Ran(verdicts)),
        ]);
        let lines: Vec<_> = summary.failures.iter().flat_map(|it| it.lines()).collect();
        let expected = [
            "FAILED   tests          linux::perf all (3 tries): 129 kB, not below 125 kB",
            "                        cargo test -p linux --test perf -- --exact all",
            "NOT RUN  browser        needs page",
        ];
        assert_eq!(lines, expected);
        assert!(summary.others[0].starts_with("FLAKY    tests"));
        assert_eq!(summary.others[1], "SKIPPED  tests          a: no right\n");
        assert_eq!(summary.counts, "7 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn the_summary_has_at_most_sixty_lines() {
        let verdicts = || Verdicts {
            failures: vec![Failure::default(); 100],
            flaky: vec![Failure::default(); 100],
            ..Verdicts::default()
        };
        let ended = [ended("tests", Outcome::Ran(verdicts()))];
        let summary = Summary::of(&ended);
        let failures = first_of(&summary.failures, MOST_FAILURES, "target/failures.txt");
        let others = first_of(&summary.others, MOST_OTHERS, "target/failures.txt");
        assert!(failures.ends_with("and 88 more: target/failures.txt\n"));
        let around = durations(&ended, Duration::from_secs(2)).lines().count() + 3;
        assert!(failures.lines().count() + others.lines().count() + around <= 60);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(
            entry("FAILED", "tests", &"x".repeat(400), None)
                .chars()
                .count(),
            327
        );
    }
}
