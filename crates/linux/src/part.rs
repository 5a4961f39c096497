//! Writer of a part of a recording of perf. The part is itself a recording.

use std::io::{self, Seek, SeekFrom, Write};
use std::ops::RangeInclusive;

use crate::bytes::{Bytes, Order};
use crate::error::OpenError;
use crate::header::{self, Header, Layout, Section};
use crate::record::{self, kind};
use crate::recording::{Recorder, Recording};

/// Offset in bytes of the size of the records in the header of a file.
const DATA_SIZE: u64 = 48;
/// Offset in bytes of the bits of feature sections in the header of a file.
const FEATURES: u64 = 72;

/// Numbers of feature sections that do not apply to a part: places of hardware traces (18), times of the first and last
/// sample (21), parts in several files (24) and compression (27).
const NOT_OF_PARTS: [u32; 4] = [18, 21, 24, 27];

/// Numbers of records of a written part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenCounts {
    /// Number of records of the whole recording, without records of kinds that the program perf defines.
    pub read: u64,
    /// Number of written samples.
    pub samples: u64,
    /// Number of other written records: names, starts, ends and mappings up to the end of the time range, and switches,
    /// losses and throttling within the time range.
    pub others: u64,
}

/// Reason why a part cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// Parts of a recording in this form cannot be written.
    #[error("parts of {0} cannot be written; record with `perf record -o FILE`")]
    Form(&'static str),
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] OpenError),
    /// The part cannot be written.
    #[error("cannot write the part")]
    Write(#[source] io::Error),
}

impl Recording {
    /// Writes the samples of a time range as a recording of perf. The range is in nanoseconds of the recording's clock.
    /// The part also contains the facts about processes that readers need. Compressed records are expanded. Damaged
    /// records are left out.
    ///
    /// # Errors
    /// Returns an error if the recording is a stream, a recording of trace-cmd or a text, if it cannot be read, or if the part
    /// cannot be written.
    pub fn write_part(
        &self,
        range: RangeInclusive<u64>,
        out: &mut (impl Write + Seek),
    ) -> Result<WrittenCounts, PartError> {
        match self.recorder() {
            Recorder::Perf => {}
            Recorder::TraceCmd => return Err(PartError::Form("recordings of trace-cmd")),
            Recorder::Text => return Err(PartError::Form("texts of events")),
        }
        let mut first = vec![0; header::SIZE];
        let read = self
            .source
            .read_at(0, &mut first)
            .map_err(OpenError::from)?;
        let Layout::File { data, features, .. } = Header::read(&first[..read])?.layout else {
            return Err(PartError::Form("streams"));
        };
        // The descriptions of events are before the records.
        let start = Section {
            offset: 0,
            size: data.offset,
        };
        let before = start.read(&*self.source).map_err(OpenError::from)?;
        let before = before.ok_or(OpenError::Header("its descriptions are damaged"))?;
        out.write_all(&before).map_err(PartError::Write)?;
        let mut written = WrittenCounts::default();
        let mut size = 0;
        let mut bytes = Vec::new();
        for chunk in self.chunks() {
            self.read_into(chunk, &mut bytes).map_err(OpenError::from)?;
            let mut at = 0;
            while let Some(((header, body), after)) = self.record_at(&bytes, at) {
                let record = &bytes[at..after];
                written.read += 1;
                at = after;
                if !self.is_of_part(header, body, &range) {
                    continue;
                }
                match header.kind {
                    kind::SAMPLE => written.samples += 1,
                    _ => written.others += 1,
                }
                size += record.len() as u64;
                out.write_all(record).map_err(PartError::Write)?;
            }
        }
        let features = match data.size {
            0 => Vec::new(),
            _ => self.features(data, &features)?,
        };
        let end = self.write_features(&features, data.offset + size, out);
        end.map_err(PartError::Write)?;
        let order = self.order;
        let mut patch = |offset: u64, bytes: &[u8]| {
            out.seek(SeekFrom::Start(offset))?;
            out.write_all(bytes)
        };
        patch(DATA_SIZE, &order.of_u64(size)).map_err(PartError::Write)?;
        patch(FEATURES, &bits(&features, order)).map_err(PartError::Write)?;
        Ok(written)
    }

    /// Returns true if a record belongs to the part of a time range.
    fn is_of_part(&self, header: record::Header, body: &[u8], range: &RangeInclusive<u64>) -> bool {
        let time_ns = match header.kind {
            kind::SAMPLE => match self.event((header, body), 0) {
                Ok(Some(event)) => event.time_ns,
                _ => return false,
            },
            _ => {
                self.attributes[0]
                    .layout
                    .read_trailer(body, self.order)
                    .time_ns
            }
        };
        // Facts without a time, or with the time 0, belong to the start of the recording.
        let is_before = time_ns.is_none_or(|time_ns| time_ns <= *range.end());
        let is_in = time_ns.is_some_and(|time_ns| range.contains(&time_ns));
        match header.kind {
            kind::SAMPLE
            | kind::LOST
            | kind::LOST_SAMPLES
            | kind::THROTTLE
            | kind::UNTHROTTLE
            | kind::SWITCH
            | kind::SWITCH_CPU_WIDE => is_in,
            _ => is_before,
        }
    }

    /// Returns the numbers and the places of the feature sections that a part has.
    fn features(&self, data: Section, numbers: &[u32]) -> Result<Vec<(u32, Section)>, OpenError> {
        let places = Section {
            offset: data.offset.saturating_add(data.size),
            size: 16 * numbers.len() as u64,
        };
        let places = places.read(&*self.source)?.unwrap_or_default();
        let mut places = Bytes::new(&places, self.order);
        let mut features = Vec::new();
        for number in numbers {
            let Some((offset, size)) = places.u64().zip(places.u64()) else {
                break;
            };
            if !NOT_OF_PARTS.contains(number) {
                features.push((*number, Section { offset, size }));
            }
        }
        Ok(features)
    }

    /// Writes the list of the feature sections at `start`, and the sections after it.
    fn write_features(
        &self,
        features: &[(u32, Section)],
        start: u64,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut contents = Vec::new();
        for (_, section) in features {
            let read = section.read(&*self.source)?;
            // A damaged section stays empty.
            contents.push(read.unwrap_or_default());
        }
        let mut at = start + 16 * features.len() as u64;
        for content in &contents {
            out.write_all(&self.order.of_u64(at))?;
            out.write_all(&self.order.of_u64(content.len() as u64))?;
            at += content.len() as u64;
        }
        contents
            .iter()
            .try_for_each(|content| out.write_all(content))
    }
}

/// Returns the bits of feature sections: four numbers of 64 bits.
fn bits(features: &[(u32, Section)], order: Order) -> Vec<u8> {
    let mut words = [0_u64; 4];
    for (number, _) in features {
        words[*number as usize / 64 % 4] |= 1 << (number % 64);
    }
    words.iter().flat_map(|word| order.of_u64(*word)).collect()
}
