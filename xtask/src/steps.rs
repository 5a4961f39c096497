//! Runs named steps in two lanes (queues) at the same time. A step that fails does not end the others: only steps that
//! need it are not run.
//!
//! Steps of the main lane run in this process, one after the other. Their output is visible at once. Steps of
//! the side lane run as child processes, and their output is printed when they end. These are steps that
//! often wait: installations, browsers, other programs that read files.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{root, target};
use crate::verdicts::Verdicts;

/// Named check that the task runs.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) lane: Lane,
    pub(crate) when: When,
    /// Names of steps that must pass before this step starts.
    pub(crate) needs: &'static [&'static str],
    /// Names of steps that must end before this step starts.
    pub(crate) after: &'static [&'static str],
    pub(crate) work: Work,
}

/// Queue in which a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Main,
    Side,
}

/// Calls in which a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Each call of `xtask test`.
    Gate,
    /// Calls of `xtask test --full`.
    Full,
}

/// Work of a step.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Check(fn() -> Result<(), String>),
    /// Tests. Failed tests are in the verdicts. The error says why tests could not run.
    Tests(fn() -> Result<Verdicts, String>),
}

/// Reports that a part of a step is left out, because it cannot run on this machine.
///
/// # Errors
///
/// Returns an error if this is CI (continuous integration), where no part may be left out.
pub(crate) fn left_out(part: &str, why: &str) -> Result<(), String> {
    match is_ci() {
        true => Err(format!("{part} must run in CI, but cannot: {why}")),
        false => {
            println!("left out: {part}: {why}");
            Ok(())
        }
    }
}

/// Returns true if the environment variable `CI` says that this is CI (continuous integration).
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// A step that ended, or that was not run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) step: &'static str,
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The step ran to its end. Some of its tests may have failed.
    Ran(Verdicts),
    /// The step failed. The text is its error.
    Failed(String),
    /// The step was not run, because this step, which it needs, did not pass.
    NotRun(&'static str),
}

impl Outcome {
    pub(crate) fn is_passed(&self) -> bool {
        matches!(self, Self::Ran(verdicts) if verdicts.failures.is_empty())
    }
}

struct Shared {
    /// Path of this program. It is read at the start, because cargo may replace the file later.
    program: PathBuf,
    ended: Mutex<Vec<Ended>>,
    changed: Condvar,
}

/// Runs all steps. Returns them in the order in which they ended.
///
/// # Errors
///
/// Returns an error if the path of this program is unknown.
pub(crate) fn run(steps: &[&Step]) -> Result<Vec<Ended>, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of xtask: {error}"))?;
    let shared = Shared {
        program,
        ended: Mutex::default(),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        scope.spawn(|| shared.run_lane(steps, Lane::Side, |step| shared.run_in_child(step)));
        shared.run_lane(steps, Lane::Main, |step| outcome_of(step.work));
    });
    let ended = shared.ended.into_inner();
    Ok(ended.unwrap_or_else(PoisonError::into_inner))
}

/// Does the work of a step in this process.
pub(crate) fn outcome_of(work: Work) -> Outcome {
    let outcome = match work {
        Work::Check(check) => check().map(|()| Verdicts::default()),
        Work::Tests(tests) => tests(),
    };
    outcome.map_or_else(Outcome::Failed, Outcome::Ran)
}

/// Returns the path of the file with the output of a step of the side lane.
pub(crate) fn log_of(step: &str) -> PathBuf {
    let name = step.replace([' ', ':'], "-");
    target().join("steps").join(format!("{name}.log"))
}

impl Shared {
    fn ended(&self) -> MutexGuard<'_, Vec<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the steps of one lane.
    fn run_lane(&self, steps: &[&Step], lane: Lane, work: impl Fn(&Step) -> Outcome) {
        for step in steps.iter().copied().filter(|step| step.lane == lane) {
            let missing = self.wait_for(steps, step);
            if lane == Lane::Main {
                println!("\n── {}", step.name);
            }
            let started = Instant::now();
            let outcome = match missing {
                Some(missing) => Outcome::NotRun(missing),
                None => work(step),
            };
            let took = started.elapsed();
            let verdict = match &outcome {
                Outcome::NotRun(missing) => format!("not run, because it needs {missing}"),
                outcome if outcome.is_passed() => "passed".to_owned(),
                _ => "failed".to_owned(),
            };
            println!("── {}: {verdict}, {:.1} s", step.name, took.as_secs_f64());
            self.ended().push(Ended {
                step: step.name,
                took,
                outcome,
            });
            self.changed.notify_all();
        }
    }

