//! Subjects of findings.

use serde::Serialize;
use ts_rs::TS;

/// Thing that a finding is about. Unknown fields are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A thread.
    Thread {
        /// Id of the thread. Other threads may have had the same id before and after it.
        id: u32,
        /// Row of the thread in the table `threads`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        row: Option<u32>,
        /// Row of the thread's process in the table `processes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        process_row: Option<u32>,
    },
    /// A process.
    Process {
        /// Id of the process.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        id: Option<u32>,
        /// Row of the process in the table `processes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        row: Option<u32>,
        /// File name of the process's image.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        name: Option<String>,
    },
    /// A CPU.
    Cpu {
        /// Number of the CPU.
        number: u16,
    },
    /// A disk.
    Disk {
        /// Number of the disk.
        number: u32,
    },
    /// A module.
    Module {
        /// File name of the module.
        name: String,
    },
    /// A DPC or interrupt service routine.
    Routine {
        /// Name of the routine, with its module.
        name: String,
    },
}
