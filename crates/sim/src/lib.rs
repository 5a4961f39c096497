//! A deterministic model of the parts of Windows that affect latency: the dispatcher, interrupts and DPCs, timers,
//! disks and network adapters. It runs a [scenario] and writes an `.etl` trace in the way of Windows. It also returns
//! the truth: exact numbers about what happened in the model. Analyses of the trace can be compared with the truth.
//!
//! Times are integer numbers of ticks of the trace's clock, counted from the trace's start, so logged times are exact.
//! The same scenario and seed give the same bytes on every system.

mod amount;
mod clock;
mod frame;
mod load;
mod log;
mod model;
mod quantity;
mod random;
pub mod replay;
pub mod scenario;
pub mod shipped;
mod time;
mod truth;
mod windows;
mod ziggurat;

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use serde::Serialize;

pub use load::{Override, Scenario};
pub use model::RunError;

/// Truth about a simulation: exact numbers about what happened in the model. The model computes them while it
/// runs. They are not computed from the trace.
#[derive(Debug, Serialize)]
pub struct Truth {
    /// Always true. It marks the numbers as simulated, not measured on a machine.
    pub simulated: bool,
    /// Name of the scenario.
    pub scenario: String,
    /// Title of the scenario.
    pub title: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Build of Windows.
    pub windows_build: u32,
    /// Number of events in the trace, including stack events and the header.
    pub events: u64,
    /// Number of events of each kind. The header has no kind.
    pub events_by_kind: BTreeMap<&'static str, u64>,
    /// Number of events that were lost because the scenario requests losses.
    pub events_lost: u64,
    /// Further sections of the truth, such as times by processor, process and thread.
    #[serde(flatten)]
    pub(crate) sums: truth::Sections,
    /// Modules whose code ran, with their functions.
    pub modules: Vec<ModuleTruth>,
}

/// A module and its functions.
#[derive(Debug, Serialize)]
pub struct ModuleTruth {
    /// NT path of the module's file, such as `\SystemRoot\System32\ntoskrnl.exe`.
    pub path: String,
    /// Name of the symbol file (PDB). Its GUID and age identify it.
    pub pdb: String,
    /// GUID of the symbol file.
    pub pdb_guid: String,
    /// Age of the symbol file.
    pub pdb_age: u32,
    /// Functions of the module, with their addresses and sizes.
    pub functions: Vec<FunctionTruth>,
}

/// A function of a module.
#[derive(Debug, Serialize)]
pub struct FunctionTruth {
    /// Name of the function.
    pub name: String,
    /// Address of the function relative to the module's base.
    pub rva: u32,
    /// Size of the function in bytes.
    pub size: u32,
}

/// Runs a scenario and writes its trace to `out`, whose position must be the start. If `seed` is
/// `None`, the scenario's seed is used. Returns `out` and the truth about the simulation.
///
/// Calls `go_on` from time to time with the share of the simulation that is complete (0 to 1). If
/// `go_on` returns false, the simulation is cancelled.
///
/// # Errors
/// Returns an error if the output fails, the scenario cannot continue, or `go_on` returns false.
pub fn simulate<W: Write + Seek>(
    scenario: &Scenario,
    seed: Option<u64>,
    out: W,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<(W, Truth), RunError> {
    let seed = seed.unwrap_or(scenario.seed());
    let outcome = model::build(&scenario.document, seed, out)?.run(&mut go_on)?;
    let modules = outcome.modules.iter().map(|module| ModuleTruth {
        path: module.path.clone(),
        pdb: module.pdb_file.clone(),
        pdb_guid: module.pdb_guid.to_string(),
        pdb_age: module.pdb_age,
        functions: (module.functions.iter())
            .map(|function| FunctionTruth {
                name: function.name.clone(),
                rva: function.rva,
                size: function.size,
            })
            .collect(),
    });
    let truth = Truth {
        simulated: true,
        scenario: scenario.name().to_owned(),
        title: scenario.title().to_owned(),
        seed,
        windows_build: scenario.document.machine.windows.build(),
        events: outcome.events,
        events_by_kind: outcome.counts.into_iter().collect(),
        events_lost: outcome.lost,
        sums: outcome.sections,
        modules: modules.collect(),
    };
    Ok((outcome.out, truth))
}
