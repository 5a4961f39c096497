//! Recordings of trace-cmd (`trace.dat`), versions 6 and 7.
//!
//! Sources of the format: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use std::collections::HashMap;
use std::io;

use files::{FileSource, Source};

use crate::attribute::{Attribute, Clock};
use crate::bytes::{Bytes, Order, text};
use crate::chunk::{Chunk, Part};
use crate::compression::Compression;
use crate::damage::{Damage, Fault};
use crate::error::OpenError;
use crate::facts::Facts;
use crate::features::{System, WallClock};
use crate::format::Format;
use crate::gaps::Gaps;
use crate::header::{LARGEST_SECTION, Section};
use crate::inflater::{Inflater, max_expanded};
use crate::kallsyms::Kallsyms;
use crate::recording::{Recorder, Recording, Symbols};
use crate::ring_buffer::Pages;
use crate::sample::SampleLayout;
use crate::tracepoints::Readers;
use crate::tracing_data::{self, MAGIC};

/// Number of bytes that are read to find the file's format: magic number, version and byte order.
const START: usize = 4096;
/// Approximate size in bytes of a chunk.
const CHUNK: usize = 1 << 20;
/// Largest size in bytes of a page. The kernel limits it to about the same size.
const LARGEST_PAGE: usize = CHUNK;
/// Maximum number of sections with options.
const MOST_SECTIONS: usize = 1024;
/// Maximum number of CPUs that Linux supports.
const MOST_CPUS: usize = 8192;

/// Numbers of options.
mod option {
    pub(super) const DONE: u16 = 0;
    pub(super) const DATE: u16 = 1;
    pub(super) const CPU_STATISTICS: u16 = 2;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const CLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const CPU_COUNT: u16 = 8;
    pub(super) const VERSION: u16 = 9;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const FTRACE_FORMATS: u16 = 17;
    pub(super) const FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
    pub(super) const NAMES: u16 = 21;
    pub(super) const TEXT: u16 = 22;
}

/// Returns true if a file that begins with the bytes `first` is a recording of trace-cmd. 8 bytes are enough.
pub(crate) fn is_recording(first: &[u8]) -> bool {
    first.len() >= 8
        && first
            .iter()
            .zip(MAGIC)
            .all(|(found, expected)| found == expected)
}

/// Numbers of CPUs and the places of their pages.
type PagesOfCpus = Vec<(u32, Section)>;

/// Events of one instance of the ring buffer.
#[derive(Debug, Default)]
struct Buffer {
    clock: Option<String>,
    page_bytes: Option<usize>,
    cpus: PagesOfCpus,
}

impl Buffer {
    fn size(&self) -> u64 {
        let sizes = self.cpus.iter().map(|(_, place)| place.size);
        sizes.fold(0, u64::saturating_add)
    }
}

/// State of a recording while it is being opened.
struct Opening {
    source: Box<dyn Source>,
    order: Order,
    compression: Option<Compression>,
    page_bytes: usize,
    /// Texts of `header_page` and `header_event`.
    layout: Option<[String; 2]>,
    formats: Vec<Format>,
    system: System,
    clock: Option<String>,
    buffers: Vec<Buffer>,
    /// Number of CPUs in a file of version 6.
    cpus: u32,
    kallsyms: Option<Kallsyms>,
    /// Records with the names of threads and with the address range of the kernel's code.
    facts: Facts,
    /// Number of events that were lost according to the statistics of all CPUs.
    lost: u64,
    /// Number of bytes that further sections of the file may have. Each byte belongs to at most one section, so that a
    /// forged file cannot name the same section many times.
    unread: u64,
    /// Number of bytes to which further compressed sections may expand.
    expansion: u64,
    damage: Damage,
}

