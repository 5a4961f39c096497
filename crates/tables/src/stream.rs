//! What one CPU stream holds: its events go into the tables asked for.

use std::sync::Arc;

use etl::{BufferReader, BufferRef, CpuStream, Damage, Event, HeaderKind, Segment, le};
use events::Decoder;
use events::kernel::Class;

use crate::build::Cancelled;
use crate::cpus::{NUMA_NODE, PROCESSOR_GROUP, PROCESSOR_NUMBER, PROCESSORS};
use crate::disk_io::DiskStarts;
use crate::file_io::FileEvents;
use crate::images::IMAGE_ID;
use crate::kept::Kept;
use crate::marks::MARK;
use crate::packets::Fragments;
use crate::plan::Wanted;
use crate::priorities::is_priority;
use crate::provider_events;
use crate::stack_index::StackEvents;
use crate::threads::{SERVICE, SET_NAME};
use crate::unreadable::UnreadableEvents;
use crate::volumes::{SYS_CONFIG_EX, VOLUME_MAPPING};
use crate::{
    ContextSwitches, DiskIo, Events, FileIo, HardFaults, Input, Interrupts, Marks, Network,
    Packets, Priorities, ReadyThreads, Samples, Table, TimerRequests,
};

/// What one CPU stream holds.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) context_switches: ContextSwitches,
    pub(crate) ready_threads: ReadyThreads,
    pub(crate) samples: Samples,
    pub(crate) interrupts: Interrupts,
    pub(crate) disk_io: DiskIo,
    pub(crate) hard_faults: HardFaults,
    pub(crate) packets: Packets,
    pub(crate) fragments: Fragments,
    pub(crate) file_io: FileIo,
    pub(crate) file_events: FileEvents,
    pub(crate) events: Events,
    /// Knows what events mean, if they are wanted.
    pub(crate) decoder: Option<Arc<Decoder>>,
    pub(crate) metadata: Vec<BufferRef>,
    pub(crate) network: Network,
    pub(crate) priorities: Priorities,
    pub(crate) input: Input,
    pub(crate) timer_requests: TimerRequests,
    pub(crate) marks: Marks,
    pub(crate) disk_starts: DiskStarts,
    pub(crate) stacks: StackEvents,
    /// When and to what the profile timer was set first.
    pub(crate) sampling_interval: Option<(i64, i64)>,
    /// The first and the last event.
    pub(crate) span_ns: Option<(i64, i64)>,
    pub(crate) processes: Kept,
    pub(crate) threads: Kept,
    pub(crate) images: Kept,
    pub(crate) image_ids: Kept,
    pub(crate) volumes: Kept,
    pub(crate) file_names: Kept,
    pub(crate) focus: Kept,
    pub(crate) process_freezes: Kept,
    pub(crate) system_config: Kept,
    pub(crate) cpus: Kept,
    pub(crate) damage: Damage,
    pub(crate) unreadable: UnreadableEvents,
}

impl Stream {
    /// A stream whose events are decoded too, if there is a decoder.
    pub(crate) fn decoding(decoder: Option<Arc<Decoder>>) -> Stream {
        Stream {
            decoder,
            ..Stream::default()
        }
    }

