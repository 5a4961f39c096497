//! An opened trace: its files, segments and buffers, and the ways to walk its events.

use std::fmt;

use crate::buffer::{BufferRef, HEADER_SIZE};
use crate::clock::{Clock, ClockKind};
use crate::damage::Damage;
use crate::error::OpenError;
use crate::logfile::LogFileHeader;
use crate::reader::BufferReader;
use crate::scan::{MAX_SEGMENTS, Segment, scan};
use crate::source::Source;
use crate::time_order::TimeOrder;

/// Boot times are rounded to half a second by recent builds; logs whose boot times differ by no
/// more than this many 100 ns units were written by one running system.
const SAME_BOOT: u64 = 20_000_000;

/// A log in which nothing but its log-file header can be read has more bytes: the headers of its
/// buffer and event, and what precedes the names at the end of it.
const SHORTEST: u64 = (HEADER_SIZE + 32 + 0x110) as u64;

/// One or several logs, opened together.
pub struct Trace {
    files: Vec<TraceFile>,
    segments: Vec<Segment>,
    buffers: Vec<BufferRef>,
    single_clock: bool,
    damage: Damage,
}

struct TraceFile {
    name: String,
    source: Box<dyn Source>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("files", &self.files().collect::<Vec<_>>())
            .field("segments", &self.segments)
            .field("buffers", &self.buffers.len())
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// Opens logs from their bytes. Several logs become one trace whose time starts at the
    /// earliest session start: on their common counter if they come from one running system, else
    /// by their UTC start times.
    ///
    /// # Errors
    /// When a file cannot be read or holds no buffer at all. Anything less is [`Damage`].
    pub fn from_sources(sources: Vec<(String, Box<dyn Source>)>) -> Result<Trace, OpenError> {
        if sources.is_empty() {
            return Err(OpenError::NoFiles);
        }
        let mut trace = Trace {
            files: Vec::new(),
            segments: Vec::new(),
            buffers: Vec::new(),
            single_clock: true,
            damage: Damage::default(),
        };
        for (name, source) in sources {
            if source.is_empty() {
                return Err(OpenError::Empty { name });
            }
            let file = u16::try_from(trace.files.len()).map_err(|_| OpenError::TooManyFiles)?;
            let scan = scan(&*source, file, trace.segments.len() as u16).map_err(|error| {
                OpenError::Io {
                    name: name.clone(),
                    error,
                }
            })?;
            if scan.segments.is_empty() && trace.segments.len() >= MAX_SEGMENTS {
                return Err(OpenError::TooManySessions { name });
            }
            if source.len() < SHORTEST && !scan.segments.is_empty() {
                let size = source.len();
                return Err(OpenError::CutOff { name, size });
            }
            if scan.segments.is_empty() {
                let mut first = vec![0; 16];
                let n = source.read_at(0, &mut first).unwrap_or(0);
                first.truncate(n);
                return Err(OpenError::NotATrace { name, first });
            }
            trace.segments.extend(scan.segments);
            trace.buffers.extend(scan.buffers);
            trace.damage.merge(scan.damage);
            trace.files.push(TraceFile { name, source });
            trace.refuse_the_same(file)?;
        }
        trace.share_clock();
        Ok(trace)
    }

    /// Refuses a file, the last one so far, that holds what one before it does.
    ///
    /// # Errors
    /// If it does.
    fn refuse_the_same(&self, last: u16) -> Result<(), OpenError> {
        let contents = |file: u16| {
            let of_file = move |segment: u16| self.segments[usize::from(segment)].file == file;
            let headers = self.segments.iter().filter(move |s| s.file == file);
            let buffers = self.buffers.iter().filter(move |b| of_file(b.segment));
            (
                headers.map(|segment| segment.header.as_ref()),
                buffers.map(|buffer| BufferRef {
                    segment: 0,
                    ..*buffer
                }),
            )
        };
        let size = |file: u16| self.files[usize::from(file)].source.len();
        for file in (0..last).filter(|file| size(*file) == size(last)) {
            let ((headers, buffers), (of_last, in_last)) = (contents(file), contents(last));
            // Without a header there is nothing that tells sessions apart.
            let is_known = of_last.clone().all(|header| header.is_some());
            if is_known && headers.eq(of_last) && buffers.eq(in_last) {
                let name = |file: u16| self.files[usize::from(file)].name.clone();
                return Err(OpenError::SameContent {
                    name: name(last),
                    other: name(file),
                });
            }
        }
        Ok(())
    }