/// Opens a recording that begins with the first bytes of a recording of trace-cmd.
pub(crate) fn open(source: Box<dyn Source>) -> Result<Recording, OpenError> {
    let too_short = || OpenError::Header("the file is too short");
    let mut start = vec![0; START];
    let read = source.read_at(0, &mut start)?;
    // The byte order follows the version, which is a text.
    let mut bytes = Bytes::new(&start[..read], Order::Little);
    if bytes.take(MAGIC.len()) != Some(MAGIC) {
        return Err(OpenError::Foreign);
    }
    let version = text(bytes.zero_terminated().ok_or_else(too_short)?);
    let order = match bytes.u8().ok_or_else(too_short)? {
        0 => Order::Little,
        _ => Order::Big,
    };
    let mut bytes = Bytes::new(bytes.rest(), order);
    bytes.u8().ok_or_else(too_short)?;
    let page_bytes = bytes.len32().ok_or_else(too_short)?;
    let mut opening = Opening {
        unread: source.len(),
        expansion: max_expanded(source.len()),
        source,
        order,
        compression: None,
        page_bytes,
        layout: None,
        formats: Vec::new(),
        system: System::default(),
        clock: None,
        buffers: Vec::new(),
        cpus: 0,
        kallsyms: None,
        facts: Facts::default(),
        lost: 0,
        damage: Damage::default(),
    };
    match &*version {
        "6" => {
            let begin = (read - bytes.rest().len()) as u64;
            opening.read_version_6(begin)?;
        }
        "7" => {
            let name = text(bytes.zero_terminated().ok_or_else(too_short)?);
            bytes.zero_terminated().ok_or_else(too_short)?;
            opening.compression = Compression::named(&name)?;
            let options = bytes.u64().ok_or_else(too_short)?;
            opening.read_version_7(options)?;
        }
        _ => return Err(OpenError::Version(version.chars().take(16).collect())),
    }
    opening.finish()
}

/// Reads the place of the pages of one CPU.
fn read_places(bytes: &mut Bytes<'_>) -> Option<Section> {
    let (offset, size) = (bytes.u64()?, bytes.u64()?);
    Some(Section { offset, size })
}

/// Returns the name of the selected clock. In a list of clocks, the selected clock is in brackets.
fn selected(clocks: &str) -> String {
    let name = clocks
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    name.map_or(clocks, |(name, _)| name).trim().to_owned()
}

impl Opening {
    /// Reads a file of version 6. Its descriptions begin at `begin`.
    fn read_version_6(&mut self, begin: u64) -> Result<(), OpenError> {
        let size = (self.source.len().saturating_sub(begin)).min(LARGEST_SECTION);
        let place = Section {
            offset: begin,
            size,
        };
        let head = place.read(&*self.source)?.unwrap_or_default();
        let mut bytes = Bytes::new(&head, self.order);
        let is_whole = self.read_descriptions(&mut bytes, begin, head.len());
        is_whole.ok_or(OpenError::Header("its descriptions are damaged or cut off"))?;
        loop {
            match bytes.zero_terminated() {
                Some(b"options  ") => {
                    let is_whole = self.read_options_6(&mut bytes)?;
                    is_whole.ok_or(OpenError::Header("its options are damaged"))?;
                }
                Some(b"flyrecord") => break,
                Some(b"latency  ") => return Err(OpenError::OnlyText),
                _ => return Err(OpenError::Header("the places of its events are missing")),
            }
        }
        let buffer = self.read_buffer_6(&mut bytes);
        self.buffers.extend(buffer);
        Ok(())
    }