    /// Reads a whole CPU stream.
    pub(crate) fn read(
        stream: &CpuStream<'_>,
        segments: &[Segment],
        wanted: Wanted,
        progress: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<Stream, Cancelled> {
        let mut found = Stream::default();
        let mut reader = stream.reader();
        for buffer in stream.buffers() {
            found.read_buffer(&mut reader, buffer, segments, wanted);
            if !progress(buffer.stored_size.into()) {
                return Err(Cancelled);
            }
        }
        found.damage = reader.take_damage();
        Ok(found)
    }

    /// Takes the events of a buffer.
    pub(crate) fn read_buffer(
        &mut self,
        reader: &mut BufferReader<'_>,
        buffer: &BufferRef,
        segments: &[Segment],
        wanted: Wanted,
    ) {
        let header = segments[usize::from(buffer.segment)].header.as_ref();
        // Where the header is unreadable, a present-day system is likelier than an old one.
        let system = header.map_or((10, 0), |header| header.os_version);
        let mut has_metadata = false;
        for event in reader.read(buffer) {
            has_metadata |= wanted.has_metadata() && events::is_metadata(&event);
            self.take(&event, wanted, system);
        }
        if has_metadata {
            self.metadata.push(*buffer);
        }
    }

    /// Puts an event into its table, if that is wanted.
    #[inline]
    fn take(&mut self, event: &Event<'_>, wanted: Wanted, system: (u8, u8)) {
        let Some(hook) = event.hook().or_else(|| classic_hook(event)) else {
            return self.take_metadata(event, wanted);
        };
        // The log's own header tells when the session began, which rings have long forgotten.
        if hook >> 8 != 0 {
            let time_ns = event.time_ns();
            let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
            self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
        }
        let table = match hook {
            0x0524 => Table::ContextSwitches,
            0x0532 => Table::ReadyThreads,
            0x0F2E => Table::Samples,
            0x0F32 | 0x0F42..=0x0F46 | 0x0F5F => Table::Interrupts,
            0x010A..=0x010F | 0x0137..=0x013C => Table::DiskIo,
            0x0220 => Table::HardFaults,
            _ if StackEvents::has(hook) => Table::Stacks,
            0x0F48..=0x0F4A => return self.set_interval(event),
            0x0301..=0x0304 | 0x030B | 0x0327 => Table::Processes,
            0x0501..=0x0504 | SET_NAME => Table::Threads,
            0x0B00..=0x0BFF => return self.take_machine(hook, event, wanted),
            MARK => Table::Marks,
            0x0440..=0x0451 => Table::FileIo,
            0x0400 | 0x0420 | 0x0423 | 0x0424 => return self.take_file_name(hook, event, wanted),
            0x060A..=0x0610 | 0x0612 | 0x061A..=0x0620 | 0x0622 => Table::Network,
            0x080A | 0x080B | 0x081A | 0x081B => Table::Network,
            _ if is_priority(hook) => Table::Priorities,
            0x030A | 0x1402..=0x1404 | 0x140A => Table::Images,
            _ => return self.take_any(event),
        };
        if !wanted.has(table) {
            return;
        }
        let read = match table {
            Table::ContextSwitches => self.context_switches.push(event),
            Table::ReadyThreads => self.ready_threads.push(event),
            Table::Samples => self.samples.push(event, system),
            Table::Interrupts => self.interrupts.push(event),
            Table::HardFaults => self.hard_faults.push(event),
            Table::DiskIo => match hook {
                0x010C | 0x010D | 0x010F | 0x013A..=0x013C => self.disk_starts.push(event),
                _ => self.disk_io.push(event),
            },
            Table::Processes => self.processes.push(hook, event),
            Table::Threads => self.threads.push(hook, event),
            Table::Images => self.images.push(hook, event),
            Table::Stacks => self.stacks.push(hook, event),
            Table::Marks => self.marks.push_kernel(event),
            Table::FileIo => self.file_events.push(event),
            Table::Network => self.network.push_kernel(hook, event),
            Table::Priorities => self.priorities.push_kernel(hook, event),
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.add(table, event.place());
        }
    }

    /// Notes what the profile timer is set to: source 0, in units of 100 ns.
    fn set_interval(&mut self, event: &Event<'_>) {
        let payload = event.payload();
        let (Some(0), Some(interval)) = (le::u32(payload, 0), le::u32(payload, 4)) else {
            return;
        };
        let set = (event.time_ns(), i64::from(interval) * 100);
        self.sampling_interval.get_or_insert(set);
    }

    /// Keeps what names a file.
    fn take_file_name(&mut self, hook: u16, event: &Event<'_>, wanted: Wanted) {
        if wanted.has_file_names() {
            self.file_names.push(hook, event);
        }
    }

    /// Keeps what the kernel says about the machine.
    fn take_machine(&mut self, hook: u16, event: &Event<'_>, wanted: Wanted) {
        // Threads carry the tags of services.
        if hook == SERVICE && wanted.has(Table::Threads) {
            self.threads.push(hook, event);
        }
        if wanted.has(Table::SystemConfig) {
            self.system_config.push(hook, event);
        }
        let is_of_cpus = matches!(
            hook,
            NUMA_NODE | PROCESSOR_GROUP | PROCESSOR_NUMBER | PROCESSORS
        );
        if is_of_cpus && wanted.has(Table::Cpus) {
            self.cpus.push(hook, event);
        }
    }

    /// Keeps what the merge step of Windows' tools says about images, volumes and the machine.
    fn take_metadata(&mut self, event: &Event<'_>, wanted: Wanted) {
        if event.descriptor().is_some() {
            self.take_any(event);
            return self.take_provider_event(event, wanted);
        }
        if !is_classic(event) {
            return self.take_any(event);
        }
        let (Some(guid), Some(opcode)) = (event.guid(), event.opcode()) else {
            return;
        };
        if guid == IMAGE_ID && wanted.has(Table::Images) {
            self.image_ids.push(opcode.into(), event);
        } else if guid == SYS_CONFIG_EX {
            let maps = wanted.has(Table::Images) || wanted.has_file_names();
            if opcode == VOLUME_MAPPING && maps {
                self.volumes.push(opcode.into(), event);
            }
            if wanted.has(Table::SystemConfig) {
                self.system_config.push(opcode.into(), event);
            }
        } else if guid != IMAGE_ID && !events::is_metadata(event) {
            self.take_any(event);
        }
    }

    /// Puts an event that is of no kernel table among the decoded ones, if they are wanted.
    fn take_any(&mut self, event: &Event<'_>) {
        if let Some(decoder) = &self.decoder {
            self.events.push(event, decoder);
        }
    }

    /// Puts an event of a manifest provider into its table, if that is wanted.
    fn take_provider_event(&mut self, event: &Event<'_>, wanted: Wanted) {
        let (Some(provider), Some(descriptor)) = (event.guid(), event.descriptor()) else {
            return;
        };
        let table = provider_events::table_of(provider, descriptor.id);
        let Some(table) = table.filter(|table| wanted.has(*table)) else {
            return;
        };
        let read = match table {
            Table::Focus => self.focus.push(descriptor.id, event),
            Table::ProcessFreezes => self.process_freezes.push(descriptor.id, event),
            Table::Input => self.input.push(event),
            Table::TimerRequests => self.timer_requests.push(event),
            Table::Marks => self.marks.push_uiforetw(event),
            Table::Network => self.network.push_provider(event),
            Table::Priorities => self.priorities.push_provider(event),
            Table::Packets => self.fragments.take(event, &mut self.packets),
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.add(table, event.place());
        }
    }
}

/// Whether the event has the header of classic providers, as kernel events have that were written
/// by tools or by systems before Windows 7.
#[inline]
fn is_classic(event: &Event<'_>) -> bool {
    matches!(event.kind(), HeaderKind::Full32 | HeaderKind::Full64)
}

/// The hook id that a kernel event with a class GUID would have.
fn classic_hook(event: &Event<'_>) -> Option<u16> {
    if !is_classic(event) {
        return None;
    }
    let group = Class::of_guid(event.guid()?)?.group?;
    Some(u16::from_be_bytes([group, event.opcode()?]))
}