    /// Puts all segments' clocks on one time line that starts at the earliest session start.
    fn share_clock(&mut self) {
        let known = self.segments.iter().filter_map(|s| s.header.as_ref());
        let Some(earliest) = known.clone().min_by_key(|h| h.start) else {
            return;
        };
        let base = earliest.clock();
        let same_counter = |h: &LogFileHeader| {
            base.kind() == ClockKind::Qpc
                && h.clock().kind() == ClockKind::Qpc
                && h.perf_frequency == earliest.perf_frequency
                && h.boot.abs_diff(earliest.boot) <= SAME_BOOT
        };
        // A segment without a header has an assumed clock, which is nobody else's.
        self.single_clock = self.segments.len() == 1
            || self
                .segments
                .iter()
                .all(|s| s.header.as_ref().is_some_and(same_counter));
        let (single, start) = (self.single_clock, earliest.start);
        if self.segments.len() == 1 {
            return;
        }
        for segment in &mut self.segments {
            segment.clock = match &segment.header {
                Some(header) if !single => header.clock().starting_at(start),
                Some(_) => base,
                None => segment.clock,
            };
        }
    }

    /// Names of the files, as they were given.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &str> {
        self.files.iter().map(|f| f.name.as_str())
    }

    /// Total size of the files in bytes, as stored.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|f| f.source.len()).sum()
    }

    /// The sessions' stretches, in the order of files and within them.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The first readable log-file header: of the only session in most traces.
    pub fn header(&self) -> Option<&LogFileHeader> {
        self.segments.iter().find_map(|s| s.header.as_ref())
    }

    /// Whether all sessions, as far as their headers are readable, were recorded by one running
    /// system: the same build, booted at the same time. If not, they share a time line only by
    /// their clocks' UTC.
    pub fn is_one_system(&self) -> bool {
        let mut headers = self.segments.iter().filter_map(|s| s.header.as_ref());
        let Some(first) = headers.next() else {
            return true;
        };
        headers.all(|h| h.os_build == first.os_build && h.boot.abs_diff(first.boot) <= SAME_BOOT)
    }

    /// The clock of the first segment; nanosecond 0 is the trace's start.
    pub fn clock(&self) -> &Clock {
        &self.segments[0].clock
    }

    /// All buffers that hold anything, in the order of files and within them.
    pub fn buffers(&self) -> &[BufferRef] {
        &self.buffers
    }

    /// What is known to be lost or broken from the headers and the chain of buffers alone.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Per-CPU streams, by segment and CPU. They are independent of each other: walk them in
    /// parallel, each with its own [`BufferReader`].
    pub fn streams(&self) -> Vec<CpuStream<'_>> {
        let mut order: Vec<u32> = (0..self.buffers.len() as u32).collect();
        // File order is time order in most logs, but not in rings and merged ones.
        order.sort_by_key(|i| {
            let b = &self.buffers[*i as usize];
            (b.segment, b.cpu, b.first_time, *i)
        });
        order
            .chunk_by(|a, b| {
                let (a, b) = (&self.buffers[*a as usize], &self.buffers[*b as usize]);
                (a.segment, a.cpu) == (b.segment, b.cpu)
            })
            .map(|chunk| CpuStream {
                trace: self,
                buffers: chunk.iter().map(|i| self.buffers[*i as usize]).collect(),
            })
            .collect()
    }

    /// All events in time order over all CPUs and files. Equal times are ordered by CPU, then by
    /// position.
    pub fn events(&self) -> TimeOrder<'_> {
        TimeOrder::new(self)
    }

    /// Whether raw times of all segments can be compared.
    pub(crate) fn has_single_clock(&self) -> bool {
        self.single_clock
    }

    pub(crate) fn source(&self, file: u16) -> &dyn Source {
        &*self.files[usize::from(file)].source
    }
}

/// The buffers of one CPU in one segment, in time order.
#[derive(Clone, Debug)]
pub struct CpuStream<'t> {
    trace: &'t Trace,
    buffers: Vec<BufferRef>,
}

impl<'t> CpuStream<'t> {
    /// The CPU's system-wide index.
    pub fn cpu(&self) -> u16 {
        self.buffers[0].cpu
    }

    /// The stream's buffers in time order; read them with [`BufferReader::read`].
    pub fn buffers(&self) -> &[BufferRef] {
        &self.buffers
    }

    /// A reader for this stream's buffers.
    pub fn reader(&self) -> BufferReader<'t> {
        BufferReader::new(self.trace)
    }
}