    fn read_descriptions(&mut self, bytes: &mut Bytes<'_>, begin: u64, size: usize) -> Option<()> {
        self.layout = Some(tracing_data::read_page(bytes)?);
        tracing_data::read_of_ftrace(bytes, &mut self.formats)?;
        tracing_data::read_of_systems(bytes, &mut self.formats)?;
        let symbols = bytes.u32()?;
        let offset = begin + (size - bytes.rest().len()) as u64;
        let symbols = bytes.take(usize::try_from(symbols).ok()?)?;
        self.facts.add_kernel(symbols, self.order);
        self.kallsyms = (!symbols.is_empty()).then_some(Kallsyms {
            place: Section {
                offset,
                size: symbols.len() as u64,
            },
            expanded: None,
            text: 0,
        });
        let formats_of_printk = bytes.len32()?;
        bytes.take(formats_of_printk)?;
        let names = bytes.len64()?;
        self.facts.add_names(&text(bytes.take(names)?), self.order);
        self.cpus = bytes.u32()?;
        self.system.cpus_online = Some(self.cpus);
        Some(())
    }

    fn read_options_6(&mut self, bytes: &mut Bytes<'_>) -> io::Result<Option<()>> {
        loop {
            let Some(id) = bytes.u16() else {
                return Ok(None);
            };
            if id == option::DONE {
                return Ok(Some(()));
            }
            let Some(data) = bytes.len32().and_then(|size| bytes.take(size)) else {
                return Ok(None);
            };
            match id {
                option::BUFFER => self.read_instance_6(data)?,
                _ => self.read_option(id, data),
            }
        }
    }

    /// Reads the places of the pages of the CPUs, and the clock after them.
    fn read_buffer_6(&self, bytes: &mut Bytes<'_>) -> Option<Buffer> {
        let mut buffer = Buffer::default();
        for cpu in 0..self.cpus.min(MOST_CPUS as u32) {
            buffer.cpus.push((cpu, read_places(bytes)?));
        }
        let clock = bytes.len64().and_then(|size| bytes.take(size));
        buffer.clock = clock.map(|clock| selected(&text(clock)));
        Some(buffer)
    }

    /// Reads the places of the events of a further instance of the ring buffer. The option `data` has the offset of the
    /// list of these places.
    fn read_instance_6(&mut self, data: &[u8]) -> io::Result<()> {
        let Some(offset) = Bytes::new(data, self.order).u64() else {
            return Ok(());
        };
        let places = 16 * u64::from(self.cpus.min(MOST_CPUS as u32));
        let Some(unread) = self.unread.checked_sub(places) else {
            self.damage.add(Fault::Description, offset);
            return Ok(());
        };
        self.unread = unread;
        let size = (self.source.len().saturating_sub(offset)).min(64 + places);
        let place = Section { offset, size }.read(&*self.source)?;
        let place = place.unwrap_or_default();
        let mut bytes = Bytes::new(&place, self.order);
        let buffer = (bytes.zero_terminated() == Some(b"flyrecord"))
            .then(|| self.read_buffer_6(&mut bytes))
            .flatten();
        match buffer {
            Some(buffer) => self.buffers.push(buffer),
            None => self.damage.add(Fault::Description, offset),
        }
        Ok(())
    }

    /// Reads a file of version 7. `offset` is the place of the first section with options.
    fn read_version_7(&mut self, mut offset: u64) -> Result<(), OpenError> {
        let mut has_text = false;
        for _ in 0..MOST_SECTIONS {
            let Some((options, _)) = self.section(offset)? else {
                self.damage.add(Fault::Description, offset);
                break;
            };
            let mut bytes = Bytes::new(&options, self.order);
            let mut next = None;
            while let Some((id, size)) = bytes.u16().zip(bytes.len32())
                && let Some(data) = bytes.take(size)
            {
                let place = Bytes::new(data, self.order).u64();
                match id {
                    option::DONE => {
                        next = place;
                        break;
                    }
                    option::HEADER_INFO..=option::NAMES => {
                        self.read_section(id, place.unwrap_or(u64::MAX))?;
                    }
                    option::BUFFER => match self.read_buffer_7(data) {
                        Some(buffer) => self.buffers.push(buffer),
                        None => self.damage.add(Fault::Description, offset),
                    },
                    option::TEXT => has_text = true,
                    _ => self.read_option(id, data),
                }
            }
            match next {
                Some(0) => break,
                Some(place) => offset = place,
                None => {
                    self.damage.add(Fault::Description, offset);
                    break;
                }
            }
        }
        if has_text && self.buffers.is_empty() {
            Err(OpenError::OnlyText)
        } else {
            Ok(())
        }
    }

