//! Search of single changes that would help.

use std::collections::BTreeMap;

use crate::change::Change;
use crate::predict::{Baseline, Metric, PredictError, Prediction, Scope, edited};
use crate::recorded_workload::RecordedWorkload;
use crate::variants::Variant;

/// Maximum number of modules whose removal is tried: those with the most time.
const MODULES: usize = 3;

/// Change with its prediction.
#[derive(Debug)]
pub struct Candidate {
    /// Prediction. Its error bar has no part because of chance.
    pub prediction: Prediction,
    /// Predicted gain: less waiting of the first row for a processor, in nanoseconds. If the prediction is a bound, this
    /// is the largest gain within the error bar.
    pub gain_ns: f64,
}

/// Tries single changes, and returns those that shorten the waits of the first row of the scope, the best first. Also
/// returns the number of changes that were tried.
///
/// # Errors
/// Returns an error if the scope does not fit the trace, or if the search is cancelled.
pub fn search(
    recorded: &RecordedWorkload,
    scope: &Scope,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<Candidate>, usize), PredictError> {
    // All candidates share the replays without a change.
    let baseline = Baseline::new(recorded, scope, Variant::all(recorded, 0), go_on)?;
    if let Some(row) = baseline.rows.first()
        && let Some(why) = row.refused.clone()
    {
        let row = row.name().to_string();
        return Err(PredictError::Refused { row, why });
    }
    let mut chosen = Vec::new();
    let mut tried = 0;
    for text in candidates(recorded, scope) {
        let Ok(change) = text.parse::<Change>() else {
            continue;
        };
        let changes = [change];
        // A change that does not fit the trace is skipped.
        let Ok(after) = edited(recorded, &changes) else {
            continue;
        };
        let prediction = baseline.predict(&changes, &after, go_on)?;
        tried += 1;
        let gain = |metric: Metric| {
            let gain = prediction.rows.first()?.get(metric)?;
            let with_ns = gain.bound_ns.unwrap_or(gain.predicted_ns);
            gain.differs().then_some(gain.recorded_ns - with_ns)
        };
        if let Some(gain_ns) = gain(Metric::ReadyTotal).filter(|gain| *gain > 0.0) {
            chosen.push(Candidate {
                gain_ns,
                prediction,
            });
        }
    }
    chosen.sort_by(|a, b| b.gain_ns.total_cmp(&a.gain_ns));
    Ok((chosen, tried))
}

fn candidates(recorded: &RecordedWorkload, scope: &Scope) -> Vec<String> {
    let workload = &recorded.workload;
    let mut texts: Vec<String> = [
        "rank:off",
        "disk:0.5x",
        "priority-separation=0x26",
        "priority-separation=0x28",
        "priority-separation=0x14",
    ]
    .map(str::to_owned)
    .into();
    let cpus = workload.machine.cpus;
    let of_threads = workload.threads.iter();
    let of_threads = of_threads.filter(|thread| scope.threads.contains(&thread.id));
    let processes = of_threads.map(|thread| workload.processes[thread.process as usize].id);
    let names = processes.map(|id| id.to_string());
    for name in names.chain(scope.processes.iter().cloned()) {
        texts.push(format!("priority:{name}=above-normal"));
        texts.push(format!("priority:{name}=high"));
        texts.push(format!("affinity:{name}=0-{}", cpus - 1));
    }
    let mut modules: BTreeMap<&str, u64> = BTreeMap::new();
    for part in workload
        .interrupts
        .iter()
        .flat_map(|interrupt| &interrupt.parts)
    {
        if let Some(module) = &part.module {
            let ns = modules.entry(module).or_default();
            *ns = part.ns.saturating_add(*ns);
        }
    }
    let mut modules: Vec<(&str, u64)> = modules.into_iter().collect();
    modules.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let modules = modules.into_iter().take(MODULES);
    texts.extend(modules.map(|(module, _)| format!("remove:{module}")));
    texts
}
