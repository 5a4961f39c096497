//! A recording: its descriptions, and the places of its records.

use std::collections::HashMap;
use std::io;

use etl::{FileSource, Source};

use crate::attribute::Attribute;
use crate::bytes::{Bytes, Order};
use crate::chunk::{Chunk, Chunks, Part};
use crate::damage::{Damage, Fault};
use crate::error::OpenError;
use crate::event::Event;
use crate::features::{System, feature, read_events};
use crate::format::Format;
use crate::header::{self, Header, Layout, Section};
use crate::inflated::Inflated;
use crate::record::{self, kind};
use crate::sample::Common;
use crate::tracepoints::Readers;
use crate::tracing_data;

/// Largest feature section that is read. Descriptions of all tracepoints of a kernel have about 3 MB.
const LARGEST_SECTION: u64 = 64 << 20;

/// Bytes that are read at once while records are searched.
const WINDOW: usize = 4 << 20;

/// Returns true if a file begins like a recording of perf.
pub fn is_recording(first: &[u8]) -> bool {
    header::order(first).is_some()
}

/// A recording of the Linux kernel.
pub struct Recording {
    source: Box<dyn Source>,
    /// Expanded records, if some are compressed.
    inflated: Option<FileSource>,
    order: Order,
    attributes: Vec<Attribute>,
    formats: Vec<Format>,
    readers: Readers,
    /// Index in `attributes` by the id of a record.
    by_id: HashMap<u64, usize>,
    system: System,
    chunks: Vec<Chunk>,
    damage: Damage,
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
    /// Opens a recording: reads its descriptions and finds its chunks. All records' headers are read.
    ///
    /// # Errors
    /// If the source cannot be read, is no recording, or describes no event, and if compressed records cannot be
    /// expanded into a temporary file. Other faults are in [`Recording::damage`].
    pub fn open(source: Box<dyn Source>) -> Result<Recording, OpenError> {
        let mut first = vec![0; header::SIZE];
        let read = source.read_at(0, &mut first)?;
        let header = Header::read(&first[..read])?;
        let mut opening = Opening {
            source: &*source,
            order: header.order,
            attributes: Vec::new(),
            formats: Vec::new(),
            by_id: HashMap::new(),
            system: System::default(),
            chunks: Chunks::default(),
            damage: Damage::default(),
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
            chunks,
            damage,
            ..
        } = opening;
        if attributes.is_empty() {
            return Err(OpenError::NoEvents);
        }
        Ok(Recording {
            order,
            readers: Readers::new(&formats, order),
            attributes,
            formats,
            by_id,
            system,
            chunks: chunks.all,
            damage,
            inflated,
            source,
        })
    }

    /// Returns the facts about the recorded machine.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the recorded events.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns the layouts of tracepoints.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Returns the chunks in the order of the file.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Returns the losses that the kernel reported, and the faults that were found in the descriptions and in the
    /// headers of the records.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the size of the recording in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.source.len()
    }

    /// Passes the events of a chunk to `each`, in the order of the file. Returns the faults of the chunk.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn read(&self, chunk: &Chunk, each: &mut dyn FnMut(&Event<'_>)) -> io::Result<Damage> {
        let mut bytes = vec![0; chunk.bytes as usize];
        let read = match (chunk.part, &self.inflated) {
            (Part::Inflated, Some(inflated)) => inflated.read_at(chunk.offset, &mut bytes)?,
            _ => self.source.read_at(chunk.offset, &mut bytes)?,
        };
        let mut damage = Damage::default();
        let mut rest = &bytes[..read];
        let mut offset = chunk.offset;
        while let Some(header) = record::Header::read(rest, self.order) {
            let Some((record, after)) = rest.split_at_checked(header.size.max(record::HEADER))
            else {
                break;
            };
            let body = &record[record::HEADER..];
            match self.event(header, body, offset) {
                Ok(Some(event)) => each(&event),
                Ok(None) => {}
                Err(fault) => damage.add(fault, offset),
            }
            offset += record.len() as u64;
            rest = after;
        }
        if offset < chunk.offset + u64::from(chunk.bytes) {
            damage.add(Fault::CutOff, offset);
        }
        Ok(damage)
    }

    fn event<'r>(
        &self,
        header: record::Header,
        body: &'r [u8],
        offset: u64,
    ) -> Result<Option<Event<'r>>, Fault> {
        let order = self.order;
        if header.kind != kind::SAMPLE {
            let layout = self.attributes[0].layout;
            let common = layout.read_trailer(body, order);
            let contents = body.len().saturating_sub(layout.trailer_size());
            let event = Event::read(header, &body[..contents], common, offset, order);
            return event.ok_or(Fault::ShortRecord);
        }
        let attribute = attribute_of(&self.attributes, &self.by_id, body, order);
        let attribute = attribute.ok_or(Fault::UnknownEvent)?;
        let of = &self.attributes[attribute];
        let sample = of.layout.read(body, order).ok_or(Fault::ShortRecord)?;
        let tracepoint = match of.is_tracepoint() {
            true => {
                let tracepoint = self.readers.read(of.config, sample.raw);
                Some(tracepoint.ok_or(Fault::UnknownEvent)?)
            }
            false => None,
        };
        let place = (offset, header.size as u16);
        Ok(Some(Event::of_sample(
            &sample, attribute, tracepoint, place, order,
        )))
    }
}

