//! An opened trace: its files, segments and buffers, and iteration over its events.

use std::fmt;

use files::Source;

use crate::buffer::{BufferRef, HEADER_SIZE};
use crate::clock::{Clock, ClockKind};
use crate::damage::Damage;
use crate::error::OpenError;
use crate::foreign::{Foreign, HEAD_SIZE};
use crate::logfile::LogFileHeader;
use crate::reader::BufferReader;
use crate::scan::{MAX_SEGMENTS, Segment, scan};
use crate::time_order::TimeOrder;

/// Maximum difference between the boot times that logs of the same boot can state, in units of 100 ns. Recent
/// builds of Windows round boot times to half a second.
const SAME_BOOT: u64 = 20_000_000;

/// Minimum size of a log in bytes: one buffer header, one event header, and the log-file header
/// without its names.
const SHORTEST: u64 = (HEADER_SIZE + 32 + 0x110) as u64;

/// One or more logs (`.etl` files) that were opened together.
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
    /// Opens logs from their bytes. Several logs become one trace. The time of the trace starts at the
    /// earliest start of a session. If all logs were written during the same boot of one system, the counter
    /// of that system gives the times of events. Otherwise, the UTC start times of the sessions place the
    /// logs on one time line.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not a trace. Smaller problems are [`Damage`].
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
                    source: error,
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
                return Err(not_a_trace(name, &*source));
            }
            trace.segments.extend(scan.segments);
            trace.buffers.extend(scan.buffers);
            trace.damage.merge(scan.damage);
            trace.files.push(TraceFile { name, source });
            trace.refuse_foreign(file)?;
            trace.refuse_the_same(file)?;
        }
        trace.share_clock();
        Ok(trace)
    }

    /// Returns an error if the file has another format. In such a file, the scan may have found bytes that
    /// resemble buffers.
    ///
    /// A trace has a plausible log-file header. If the header is damaged, the trace has plausible events in
    /// its buffers.
    ///
    /// # Errors
    /// Returns an error if the file has neither a plausible header nor plausible events.
    fn refuse_foreign(&self, file: u16) -> Result<(), OpenError> {
        /// Minimum number of plausible events in a trace. A file of another format probably has fewer
        /// plausible events.
        const ENOUGH: usize = 2;
        let mut segments = self.segments.iter().filter(|s| s.file == file);
        if segments.any(|segment| segment.header.is_some()) {
            return Ok(());
        }
        let mut reader = BufferReader::new(self);
        let mut events = 0;
        for buffer in &self.buffers {
            if self.segments[usize::from(buffer.segment)].file == file {
                events += reader.plausible_events(buffer);
                if events >= ENOUGH {
                    return Ok(());
                }
            }
        }
        let TraceFile { name, source } = &self.files[usize::from(file)];
        Err(not_a_trace(name.clone(), &**source))
    }

    /// Returns an error if the file `last` has the same content as an earlier file.
    ///
    /// # Errors
    /// Returns an error that names both files.
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
            // Without a header, a session cannot be distinguished from other sessions.
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

    /// Changes the clocks of all segments. After the change, nanosecond 0 of each clock is the earliest start
    /// of a session.
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
        // The clock of a segment without a header is only an assumption. So this segment has no common clock
        // with other segments.
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

    /// Returns the names of the files, in the order in which they were given.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &str> {
        self.files.iter().map(|f| f.name.as_str())
    }

    /// Returns the total stored size of the files in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|f| f.source.len()).sum()
    }

    /// Returns the segments, in order of file and offset. A segment is the part of a file that one session
    /// wrote.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the first readable log-file header. Most traces have only one session.
    pub fn header(&self) -> Option<&LogFileHeader> {
        self.segments.iter().find_map(|s| s.header.as_ref())
    }

    /// Returns true if all sessions with readable headers state the same build and the same boot time. In
    /// this case, one running system recorded all sessions. Otherwise, only the UTC times of their clocks
    /// place the sessions on one time line.
    pub fn is_one_system(&self) -> bool {
        let mut headers = self.segments.iter().filter_map(|s| s.header.as_ref());
        let Some(first) = headers.next() else {
            return true;
        };
        headers.all(|h| h.os_build == first.os_build && h.boot.abs_diff(first.boot) <= SAME_BOOT)
    }

    /// Returns the clock of the first segment. Its nanosecond 0 is the trace's start.
    pub fn clock(&self) -> &Clock {
        &self.segments[0].clock
    }

    /// Returns all non-empty buffers, in order of file and offset.
    pub fn buffers(&self) -> &[BufferRef] {
        &self.buffers
    }

    /// Returns the damage that is known from the headers and the chain of buffers.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Returns the stream of each CPU in each segment, in order of segment and CPU. Streams are independent.
    /// So they can be read in parallel, each with a separate [`BufferReader`].
    pub fn streams(&self) -> Vec<CpuStream<'_>> {
        let mut order: Vec<u32> = (0..self.buffers.len() as u32).collect();
        // In most logs, the order in the file is the order in time. Circular and merged logs are exceptions.
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

    /// Returns a walk over all events of all CPUs and files in time order. The walk is similar to an
    /// iterator. Events with the same time are ordered by CPU, then by position.
    pub fn events(&self) -> TimeOrder<'_> {
        TimeOrder::new(self)
    }

    /// Returns true if all segments have the same clock. Their raw times can then be compared.
    pub(crate) fn has_single_clock(&self) -> bool {
        self.single_clock
    }

    pub(crate) fn source(&self, file: u16) -> &dyn Source {
        &*self.files[usize::from(file)].source
    }
}

/// Returns the error for a file that is not a trace.
fn not_a_trace(name: String, source: &dyn Source) -> OpenError {
    let mut first = vec![0; HEAD_SIZE];
    let n = source.read_at(0, &mut first).unwrap_or(0);
    first.truncate(n);
    let foreign = Foreign::recognise(&first);
    first.truncate(16);
    OpenError::NotATrace {
        name,
        foreign,
        first,
    }
}

/// Buffers of one CPU in one segment, in time order.
#[derive(Clone, Debug)]
pub struct CpuStream<'t> {
    trace: &'t Trace,
    buffers: Vec<BufferRef>,
}

impl<'t> CpuStream<'t> {
    /// Returns the CPU's system-wide index.
    pub fn cpu(&self) -> u16 {
        self.buffers[0].cpu
    }

    /// Returns the stream's buffers in time order. [`BufferReader::read`] reads their events.
    pub fn buffers(&self) -> &[BufferRef] {
        &self.buffers
    }

    /// Creates a reader for this stream's buffers.
    pub fn reader(&self) -> BufferReader<'t> {
        BufferReader::new(self.trace)
    }
}
