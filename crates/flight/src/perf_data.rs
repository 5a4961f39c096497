//! Writer of `perf.data`.

use std::io::{self, Write};

use crate::attribute::{self, Attribute};
use crate::build_ids::BuildId;
use crate::tracefs::DescribedTracepoint;

/// Size in bytes of the header of a file.
const HEADER: u64 = 104;

/// Number of bits in the header for feature sections. Each bit states whether the file has the section.
const FEATURE_BITS: usize = 256;

/// Numbers of feature sections (`HEADER_…` in `tools/perf/util/header.h`).
mod feature {
    pub(super) const TRACING_DATA: u32 = 1;
    pub(super) const BUILD_IDS: u32 = 2;
    pub(super) const HOST_NAME: u32 = 3;
    pub(super) const OS_RELEASE: u32 = 4;
    pub(super) const VERSION: u32 = 5;
    pub(super) const ARCHITECTURE: u32 = 6;
    pub(super) const CPUS: u32 = 7;
    pub(super) const CPU_DESCRIPTION: u32 = 8;
    pub(super) const MEMORY: u32 = 10;
    pub(super) const COMMAND_LINE: u32 = 11;
    pub(super) const EVENTS: u32 = 12;
    pub(super) const CLOCK: u32 = 29;
}

/// Record that ends a round. The records after the end of round N are not older than the records of round N − 1. With
/// this rule, a reader can sort the records of a few rounds at a time.
pub(crate) const FINISHED_ROUND: [u8; 8] = {
    let kind = 68_u32.to_ne_bytes();
    let size = 8_u16.to_ne_bytes();
    [kind[0], kind[1], kind[2], kind[3], 0, 0, size[0], size[1]]
};

/// Event of a recording.
#[derive(Clone, Debug)]
pub(crate) struct RecordedEvent {
    pub(crate) attribute: Attribute,
    /// Name, as in `perf list`.
    pub(crate) name: String,
    /// Ids in the samples of the event, one id for each CPU.
    pub(crate) ids: Vec<u64>,
}

/// Facts about the machine and the recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) host_name: String,
    pub(crate) os_release: String,
    pub(crate) architecture: String,
    pub(crate) cpus_configured: u32,
    pub(crate) cpus_online: u32,
    pub(crate) cpu_description: String,
    pub(crate) memory_kib: u64,
    pub(crate) command_line: Vec<String>,
    /// Time of day in nanoseconds since 1970, and the time of the recording's clock at the same moment, in nanoseconds.
    pub(crate) clock: (u64, u64),
}

/// Contents of a file.
pub(crate) struct Contents<'c> {
    pub(crate) events: &'c [RecordedEvent],
    pub(crate) tracepoints: &'c [DescribedTracepoint],
    /// Descriptions of the pages of the kernel's tracing buffers: `header_page` and `header_event`.
    pub(crate) pages: &'c [Vec<u8>; 2],
    pub(crate) machine: &'c Machine,
    pub(crate) build_ids: &'c [BuildId],
    /// Records, in the order of the file.
    pub(crate) records: &'c [&'c [u8]],
}

