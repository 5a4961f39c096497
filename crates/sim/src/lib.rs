//! A deterministic model of Windows, of the parts that decide how late things are: the dispatcher,
//! interrupts and DPCs, timers, disks and network adapters. It runs a [scenario]
//! and writes what Windows would have logged as an `.etl` trace, and what really happened as truth.
//!
//! Time is whole ticks of the trace's clock since the trace began: what is logged is what happened,
//! with no rounding between the two. The same scenario and seed give the same bytes everywhere.

pub mod amount;
pub mod clock;
pub mod frame;
mod log;
mod model;
pub mod quantity;
pub mod random;
pub mod scenario;
pub mod shipped;
mod time;
pub mod truth;
pub mod windows;
mod ziggurat;

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use serde::Serialize;

pub use model::RunError;
use scenario::Scenario;

/// What a simulation leaves: the trace is written, and this is what really happened.
#[derive(Debug, Serialize)]
pub struct Truth {
    /// Always true: none of this was measured on a machine.
    pub simulated: bool,
    /// The scenario's name.
    pub scenario: String,
    /// What it shows.
    pub title: String,
    /// The seed of everything random in it.
    pub seed: u64,
    /// Build of Windows.
    pub windows_build: u32,
    /// Events written, stacks included.
    pub events: u64,
    /// Events of each kind.
    pub events_by_kind: BTreeMap<&'static str, u64>,
    /// Events lost, as the scenario wants it.
    pub events_lost: u64,
    /// What was summed while it happened.
    #[serde(flatten)]
    pub sums: truth::Sections,
    /// Modules whose code ran, with their functions.
    pub modules: Vec<ModuleTruth>,
}

/// A module and what of it was named.
#[derive(Debug, Serialize)]
pub struct ModuleTruth {
    /// Path of the file, as the kernel says it.
    pub path: String,
    /// File of its symbols, with the GUID and age that identify it.
    pub pdb: String,
    /// GUID of the symbols.
    pub pdb_guid: String,
    /// Age of the symbols.
    pub pdb_age: u32,
    /// Functions: name, address relative to the module's base, and size in bytes.
    pub functions: Vec<FunctionTruth>,
}

/// A function of a module.
#[derive(Debug, Serialize)]
pub struct FunctionTruth {
    /// Its name.
    pub name: String,
    /// Address relative to the module's base.
    pub rva: u32,
    /// Bytes.
    pub size: u32,
}

/// Runs a scenario with `seed` (its own if absent), writes its trace to `out` from its present
/// position, which must be the start, and returns the output and what really happened.
///
/// `go_on` is asked now and then, with the share that is done (0 to 1), whether to go on.
///
/// # Errors
/// If the output fails, the scenario cannot go on, or `go_on` says no.
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