    /// Waits until all steps of this call that a step waits for have ended. Returns the name of a needed step that did
    /// not pass.
    fn wait_for(&self, steps: &[&Step], step: &Step) -> Option<&'static str> {
        let is_run = |name: &str| steps.iter().any(|step| step.name == name);
        let all = [step.needs, step.after].concat();
        let mut ended = self.ended();
        while !all
            .iter()
            .all(|name| !is_run(name) || ended.iter().any(|ended| ended.step == *name))
        {
            ended = (self.changed.wait(ended)).unwrap_or_else(PoisonError::into_inner);
        }
        let mut needed = ended
            .iter()
            .filter(|ended| step.needs.contains(&ended.step));
        needed
            .find(|ended| !ended.outcome.is_passed())
            .map(|ended| ended.step)
    }

    /// Runs a step as the child process `xtask test --step NAME`. Prints its output when it has ended.
    fn run_in_child(&self, step: &Step) -> Outcome {
        let log = log_of(step.name);
        let ran = || -> std::io::Result<(bool, String)> {
            fs::create_dir_all(log.parent().unwrap_or(&log))?;
            let file = File::create(&log)?;
            let status = Command::new(&self.program)
                .args(["test", "--step", step.name])
                .current_dir(root())
                .stdin(Stdio::null())
                .stderr(file.try_clone()?)
                .stdout(file)
                .status()?;
            Ok((status.success(), fs::read_to_string(&log)?))
        };
        match ran() {
            Ok((is_passed, output)) => {
                println!("\n── {}\n{}", step.name, output.trim_end());
                match is_passed {
                    true => Outcome::Ran(Verdicts::default()),
                    false => Outcome::Failed(cause(&output)),
                }
            }
            Err(error) => Outcome::Failed(format!("cannot run in the background: {error}")),
        }
    }
}

/// Returns the cause of a failure from the output of a step: its last line, which is the error of the task.
fn cause(output: &str) -> String {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, needs: &'static [&'static str], work: Work) -> Step {
        Step {
            name,
            lane: Lane::Main,
            when: When::Gate,
            needs,
            after: &["elsewhere"],
            work,
        }
    }

    #[test]
    fn a_failed_step_ends_no_steps_except_those_that_need_it() {
        let passes = Work::Check(|| Ok(()));
        let steps = [
            step("a", &["elsewhere"], passes),
            step("b", &["a"], Work::Check(|| Err("broken".to_owned()))),
            step("c", &["b"], Work::Check(|| unreachable!("it needs b"))),
            step("d", &["c"], Work::Check(|| unreachable!("it needs c"))),
            step("e", &["a"], passes),
        ];
        let ended = run(&steps.iter().collect::<Vec<_>>()).unwrap();
        let outcomes: Vec<_> = ended.into_iter().map(|it| (it.step, it.outcome)).collect();
        let passed = || Outcome::Ran(Verdicts::default());
        let expected = [
            ("a", passed()),
            ("b", Outcome::Failed("broken".to_owned())),
            ("c", Outcome::NotRun("b")),
            ("d", Outcome::NotRun("c")),
            ("e", passed()),
        ];
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn a_step_with_a_failed_test_is_not_passed() {
        let tests = Work::Tests(|| {
            Ok(Verdicts {
                failures: vec![crate::verdicts::Failure::default()],
                ..Verdicts::default()
            })
        });
        let steps = [step("tests", &[], tests), step("b", &["tests"], tests)];
        let ended = run(&steps.iter().collect::<Vec<_>>()).unwrap();
        assert!(!ended[0].outcome.is_passed());
        assert_eq!(ended[1].outcome, Outcome::NotRun("tests"));
    }

    #[test]
    fn the_cause_is_the_last_line() {
        assert_eq!(
            cause("a\nerror: `npm run lint` ended with 1\n\n"),
            "`npm run lint` ended with 1"
        );
        assert_eq!(cause(""), "");
    }
}
