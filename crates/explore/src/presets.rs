//! Views that are asked for often.

use serde::{Deserialize, Serialize};

use crate::View;

/// A view with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it belongs to: `CPU`, `Interrupts`, `Disk`, `Network`, `System`, …
    pub group: String,
    /// The view.
    pub view: View,
}
