//! The first look at a trace.

use serde::{Deserialize, Serialize};

use tables::Store;

use crate::selection::Ask;
use crate::{ExploreError, Preset, catalogue, presets};

/// The strip of small graphs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverviewAnswer {
    /// Chosen by what the trace holds; each is of the whole trace.
    pub graphs: Vec<Preset>,
}

/// What the strip shows, in its order, by the names of presets. Of each line the first of which the
/// trace holds anything.
const STRIP: [&[&str]; 10] = [
    &[
        "Utilization by process, thread",
        "Samples by process, module, function",
    ],
    &["DPC and ISR time by CPU"],
    &["Ready time by process, thread"],
    &["Disk use by process, file", "Hard faults by process, file"],
    &["Traffic by process", "Packets by DSCP"],
    &["Window in focus"],
    &["Input"],
    &["Frozen processes"],
    &["Longest measured latency by method"],
    &["Measured latency over time"],
];

/// What it shows of a trace that holds nothing of that: events that only their providers understand.
const ELSE: &[&str] = &["Generic events by provider", "Marks"];

/// What the trace holds.
pub(crate) fn answer(ask: Ask<'_>) -> Result<OverviewAnswer, ExploreError> {
    let names = STRIP.iter().flat_map(|line| *line);
    let tables = names.map(|name| Ok(catalogue::table(&shipped(name).view.table)?.table));
    let tables: Result<Vec<_>, ExploreError> = tables.collect();
    ask.trace.make(&tables?, ask.cancel)?;
    let rows = |preset: &Preset| Ok(Some(ask.open(&preset.view.table)?.stored.rows()));
    let answer = graphs(&STRIP, rows)?;
    match answer.graphs.is_empty() {
        true => graphs(&[ELSE], rows),
        false => Ok(answer),
    }
}

/// What is known of it so far, by the tables that are made.
pub(crate) fn so_far(store: &Store) -> Result<OverviewAnswer, ExploreError> {
    graphs(&STRIP, |preset| {
        let made = store.made(catalogue::table(&preset.view.table)?.table)?;
        Ok(made.map(|made| made.rows()))
    })
}

/// The graphs whose tables have rows; of a line none after one of which that is not known.
fn graphs(
    strip: &[&[&str]],
    rows: impl Fn(&Preset) -> Result<Option<usize>, ExploreError>,
) -> Result<OverviewAnswer, ExploreError> {
    let mut graphs = Vec::new();
    for line in strip {
        for preset in line.iter().map(|name| shipped(name)) {
            match rows(preset)? {
                Some(0) => {}
                Some(_) => {
                    graphs.push(preset.clone());
                    break;
                }
                None => break,
            }
        }
    }
    Ok(OverviewAnswer { graphs })
}

fn shipped(name: &str) -> &'static Preset {
    let found = presets::shipped().iter().find(|preset| preset.name == name);
    found.expect("the strip names presets that ship")
}
