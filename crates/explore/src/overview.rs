//! Graphs in the overview of a trace.

use serde::{Deserialize, Serialize};

use tables::Store;

use crate::context::Context;
use crate::{ExploreError, Preset, catalogue, presets};

/// Graphs in the overview of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverviewAnswer {
    /// Graphs of the whole trace. They depend on the tables that have rows.
    pub graphs: Vec<Preset>,
}

/// Names of the presets that the overview can show, in their order. Each inner list results in at most one graph:
/// the first preset in the list whose table has rows.
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

/// Presets that are tried if no table of the presets in [`STRIP`] has rows.
const OTHERWISE: &[&str] = &["Generic events by provider", "Marks"];

/// Builds the tables of the overview, and returns the graphs.
pub(crate) fn answer(context: Context<'_>) -> Result<OverviewAnswer, ExploreError> {
    let names = STRIP.iter().flat_map(|line| *line);
    let tables = names.map(|name| Ok(catalogue::table(&shipped(name).view.table)?.table));
    let tables: Result<Vec<_>, ExploreError> = tables.collect();
    context.trace.make(&tables?, context.cancel)?;
    let rows = |preset: &Preset| Ok(Some(context.open(&preset.view.table)?.stored.rows()));
    let answer = graphs(&STRIP, rows)?;
    if answer.graphs.is_empty() {
        graphs(&[OTHERWISE], rows)
    } else {
        Ok(answer)
    }
}

/// Returns the graphs whose tables are already built.
pub(crate) fn so_far(store: &Store) -> Result<OverviewAnswer, ExploreError> {
    graphs(&STRIP, |preset| {
        let stored = store.made(catalogue::table(&preset.view.table)?.table)?;
        Ok(stored.map(|stored| stored.rows()))
    })
}

/// Returns a graph for each list of presets in `strip`: the first preset whose table has rows. If a table before it is
/// not built yet, the list has no graph. `rows` returns the number of rows of a preset's table, or `None` if the table
/// is not built.
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

/// Returns the preset of the program with this name.
fn shipped(name: &str) -> &'static Preset {
    let preset = presets::shipped().iter().find(|preset| preset.name == name);
    preset.expect("the overview names shipped presets")
}