    /// Reads a section of a file of version 7. Returns its data, and the place of the kernel's symbols if the section
    /// contains them. Returns `None` if the section is damaged, or if all sections together have more bytes than the file.
    fn section(&mut self, offset: u64) -> io::Result<Option<(Vec<u8>, Kallsyms)>> {
        let header = Section { offset, size: 16 };
        let Some(header) = header.read(&*self.source)? else {
            return Ok(None);
        };
        let mut fields = Bytes::new(&header, self.order);
        // The fields are the id, the flags, the id of the section's name, and the size.
        let flags = fields.u16().and_then(|_| fields.u16()).unwrap_or(0);
        let size = fields.u32().and_then(|_| fields.u64()).unwrap_or(0);
        let place = Section {
            offset: offset + 16,
            size,
        };
        let Some(unread) = self.unread.checked_sub(size.saturating_add(16)) else {
            return Ok(None);
        };
        self.unread = unread;
        let Some(bytes) = place.read(&*self.source)? else {
            return Ok(None);
        };
        let raw = Kallsyms {
            place,
            expanded: None,
            text: 4,
        };
        let Some(compression) = self.compression.filter(|_| flags & 1 != 0) else {
            return Ok(Some((bytes, raw)));
        };
        let mut fields = Bytes::new(&bytes, self.order);
        let Some((packed, size)) = fields.len32().zip(fields.len32()) else {
            return Ok(None);
        };
        let Some(expansion) = self.expansion.checked_sub(size as u64) else {
            return Ok(None);
        };
        self.expansion = expansion;
        let expanded = (fields.take(packed)).and_then(|data| compression.expand(data, size));
        Ok(expanded.map(|expanded| {
            let place = Section {
                offset: place.offset + 8,
                size: packed as u64,
            };
            let symbols = Kallsyms {
                place,
                expanded: Some((compression, size)),
                text: 4,
            };
            (expanded, symbols)
        }))
    }

    /// Reads the section at `offset`, to which the option `id` refers.
    fn read_section(&mut self, id: u16, offset: u64) -> io::Result<()> {
        let section = self.section(offset)?;
        let is_whole = section.and_then(|(data, symbols)| {
            let mut bytes = Bytes::new(&data, self.order);
            match id {
                option::HEADER_INFO => {
                    self.layout = Some(tracing_data::read_page(&mut bytes)?);
                    Some(())
                }
                option::FTRACE_FORMATS => {
                    tracing_data::read_of_ftrace(&mut bytes, &mut self.formats)
                }
                option::FORMATS => tracing_data::read_of_systems(&mut bytes, &mut self.formats),
                option::KALLSYMS => {
                    self.facts.add_kernel(data.get(4..)?, self.order);
                    self.kallsyms = Some(symbols);
                    Some(())
                }
                option::NAMES => {
                    let size = bytes.len64()?;
                    self.facts.add_names(&text(bytes.take(size)?), self.order);
                    Some(())
                }
                _ => Some(()),
            }
        });
        if is_whole.is_none() {
            self.damage.add(Fault::Description, offset);
        }
        Ok(())
    }

    fn read_buffer_7(&self, data: &[u8]) -> Option<Buffer> {
        let mut bytes = Bytes::new(data, self.order);
        bytes.u64()?;
        // Skips the name of the instance.
        bytes.zero_terminated()?;
        let clock = text(bytes.zero_terminated()?);
        let mut buffer = Buffer {
            clock: (!clock.is_empty()).then(|| selected(&clock)),
            page_bytes: Some(bytes.len32()?),
            cpus: Vec::new(),
        };
        let count = bytes.len32()?;
        for _ in 0..count.min(MOST_CPUS) {
            buffer.cpus.push((bytes.u32()?, read_places(&mut bytes)?));
        }
        Some(buffer)
    }

