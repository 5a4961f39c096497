//! A recording: its descriptions, and the chunks of its records.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;

use files::{FileSource, Source};
use rustc_hash::FxHashMap;

use crate::attribute::Attribute;
use crate::bytes::{Bytes, Order};
use crate::chunk::{Chunk, Chunks, Part};
use crate::damage::{Damage, Fault};
use crate::error::OpenError;
use crate::event::Event;
use crate::features::{System, feature, read_build_ids, read_events};
use crate::format::{Field, FieldValue, Format};
use crate::gaps::Gaps;
use crate::header::{self, Header, Layout, Section};
use crate::inflater::Inflater;
use crate::kallsyms::Kallsyms;
use crate::record::{self, kind};
use crate::ring_buffer::Pages;
use crate::sample::Common;
use crate::text;
use crate::trace_dat;
use crate::tracepoints::Readers;
use crate::tracing_data;

/// Number of bytes that the search for records reads at once.
const WINDOW: usize = 4 << 20;

thread_local! {
    /// Bytes of the last chunk that the thread read. The next chunk uses the same memory: new memory of the system would
    /// cost as much time as the copy of the chunk.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Returns true if a source is a recording of perf or trace-cmd, or the text of such a recording.
///
/// # Errors
/// Returns an error if the source cannot be read.
pub fn is_recording(source: &dyn Source) -> io::Result<bool> {
    let mut first = [0; 8];
    let read = source.read_at(0, &mut first)?;
    let is_binary =
        header::order(&first[..read]).is_some() || trace_dat::is_recording(&first[..read]);
    Ok(is_binary || text::is_text(source)?)
}

/// A recording of the Linux kernel.
pub struct Recording {
    pub(crate) source: Box<dyn Source>,
    /// Expanded records. `None` if the recording has no compressed records.
    pub(crate) inflated: Option<FileSource>,
    pub(crate) order: Order,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) formats: Vec<Format>,
    pub(crate) readers: Readers,
    /// Index in `attributes` of the event with a given id. Samples contain this id.
    pub(crate) by_id: FxHashMap<u64, usize>,
    pub(crate) system: System,
    /// Build ids of files by path.
    pub(crate) build_ids: HashMap<String, Vec<u8>>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) damage: Damage,
    /// Layout of the pages of a recording of trace-cmd; `None` if the recording consists of records.
    pub(crate) pages: Option<Pages>,
    /// Records of [`Part::Facts`].
    pub(crate) facts: Vec<u8>,
    pub(crate) symbols: Symbols,
    pub(crate) recorder: Recorder,
}

/// Symbols of the kernel in a recording.
pub(crate) enum Symbols {
    /// The recording has no symbols.
    Missing,
    /// The file of the recording contains them. Only trace-cmd stores them.
    InFile(Kallsyms),
    /// The names of functions in a text, in the form of `/proc/kallsyms`.
    OfText(Vec<u8>),
}

/// Program that made a recording, or form of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// `perf record`, or a program that writes the same form.
    Perf,
    /// `trace-cmd record`.
    TraceCmd,
    /// Unknown: the file is the text of events. The kernel, `trace-cmd report` and `perf script` print such a text.
    Text,
}

