//! Doubts about the description of a moment of a thread.

use std::ops::Range;

use tables::StoreError;

use super::story::Doing;
use crate::chain::cpu_wait::weigh::{DamageRow, Facts};
use crate::chain::path::{Runs, Thread};
use crate::survey::Wait;
use crate::{Case, listed};

/// Doubt about a run within which context switches are missing.
pub(super) const MISSING_WITHIN: &str =
    "context switches within this run are missing, so other threads may have run in this time";

/// Returns doubts about a run and the wait before it. `is_doubtful` is true if context switches within the run are
/// missing.
pub(super) fn of_run(
    case: &Case<'_>,
    runs: &mut Runs<'_>,
    wait: &Wait,
    kind: Doing,
    is_doubtful: bool,
) -> Result<Vec<String>, StoreError> {
    let mut doubts = Vec::new();
    if kind == Doing::Running && is_doubtful {
        doubts.push(MISSING_WITHIN.to_owned());
    }
    let others = overlapping(runs, wait)?;
    if !others.is_empty() {
        let others = others.iter().map(|cpu| format!("CPU {cpu}"));
        doubts.push(format!(
            "the trace also has runs of it on {} that overlap this run in time",
            listed(others)
        ));
    }
    if kind != Doing::Running && wait.ran_unseen {
        doubts.push("context switches are missing, so it may have run unseen before".to_owned());
    }
    let since_ns = wait.previous_out_ns.unwrap_or(wait.range().start);
    doubts.extend(within(case, &(since_ns..wait.end_ns))?);
    Ok(doubts)
}

/// Maximum number of earlier runs that are compared with a run.
const COMPARED: usize = 8;

/// Returns the CPUs of other runs of the thread that overlap the run after the wait. An overlap shows that context
/// switches are missing, because a thread cannot run on two CPUs at once.
fn overlapping(runs: &mut Runs<'_>, wait: &Wait) -> Result<Vec<u16>, StoreError> {
    let thread = Thread {
        id: wait.thread_id,
        row: wait.thread_row,
    };
    let mut cpus = Vec::new();
    // All idle threads have the id 0, but each runs on its own CPU. So their runs may overlap.
    if thread.id == 0 {
        return Ok(cpus);
    }
    let mut before_ns = wait.end_ns;
    for _ in 0..COMPARED {
        let Some(run) = runs.last_run_before(thread, before_ns)? else {
            break;
        };
        if run.end_ns <= wait.start_ns {
            break;
        }
        cpus.push(run.cpu);
        before_ns = run.end_ns;
    }
    if let Some(run) = runs.until(thread, wait.end_ns.saturating_add(1))?
        && run.start_ns < wait.end_ns
    {
        cpus.push(run.cpu);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Returns doubts about all that happened in a time range: clocks that disagree, and lost events.
pub(super) fn within(case: &Case<'_>, range: &Range<i64>) -> Result<Vec<String>, StoreError> {
    let mut doubts = Vec::new();
    if !case.survey.clock_skews.is_empty() {
        let skew = "the clocks of the CPUs disagree, so times and the order of events may be wrong";
        doubts.push(skew.to_owned());
    }
    let facts = Facts::read(case)?;
    let is_lost = |damage: &DamageRow| damage.is_loss() && damage.may_lie_in(range);
    if facts.damage.iter().any(is_lost) {
        let lost =
            "events of this time are lost or damaged, so runs and waits of it may be missing";
        doubts.push(lost.to_owned());
    }
    Ok(doubts)
}
