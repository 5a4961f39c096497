//! `system_config`: hardware and settings of the machine.

use crate::column::{Nullable, Text};
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per fact about the machine: computer name, memory, disks, volumes, network interfaces,
    /// graphics, services, devices, virtualization-based security, … The kernel logs these facts at the end
    /// of a session. If tools of Windows merge a trace, they add more facts.
    ///
    /// All rows with the same `item` and the same `number` describe one thing, such as a disk or a service.
    SystemConfig, SystemConfigView = "system_config" sorted by time_ns {
        /// Time of the event.
        time_ns: Vec<i64> = "header time",
        /// Kind of the described thing: `CPU`, `PhyDisk`, `NIC`, `Services`, `PnP`, `BuildInfo`,
        /// `VolumeMapping`, … The rows of `KernelFlags` name the kinds of kernel events that the sessions
        /// enabled.
        item: Text = "name of the SystemConfig, SysConfigEx or BuildLab event; group masks of Extension",
        /// Number of the thing, counted from 0 among the things of the same kind.
        number: Vec<u32> = "number of earlier events of that name",
        /// Name of the property: `ComputerName`, `MemSize`, `VbsEnabled`, …
        key: Text = "name of the field",
        /// Value of the property, as text. A number is in its usual notation.
        value: Text = "value of the field",
        /// Value of the property as a number. Unknown if the value is not a number.
        value_number: Nullable<u64> = "value of the field",
    }
}

impl Register for SystemConfig {}

impl SystemConfig {
    /// Value of `item` in the rows that name the enabled kinds of kernel events. In these rows, `key` is
    /// `Name`.
    pub const KERNEL_FLAGS: &'static str = "KernelFlags";

    /// Adds a row.
    pub fn push(
        &mut self,
        time_ns: i64,
        item: &str,
        number: u32,
        key: &str,
        value: &str,
        value_number: Option<u64>,
    ) {
        self.time_ns.push(time_ns);
        self.item.push(Some(item));
        self.number.push(number);
        self.key.push(Some(key));
        self.value.push(Some(value));
        self.value_number.push(value_number);
    }
}
