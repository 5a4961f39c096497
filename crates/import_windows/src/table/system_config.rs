//! `system_config`: hardware and settings of the machine.

use std::collections::HashMap;

use etl::le;
use events::ids::class::SYS_CONFIG_EX;
use events::ids::hook::{BUILD_LAB, END_EXTENSION, EXTENSION};
use events::kernel::Class;
use events::{Fields, Value};
use tables::import::{Rows, UnreadableEvents};
use tables::{SystemConfig, Table};

use crate::event_buffer::BufferedEvent;
use crate::kernel_flags;
use crate::register::{Reads, TraceFacts, WholeTable};

/// Maximum length in bytes of a binary value that becomes a row. Longer values are structures without a known
/// layout.
const MAX_BYTES: usize = 64;

impl WholeTable for SystemConfig {
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