/// Returns the index of a sample's event.
fn attribute_of(
    attributes: &[Attribute],
    by_id: &HashMap<u64, usize>,
    body: &[u8],
    order: Order,
) -> Option<usize> {
    let layout = attributes.first()?.layout;
    match layout.identifier(body, order) {
        Some(id) => match by_id.get(&id) {
            Some(attribute) => Some(*attribute),
            // A recording with one event may have no list of ids.
            None => (attributes.len() == 1).then_some(0),
        },
        None => Some(0),
    }
}

/// A recording while it is opened.
struct Opening<'s> {
    source: &'s dyn Source,
    order: Order,
    attributes: Vec<Attribute>,
    formats: Vec<Format>,
    by_id: HashMap<u64, usize>,
    system: System,
    chunks: Chunks,
    damage: Damage,
    inflated: Option<Inflated>,
}

impl Opening<'_> {
    /// Reads a section; `None` if it is too large or beyond the end of the file.
    fn section(&self, section: Section) -> io::Result<Option<Vec<u8>>> {
        let end = section.offset.checked_add(section.size);
        if section.size > LARGEST_SECTION || end.is_none_or(|end| end > self.source.len()) {
            return Ok(None);
        }
        let mut bytes = vec![0; section.size as usize];
        let read = self.source.read_at(section.offset, &mut bytes)?;
        Ok((read == bytes.len()).then_some(bytes))
    }

    /// Reads a section or reports it as damaged.
    fn known_section(&mut self, section: Section) -> io::Result<Option<Vec<u8>>> {
        let bytes = self.section(section)?;
        if bytes.is_none() {
            self.damage.add(Fault::Description, section.offset);
        }
        Ok(bytes)
    }

    fn add_attribute(&mut self, attribute: Attribute) {
        let index = self.attributes.len();
        self.by_id
            .extend(attribute.ids.iter().map(|id| (*id, index)));
        self.attributes.push(attribute);
    }

    /// Reads the descriptions of events at the beginning of a file.
    fn read_attributes(&mut self, section: Section, size: u64) -> io::Result<()> {
        let Some(bytes) = self.known_section(section)? else {
            return Ok(());
        };
        let size = usize::try_from(size).ok().filter(|size| *size > 16);
        let entries = size.map(|size| (size, bytes.chunks_exact(size)));
        for entry in entries.into_iter().flat_map(|(_, entries)| entries) {
            let (attribute, ids) = entry.split_at(entry.len() - 16);
            let Some((mut attribute, _)) = Attribute::read(attribute, self.order) else {
                self.damage.add(Fault::Description, section.offset);
                continue;
            };
            let mut ids = Bytes::new(ids, self.order);
            let place = ids.u64().zip(ids.u64());
            let place = place.map(|(offset, size)| Section { offset, size });
            if let Some(place) = place
                && let Some(ids) = self.known_section(place)?
            {
                let mut ids = Bytes::new(&ids, self.order);
                attribute.ids = std::iter::from_fn(|| ids.u64()).collect();
            }
            self.add_attribute(attribute);
        }
        Ok(())
    }

    /// Reads the feature sections, whose places follow the data.
    fn read_features(&mut self, data: Section, features: &[u32]) -> io::Result<()> {
        // A recording without an end has no size and no features.
        if data.size == 0 {
            self.damage.add(Fault::CutOff, self.source.len());
            return Ok(());
        }
        let places = Section {
            offset: data.offset.saturating_add(data.size),
            size: 16 * features.len() as u64,
        };
        let Some(places) = self.known_section(places)? else {
            return Ok(());
        };
        let mut places = Bytes::new(&places, self.order);
        for number in features {
            let Some((offset, size)) = places.u64().zip(places.u64()) else {
                break;
            };
            let is_used = !matches!(number, 0 | 2 | 9 | 13..=28 | 30..);
            let place = Section { offset, size };
            if is_used && let Some(section) = self.known_section(place)? {
                self.read_feature(*number, &section, offset);
            }
        }
        Ok(())
    }

    fn read_feature(&mut self, number: u32, section: &[u8], offset: u64) {
        let is_whole = match number {
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
            _ => self.system.read(number, section, self.order),
        };
        if !is_whole {
            self.damage.add(Fault::Description, offset);
        }
    }

    /// Takes the names from the second list of events.
    fn name_attributes(&mut self, described: Vec<Attribute>) {
        for (attribute, described) in self.attributes.iter_mut().zip(described) {
            if (attribute.kind, attribute.config) == (described.kind, described.config) {
                attribute.name = described.name;
            }
        }
    }

    /// Finds the records that were compressed. Returns them; `None` if there are none.
    fn find_inflated(&mut self) -> io::Result<Option<FileSource>> {
        let Some(inflated) = self.inflated.take() else {
            return Ok(None);
        };
        let source = FileSource::new(inflated.finish()?)?;
        self.chunks.begin(Part::Inflated);
        self.find_records(&source, Section { offset: 0, size: 0 })?;
        Ok(Some(source))
    }

    /// Reads the headers of all records of a source and makes chunks of them.
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

    /// Finds the records in a part of the data. Returns the number of used bytes, which may be larger than the
    /// part; `None` if no more records can be found.
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

    /// Takes a record. Returns the number of bytes that follow it and belong to it.
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
        let lost = match header.kind {
            kind::LOST => fields.u64().and_then(|_| fields.u64()),
            kind::LOST_SAMPLES => fields.u64(),
            kind::THROTTLE => {
                self.damage.throttled += 1;
                None
            }
            _ => None,
        };
        let lost_events = self.damage.lost_events.saturating_add(lost.unwrap_or(0));
        self.damage.lost_events = lost_events;
        // The record is read again with its chunk, and a fault is reported then.
        let Common { time_ns, cpu, .. } = common.unwrap_or_default();
        let time_ns = time_ns.filter(|time_ns| *time_ns != 0);
        let cpu = cpu.filter(|_| time_ns.is_some());
        self.chunks.add(cpu, time_ns, offset, header.size as u32);
        Ok(0)
    }

    /// Takes a record that perf itself wrote. Returns the number of bytes that follow it and belong to it.
    fn take_of_perf(&mut self, kind: u32, body: &[u8], offset: u64) -> io::Result<u64> {
        let mut bytes = Bytes::new(body, self.order);
        self.chunks.close();
        match kind {
            kind::ATTRIBUTE => match Attribute::read(body, self.order) {
                Some((mut attribute, size)) => {
                    let mut ids = Bytes::new(&body[size..], self.order);
                    attribute.ids = std::iter::from_fn(|| ids.u64()).collect();
                    self.add_attribute(attribute);
                }
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
                // The size excludes padding.
                let data = bytes.len64().and_then(|size| bytes.take(size));
                self.inflate(data.unwrap_or_default(), offset)?;
            }
            _ => {}
        }
        Ok(0)
    }

    /// Expands the data of a compressed record.
    fn inflate(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        let inflated = match (&mut self.inflated, self.chunks.part()) {
            (Some(inflated), _) => inflated,
            // Compressed records are not compressed twice.
            (None, Part::Inflated) => {
                self.damage.add(Fault::Unsupported, offset);
                return Ok(());
            }
            (none, Part::File) => none.insert(Inflated::new(self.source.len())?),
        };
        if !inflated.add(data)? {
            self.damage.add(Fault::Decompress, offset);
        }
        Ok(())
    }
}
