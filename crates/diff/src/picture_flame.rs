//! Flame graphs of the stacks of both sides together.

use std::sync::atomic::AtomicBool;

use explore::{Condition, ExploreError, FlameAnswer, FlameRequest};
use serde::Serialize;
use ts_rs::TS;

use crate::Kind;
use crate::picture::{Source, has, is_recorded, not_idle};

/// Flame graph of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct ComparedFlame {
    /// Kind of code that ran when the samples were taken.
    pub code: SampledCode,
    /// Calls of both sides. The weights are CPU times after the change. The compared weights are CPU times
    /// before the change.
    pub answer: FlameAnswer,
}

/// Kind of code that runs on a CPU when a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum SampledCode {
    /// Threads, without the DPCs and ISRs that interrupted them.
    Threads,
    /// DPCs, without the ISRs that interrupted them.
    Dpcs,
    /// Interrupt service routines.
    Isrs,
}

/// Minimum share of a call in the total of one side. Calls below this share on both sides are not shown.
const LEAST_SHARE: f64 = 0.0005;

impl SampledCode {
    const ALL: [SampledCode; 3] = [SampledCode::Threads, SampledCode::Dpcs, SampledCode::Isrs];

    fn filter(self) -> Vec<Condition> {
        let [in_dpc, in_isr] = ["in_dpc", "in_isr"];
        match self {
            SampledCode::Threads => vec![
                not_idle(),
                has(in_dpc, "true", false),
                has(in_isr, "true", false),
            ],
            SampledCode::Dpcs => vec![has(in_dpc, "true", true), has(in_isr, "true", false)],
            SampledCode::Isrs => vec![has(in_isr, "true", true)],
        }
    }
}

/// Returns the flame graphs of the kinds of code that have stacks.
pub(crate) fn flames(
    sides: [&[Source<'_>]; 2],
    cancel: &AtomicBool,
) -> Result<Vec<ComparedFlame>, ExploreError> {
    let mut flames = Vec::new();
    if !is_recorded(sides, Kind::ThreadCode) {
        return Ok(flames);
    }
    for code in SampledCode::ALL {
        let [before, after] = sides.map(|side| {
            let each = side.iter().map(|source| {
                let request = FlameRequest {
                    table: "samples".to_owned(),
                    stack: "stack_id".to_owned(),
                    weight: "weight_ns".to_owned(),
                    range: source.recording.part_ns(),
                    filter: code.filter(),
                    inverted: false,
                    root: None,
                    compare: None,
                    least_share: Some(0.0),
                };
                source.explorer.flame(&request, cancel)
            });
            each.collect::<Result<Vec<FlameAnswer>, ExploreError>>()
        });
        let answer = FlameAnswer::joined(&after?, &before?, LEAST_SHARE)?;
        if !answer.nodes.parent.is_empty() {
            flames.push(ComparedFlame { code, answer });
        }
    }
    Ok(flames)
}