    /// Reads an option that both versions have. Ignores unknown options.
    fn read_option(&mut self, id: u16, data: &[u8]) {
        let value = || text(data).trim().to_owned();
        match id {
            option::CLOCK => self.clock = Some(selected(&value())),
            option::VERSION => self.system.recorder_version = Some(value()),
            option::CPU_COUNT => {
                self.system.cpus_online = Bytes::new(data, self.order).u32();
            }
            option::UNAME => {
                // The text contains the system, the machine's name and the release. The architecture is at its end.
                let value = value();
                let words: Vec<&str> = value.split_ascii_whitespace().collect();
                let word = |index: usize| words.get(index).map(|word| (*word).to_owned());
                self.system.host_name = word(1);
                self.system.os_release = word(2);
                self.system.architecture =
                    word(words.len().saturating_sub(1)).filter(|_| words.len() > 3);
            }
            option::DATE => {
                // The number is the time of day at the time 0 of the recording's clock, in microseconds.
                let date = value();
                let date = u64::from_str_radix(date.trim_start_matches("0x"), 16).ok();
                let unix_ns = date.and_then(|date| date.checked_mul(1000));
                self.system.wall_clock = unix_ns.map(|unix_ns| WallClock {
                    clock_ns: 0,
                    unix_ns,
                });
            }
            option::CPU_STATISTICS => {
                for line in value().lines() {
                    if let Some((key, number)) = line.split_once(':')
                        && matches!(key, "overrun" | "commit overrun" | "dropped events")
                    {
                        self.lost = (self.lost).saturating_add(number.trim().parse().unwrap_or(0));
                    }
                }
            }
            _ => {}
        }
    }

    /// Finds the events, and completes the recording.
    fn finish(mut self) -> Result<Recording, OpenError> {
        if self.formats.is_empty() {
            return Err(OpenError::NoEvents);
        }
        let buffer = self.select_buffer();
        let size = buffer.page_bytes.unwrap_or(self.page_bytes);
        let layout = self
            .layout
            .take()
            .filter(|[_, entries]| is_known_layout(entries));
        let pages = layout
            .filter(|_| size <= LARGEST_PAGE)
            .and_then(|[page, _]| Pages::new(&page, &self.formats, self.order, size));
        let pages = pages.ok_or(OpenError::Header(
            "the layout of its ring buffer is missing or unknown",
        ))?;
        let clock = clock(buffer.clock.as_ref().or(self.clock.as_ref()))?;
        let (inflated, cpus) = match self.compression {
            Some(compression) => {
                let (pages, cpus) = self.inflate(compression, &buffer.cpus)?;
                (Some(pages), cpus)
            }
            None => (None, buffer.cpus),
        };
        let mut chunks: Vec<Chunk> = self.facts.chunk().into_iter().collect();
        for (cpu, place) in cpus {
            let pages_found = match &inflated {
                Some(inflated) => self.find_pages(&pages, inflated, Part::Inflated, (cpu, place)),
                None => self.find_pages(&pages, &*self.source, Part::File, (cpu, place)),
            };
            let (of_cpu, damage) = pages_found?;
            chunks.extend(of_cpu);
            self.damage.merge(&damage);
        }
        // Pages and statistics show the same losses, but each of them can miss some.
        self.damage.lost_events = self.damage.lost_events.max(self.lost);
        let attributes: Vec<Attribute> =
            self.formats.iter().map(|it| attribute(it, clock)).collect();
        let by_id = (attributes.iter().enumerate())
            .map(|(index, attribute)| (attribute.config, index))
            .collect();
        Ok(Recording {
            source: self.source,
            inflated,
            order: self.order,
            readers: Readers::new(&attributes, &self.formats, self.order),
            attributes,
            formats: self.formats,
            by_id,
            system: self.system,
            build_ids: HashMap::new(),
            chunks,
            damage: self.damage,
            pages: Some(pages),
            facts: self.facts.bytes,
            symbols: self.kallsyms.map_or(Symbols::Missing, Symbols::InFile),
            recorder: Recorder::TraceCmd,
        })
    }

