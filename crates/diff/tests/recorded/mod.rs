//! Recordings of simulated machines, and their comparison.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::slice::from_ref;

use diff::{Change, Diff, Kind, ReadOptions, Recording};
use explain::Subject;
use simulated::Simulated;
use tables::{Cache, Options};

/// Simulates a scenario with settings and sums its trace.
pub(crate) fn recording(scenario: &str, settings: &[&str]) -> Recording {
    read(&Simulated::new(scenario, settings), &ReadOptions::default())
}

/// Simulates a scenario with a seed and sums its trace.
pub(crate) fn with_seed(scenario: &str, seed: u32) -> Recording {
    recording(scenario, &[&format!("seed={seed}")])
}

/// Sums a trace, or a part of it.
pub(crate) fn read(simulated: &Simulated, read_options: &ReadOptions<'_>) -> Recording {
    let store = imports::open_store(&[(&simulated.trace).into()], Cache::Off).unwrap();
    Recording::read(&store, read_options, Options::default()).unwrap()
}

/// Compares two recordings.
pub(crate) fn diff(before: &Recording, after: &Recording) -> Diff {
    diff::diff(from_ref(before), from_ref(after), None)
}

pub(crate) fn find<'d>(changes: &'d [Change], kind: Kind, name: &str) -> &'d Change {
    let mut changes = changes.iter();
    let found = changes.find(|change| change.kind == kind && change.name == name);
    found.unwrap_or_else(|| panic!("no {kind:?} of {name}"))
}

/// Returns the changes per unit of work.
pub(crate) fn per_work(diff: &Diff) -> &[Change] {
    diff.per_work.as_ref().map_or(&[], |work| &work.changes)
}

/// Checks that the two parts of each change sum to the change.
pub(crate) fn adds_up(diff: &Diff) {
    for change in diff.per_second.iter().chain(per_work(diff)) {
        let sum = change.parts.count_ns + change.parts.mean_ns;
        let whole = change.ns();
        assert!(
            (sum - whole).abs() <= 1e-3 * whole.abs() + 1e-6,
            "{change:?}"
        );
    }
}

/// Returns the names of the programs, modules and CPUs that the first finding is about, in lower case.
pub(crate) fn first_subjects(diff: &Diff) -> Vec<String> {
    let first = diff.findings.first();
    let subjects = first.map_or(&[][..], |finding| &finding.subjects);
    let names = subjects.iter().filter_map(|subject| match subject {
        Subject::Module { name }
        | Subject::Process {
            name: Some(name), ..
        } => Some(name.to_lowercase()),
        Subject::Cpu { number } => Some(format!("cpu {number}")),
        _ => None,
    });
    names.collect()
}
