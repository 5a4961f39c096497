//! Classic events of the kernel: a table of their classes and layouts, and views of the most important
//! payloads.
//!
//! [`schema`] finds the layout of any known event for [`crate::decode()`]. The views are plain structs that
//! read the same bytes without allocation. Each view has a function `read(payload, version, pointer_size)`.
//! Its arguments are the payload, the version and the pointer size of an [`etl::Event`]. If a view reads
//! events with different layouts, the opcode is the first argument.

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
pub use dpc_isr::Interrupt;
pub use file_io::{FileCreate, FileEnd, FileInfo, FileName, FileOperation, FileTransfer};
pub use hard_fault::HardFault;
pub use image::{Image, ImageId, PdbId};
pub use names::*;
pub use network::NetworkEvent;
pub use priority::{
    AntiStarvationBoost, AutoBoostClearFloor, AutoBoostSetFloor, SetAffinity, SetPriority,
    ThreadMigration,
};
pub use process::{Process, ProcessTerminate};
pub use ready_thread::ReadyThread;
pub use rules::kinds::{InterruptKind, NetworkAction};
pub use sample::{CounterSample, Sample};
pub use stack::{Addresses, Stack, StackDefinition, StackReference};
pub use system_config::{
    Cpu, NetworkInterface, PhysicalDisk, Processor, ProcessorGroups, ProcessorNumbers, Service,
};
pub use table::{Class, class_name, classes, event_name, hook_name, schema};
pub use thread::{Thread, ThreadName};