    /// Returns the instance of the ring buffer with the most bytes. The chunks of a CPU must follow each other in time,
    /// but the events of other instances cover the same time on the same CPUs. These instances are therefore skipped.
    /// Each skipped instance with events is reported as damage.
    fn select_buffer(&mut self) -> Buffer {
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.sort_by_key(|buffer| std::cmp::Reverse(buffer.size()));
        let mut buffers = buffers.into_iter();
        let selected = buffers.next().unwrap_or_default();
        for other in buffers {
            let used = |(_, place): &&(u32, Section)| place.size > 0;
            if let Some((_, place)) = other.cpus.iter().find(used) {
                self.damage.add(Fault::OtherInstance, place.offset);
            }
        }
        let mut seen = 0_u64;
        let mut cpus = selected.cpus;
        // Limits the sizes, because a damaged file can refer to the same pages many times.
        cpus.retain(|(cpu, place)| {
            seen = seen.saturating_add(place.size);
            let is_possible = seen <= self.source.len() && (*cpu as usize) < MOST_CPUS;
            if !is_possible {
                self.damage.add(Fault::CutOff, place.offset);
            }
            is_possible
        });
        Buffer { cpus, ..selected }
    }

    /// Expands the pages of CPUs. Returns the temporary file with all pages, and the places of the pages of each CPU in
    /// it.
    fn inflate(
        &mut self,
        compression: Compression,
        cpus: &[(u32, Section)],
    ) -> io::Result<(FileSource, PagesOfCpus)> {
        let mut inflated = Inflater::new(self.source.len())?;
        let mut places = Vec::new();
        for (cpu, place) in cpus {
            let offset = inflated.len();
            if let Some(fault) = self.inflate_cpu(compression, *place, &mut inflated)? {
                self.damage.add(fault, place.offset);
            }
            let size = inflated.len() - offset;
            places.push((*cpu, Section { offset, size }));
        }
        Ok((FileSource::new(inflated.finish()?)?, places))
    }

    /// Expands the pages of a CPU. The file stores the number of parts and, for each part, its size, its expanded size
    /// and its data. Returns the fault at which the expansion stopped.
    fn inflate_cpu(
        &self,
        compression: Compression,
        place: Section,
        inflated: &mut Inflater,
    ) -> io::Result<Option<Fault>> {
        // The size does not include the number of parts, which has 4 bytes.
        let end = place.offset.saturating_add(place.size).saturating_add(4);
        let mut at = place.offset;
        let numbers = |at: u64, size: u64| -> io::Result<Option<Vec<u8>>> {
            if at.checked_add(size).is_some_and(|after| after <= end) {
                Section { offset: at, size }.read(&*self.source)
            } else {
                Ok(None)
            }
        };
        if place.size == 0 {
            return Ok(None);
        }
        let Some(parts) = numbers(at, 4)? else {
            return Ok(Some(Fault::CutOff));
        };
        let parts = Bytes::new(&parts, self.order).u32().unwrap_or(0);
        at += 4;
        for _ in 0..parts {
            let Some(sizes) = numbers(at, 8)? else {
                return Ok(Some(Fault::CutOff));
            };
            let mut sizes = Bytes::new(&sizes, self.order);
            let (size, expanded) = (sizes.u32().unwrap_or(0), sizes.len32().unwrap_or(0));
            let Some(data) = numbers(at + 8, size.into())? else {
                return Ok(Some(Fault::CutOff));
            };
            at += 8 + u64::from(size);
            let is_added = match compression.expand(&data, expanded) {
                Some(pages) => inflated.add_expanded(&pages)?,
                None => false,
            };
            if !is_added {
                return Ok(Some(Fault::Decompress));
            }
        }
        Ok(None)
    }

