//! Runs named steps in two lanes (queues) at the same time. A step that fails does not end the others: only steps that
//! need it are not run.
//!
//! Steps of the main lane run in this process, one after the other. Their output is visible at once. Steps of
//! the side lane run as child processes, and their output is printed when they end. These are steps that
//! often wait: installations, browsers, other programs that read files.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{root, target};
use crate::junit::Report;
use crate::verdicts::Verdicts;

/// Limit against hanging for a step of the side lane, whose browsers and other programs have no limits.
const SIDE_LIMIT: Duration = Duration::from_secs(40 * 60);

/// Named check that the task runs.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) lane: Lane,
    /// True if the step only runs with [`Extent::Full`].
    pub(crate) is_only_full: bool,
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

/// Extent of a call of `xtask test`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Checks for each change.
    Gate,
    /// All checks, with full numbers of rounds (`--full`).
    Full,
}

/// Work of a step.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Check(fn(Extent) -> Result<(), String>),
    /// Tests, which write a report.
    Tests {
        run: fn(Extent) -> Result<(), String>,
        report: fn(Extent) -> Report,
        /// True if tests may leave something out even in CI.
        may_skip: bool,
    },
}

/// Reports that a part of a step is left out, because it cannot run on this machine.
///
/// # Errors
///
/// Returns an error if this is CI (continuous integration), where no part may be left out.
pub(crate) fn left_out(part: &str, why: &str) -> Result<(), String> {
    if is_ci() {
        Err(format!("{part} must run in CI, but cannot: {why}"))
    } else {
        println!("left out: {part}: {why}");
        Ok(())
    }
}

/// Returns true if the environment variable `CI` says that this is CI (continuous integration).
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// A step that ended, or that was not run.
#[derive(Debug)]
pub(crate) struct StepResult {
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
    fn is_passed(&self) -> bool {
        matches!(self, Self::Ran(verdicts) if verdicts.failures.is_empty())
    }

    fn of_check(outcome: Result<(), String>) -> Self {
        match outcome {
            Ok(()) => Self::Ran(Verdicts::default()),
            Err(error) => Self::Failed(error),
        }
    }

    /// Returns the outcome of tests whose runner ended, by their report. If no test explains that the runner failed, the
    /// outcome is its error.
    fn of_tests(report: &Report, may_skip: bool, ran: Result<(), String>) -> Self {
        match (report.read(), ran) {
            (Ok(Some(mut verdicts)), ran) if ran.is_ok() || !verdicts.failures.is_empty() => {
                if is_ci() && !may_skip {
                    verdicts.refuse_skips();
                }
                Self::Ran(verdicts)
            }
            (Err(error), _) | (_, Err(error)) => Self::Failed(error),
            _ => Self::Failed(format!("{} is missing", report.path.display())),
        }
    }
}

struct RunState {
    extent: Extent,
    /// Path of this program. It is read at the start, because cargo may replace the file later.
    program: PathBuf,
    ended: Mutex<Vec<StepResult>>,
    changed: Condvar,
}

/// Runs all steps. Returns them in the order in which they ended.
///
/// # Errors
///
/// Returns an error if the path of this program is unknown.
pub(crate) fn run(steps: &[&Step], extent: Extent) -> Result<Vec<StepResult>, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of xtask: {error}"))?;
    let shared = RunState {
        extent,
        program,
        ended: Mutex::default(),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            shared.run_lane(steps, Lane::Side, |step| {
                outcome_by(step.work, extent, || shared.run_in_child(step))
            });
        });
        shared.run_lane(steps, Lane::Main, |step| outcome_of(step.work, extent));
    });
    let ended = shared.ended.into_inner();
    Ok(ended.unwrap_or_else(PoisonError::into_inner))
}

/// Does the work of a step in this process.
pub(crate) fn outcome_of(work: Work, extent: Extent) -> Outcome {
    outcome_by(work, extent, || match work {
        Work::Check(run) | Work::Tests { run, .. } => run(extent),
    })
}