impl Contents<'_> {
    /// Writes the file. Returns its size in bytes.
    ///
    /// # Errors
    /// Returns the first error of `out`.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<u64> {
        let (mut ids, mut attributes) = (Vec::new(), Vec::new());
        for event in self.events {
            attributes.extend(event.attribute.bytes());
            put_section(
                &mut attributes,
                HEADER + ids.len() as u64,
                8 * event.ids.len() as u64,
            );
            ids.extend(event.ids.iter().flat_map(|id| id.to_ne_bytes()));
        }
        let attributes_at = HEADER + ids.len() as u64;
        let data_at = attributes_at + attributes.len() as u64;
        let data_size: u64 = self.records.iter().map(|part| part.len() as u64).sum();
        let features = self.features();
        let mut header = Vec::new();
        header.extend(u64::from_le_bytes(*b"PERFILE2").to_ne_bytes());
        put_u64(&mut header, HEADER);
        put_u64(&mut header, attribute::SIZE as u64 + 16);
        put_section(&mut header, attributes_at, attributes.len() as u64);
        put_section(&mut header, data_at, data_size);
        put_section(&mut header, 0, 0);
        let mut bits = [0_u64; FEATURE_BITS / 64];
        for (number, _) in &features {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        bits.iter().for_each(|part| put_u64(&mut header, *part));
        out.write_all(&header)?;
        out.write_all(&ids)?;
        out.write_all(&attributes)?;
        for part in self.records {
            out.write_all(part)?;
        }
        let mut places = Vec::new();
        let mut at = data_at + data_size + 16 * features.len() as u64;
        for (_, section) in &features {
            put_section(&mut places, at, section.len() as u64);
            at += section.len() as u64;
        }
        out.write_all(&places)?;
        for (_, section) in &features {
            out.write_all(section)?;
        }
        Ok(at)
    }

    /// Returns the feature sections with their numbers, in the order of the numbers.
    fn features(&self) -> Vec<(u32, Vec<u8>)> {
        let machine = self.machine;
        let text = |text: &str| {
            let mut section = Vec::new();
            put_text(&mut section, text);
            section
        };
        let mut cpus = machine.cpus_configured.to_ne_bytes().to_vec();
        cpus.extend(machine.cpus_online.to_ne_bytes());
        let mut command_line = (machine.command_line.len() as u32).to_ne_bytes().to_vec();
        for word in &machine.command_line {
            put_text(&mut command_line, word);
        }
        let mut events = (self.events.len() as u32).to_ne_bytes().to_vec();
        events.extend((attribute::SIZE as u32).to_ne_bytes());
        for event in self.events {
            events.extend(event.attribute.bytes());
            events.extend((event.ids.len() as u32).to_ne_bytes());
            put_text(&mut events, &event.name);
            event.ids.iter().for_each(|id| put_u64(&mut events, *id));
        }
        // The section starts with its version, 1, and the number of the clock.
        let mut clock = 1_u32.to_ne_bytes().to_vec();
        clock.extend(attribute::CLOCK.to_ne_bytes());
        put_u64(&mut clock, machine.clock.0);
        put_u64(&mut clock, machine.clock.1);
        vec![
            (feature::TRACING_DATA, self.tracing_data()),
            (feature::BUILD_IDS, self.build_ids()),
            (feature::HOST_NAME, text(&machine.host_name)),
            (feature::OS_RELEASE, text(&machine.os_release)),
            (
                feature::VERSION,
                text(concat!("laglab ", env!("CARGO_PKG_VERSION"))),
            ),
            (feature::ARCHITECTURE, text(&machine.architecture)),
            (feature::CPUS, cpus),
            (feature::CPU_DESCRIPTION, text(&machine.cpu_description)),
            (feature::MEMORY, machine.memory_kib.to_ne_bytes().to_vec()),
            (feature::COMMAND_LINE, command_line),
            (feature::EVENTS, events),
            (feature::CLOCK, clock),
        ]
    }

    /// Returns the build ids of mapped files, one record for each file.
    fn build_ids(&self) -> Vec<u8> {
        const KIND: u32 = 67;
        /// Bits of the record's header. The value 2 means that programs run the code of the file. Bit 15 means that the
        /// record states the size of the build id.
        const BITS: u16 = 2 | 1 << 15;
        const ALL_PROCESSES: i32 = -1;
        const LARGEST: usize = 20;
        let mut section = Vec::new();
        for BuildId { path, id } in self.build_ids {
            let id = &id[..id.len().min(LARGEST)];
            let path_size = (path.len() + 1).next_multiple_of(64);
            section.extend(KIND.to_ne_bytes());
            section.extend(BITS.to_ne_bytes());
            // The path comes from a record with a 16-bit size, so this size also fits into 16 bits.
            section.extend(((36 + path_size) as u16).to_ne_bytes());
            section.extend(ALL_PROCESSES.to_ne_bytes());
            section.extend(id);
            section.resize(section.len() + LARGEST - id.len(), 0);
            section.extend([id.len() as u8, 0, 0, 0]);
            section.extend(path);
            section.resize(section.len() + path_size - path.len(), 0);
        }
        section
    }

    /// Returns the descriptions of the tracepoints, in the form of trace-cmd.
    fn tracing_data(&self) -> Vec<u8> {
        let mut section = b"\x17\x08\x44tracing0.6\0".to_vec();
        section.push(u8::from(cfg!(target_endian = "big")));
        section.push(size_of::<libc::c_long>() as u8);
        section.extend((rustix::param::page_size() as u32).to_ne_bytes());
        for (name, page) in [&b"header_page\0"[..], b"header_event\0"]
            .iter()
            .zip(self.pages)
        {
            section.extend(*name);
            put_u64(&mut section, page.len() as u64);
            section.extend(page);
        }
        // The recording has no events of ftrace itself.
        section.extend(0_u32.to_ne_bytes());
        let mut systems: Vec<&str> = self.tracepoints.iter().map(|it| it.system).collect();
        systems.sort_unstable();
        systems.dedup();
        section.extend((systems.len() as u32).to_ne_bytes());
        for system in systems {
            let its = self.tracepoints.iter().filter(|it| it.system == system);
            section.extend(system.as_bytes());
            section.push(0);
            section.extend((its.clone().count() as u32).to_ne_bytes());
            for tracepoint in its {
                put_u64(&mut section, tracepoint.format.len() as u64);
                section.extend(&tracepoint.format);
            }
        }
        // Sizes of three empty lists: functions, formats, and names of threads.
        section.extend(0_u32.to_ne_bytes());
        section.extend(0_u32.to_ne_bytes());
        put_u64(&mut section, 0);
        section
    }
}

fn put_u64(into: &mut Vec<u8>, number: u64) {
    into.extend(number.to_ne_bytes());
}

/// Adds the offset and the size of a section.
fn put_section(into: &mut Vec<u8>, offset: u64, size: u64) {
    put_u64(into, offset);
    put_u64(into, size);
}

/// Adds a text with its size. perf pads texts to multiples of 64 bytes.
fn put_text(into: &mut Vec<u8>, text: &str) {
    let size = (text.len() + 1).next_multiple_of(64);
    into.extend((size as u32).to_ne_bytes());
    into.extend(text.as_bytes());
    into.resize(into.len() + size - text.len(), 0);
}
