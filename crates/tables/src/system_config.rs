//! `system_config`: what the trace says about the machine's hardware and settings.

use std::collections::HashMap;

use events::kernel::Class;
use events::{Fields, Value};

use crate::Table;
use crate::column::Text;
use crate::kept::KeptEvent;
use crate::schema::table;
use crate::unreadable::UnreadableEvents;
use crate::volumes::SYS_CONFIG_EX;

table! {
    /// One row per fact about the machine: computer name, memory, disks, volumes, network
    /// interfaces, graphics, services, devices, virtualization-based security, …, as the kernel
    /// logs them at a session's end and the merge of Windows' tools adds them.
    ///
    /// A thing (a disk, a service) is the rows of one `item` and `number`.
    SystemConfig, SystemConfigView = "system_config" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time",
        /// What kind of thing the fact is about: `CPU`, `PhyDisk`, `NIC`, `Services`, `PnP`,
        /// `BuildInfo`, `VolumeMapping`, …
        item: Text = "name of the SystemConfig or SysConfigEx event",
        /// Which one of its kind, counted from 0.
        number: Vec<u32> = "count of events of that name before",
        /// What the fact says: `ComputerName`, `MemSize`, `VbsEnabled`, …
        key: Text = "name of the field",
        /// What it is: text, or a number in the form that it is usually written in.
        value: Text = "value of the field",
    }
}

/// Longest value of bytes that is a fact rather than a structure that nothing here reads.
const MAX_BYTES: usize = 64;

impl SystemConfig {
    /// Builds the table from the SystemConfig and SysConfigEx events in time order.
    pub(crate) fn build(
        events: &[KeptEvent<'_>],
        unreadable: &mut UnreadableEvents,
    ) -> SystemConfig {
        let mut rows = SystemConfig::default();
        let mut numbers: HashMap<&'static str, u32> = HashMap::new();
        for event in events {
            let Some((name, fields)) = read(event) else {
                unreadable.add(Table::SystemConfig, event.place);
                continue;
            };
            let next = numbers.entry(name).or_default();
            let number = *next;
            *next = next.saturating_add(1);
            for (key, value) in &fields.values {
                if is_fact(value) {
                    rows.time_ns.push(event.time_ns);
                    rows.item.push(Some(name));
                    rows.number.push(number);
                    rows.key.push(Some(key));
                    rows.value.push(Some(&value.to_string()));
                }
            }
        }
        rows
    }
}

fn is_fact(value: &Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Bytes(bytes) => bytes.len() <= MAX_BYTES,
        Value::Text(text) => !text.is_empty(),
        _ => true,
    }
}

/// The event's name and fields; `None` if the payload is too short or nothing tells its layout.
fn read<'e>(event: &KeptEvent<'e>) -> Option<(&'static str, Fields<'e>)> {
    let class = match event.id.to_be_bytes() {
        // The merge's class has no hooks.
        [0, _] => Class::of_guid(SYS_CONFIG_EX)?,
        [group, _] => Class::of_group(group)?,
    };
    let name = class.event_name(event.opcode())?;
    let schema = class.layout(event.opcode(), event.version)?;
    let fields = events::decode(&schema.fields, event.payload, event.pointer_size);
    (fields.truncated.is_none()).then_some((name, fields))
}
