//! `cpus`: the machine's logical processors.

use std::collections::BTreeMap;

use etl::{Trace, le};
use events::kernel::{Processor, ProcessorGroups, ProcessorNumbers};

use crate::Table;
use crate::column::{Nullable, Text};
use crate::kept::KeptEvent;
use crate::recorded::Recorded;
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per logical processor: those that the trace describes, that have events, or that
    /// the log-file header counts.
    Cpus, CpusView = "cpus" sorted by first_seen_ns {
        /// When the first session began.
        first_seen_ns: Vec<i64> = "log-file header: StartTime",
        /// System-wide index, as in the column `cpu` of other tables.
        cpu: Vec<u16> = "Processors: ProcessorIndex; CPU of buffers; log-file header: NumberOfProcessors"
            wpa "CPU",
        /// Its processor group. Since Windows 10.
        processor_group: Nullable<u16> = "ProcessorNumber; ProcessorGroup",
        /// Its number within the group.
        number: Nullable<u8> = "ProcessorNumber; ProcessorGroup",
        /// Its NUMA node.
        numa_node: Nullable<u16> = "NumaNode, by group and number",
        /// Its frequency.
        mhz: Nullable<u32> = "Processors: ProcessorSpeed; log-file header: CpuSpeedInMHz" in "MHz",
        /// Its marketing name. Since Windows 10.
        model: Text = "Processors: ProcessorName",
        /// Family, model and stepping.
        identifier: Text = "Processors: ProcessorIdentifier",
        /// Its vendor.
        vendor: Text = "Processors: VendorIdentifier",
        /// The trace has buffers of it, so it logged events.
        has_events: Vec<bool> = "CPU of buffers",
        /// From when on all that it logged is in the trace: its first event, where the session was a
        /// ring that overwrote older buffers. Unknown otherwise: from the begin.
        recorded_from_ns: Nullable<i64> = "log-file header: LogFileMode; header time",
        /// Until when all that it logged is in the trace: its last event, where the file was cut off or
        /// its session never stopped. Unknown otherwise: to the end.
        recorded_until_ns: Nullable<i64> = "log-file header: EndTime; header time",
    }
}

/// Hooks of the events that tell of processors.
pub(crate) const NUMA_NODE: u16 = 0x0B18;
pub(crate) const PROCESSOR_GROUP: u16 = 0x0B1A;
pub(crate) const PROCESSOR_NUMBER: u16 = 0x0B1B;
pub(crate) const PROCESSORS: u16 = 0x0B23;

/// More processors than Windows can have.
pub(crate) const MAX_CPUS: u32 = 2048;

/// A processor as known so far.
#[derive(Clone, Debug, Default)]
struct Cpu {
    place: Option<(u16, u8)>,
    mhz: Option<u32>,
    model: Option<String>,
    identifier: Option<String>,
    vendor: Option<String>,
    has_events: bool,
}

impl Cpus {
    /// Builds the table from the headers, the buffers and the events that tell of processors.
    pub(crate) fn build(
        trace: &Trace,
        events: &[KeptEvent<'_>],
        recorded: &Recorded,
        unreadable: &mut UnreadableEvents,
    ) -> Cpus {
        let mut cpus: BTreeMap<u16, Cpu> = BTreeMap::new();
        let headers = || trace.segments().iter().filter_map(|s| s.header.as_ref());
        let count = headers().map(|header| header.processors).max().unwrap_or(0);
        for cpu in 0..count.min(MAX_CPUS) as u16 {
            cpus.entry(cpu).or_default();
        }
        for buffer in trace.buffers() {
            cpus.entry(buffer.cpu).or_default().has_events = true;
        }
        let mut nodes: Vec<(u16, u64)> = Vec::new();
        for event in events {
            if read(event, &mut cpus, &mut nodes).is_none() {
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
        }
        rows
    }
}

/// Takes in an event; `None` if it is unreadable.
fn read(
    event: &KeptEvent<'_>,
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
            // Indices count the processors of one group after the other.
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
            // Elements are affinities of a group in recent builds, as wide as two of the masks
            // that older ones are documented to have.
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

/// The first node that has the processor.
fn node_of(nodes: &[(u16, u64)], (group, number): (u16, u8)) -> Option<u16> {
    let has = |(of, mask): &(u16, u64)| {
        *of == group && mask.checked_shr(number.into()).is_some_and(|m| m & 1 != 0)
    };
    u16::try_from(nodes.iter().position(has)?).ok()
}
