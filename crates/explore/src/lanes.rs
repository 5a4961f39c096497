//! Who ran on each CPU.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Id;

/// Asks who ran on each CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanesRequest {
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// How many pixels it has, 1 to 4000.
    pub width: u32,
    /// Which CPUs; all if nothing is said.
    #[serde(default)]
    pub cpus: Option<Vec<u16>>,
}

/// Who ran on each CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanesAnswer {
    /// Where the stretch begins.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// By CPU, in the order of their numbers.
    pub cpus: Vec<CpuLane>,
    /// What ids stand for.
    pub labels: LaneLabels,
    /// Who made whose run possible; only where runs are exact.
    pub wakes: Vec<Wake>,
    /// Every run is given as it was, cut to the stretch; else each is what ran longest during a
    /// pixel.
    pub exact: bool,
}

/// What one CPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuLane {
    /// Its number.
    pub cpu: u16,
    /// Threads, idle ones left out.
    pub runs: RunSpans,
    /// Deferred procedure calls and service routines.
    pub interrupts: InterruptSpans,
}

/// Runs of threads, by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpans {
    /// From when.
    pub start: Vec<i64>,
    /// Until when.
    pub end: Vec<i64>,
    /// Whose, by row of `processes`.
    pub process: Vec<Id>,
    /// Which thread, by row of `threads`; `null` where runs are not exact.
    pub thread: Vec<Id>,
    /// How much of the span the CPU was busy with threads, whosesoever: 1 where runs are exact.
    pub busy: Vec<f32>,
}

/// Runs of routines, by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterruptSpans {
    /// From when.
    pub start: Vec<i64>,
    /// Until when.
    pub end: Vec<i64>,
    /// What ran, as in `interrupts`.
    pub kind: Vec<String>,
    /// In which image, by row of `images`.
    pub image: Vec<Id>,
    /// How much of the span routines took: 1 where they are exact.
    pub busy: Vec<f32>,
}

/// What ids stand for, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneLabels {
    /// Processes.
    pub process: BTreeMap<i64, String>,
    /// Threads.
    pub thread: BTreeMap<i64, String>,
    /// Modules.
    pub image: BTreeMap<i64, String>,
}

/// A thread made another ready, which then ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// Where it was made ready.
    pub from_cpu: u16,
    /// When.
    pub at_ns: i64,
    /// Where it ran.
    pub to_cpu: u16,
    /// From when.
    pub run_start_ns: i64,
    /// Who made it ready, by row of `threads`.
    pub readying_thread: Id,
    /// A deferred procedure call did, while that thread was interrupted.
    pub by_dpc: bool,
    /// Who ran, by row of `threads`.
    pub thread: Id,
}
