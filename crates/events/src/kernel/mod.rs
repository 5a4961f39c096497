//! The kernel's classic events: their classes and layouts as a table, and views of the payloads
//! that matter most.
//!
//! [`schema`] finds the layout of any known event for [`crate::decode()`]. The views read the same
//! bytes into plain structs, without allocation: `read(payload, version, pointer_size)` with the
//! payload, version and width that an [`etl::Event`] says. Where several opcodes share a view but
//! not a layout, the opcode comes first.

mod compact_context_switch;
mod context_switch;
mod cursor;
mod disk;
mod dpc_isr;
mod file_io;
mod hard_fault;
mod image;
mod names;
mod network;
mod priority;
mod process;
mod ready_thread;
mod sample;
mod stack;
mod system_config;
mod table;
mod thread;

pub use compact_context_switch::{CompactContextSwitches, CompactSwitch, CompactThread};
pub use context_switch::ContextSwitch;
pub use disk::{DiskFlush, DiskStart, DiskTransfer};
pub use dpc_isr::{Interrupt, InterruptKind};
pub use file_io::{FileCreate, FileEnd, FileInfo, FileName, FileOperation, FileTransfer};
pub use hard_fault::HardFault;
pub use image::{Image, ImageId, PdbId};
pub use names::*;
pub use network::{NetworkAction, NetworkEvent};
pub use priority::{
    AntiStarvationBoost, AutoBoostClearFloor, AutoBoostSetFloor, SetAffinity, SetPriority,
    ThreadMigration,
};
pub use process::{Process, ProcessTerminate};
pub use ready_thread::ReadyThread;
pub use sample::{CounterSample, Sample};
pub use stack::{Addresses, Stack, StackDefinition, StackReference};
pub use system_config::{
    Cpu, NetworkInterface, PhysicalDisk, Processor, ProcessorGroups, ProcessorNumbers, Service,
};
pub use table::{Class, class_name, classes, event_name, hook_name, schema};
pub use thread::{Thread, ThreadName};
