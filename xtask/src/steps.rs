//! Runs named steps in two lanes (queues) at the same time, and reports the duration of each step.
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

/// Named check that the task runs.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) lane: Lane,
    /// Names of steps that must end before this step starts. Names of steps that do not run in this call are
    /// ignored.
    pub(crate) after: &'static [&'static str],
    pub(crate) work: fn() -> Result<(), String>,
}

/// Queue in which a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Main,
    Side,
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

/// Steps that ended, and the failure of the first step that failed.
#[derive(Default)]
struct Progress {
    done: Vec<(&'static str, Duration)>,
    failure: Option<String>,
}

struct Shared {
    /// Path of this program. It is read at the start, because cargo may replace the file later.
    program: PathBuf,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// Number of lines at the end of a failed step's output that the error message repeats.
pub(crate) const REPEATED_LINES: usize = 100;

/// Runs all steps, and prints the duration of each step, in the order in which the steps ended. Stops at the
/// first failure.
///
/// # Errors
///
/// Returns an error if a step fails. The message has the name of the step and its error.
pub(crate) fn run(steps: &[&Step]) -> Result<(), String> {
    let progress = run_lanes(steps)?;
    println!("\n{}", table(&progress.done));
    progress.failure.map_or(Ok(()), Err)
}

fn run_lanes(steps: &[&Step]) -> Result<Progress, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of xtask: {error}"))?;
    let shared = Shared {
        program,
        progress: Mutex::new(Progress::default()),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        scope.spawn(|| shared.run_lane(steps, Lane::Side, |step| shared.run_in_child(step)));
        shared.run_lane(steps, Lane::Main, |step| (step.work)());
    });
    let progress = shared.progress.into_inner();
    Ok(progress.unwrap_or_else(PoisonError::into_inner))
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        (self.progress.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the steps of one lane, until they have all ended or a step of any lane fails.
    fn run_lane(&self, steps: &[&Step], lane: Lane, work: impl Fn(&Step) -> Result<(), String>) {
        for step in steps.iter().copied().filter(|step| step.lane == lane) {
            if !self.wait_for(steps, step.after) {
                return;
            }
            if lane == Lane::Main {
                println!("\n── {}", step.name);
            }
            let started = Instant::now();
            let outcome = work(step);
            let took = started.elapsed();
            let mut progress = self.progress();
            match outcome {
                Ok(()) => {
                    println!("── {}: fine, {:.1} s", step.name, took.as_secs_f64());
                    progress.done.push((step.name, took));
                }
                Err(error) => {
                    println!("── {}: failed, {:.1} s", step.name, took.as_secs_f64());
                    let failure = format!("{}: {error}", step.name);
                    progress.failure.get_or_insert(failure);
                }
            }
            self.changed.notify_all();
        }
    }

    /// Waits until all steps named in `after` have ended. Returns false if a step failed.
    fn wait_for(&self, steps: &[&Step], after: &[&str]) -> bool {
        let runs = |name: &&&str| steps.iter().any(|step| step.name == **name);
        let needed: Vec<&&str> = after.iter().filter(runs).collect();
        let mut progress = self.progress();
        while progress.failure.is_none() {
            let is_done = |name: &&&str| progress.done.iter().any(|(done, _)| *done == **name);
            if needed.iter().all(is_done) {
                return true;
            }
            progress = (self.changed.wait(progress)).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    /// Runs a step as the child process `xtask test --step NAME`. Prints its output when it has ended. If
    /// another step fails, ends the child process early.
    fn run_in_child(&self, step: &Step) -> Result<(), String> {
        let folder = target().join("steps");
        let log = folder.join(format!("{}.log", step.name.replace([' ', ':'], "-")));
        let failed = |error: std::io::Error| format!("cannot run in the background: {error}");
        fs::create_dir_all(&folder).map_err(failed)?;
        let file = File::create(&log).map_err(failed)?;
        let mut child = Command::new(&self.program)
            .args(["test", "--step", step.name])
            .current_dir(root())
            .stdin(Stdio::null())
            .stderr(file.try_clone().map_err(failed)?)
            .stdout(file)
            .spawn()
            .map_err(failed)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if self.progress().failure.is_some() {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                return Err("ended early".to_owned());
            }
            thread::sleep(Duration::from_millis(100));
        };
        let output = fs::read_to_string(&log).map_err(failed)?;
        println!("\n── {}\n{}", step.name, output.trim_end());
        match status.success() {
            true => Ok(()),
            // Much output of the main lane may follow before the error is printed.
            false => Err(format!(
                "`xtask test --step '{}'` failed; the end of its output:\n{}",
                step.name,
                last_lines(&output, REPEATED_LINES)
            )),
        }
    }
}

/// Returns the last `count` lines of `text`.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let mut lines: Vec<_> = text.trim_end().lines().rev().take(count).collect();
    lines.reverse();
    lines.join("\n")
}

/// Formats the duration of each step as a table.
fn table(done: &[(&str, Duration)]) -> String {
    let mut table = String::new();
    for (name, took) in done {
        table += &format!("{:8.1} s  {name}\n", took.as_secs_f64());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, after: &'static [&'static str]) -> Step {
        Step {
            name,
            lane: Lane::Main,
            after,
            work: || Ok(()),
        }
    }

    #[test]
    fn steps_run_in_order_until_one_fails() {
        let (a, mut b, mut c) = (
            step("a", &[]),
            step("b", &["a", "elsewhere"]),
            step("c", &[]),
        );
        let outcome = |steps: &[&Step]| {
            let progress = run_lanes(steps).unwrap();
            let names = progress.done.into_iter().map(|(name, _)| name);
            (names.collect::<Vec<_>>(), progress.failure)
        };
        assert_eq!(outcome(&[&a, &b, &c]), (vec!["a", "b", "c"], None));
        b.work = || Err("broken".to_owned());
        c.work = || unreachable!("a step failed before");
        let failed = (vec!["a"], Some("b: broken".to_owned()));
        assert_eq!(outcome(&[&a, &b, &c]), failed);
    }

    #[test]
    fn the_end_of_an_output_is_its_last_lines() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("", 2), "");
    }
}
