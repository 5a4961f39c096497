//! Scenarios: descriptions of a simulation as TOML files. `docs/scenarios.md` describes the schema
//! for users.

mod error;
pub(crate) mod limits;
mod machine;
pub(crate) mod place;
mod program;
mod spelling;
mod world;

pub(crate) use error::Fault;
pub use error::ScenarioError;
pub(crate) use limits::MAX_CPUS;
pub use world::PriorityClass;

pub(crate) use machine::{Machine, Scheduler};
pub(crate) use program::{Frames, Step, Verb, WaitReason};
pub(crate) use world::{
    Account, Action, Device, Disk, Flow, Group, Importance, Nic, Process, Routine, ThreadSpec,
    Trouble, What, Window,
};

use serde::Deserialize;

use crate::log::Recording;
use crate::quantity::Nanoseconds;

/// Name of another item of the scenario, with its position in the text for error messages.
pub(crate) type Name = toml::Spanned<String>;

/// A duration: a fixed value or a random distribution.
pub(crate) type Amount = crate::amount::Amount<Nanoseconds>;

/// Contents of a scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Title in one line.
    pub(crate) title: String,
    /// Description: the events that the scenario simulates and the sources of its figures.
    #[serde(default)]
    pub(crate) about: String,
    #[serde(default = "one")]
    pub(crate) seed: u64,
    pub(crate) duration: Nanoseconds,
    /// Number of events after which logging stops.
    pub(crate) events: Option<u64>,
    pub(crate) machine: Machine,
    #[serde(default)]
    pub(crate) scheduler: Scheduler,
    #[serde(default)]
    pub(crate) record: Recording,
    #[serde(default)]
    pub(crate) trouble: Trouble,
    #[serde(default, rename = "group")]
    pub(crate) groups: Vec<Group>,
    #[serde(default, rename = "process")]
    pub(crate) processes: Vec<Process>,
    #[serde(default, rename = "disk")]
    pub(crate) disks: Vec<Disk>,
    #[serde(default, rename = "nic")]
    pub(crate) nics: Vec<Nic>,
    #[serde(default, rename = "device")]
    pub(crate) devices: Vec<Device>,
    #[serde(default, rename = "flow")]
    pub(crate) flows: Vec<Flow>,
    #[serde(default, rename = "at")]
    pub(crate) actions: Vec<Action>,
    #[serde(default, rename = "window")]
    pub(crate) windows: Vec<Window>,
}

fn one() -> u64 {
    1
}