    /// Finds the chunks of a CPU in its pages.
    fn find_pages(
        &self,
        pages: &Pages,
        source: &dyn Source,
        part: Part,
        (cpu, place): (u32, Section),
    ) -> io::Result<(Vec<Chunk>, Damage)> {
        let mut chunks = Vec::new();
        let (mut damage, mut gaps) = (Damage::default(), Gaps::default());
        let len = source.len();
        let end = place.offset.saturating_add(place.size);
        if end > len {
            damage.add(Fault::CutOff, len);
        }
        let end = end.min(len);
        let mut bytes = Vec::new();
        let mut offset = place.offset;
        while offset < end {
            let whole = CHUNK / pages.size * pages.size;
            bytes.resize(whole.min(usize::try_from(end - offset).unwrap_or(whole)), 0);
            let read = source.read_at(offset, &mut bytes)?;
            bytes.truncate(read);
            let mut chunk = Chunk {
                cpu: Some(cpu),
                offset,
                bytes: read as u32,
                records: 0,
                first_ns: None,
                last_ns: None,
                part,
            };
            for (index, page) in bytes.chunks(pages.size).enumerate() {
                let mut times_ns = None;
                let page_end = pages.read(page, &mut |time_ns, _| {
                    let (_, last_ns) = times_ns.get_or_insert((time_ns, time_ns));
                    *last_ns = time_ns;
                    chunk.records += 1;
                    chunk.first_ns = Some(chunk.first_ns.map_or(time_ns, |ns| ns.min(time_ns)));
                    chunk.last_ns = chunk.last_ns.max(Some(time_ns));
                });
                damage.lost_events = damage.lost_events.saturating_add(page_end.lost);
                // The lost events were between the last event before the page and the first event of the page.
                if let Some((first_ns, last_ns)) = times_ns {
                    gaps.add_lost(Some(cpu), first_ns, page_end.lost);
                    gaps.see(Some(cpu), last_ns);
                }
                if let Some((fault, at)) = page_end.fault {
                    damage.add(fault, offset + (index * pages.size + at) as u64);
                }
            }
            if chunk.records > 0 {
                chunks.push(chunk);
            }
            if read == 0 {
                break;
            }
            offset += read as u64;
        }
        gaps.finish(&mut damage);
        Ok((chunks, damage))
    }
}

/// Returns true if `header_event` describes entries in the form that [`Pages`] reads. Old kernels do not describe
/// `time_stamp`.
fn is_known_layout(entries: &str) -> bool {
    [
        ("padding", "29"),
        ("time_extend", "30"),
        ("time_stamp", "31"),
    ]
    .iter()
    .all(|(name, number)| {
        let line = entries
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.is_none_or(|line| line.trim_end().ends_with(number))
    })
}

/// Returns the clock for a name in the file `trace_clock`.
fn clock(name: Option<&String>) -> Result<Clock, OpenError> {
    Ok(match name.map_or("local", String::as_str) {
        "local" | "global" | "perf" => Clock::Scheduler,
        "mono" => Clock::Monotonic,
        "mono_raw" => Clock::MonotonicRaw,
        "boot" => Clock::Boot,
        // CLOCK_TAI.
        "tai" => Clock::Other(11),
        other => return Err(OpenError::Clock(other.chars().take(32).collect())),
    })
}

fn attribute(format: &Format, clock: Clock) -> Attribute {
    Attribute {
        kind: 2,
        config: format.id.into(),
        period_or_frequency: 1,
        is_frequency: false,
        name: Some(format!("{}:{}", format.system, format.name)),
        clock,
        marks_exec: false,
        layout: SampleLayout::OF_PAGES,
    }
}
