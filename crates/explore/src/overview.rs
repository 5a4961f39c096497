//! The first look at a trace.

use serde::{Deserialize, Serialize};

use crate::Preset;

/// The strip of small graphs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverviewAnswer {
    /// Chosen by what the trace holds; each is of the whole trace.
    pub graphs: Vec<Preset>,
}
