//! `cpus`: the machine's logical processors.

use std::collections::BTreeMap;

use etl::{Trace, le};
use events::ids::hook::{
    LAST_DROPPED_TIMES, NUMA_NODE, PROCESSOR_GROUP, PROCESSOR_NUMBER, PROCESSORS,
};
use events::kernel::{Processor, ProcessorGroups, ProcessorNumbers};
use tables::import::UnreadableEvents;
use tables::{Cpus, MAX_CPUS, Table};

use crate::event_buffer::BufferedEvent;
use crate::register::{Reads, TraceFacts, WholeTable};

/// A processor.
#[derive(Clone, Debug, Default)]
struct Cpu {
    /// Processor group, and number of the processor within the group.
    place: Option<(u16, u8)>,
    mhz: Option<u32>,
    model: Option<String>,
    identifier: Option<String>,
    vendor: Option<String>,
    has_events: bool,
    last_dropped_ns: Option<i64>,
}

impl WholeTable for Cpus {
    const READS: Reads = Reads {
        hooks: &[
            LAST_DROPPED_TIMES..=LAST_DROPPED_TIMES,
            NUMA_NODE..=NUMA_NODE,
            PROCESSOR_GROUP..=PROCESSOR_NUMBER,
            PROCESSORS..=PROCESSORS,
        ],
        ..Reads::NOTHING
    };

    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> Cpus {
        let TraceFacts {
            trace, recorded, ..
        } = facts;
        let mut cpus: BTreeMap<u16, Cpu> = BTreeMap::new();
        let headers = || trace.segments().iter().filter_map(|s| s.header.as_ref());
        let count = headers()
            .filter_map(|header| header.cpus())
            .max()
            .unwrap_or(0);
        for cpu in 0..count.min(MAX_CPUS) as u16 {
            cpus.entry(cpu).or_default();
        }
        for buffer in trace.buffers() {
            cpus.entry(buffer.cpu).or_default().has_events = true;
        }
        let mut nodes: Vec<(u16, u64)> = Vec::new();
        for event in &facts.events(Table::Cpus) {
            let read = match event.id {
                LAST_DROPPED_TIMES => read_drops(event, trace, &mut cpus),
                _ => read(event, &mut cpus, &mut nodes),
            };
            if read.is_none() {
                unreadable.add(Table::Cpus, event.place);
            }
        }
        let nominal = headers().map(|header| header.cpu_mhz).find(|mhz| *mhz != 0);
        let mut rows = Cpus::default();
        for (index, cpu) in cpus {
            rows.first_seen_ns.push(0);
            rows.cpu.push(index);
            rows.processor_group.push(cpu.place.map(|(group, _)| group));
            rows.number.push(cpu.place.map(|(_, number)| number));
            rows.numa_node
                .push(cpu.place.and_then(|place| node_of(&nodes, place)));
            rows.mhz.push(cpu.mhz.or(nominal));
            rows.model.push(cpu.model.as_deref());
            rows.identifier.push(cpu.identifier.as_deref());
            rows.vendor.push(cpu.vendor.as_deref());
            rows.has_events.push(cpu.has_events);
            rows.recorded_from_ns.push(recorded.begin_ns(index));
            rows.recorded_until_ns.push(recorded.end_ns(index));
            let activity = facts.activity.get(&index);
            rows.events.push(activity.map_or(0, |a| a.events));
            rows.first_event_ns.push(activity.map(|a| a.first_ns));
            rows.last_event_ns.push(activity.map(|a| a.last_ns));
            rows.longest_gap_ns.push(activity.map(|a| a.longest_gap_ns));
            rows.longest_gap_start_ns
                .push(activity.map(|a| a.longest_gap_start_ns));
            rows.last_dropped_ns.push(cpu.last_dropped_ns);
        }
        rows
    }
}

/// Reads an event. Returns `None` if the payload of the event is unreadable.
fn read(
    event: &BufferedEvent<'_>,
    cpus: &mut BTreeMap<u16, Cpu>,
    nodes: &mut Vec<(u16, u64)>,
) -> Option<()> {
    let (payload, version, width) = (event.payload, event.version, event.pointer_size);
    match event.id {
        PROCESSORS => {
            let processor = Processor::read(payload, version, width)?;
            let index = u16::try_from(processor.index).ok()?;
            if u32::from(index) >= MAX_CPUS {
                return None;
            }
            let cpu = cpus.entry(index).or_default();
            let text = |text: String| Some(text.trim().to_owned()).filter(|t| !t.is_empty());
            cpu.mhz = Some(processor.mhz).filter(|mhz| *mhz != 0);
            cpu.model = text(processor.name.to_string());
            cpu.identifier = text(processor.identifier.to_string());
            cpu.vendor = text(processor.vendor.to_string());
        }
        PROCESSOR_NUMBER => {
            let numbers = ProcessorNumbers::read(payload, version, width)?;
            for (index, place) in (0..MAX_CPUS as u16).zip(numbers.numbers()) {
                cpus.entry(index).or_default().place = Some(place);
            }
        }
        PROCESSOR_GROUP => {
            // The indices are in the order of groups: first all processors of the first group, then all
            // processors of the second group, and so on.
            let groups = ProcessorGroups::read(payload, version, width)?;
            let places = (0u16..).zip(groups.affinities()).flat_map(|(group, mask)| {
                let numbers = (0u8..64).filter(move |number| mask >> number & 1 != 0);
                numbers.map(move |number| (group, number))
            });
            for (index, place) in (0..MAX_CPUS as u16).zip(places) {
                cpus.entry(index).or_default().place.get_or_insert(place);
            }
        }
        _ => {
            let count = le::u32(payload, 0)? as usize;
            let masks = payload.get(4..)?;
            // In recent builds, an element is an affinity with a group (16 bytes). According to the
            // documentation, an element in older builds is a mask without a group (8 bytes).
            let has_groups = masks.len() / 16 >= count;
            let size = if has_groups { 16 } else { 8 };
            nodes.clear();
            for element in masks.chunks_exact(size).take(count) {
                let group = if has_groups { le::u16(element, 8)? } else { 0 };
                nodes.push((group, le::u64(element, 0)?));
            }
        }
    }
    Some(())
}

/// Reads the times at which events were last dropped. The payload is a count, four bytes of
/// padding, and a raw time per CPU. The time is 0 if the CPU dropped no event.
fn read_drops(
    event: &BufferedEvent<'_>,
    trace: &Trace,
    cpus: &mut BTreeMap<u16, Cpu>,
) -> Option<()> {
    let count = le::u32(event.payload, 0)?.min(MAX_CPUS) as usize;
    let clock = &trace.segments()[usize::from(event.place.segment)].clock;
    let times = event.payload.get(8..)?.chunks_exact(8).take(count);
    for (cpu, time) in (0..).zip(times) {
        let raw = le::i64(time, 0).filter(|raw| *raw != 0);
        if let Some(raw) = raw {
            let cpu = cpus.entry(cpu).or_default();
            cpu.last_dropped_ns = cpu.last_dropped_ns.max(Some(clock.to_ns(raw)));
        }
    }
    Some(())
}

/// Returns the first NUMA node that contains the processor.
fn node_of(nodes: &[(u16, u64)], (group, number): (u16, u8)) -> Option<u16> {
    let has = |(node_group, mask): &(u16, u64)| {
        *node_group == group && mask.checked_shr(number.into()).is_some_and(|m| m & 1 != 0)
    };
    u16::try_from(nodes.iter().position(has)?).ok()
}