impl Recorder {
    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Recorder::Perf => "perf",
            Recorder::TraceCmd => "trace-cmd",
            Recorder::Text => "text of events",
        }
    }

    /// Returns the name of the format in which the program stores events.
    pub fn event_form(self) -> &'static str {
        match self {
            Recorder::Perf => "PERF_RECORD_SAMPLE",
            Recorder::TraceCmd => "ring_buffer_event",
            Recorder::Text => "text",
        }
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("system", &self.system)
            .field("chunks", &self.chunks.len())
            .field("damage", &self.damage)
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// Opens a recording: reads its descriptions and finds its chunks. For this, reads through all records once.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, if it is not a recording, if it describes no event, or if its
    /// compressed records cannot be expanded into a temporary file. Other faults are in [`Recording::damage`].
    pub fn open(source: Box<dyn Source>) -> Result<Recording, OpenError> {
        let mut first = vec![0; header::SIZE];
        let read = source.read_at(0, &mut first)?;
        if trace_dat::is_recording(&first[..read]) {
            return trace_dat::open(source);
        }
        if header::order(&first[..read]).is_none() && text::is_text(&*source)? {
            return text::open(source);
        }
        let header = Header::read(&first[..read])?;
        let mut opening = Opening {
            source: &*source,
            order: header.order,
            attributes: Vec::new(),
            formats: Vec::new(),
            by_id: FxHashMap::default(),
            system: System::default(),
            build_ids: HashMap::new(),
            chunks: Chunks::default(),
            damage: Damage::default(),
            gaps: Gaps::default(),
            inflated: None,
        };
        let data = match header.layout {
            Layout::Stream => Section {
                offset: 16,
                size: 0,
            },
            Layout::File {
                attribute_size,
                attributes,
                data,
                features,
            } => {
                opening.read_attributes(attributes, attribute_size)?;
                opening.read_features(data, &features)?;
                data
            }
        };
        opening.find_records(&*source, data)?;
        let inflated = opening.find_inflated()?;
        let Opening {
            order,
            attributes,
            formats,
            by_id,
            system,
            build_ids,
            chunks,
            mut damage,
            gaps,
            ..
        } = opening;
        gaps.finish(&mut damage);
        if attributes.is_empty() {
            return Err(OpenError::NoEvents);
        }
        Ok(Recording {
            order,
            readers: Readers::new(&attributes, &formats, order),
            attributes,
            formats,
            by_id,
            system,
            build_ids,
            chunks: chunks.all,
            damage,
            inflated,
            source,
            pages: None,
            facts: Vec::new(),
            symbols: Symbols::Missing,
            recorder: Recorder::Perf,
        })
    }

    /// Returns the program that made the recording.
    pub fn recorder(&self) -> Recorder {
        self.recorder
    }

    /// Reads the kernel's symbols, in the form of `/proc/kallsyms`. Returns `None` if the recording has none, or if
    /// they are damaged.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn kernel_symbols(&self) -> io::Result<Option<Vec<u8>>> {
        match &self.symbols {
            Symbols::Missing => Ok(None),
            Symbols::InFile(symbols) => symbols.read(&*self.source),
            Symbols::OfText(symbols) => Ok(Some(symbols.clone())),
        }
    }

    /// Returns the facts about the recorded machine.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the build ids of mapped files by path. Events of the kind
    /// [`EventKind::Mapped`](crate::EventKind::Mapped) can have further build ids.
    pub fn build_ids(&self) -> &HashMap<String, Vec<u8>> {
        &self.build_ids
    }

    /// Returns the descriptions of the kinds of recorded events.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns true if [`EventKind::Name`](crate::EventKind::Name) states whether the process started a new program.
    /// Kernels before 3.16 do not record this.
    pub fn marks_exec(&self) -> bool {
        self.attributes.iter().any(|it| it.marks_exec)
    }

    /// Returns the layouts of tracepoints.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Returns the chunks in file order. The chunks of compressed records come last. A recording of trace-cmd has
    /// another order: the chunk with the facts, and then the chunks of each CPU.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Returns the losses that the kernel reported, and the faults that were found when the recording was opened.
    /// [`Recording::read`] returns the faults inside the records.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the size of the recording in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.source.len()
    }

    /// Calls `each` with the events of a chunk, in file order. Returns the faults of the chunk.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn read(&self, chunk: &Chunk, each: &mut dyn FnMut(&Event<'_>)) -> io::Result<Damage> {
        let mut damage = Damage::default();
        let mut bytes = BUFFER.take();
        let read = self.read_into(chunk, &mut bytes);
        if read.is_ok() {
            self.read_bytes(chunk, &bytes, &mut damage, &mut |_, event| each(event));
        }
        BUFFER.set(bytes);
        read.map(|()| damage)
    }

    /// Calls `each` with the events in the bytes of a chunk and their places, in file order. Adds faults to `damage`.
    pub(crate) fn read_bytes(
        &self,
        chunk: &Chunk,
        bytes: &[u8],
        damage: &mut Damage,
        each: &mut dyn FnMut(usize, &Event<'_>),
    ) {
        let mut at = 0;
        while let Some((record, after)) = self.record_at(bytes, at) {
            let offset = chunk.offset + at as u64;
            // A reference: moving an event would copy hundreds of bytes.
            match &self.event(record, offset) {
                Ok(Some(event)) => each(at, event),
                Ok(None) => {}
                Err(fault) => damage.add(*fault, offset),
            }
            at = after;
        }
        if self.ends_early(chunk, bytes, at) {
            damage.add(Fault::CutOff, chunk.offset + at as u64);
        }
    }

    /// Replaces the contents of `bytes` by the records of a chunk, as far as the file has them.
    pub(crate) fn read_into(&self, chunk: &Chunk, bytes: &mut Vec<u8>) -> io::Result<()> {
        if chunk.part == Part::Facts {
            bytes.clone_from(&self.facts);
            return Ok(());
        }
        bytes.resize(chunk.bytes as usize, 0);
        let read = match (chunk.part, &self.inflated) {
            (Part::Inflated, Some(inflated)) => inflated.read_at(chunk.offset, bytes)?,
            _ => self.source.read_at(chunk.offset, bytes)?,
        };
        bytes.truncate(read);
        if let (Some(pages), Some(cpu)) = (&self.pages, chunk.cpu) {
            *bytes = pages.records(bytes, cpu);
        }
        Ok(())
    }

    /// Returns true if the last record of a chunk ends before the end of the chunk. `at` is the end of this record.
    fn ends_early(&self, chunk: &Chunk, bytes: &[u8], at: usize) -> bool {
        at < bytes.len() || self.pages.is_none() && at < chunk.bytes as usize
    }

    /// Returns the record at a place of a chunk, and the place after it; `None` if there is no whole record.
    pub(crate) fn record_at<'b>(
        &self,
        bytes: &'b [u8],
        at: usize,
    ) -> Option<((record::Header, &'b [u8]), usize)> {
        let rest = bytes.get(at..)?;
        let header = record::Header::read(rest, self.order)?;
        let record = rest.get(..header.size.max(record::HEADER))?;
        Some(((header, &record[record::HEADER..]), at + record.len()))
    }

    /// Returns the layout of an event; `None` if the event is no tracepoint, or if the recording does not describe it.
    pub fn format_of(&self, attribute: &Attribute) -> Option<&Format> {
        let is_it = |format: &&Format| u64::from(format.id) == attribute.config;
        let mut formats = self.formats.iter();
        formats.find(is_it).filter(|_| attribute.is_tracepoint())
    }

    /// Returns the value of a field in a tracepoint's data; `None` if the data is too short.
    pub fn value<'d>(&self, field: &Field, data: &'d [u8]) -> Option<FieldValue<'d>> {
        field.value(data, self.order)
    }

    /// Reads a record: its header and the bytes after the header. Returns `None` if the record is not an event.
    pub(crate) fn event<'r>(
        &'r self,
        (header, body): (record::Header, &'r [u8]),
        offset: u64,
    ) -> Result<Option<Event<'r>>, Fault> {
        let order = self.order;
        if header.kind != kind::SAMPLE {
            let layout = &self.attributes[0].layout;
            let common = layout.read_trailer(body, order);
            let contents = body.len().saturating_sub(layout.trailer_size());
            let event = Event::read(header, &body[..contents], common, offset, order);
            return event.ok_or(Fault::ShortRecord);
        }
        let attribute = attribute_of(&self.attributes, &self.by_id, body, order);
        let attribute = attribute.ok_or(Fault::UnknownEvent)?;
        let source = &self.attributes[attribute];
        let sample = source.layout.read(body, order).ok_or(Fault::ShortRecord)?;
        let tracepoint = if source.is_tracepoint() {
            let tracepoint = self.readers.read(attribute, sample.raw);
            Some(tracepoint.ok_or(Fault::UnknownEvent)?)
        } else {
            None
        };
        let place = (offset, header.size as u16);
        Ok(Some(Event::of_sample(
            &sample, attribute, tracepoint, place, order,
        )))
    }
}

