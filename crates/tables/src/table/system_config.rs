//! `system_config`: hardware and settings of the machine.

use std::collections::HashMap;

use etl::le;
use events::ids::class::SYS_CONFIG_EX;
use events::ids::hook::{BUILD_LAB, END_EXTENSION, EXTENSION};
use events::kernel::Class;
use events::{Fields, Value};

use crate::column::{Nullable, Text};
use crate::event_buffer::BufferedEvent;
use crate::kernel_flags;
use crate::register::{Reads, Register, TraceFacts, WholeTable};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::unreadable::UnreadableEvents;

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

/// Maximum length in bytes of a binary value that becomes a row. Longer values are structures without a known
/// layout.
const MAX_BYTES: usize = 64;

impl Register for SystemConfig {
    const READS: Reads = Reads {
        hooks: &[
            EXTENSION..=EXTENSION,
            END_EXTENSION..=END_EXTENSION,
            BUILD_LAB..=BUILD_LAB,
            0x0B00..=0x0BFF,
        ],
        classes: &[SYS_CONFIG_EX],
        ..Reads::NOTHING
    };
}

impl WholeTable for SystemConfig {
    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> SystemConfig {
        let mut rows = SystemConfig::default();
        let mut numbers: HashMap<&'static str, u32> = HashMap::new();
        let mut flags = KernelFlags::default();
        for event in &facts.events(Table::SystemConfig) {
            if matches!(event.hook, Some(EXTENSION | END_EXTENSION)) {
                flags.add(event);
                continue;
            }
            let Some((name, fields)) = read(event) else {
                unreadable.add(Table::SystemConfig, event.place);
                continue;
            };
            let next = numbers.entry(name).or_default();
            let number = *next;
            *next = next.saturating_add(1);
            for (key, value) in &fields.values {
                if is_fact(value) {
                    let text = value.to_string();
                    rows.push(event.time_ns, name, number, key, &text, value.as_u64());
                }
            }
        }
        for (number, name) in (0..).zip(kernel_flags::enabled(&flags.masks)) {
            rows.push(
                flags.time_ns,
                SystemConfig::KERNEL_FLAGS,
                number,
                "Name",
                &name,
                None,
            );
        }
        Rows::sort(&mut rows);
        rows
    }
}

/// Kinds of kernel events that the sessions enabled.
#[derive(Default)]
struct KernelFlags {
    masks: [u32; 8],
    time_ns: i64,
}

impl KernelFlags {
    /// Adds the group masks of an `Extension` event.
    fn add(&mut self, event: &BufferedEvent<'_>) {
        let masks = self.masks.iter_mut().zip(event.payload.chunks_exact(4));
        for (mask, bytes) in masks {
            *mask |= le::u32(bytes, 0).unwrap_or(0);
        }
        self.time_ns = event.time_ns;
    }
}

impl SystemConfig {
    /// Value of `item` in the rows that name the enabled kinds of kernel events. In these rows, `key` is
    /// `Name`.
    pub const KERNEL_FLAGS: &'static str = "KernelFlags";

    fn push(
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

fn is_fact(value: &Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Bytes(bytes) => bytes.len() <= MAX_BYTES,
        Value::Text(text) => !text.is_empty(),
        _ => true,
    }
}

/// Returns the event's name and fields. Returns `None` if the payload is too short or has no known layout.
fn read<'e>(event: &BufferedEvent<'e>) -> Option<(&'static str, Fields<'e>)> {
    let class = match event.hook {
        Some(hook) => Class::of_group(hook.to_be_bytes()[0])?,
        None => Class::of_guid(SYS_CONFIG_EX)?,
    };
    let name = class.event_name(event.opcode())?;
    let schema = class.layout(event.opcode(), event.version)?;
    let fields = events::decode(&schema.fields, event.payload, event.pointer_size);
    (fields.truncated.is_none()).then_some((name, fields))
}
