//! Ways to show the effect of a setting.

use std::fmt;

use serde::Deserialize;

/// A way to show the effect of a setting. It is a comparison before and after a change of the setting. In
/// each comparison, less time is better.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Kind of times that are compared.
    pub with: Times,
    /// Reason why the setting changes these times, and the activity that is needed while they are measured or
    /// recorded.
    pub why: String,
    /// URL of the source of the reason. It is one of the sources of the setting.
    pub source: String,
}

/// Times that are compared before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// Lateness of sleeps: `laglab measure sleep`.
    Sleep,
    /// Round trips of packets: `laglab measure net`.
    Net,
    /// Reads of files: `laglab measure files`.
    Files,
    /// Times that ready threads wait for a CPU, from traces.
    Ready,
    /// Times of DPCs, from traces.
    Dpcs,
    /// Times of interrupt service routines, from traces.
    Isrs,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Times::Sleep => "lateness of sleeps (`laglab measure sleep`)",
            Times::Net => "round trips of packets (`laglab measure net`)",
            Times::Files => "reads of files (`laglab measure files`)",
            Times::Ready => "waits of ready threads for a CPU (traces)",
            Times::Dpcs => "times of DPCs (traces)",
            Times::Isrs => "times of interrupt service routines (traces)",
        })
    }
}