/// Runs the work of a step with a function, and returns its outcome.
fn outcome_by(work: Work, extent: Extent, run: impl FnOnce() -> Result<(), String>) -> Outcome {
    let Work::Tests {
        report, may_skip, ..
    } = work
    else {
        return Outcome::of_check(run());
    };
    let report = report(extent);
    match report.remove() {
        Ok(()) => Outcome::of_tests(&report, may_skip, run()),
        Err(error) => Outcome::Failed(error),
    }
}

/// Returns the path of the file with the output of a step of the side lane.
pub(crate) fn log_of(step: &str) -> PathBuf {
    let name = step.replace([' ', ':'], "-");
    target().join("steps").join(format!("{name}.log"))
}

impl RunState {
    fn ended(&self) -> MutexGuard<'_, Vec<StepResult>> {
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
            self.ended().push(StepResult {
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
    fn run_in_child(&self, step: &Step) -> Result<(), String> {
        let log = log_of(step.name);
        let ran = || -> io::Result<(Option<ExitStatus>, String)> {
            fs::create_dir_all(log.parent().unwrap_or(&log))?;
            let file = File::create(&log)?;
            let mut child = Command::new(&self.program);
            child.arg("test").current_dir(root());
            if self.extent == Extent::Full {
                child.arg("--full");
            }
            let child = child
                .args(["--step", step.name])
                .stdin(Stdio::null())
                .stderr(file.try_clone()?)
                .stdout(file)
                .spawn()?;
            let status = wait(child, SIDE_LIMIT)?;
            Ok((status, fs::read_to_string(&log)?))
        };
        let (status, output) =
            ran().map_err(|error| format!("cannot run in the background: {error}"))?;
        println!("\n── {}\n{}", step.name, output.trim_end());
        match status {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(cause(&output)),
            None => Err(format!("did not end within {SIDE_LIMIT:?}")),
        }
    }
}

/// Waits for the end of a process. Ends it after `limit`, and then returns `None`.
fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(100));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Returns the cause of a failure from the output of a step: its last line, which is the error of the task.
fn cause(output: &str) -> String {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(
        name: &'static str,
        needs: &'static [&'static str],
        check: fn(Extent) -> Result<(), String>,
    ) -> Step {
        Step {
            name,
            lane: Lane::Main,
            is_only_full: false,
            needs,
            after: &["elsewhere"],
            work: Work::Check(check),
        }
    }

    #[test]
    fn a_failed_step_ends_no_steps_except_those_that_need_it() {
        let steps = [
            step("a", &["elsewhere"], |_| Ok(())),
            step("b", &["a"], |_| Err("broken".to_owned())),
            step("c", &["b"], |_| unreachable!("it needs b")),
            step("d", &["c"], |_| unreachable!("it needs c")),
            step("e", &["a"], |_| Ok(())),
        ];
        let ended = run(&steps.iter().collect::<Vec<_>>(), Extent::Gate).unwrap();
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
    fn tests_that_fail_without_a_report_have_the_error_of_their_runner() {
        let report = Report {
            path: root().join("no such report"),
            command: |_, _| String::new(),
        };
        let ran = Err("it does not compile".to_owned());
        let outcome = Outcome::of_tests(&report, false, ran);
        assert_eq!(outcome, Outcome::Failed("it does not compile".to_owned()));
        let outcome = Outcome::of_tests(&report, false, Ok(()));
        assert!(matches!(outcome, Outcome::Failed(error) if error.ends_with("is missing")));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_hangs_is_ended() {
        let sleep = |time| Command::new("sleep").arg(time).spawn().unwrap();
        assert_eq!(wait(sleep("600"), Duration::from_millis(1)).unwrap(), None);
        let ended = wait(sleep("0"), SIDE_LIMIT).unwrap();
        assert!(ended.is_some_and(|status| status.success()));
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