/// Returns the index in `attributes` of the event to which a sample belongs. `body` is the record of the sample
/// without its header. Returns `None` if the id in the sample belongs to no event.
fn attribute_of(
    attributes: &[Attribute],
    by_id: &FxHashMap<u64, usize>,
    body: &[u8],
    order: Order,
) -> Option<usize> {
    let layout = &attributes.first()?.layout;
    match layout.identifier(body, order) {
        Some(id) => match by_id.get(&id) {
            Some(attribute) => Some(*attribute),
            // If a recording has only one event, it may have no list of ids.
            None => (attributes.len() == 1).then_some(0),
        },
        None => Some(0),
    }
}

/// State of a recording while it is being opened.
struct Opening<'s> {
    source: &'s dyn Source,
    order: Order,
    attributes: Vec<Attribute>,
    formats: Vec<Format>,
    by_id: FxHashMap<u64, usize>,
    system: System,
    build_ids: HashMap<String, Vec<u8>>,
    chunks: Chunks,
    damage: Damage,
    gaps: Gaps,
    inflated: Option<Inflater>,
}

impl Opening<'_> {
    /// Reads a section. If the section is too large or ends after the end of the file, adds a fault and returns `None`.
    fn known_section(&mut self, section: Section) -> io::Result<Option<Vec<u8>>> {
        let bytes = section.read(self.source)?;
        if bytes.is_none() {
            self.damage.add(Fault::Description, section.offset);
        }
        Ok(bytes)
    }

    /// Adds an event. Its samples contain one of the numbers in `ids`, unless the recording has only one event.
    fn add_attribute(&mut self, attribute: Attribute, ids: &[u8]) {
        let index = self.attributes.len();
        let mut ids = Bytes::new(ids, self.order);
        (self.by_id).extend(std::iter::from_fn(|| ids.u64()).map(|id| (id, index)));
        self.attributes.push(attribute);
    }

    /// Reads the descriptions of events in `section`. The size of each entry is `size` bytes: a `perf_event_attr` and
    /// the place of its ids.
    fn read_attributes(&mut self, section: Section, size: u64) -> io::Result<()> {
        let Some(bytes) = self.known_section(section)? else {
            return Ok(());
        };
        // The lists of ids do not overlap, so all of them together are smaller than the file.
        let mut left = self.source.len();
        let size = usize::try_from(size).ok().filter(|size| *size > 16);
        let entries = size.map(|size| (size, bytes.chunks_exact(size)));
        for entry in entries.into_iter().flat_map(|(_, entries)| entries) {
            let (attribute, ids) = entry.split_at(entry.len() - 16);
            let Some((attribute, _)) = Attribute::read(attribute, self.order) else {
                self.damage.add(Fault::Description, section.offset);
                continue;
            };
            let mut ids = Bytes::new(ids, self.order);
            let place = ids.u64().zip(ids.u64());
            let (offset, size) = place.unwrap_or_default();
            let ids = match left.checked_sub(size) {
                Some(rest) => {
                    left = rest;
                    self.known_section(Section { offset, size })?
                }
                None => {
                    self.damage.add(Fault::Description, offset);
                    None
                }
            };
            self.add_attribute(attribute, &ids.unwrap_or_default());
        }
        Ok(())
    }

    /// Reads the feature sections with the numbers `features`. The list of their places follows the section `data`.
    fn read_features(&mut self, data: Section, features: &[u32]) -> io::Result<()> {
        // If `perf` was killed, it did not complete the file: the header states a data size of 0, and there are
        // no feature sections.
        if data.size == 0 {
            self.damage.add(Fault::Killed, self.source.len());
            return Ok(());
        }
        let places = Section {
            offset: data.offset.saturating_add(data.size),
            size: 16 * features.len() as u64,
        };
        let len = self.source.len();
        let is_in_file = |section: Section| {
            section.size == 0 || section.offset.saturating_add(section.size) <= len
        };
        if !is_in_file(places) {
            self.damage.add(Fault::NoDescriptions, len);
            return Ok(());
        }
        let Some(places) = self.known_section(places)? else {
            return Ok(());
        };
        let mut places = Bytes::new(&places, self.order);
        let mut is_cut_off = false;
        for number in features {
            let Some((offset, size)) = places.u64().zip(places.u64()) else {
                break;
            };
            let is_used = !matches!(number, 0 | 9 | 13..=28 | 30..);
            let place = Section { offset, size };
            if !is_in_file(place) {
                is_cut_off = true;
            } else if is_used && let Some(section) = self.known_section(place)? {
                self.read_feature(*number, &section, offset);
            }
        }
        if is_cut_off {
            self.damage.add(Fault::NoDescriptions, len);
        }
        Ok(())
    }

    fn read_feature(&mut self, number: u32, section: &[u8], offset: u64) {
        let is_whole = match number {
            _ if section.is_empty() => true,
            feature::TRACING_DATA => {
                let (formats, is_whole) = tracing_data::read(section, self.order);
                self.formats.extend(formats);
                is_whole
            }
            feature::EVENTS => match read_events(section, self.order) {
                Some(described) => {
                    self.name_attributes(described);
                    true
                }
                None => false,
            },
            feature::BUILD_IDS => {
                read_build_ids(section, self.order, &mut self.build_ids).is_some()
            }
            _ => self.system.read(number, section, self.order),
        };
        if !is_whole {
            self.damage.add(Fault::Description, offset);
        }
    }

    /// Copies the names of events from `described`, the list in a feature section. The list at the start of the file
    /// has no names.
    fn name_attributes(&mut self, described: Vec<Attribute>) {
        for (attribute, described) in self.attributes.iter_mut().zip(described) {
            if (attribute.kind, attribute.config) == (described.kind, described.config) {
                attribute.name = described.name;
            }
        }
    }

    /// Finds the records in the expanded data. Returns the source of this data. Returns `None` if the recording has
    /// no compressed records.
    fn find_inflated(&mut self) -> io::Result<Option<FileSource>> {
        let Some(inflated) = self.inflated.take() else {
            return Ok(None);
        };
        let source = FileSource::new(inflated.finish()?)?;
        self.chunks.begin(Part::Inflated);
        self.find_records(&source, Section { offset: 0, size: 0 })?;
        Ok(Some(source))
    }

    /// Finds all records in the section `data` of `source` and adds them to the chunks. If the size of the section is
    /// 0, the section extends to the end of the source.
    fn find_records(&mut self, source: &dyn Source, data: Section) -> io::Result<()> {
        let len = source.len();
        let end = match data.size {
            0 => len,
            size => data.offset.saturating_add(size),
        };
        if end > len {
            self.damage.add(Fault::CutOff, len);
        }
        let end = end.min(len);
        let mut window = Vec::new();
        let mut at = data.offset;
        while at < end {
            let size = WINDOW.min(usize::try_from(end - at).unwrap_or(WINDOW));
            window.resize(size, 0);
            let read = source.read_at(at, &mut window)?;
            let is_last = at + read as u64 >= end || read < size;
            let used = self.find_in(&window[..read], at, is_last)?;
            let Some(used) = used.filter(|used| *used > 0) else {
                break;
            };
            at += used;
            if is_last && at >= end {
                break;
            }
        }
        Ok(())
    }

    /// Finds the records in `part`, which begins at `offset` of the source. Returns the distance in bytes from
    /// `offset` to the next unread record. If the additional data of a record extends past the end of `part`, the
    /// distance exceeds the length of `part`. Returns `None` if no more records can be found.
    fn find_in(&mut self, part: &[u8], offset: u64, is_last: bool) -> io::Result<Option<u64>> {
        let mut used = 0_usize;
        loop {
            let rest = &part[used..];
            let at = offset + used as u64;
            let Some(header) = record::Header::read(rest, self.order) else {
                if is_last && !rest.is_empty() {
                    self.damage.add(Fault::CutOff, at);
                }
                return Ok((!is_last).then_some(used as u64));
            };
            if header.size < record::HEADER {
                self.damage.add(Fault::RecordSize, at);
                return Ok(None);
            }
            let Some(record) = rest.get(..header.size) else {
                if is_last {
                    self.damage.add(Fault::CutOff, at);
                }
                return Ok((!is_last).then_some(used as u64));
            };
            used += record.len();
            let data_after = self.take(header, &record[record::HEADER..], at)?;
            if data_after > 0 {
                return Ok((used as u64).checked_add(data_after));
            }
        }
    }

    /// Processes one record. Returns the number of bytes of additional data that follow the record.
    fn take(&mut self, header: record::Header, body: &[u8], offset: u64) -> io::Result<u64> {
        if header.kind >= kind::FIRST_OF_PERF {
            return self.take_of_perf(header.kind, body, offset);
        }
        let common = match header.kind {
            kind::SAMPLE => attribute_of(&self.attributes, &self.by_id, body, self.order)
                .and_then(|it| self.attributes[it].layout.read_common(body, self.order)),
            _ => self
                .attributes
                .first()
                .map(|it| it.layout.read_trailer(body, self.order)),
        };
        let mut fields = Bytes::new(body, self.order);
        // If the common fields cannot be read, no fault is added here. The fault is reported when the chunk is read.
        let Common { time_ns, cpu, .. } = common.unwrap_or_default();
        let time_ns = time_ns.filter(|time_ns| *time_ns != 0);
        let cpu = cpu.filter(|_| time_ns.is_some());
        match header.kind {
            kind::LOST => self.add_lost(cpu, time_ns, fields.u64().and_then(|_| fields.u64())),
            kind::LOST_SAMPLES => self.add_lost(cpu, time_ns, fields.u64()),
            kind::THROTTLE | kind::UNTHROTTLE => {
                let is_end = header.kind == kind::UNTHROTTLE;
                self.damage.throttled += u64::from(!is_end);
                // The fields are the time, the id and the number of the event.
                let mut numbers = [fields.u64(), fields.u64(), fields.u64()].into_iter();
                if let (Some(Some(time_ns)), Some(Some(event))) = (numbers.next(), numbers.nth(1)) {
                    self.gaps.add_throttle(event, cpu, time_ns, is_end);
                }
            }
            _ => {}
        }
        if let Some(time_ns) = time_ns {
            self.gaps.see(cpu, time_ns);
        }
        if !(self.chunks).add(cpu, time_ns, offset, header.size as u32) {
            self.damage.add(Fault::Scattered, offset);
        }
        Ok(0)
    }

    fn add_lost(&mut self, cpu: Option<u32>, time_ns: Option<u64>, count: Option<u64>) {
        let count = count.unwrap_or(0);
        self.damage.lost_events = self.damage.lost_events.saturating_add(count);
        // Records without a time are sums that perf itself made.
        if let Some(time_ns) = time_ns {
            self.gaps.add_lost(cpu, time_ns, count);
        }
    }

    /// Processes a record of a kind that perf defines. Returns the number of bytes of additional data that follow the
    /// record.
    fn take_of_perf(&mut self, kind: u32, body: &[u8], offset: u64) -> io::Result<u64> {
        let mut bytes = Bytes::new(body, self.order);
        self.chunks.close();
        // perf compresses only records of the kernel.
        if self.chunks.part() == Part::Inflated {
            self.damage.add(Fault::Unsupported, offset);
            return Ok(0);
        }
        match kind {
            kind::ATTRIBUTE => match Attribute::read(body, self.order) {
                Some((attribute, size)) => self.add_attribute(attribute, &body[size..]),
                None => self.damage.add(Fault::Description, offset),
            },
            kind::FEATURE => {
                if let Some(number) = bytes.u64() {
                    let number = u32::try_from(number).unwrap_or(u32::MAX);
                    self.read_feature(number, bytes.rest(), offset);
                }
            }
            kind::TRACING_DATA => {
                let size: u64 = bytes.u32().unwrap_or(0).into();
                let place = Section {
                    offset: offset + (record::HEADER + body.len()) as u64,
                    size,
                };
                if let Some(section) = self.known_section(place)? {
                    self.read_feature(feature::TRACING_DATA, &section, place.offset);
                }
                return Ok(size.next_multiple_of(8));
            }
            kind::AUX_TRACE => {
                self.damage.add(Fault::Unsupported, offset);
                return Ok(bytes.u64().unwrap_or(0));
            }
            kind::COMPRESSED => self.inflate(body, offset)?,
            kind::COMPRESSED_2 => {
                // This kind of record states the size of its data, because padding follows the data.
                let size = bytes.len64().filter(|size| *size > 0);
                match size.and_then(|size| bytes.take(size)) {
                    Some(data) => self.inflate(data, offset)?,
                    None => self.damage.add(Fault::Decompress, offset),
                }
            }
            _ => {}
        }
        Ok(0)
    }

    /// Expands the data of a compressed record.
    fn inflate(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        let inflated = match &mut self.inflated {
            Some(inflated) => inflated,
            none => none.insert(Inflater::new(self.source.len())?),
        };
        if !inflated.add(data)? {
            self.damage.add(Fault::Decompress, offset);
        }
        Ok(())
    }
}
