//! The first look at a trace.

use serde::{Deserialize, Serialize};

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
const STRIP: [&[&str]; 8] = [
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
];

pub(crate) fn answer(ask: Ask<'_>) -> Result<OverviewAnswer, ExploreError> {
    let mut graphs = Vec::new();
    let shipped = |name: &&str| {
        presets::shipped()
            .iter()
            .find(|preset| preset.name == **name)
    };
    let wanted: Vec<Vec<&Preset>> = STRIP
        .iter()
        .map(|names| names.iter().filter_map(shipped).collect())
        .collect();
    let tables = wanted
        .iter()
        .flatten()
        .map(|preset| catalogue::table(&preset.view.table));
    let tables: Result<Vec<_>, ExploreError> = tables.map(|def| Ok(def?.table)).collect();
    ask.trace.make(&tables?, ask.cancel)?;
    for presets in wanted {
        for preset in presets {
            if ask.open(&preset.view.table)?.stored.rows() > 0 {
                graphs.push(preset.clone());
                break;
            }
        }
    }
    Ok(OverviewAnswer { graphs })
}
