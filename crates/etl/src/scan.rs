//! Search for the buffers of a file. The file may be damaged or incomplete.
//!
//! A log is a chain of buffers: each buffer's header gives the offset of the next buffer. If the chain is
//! broken, the scan searches for the next plausible buffer. The scan examines each byte only a limited number
//! of times.

use std::io;

use files::Source;

use crate::buffer::{self, BufferHeader, BufferRef, HEADER_SIZE, MAX_BUFFER, flag};
use crate::clock::{Clock, ClockKind};
use crate::compress::{Compression, decompress};
use crate::damage::{Damage, Fault, FaultKind};
use crate::event::Record;
use crate::logfile::{LogFileHeader, mode};

/// Number of bytes to read from a buffer's start to get its header and the time of its first event.
const PEEK: usize = HEADER_SIZE + 56;
/// Like [`PEEK`], but for a compressed buffer. The first event of a compressed buffer must be decompressed.
const PEEK_COMPRESSED: usize = HEADER_SIZE + 1024;
/// Number of bytes that the search for the next buffer reads at once.
const SEARCH_CHUNK: usize = 1 << 20;

/// Maximum number of distinct sessions in a trace. If a trace has more session headers, their buffers count
/// as part of the last session.
pub(crate) const MAX_SEGMENTS: usize = u16::MAX as usize;

/// Part of a file that one session wrote: a header and buffers.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Index of the segment's file in [`crate::Trace::files`].
    pub file: u16,
    /// Log-file header of the session; `None` if the header is unreadable.
    pub header: Option<LogFileHeader>,
    /// Clock of the segment's raw times. Its nanosecond 0 is the *trace's* start.
    pub clock: Clock,
    /// Format of the segment's compressed buffers.
    pub compression: Compression,
    /// `LoggerId` of the segment's buffers. The search for buffers accepts only buffers with this id, and header
    /// buffers of other sessions.
    logger_id: u16,
    /// Earliest and latest plausible raw time.
    times: (i64, i64),
}

impl Segment {
    /// Returns true if `raw_time` is a plausible time for an event of the segment.
    #[inline]
    pub(crate) fn is_plausible(&self, raw_time: i64) -> bool {
        (self.times.0..=self.times.1).contains(&raw_time)
    }

    fn buffer_size(&self) -> u32 {
        self.header.as_ref().map_or(0, |h| h.buffer_size)
    }
}

/// Segment index, sequence number and file offset of a buffer.
type Numbered = (u16, i64, u64);

/// Result of the scan of one file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) segments: Vec<Segment>,
    /// Buffers with data after the header of the buffer, in file order. Buffers without data are in `empty`.
    pub(crate) buffers: Vec<BufferRef>,
    pub(crate) damage: Damage,
    /// Buffers without an event. They are recorded because they also have sequence numbers.
    empty: Vec<Numbered>,
}

/// Scans a file. `file` is the index of the file in its trace. `first_segment` is the number of segments that
/// the trace already has. Returns a scan without segments if the file contains no buffer.
pub(crate) fn scan(source: &dyn Source, file: u16, first_segment: u16) -> io::Result<Scan> {
    let mut scanner = Scanner {
        source,
        file,
        first_segment,
        scan: Scan::default(),
        peek: [0; PEEK_COMPRESSED],
        window: Vec::new(),
        window_at: 0,
    };
    match scanner.pre_vista_buffer_size()? {
        Some(size) => scanner.fixed_size_buffers(size)?,
        None => scanner.chain()?,
    }
    scanner.compare_with_headers();
    scanner.bound_times();
    scanner.count_missing_sequence_numbers();
    Ok(scanner.scan)
}

struct Scanner<'s> {
    source: &'s dyn Source,
    file: u16,
    first_segment: u16,
    scan: Scan,
    peek: [u8; PEEK_COMPRESSED],
    /// Bytes that were searched last. They begin at the offset `window_at` of the file. A file can have many bytes that
    /// only resemble a buffer. Without this window, the search would read the same bytes again after each false match.
    window: Vec<u8>,
    window_at: u64,
}

impl Scanner<'_> {
    /// Follows the chain of buffers of a log of Windows Vista or later.
    fn chain(&mut self) -> io::Result<()> {
        let len = self.source.len();
        let mut at = 0;
        // Offset of the last accepted buffer, if the size of that buffer differs from the session's buffer size. The
        // size may be wrong, so the search for the next buffer begins inside this buffer.
        let mut doubted: Option<u64> = None;
        while at < len {
            if let Some(mut header) = self.header_at(at)? {
                let usual_size = self.current_buffer_size();
                if usual_size > 0
                    && header.stored_size > usual_size
                    && self.is_buffer(at + u64::from(usual_size))?
                {
                    let claimed = header.stored_size;
                    self.fault(
                        at,
                        FaultKind::WrongSize {
                            claimed,
                            used: usual_size,
                        },
                    );
                    header.stored_size = usual_size;
                }
                self.accept(at, &header)?;
                let usual = header.stored_size == self.current_buffer_size();
                doubted = (!usual).then_some(at);
                at += u64::from(header.stored_size);
                if at <= len || usual {
                    continue;
                }
            }
            let from = doubted
                .take()
                .map_or(at, |start| start + HEADER_SIZE as u64);
            match self.search(from)? {
                Some(next) => {
                    if next < at {
                        // The size in the last buffer's header is wrong, because the next buffer was found
                        // inside the last buffer.
                        self.shorten_last(next);
                    }
                    self.fault(
                        at.min(next),
                        FaultKind::NotABuffer {
                            skipped: next.saturating_sub(at),
                        },
                    );
                    at = next;
                }
                None => {
                    if at < len {
                        self.end_of_chain(at)?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Accepts all buffers of a log of Windows 2000, XP or 2003. They all have the same size.
    fn fixed_size_buffers(&mut self, size: u32) -> io::Result<()> {
        let mut at = 0;
        while at < self.source.len() {
            let mut bytes = [0; HEADER_SIZE];
            self.source.read_at(at, &mut bytes)?;
            if let Some(header) = BufferHeader::read_pre_vista(&bytes, size) {
                self.accept(at, &header)?;
            }
            at += u64::from(size);
        }
        Ok(())
    }

    /// Returns the buffer size if the file begins like a log of a Windows version before Vista. The first
    /// event of such a log is a log-file header. At offset 0, such a log has a small reference count. Later
    /// logs have the buffer's size at offset 0.
    fn pre_vista_buffer_size(&mut self) -> io::Result<Option<u32>> {
        let mut bytes = vec![0; 4096];
        let n = self.source.read_at(0, &mut bytes)?;
        bytes.truncate(n);
        let Some(first) = crate::le::u32(&bytes, 0) else {
            return Ok(None);
        };
        if first as usize >= HEADER_SIZE {
            return Ok(None);
        }
        let header = Record::read(&bytes, HEADER_SIZE, 0)
            .ok()
            .and_then(|record| LogFileHeader::read(&bytes, &record))
            .filter(LogFileHeader::is_plausible);
        Ok(header
            .map(|h| h.buffer_size)
            .filter(|size| (HEADER_SIZE as u32 + 8..=MAX_BUFFER).contains(size)))
    }

    /// Returns the header of the buffer at the file offset `at`, if it is plausible.
    fn header_at(&mut self, at: u64) -> io::Result<Option<BufferHeader>> {
        let n = self.source.read_at(at, &mut self.peek[..PEEK])?;
        let Some(header) = BufferHeader::read(&self.peek[..n]) else {
            return Ok(None);
        };
        let usual_size =
            header.stored_size != 0 && header.stored_size == self.current_buffer_size();
        Ok((header.is_plausible() || usual_size).then_some(header))
    }

    /// Returns true if a buffer that `begins_buffer` accepts begins at the file offset `at`.
    fn is_buffer(&mut self, at: u64) -> io::Result<bool> {
        let n = self.source.read_at(at, &mut self.peek)?;
        Ok(self.begins_buffer(&self.peek[..n]))
    }

    /// Returns the buffer size that the session's header states. Returns 0 if this size is not plausible.
    fn current_buffer_size(&self) -> u32 {
        let size = self.scan.segments.last().map_or(0, Segment::buffer_size);
        if (HEADER_SIZE as u32..=MAX_BUFFER).contains(&size) {
            size
        } else {
            0
        }
    }

    /// Adds the buffer at the file offset `at` to the list. Begins a new segment if the buffer
    /// contains a log-file header.
    fn accept(&mut self, at: u64, header: &BufferHeader) -> io::Result<()> {
        let mut stored_size = header.stored_size;
        let left = self.source.len() - at;
        if u64::from(stored_size) > left {
            self.fault(
                at,
                FaultKind::Truncated {
                    missing: u64::from(stored_size) - left,
                },
            );
            stored_size = left as u32;
        }
        if header.buffer_type == buffer::TYPE_HEADER || self.scan.segments.is_empty() {
            self.begin_segment(at, header, stored_size)?;
        }
        let limit = if header.flags & flag::COMPRESSED == 0 {
            stored_size
        } else {
            (u64::from(stored_size) * buffer::MAX_EXPANSION).min(MAX_BUFFER.into()) as u32
        };
        let mut valid_size = header.valid_size;
        if valid_size > limit {
            if limit == header.stored_size || stored_size == header.stored_size {
                self.fault(
                    at,
                    FaultKind::TooManyValidBytes {
                        claimed: valid_size,
                        limit,
                    },
                );
            }
            valid_size = limit;
        }
        let damage = &mut self.scan.damage;
        damage.buffers_marking_lost_events += u64::from(header.flags & flag::EVENTS_LOST != 0);
        damage.buffers_marking_lost_buffers += u64::from(header.flags & flag::BUFFER_LOST != 0);
        let Some(segment) = self.scan.segments.len().checked_sub(1) else {
            // No segment exists for this buffer, because the trace already has the maximum number of
            // segments.
            return Ok(());
        };
        let index = self.first_segment + segment as u16;
        if valid_size as usize <= HEADER_SIZE {
            self.scan.empty.push((index, header.sequence, at));
            return Ok(());
        }
        let log = &self.scan.segments[segment];
        let wide = log
            .header
            .as_ref()
            .is_some_and(LogFileHeader::has_wide_cpu_index);
        let compression = log.compression;
        let first_time = self.first_time(at, header, stored_size, compression)?;
        let log = &self.scan.segments[segment];
        let first_time = first_time.filter(|time| log.is_plausible(*time));
        let start = log.header.as_ref().map_or(0, |h| h.raw_start);
        self.scan.buffers.push(BufferRef {
            segment: index,
            cpu: header.cpu(wide),
            flags: header.flags,
            offset: at,
            stored_size,
            valid_size,
            sequence: header.sequence,
            first_time: first_time
                .or_else(|| self.scan.buffers.last().map(|b| b.first_time))
                .unwrap_or(start),
        });
        Ok(())
    }

    fn begin_segment(&mut self, at: u64, header: &BufferHeader, stored: u32) -> io::Result<()> {
        let mut bytes = vec![0; (stored as usize).min(HEADER_SIZE + (64 << 10))];
        let n = self.source.read_at(at, &mut bytes)?;
        bytes.truncate(n);
        let record = Record::read(&bytes, HEADER_SIZE, 0).ok();
        let log = record
            .as_ref()
            .and_then(|record| LogFileHeader::read(&bytes, record))
            .filter(LogFileHeader::is_plausible);
        let too_many = self.scan.segments.len() + usize::from(self.first_segment) >= MAX_SEGMENTS;
        if log.is_none() && !self.scan.segments.is_empty() || too_many {
            return Ok(());
        }
        match &log {
            Some(log) => {
                self.scan.damage.events_lost += u64::from(log.events_lost);
                self.scan.damage.buffers_lost += u64::from(log.buffers_lost);
                self.scan.damage.unfinished_segments += u64::from(log.end.is_none());
            }
            None => self.fault(at, FaultKind::NoLogFileHeader),
        }
        let first = record.map_or(0, |r| r.raw_time);
        let clock = log.as_ref().map_or_else(
            || Clock::new(ClockKind::Qpc, first, 0, 0),
            LogFileHeader::clock,
        );
        // In the header buffer of a compressed log, the field `State` contains the compression format.
        // Without a header buffer, the scan assumes XPRESS, because all known programs use it.
        let compression = Some(header.state as u16)
            .filter(|_| header.flags & flag::COMPRESSED == 0)
            .and_then(Compression::from_format)
            .unwrap_or(Compression::Xpress);
        let times = log
            .as_ref()
            .map_or((i64::MIN, i64::MAX), LogFileHeader::plausible_times);
        self.scan.segments.push(Segment {
            file: self.file,
            times,
            header: log,
            clock,
            compression,
            logger_id: header.logger_id,
        });
        Ok(())
    }

    /// Returns the raw time of the first event in the buffer at the file offset `at`. Returns `None` if the
    /// time cannot be read.
    fn first_time(
        &mut self,
        at: u64,
        header: &BufferHeader,
        stored_size: u32,
        compression: Compression,
    ) -> io::Result<Option<i64>> {
        let compressed = header.flags & flag::COMPRESSED != 0;
        let peek = if compressed { PEEK_COMPRESSED } else { PEEK };
        let n = self
            .source
            .read_at(at, &mut self.peek[..peek.min(stored_size as usize)])?;
        let body = self.peek[..n].get(HEADER_SIZE..).unwrap_or(&[]);
        if !compressed {
            return Ok(Record::time(body));
        }
        let mut first = [0; 48];
        let room = (header.valid_size as usize - HEADER_SIZE).min(first.len());
        let decoded = decompress(compression, body, &mut first[..room]);
        Ok(decoded.ok().and_then(|()| Record::time(&first[..room])))
    }

    /// Searches for the next buffer. Begins at the file offset `from`.
    fn search(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at < self.source.len() {
            // `known` is the offset in the window at which the search starts. If the file offset `at` is not
            // in the window, `known` is `None`.
            let known = at
                .checked_sub(self.window_at)
                .and_then(|i| usize::try_from(i).ok())
                .filter(|i| *i < self.window.len().min(SEARCH_CHUNK));
            let start = match known {
                Some(start) => start,
                None => {
                    let size = (SEARCH_CHUNK + PEEK_COMPRESSED) as u64;
                    let size = size.min(self.source.len() - at) as usize;
                    self.window.resize(size, 0);
                    let n = self.source.read_at(at, &mut self.window)?;
                    self.window.truncate(n);
                    self.window_at = at;
                    0
                }
            };
            let last = self.window.len().saturating_sub(HEADER_SIZE + 7);
            for i in start..last.min(SEARCH_CHUNK) {
                let bytes = &self.window[i..];
                // This comparison comes first because it is fast. In the unused end of a preallocated file,
                // the size is always 0.
                let size = crate::le::u32(bytes, 0).unwrap_or(0);
                if size as usize > HEADER_SIZE && size <= MAX_BUFFER && self.begins_buffer(bytes) {
                    return Ok(Some(self.window_at + i as u64));
                }
            }
            if self.window.len() < SEARCH_CHUNK + PEEK_COMPRESSED {
                break;
            }
            at = self.window_at + SEARCH_CHUNK as u64;
        }
        Ok(None)
    }

    /// Returns true if `bytes` begin with a plausible buffer and its first event is readable. If a session is known,
    /// the buffer must belong to this session, or it must be the header buffer of another session.
    fn begins_buffer(&self, bytes: &[u8]) -> bool {
        let Some(header) = BufferHeader::read(bytes).filter(BufferHeader::is_plausible) else {
            return false;
        };
        let segment = self.scan.segments.last();
        if header.valid_size as usize <= HEADER_SIZE
            || segment.is_some_and(|s| {
                s.logger_id != header.logger_id && header.buffer_type != buffer::TYPE_HEADER
            })
        {
            return false;
        }
        let body = &bytes[HEADER_SIZE..];
        if header.flags & flag::COMPRESSED == 0 {
            return Record::fits(body, header.valid_size as usize - HEADER_SIZE);
        }
        let format = segment.map_or(Compression::Xpress, |s| s.compression);
        let mut first = [0; 16];
        let room = (header.valid_size as usize - HEADER_SIZE).min(first.len());
        decompress(format, body, &mut first[..room]).is_ok()
            && Record::fits(&first[..room], header.valid_size as usize - HEADER_SIZE)
    }

    /// Shortens the last buffer so that it ends at the file offset `end`.
    fn shorten_last(&mut self, end: u64) {
        if let Some(last) = self.scan.buffers.last_mut().filter(|b| b.offset < end) {
            let size = (end - last.offset).min(u64::from(last.stored_size)) as u32;
            last.stored_size = size;
            if !last.is_compressed() {
                last.valid_size = last.valid_size.min(size);
            }
        }
    }

    /// Classifies the bytes from the file offset `at` to the end. If all bytes are zeros, they are unused
    /// space. Otherwise, they are damage.
    fn end_of_chain(&mut self, at: u64) -> io::Result<()> {
        let rest = self.source.len() - at;
        let mut chunk = vec![0; SEARCH_CHUNK];
        let mut from = at;
        loop {
            let n = self.source.read_at(from, &mut chunk)?;
            if chunk[..n].iter().any(|b| *b != 0) {
                self.fault(at, FaultKind::NotABuffer { skipped: rest });
                return Ok(());
            }
            if n < chunk.len() {
                self.scan.damage.unused_bytes += rest;
                return Ok(());
            }
            from += n as u64;
        }
    }

    /// Adds a fault if the file was cut off at the end of a buffer. Such a file has fewer buffers than its
    /// header states, but no other damage. In all public traces that were tested, the number of buffers in
    /// the header was correct.
    fn compare_with_headers(&mut self) {
        let scan = &self.scan;
        if !scan.damage.faults().is_empty() {
            return;
        }
        let written = scan.segments.iter().map(|segment| {
            let header = segment.header.as_ref()?;
            // In a circular log, `buffers_written` includes overwritten buffers, so it does not show that
            // buffers are missing.
            let is_ring = header.log_file_mode & (mode::CIRCULAR | mode::BUFFERING) != 0;
            let is_finished = header.end.is_some();
            (is_finished && !is_ring).then_some(u64::from(header.buffers_written))
        });
        let Some(written) = written.sum::<Option<u64>>() else {
            return;
        };
        let buffers = (scan.buffers.len() + scan.empty.len()) as u64;
        if let buffers @ 1.. = written.saturating_sub(buffers) {
            // The zeros are in the place of the missing buffers, so they are not unused.
            self.scan.damage.unused_bytes = 0;
            self.fault(self.source.len(), FaultKind::EndsEarly { buffers });
        }
    }

    /// Limits the plausible times of each segment. Without the limits, an event with a damaged time could look like the
    /// end of a wait of hours.
    ///
    /// A buffer is near the session if it begins at most a minute before the start or after the end in the header. If
    /// nearly all buffers of a segment are near, the plausible times begin 10 s before the session and the near
    /// buffers, and end 10 s after them. Otherwise, the plausible times stay unchanged.
    fn bound_times(&mut self) {
        /// The limits apply if at most `n / OUTSIDE` of a segment's `n` buffers are not near the session. The times of
        /// these few buffers are assumed to be damaged.
        const OUTSIDE: usize = 16;
        let indices = usize::from(self.first_segment)..;
        for (index, segment) in indices.zip(&mut self.scan.segments) {
            let Some(session) = segment
                .header
                .as_ref()
                .and_then(LogFileHeader::session_times)
            else {
                continue;
            };
            let buffers = self.scan.buffers.iter();
            let of_segment = buffers.filter(|b| usize::from(b.segment) == index);
            let times: Vec<i64> = of_segment.map(|b| b.first_time).collect();
            let near = session.near();
            let inside = || times.iter().filter(|time| near.contains(time));
            if times.is_empty() || (times.len() - inside().count()) * OUTSIDE > times.len() {
                continue;
            }
            let (first, last) = session.extended(inside());
            segment.times = (segment.times.0.max(first), segment.times.1.min(last));
        }
    }

    /// Counts the missing sequence numbers of each segment. If a buffer has a sequence number that the
    /// session cannot have reached, adds a fault and ignores the number.
    fn count_missing_sequence_numbers(&mut self) {
        let empty = std::mem::take(&mut self.scan.empty);
        let mut numbers: Vec<Numbered> = self
            .scan
            .buffers
            .iter()
            .map(|b| (b.segment, b.sequence, b.offset))
            .chain(empty)
            .collect();
        numbers.sort_unstable();
        let mut missing = 0_u64;
        for numbers in numbers.chunk_by(|a, b| a.0 == b.0) {
            let limit = self.max_buffers(numbers);
            let middle = numbers[numbers.len() / 2].1;
            let is_plausible = |number: &&Numbered| number.1.abs_diff(middle) <= limit;
            for (_, sequence, offset) in numbers.iter().filter(|number| !is_plausible(number)) {
                let sequence = *sequence;
                self.fault(*offset, FaultKind::ImplausibleSequence { sequence });
            }
            let mut sequence = numbers.iter().filter(is_plausible).map(|number| number.1);
            let mut previous = sequence.next();
            if self.is_part_of_series(numbers[0].0) {
                previous = sequence.next();
            }
            for sequence in sequence {
                let gap = previous.map_or(0, |previous| sequence.abs_diff(previous));
                missing = missing.saturating_add(gap.saturating_sub(1));
                previous = Some(sequence);
            }
        }
        self.scan.damage.missing_sequence_numbers = missing;
    }

    /// Returns true if the session writes a series of files. Each file begins with a copy of the session's first buffer,
    /// so the numbers between this buffer and the next one belong to earlier files.
    fn is_part_of_series(&self, segment: u16) -> bool {
        let segment = &self.scan.segments[usize::from(segment - self.first_segment)];
        let header = segment.header.as_ref();
        header.is_some_and(|header| header.log_file_mode & mode::NEW_FILE != 0)
    }

    /// Returns the maximum number of buffers that the session of these buffers can have written. A session
    /// writes at most a million buffers per second. The result includes 100,000 additional buffers, because
    /// times are not exact.
    fn max_buffers(&self, numbers: &[Numbered]) -> u64 {
        const PER_SECOND: u64 = 1_000_000;
        const SLACK: u64 = 100_000;
        let Some((index, ..)) = numbers.first() else {
            return 0;
        };
        let segment = &self.scan.segments[usize::from(index - self.first_segment)];
        let of_segment = self.scan.buffers.iter().filter(|b| b.segment == *index);
        let times = of_segment.map(|b| segment.clock.to_ns(b.first_time));
        let first = times.clone().min().unwrap_or(0);
        let last = times.max().unwrap_or(0);
        // `seconds` counts from the session's start, because the first buffers may have been overwritten.
        let seconds = last.abs_diff(first.min(0)) / 1_000_000_000 + 1;
        (seconds.saturating_mul(PER_SECOND))
            .saturating_add(SLACK)
            .saturating_add(numbers.len() as u64)
    }

    fn fault(&mut self, buffer_offset: u64, what: FaultKind) {
        self.scan.damage.add(Fault {
            file: self.file,
            buffer_offset,
            offset: None,
            what,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Source that counts the bytes that are read from it.
    struct CountingSource {
        bytes: Vec<u8>,
        read: AtomicUsize,
    }

    impl Source for CountingSource {
        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            let n = self.bytes.read_at(offset, into)?;
            self.read.fetch_add(n, Ordering::Relaxed);
            Ok(n)
        }
    }

    /// Returns a buffer with one record of 8 bytes. The header of the buffer states the size `stored_size`.
    fn buffer(stored_size: u32, buffer_type: u16, sequence: i64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_SIZE];
        bytes[0..4].copy_from_slice(&stored_size.to_le_bytes());
        bytes[0x30..0x34].copy_from_slice(&(HEADER_SIZE as u32 + 8).to_le_bytes());
        bytes[0x18..0x20].copy_from_slice(&sequence.to_le_bytes());
        bytes[0x36..0x38].copy_from_slice(&buffer_type.to_le_bytes());
        bytes.extend([8, 0, 13, 0xC0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn false_buffers_do_not_have_the_file_read_again_for_each() {
        let source = CountingSource {
            bytes: (0..2000).flat_map(|_| buffer(MAX_BUFFER, 0, 0)).collect(),
            read: AtomicUsize::new(0),
        };
        let result = scan(&source, 0, 0).unwrap();
        assert_eq!(result.buffers.len(), 2000);
        // The scan should read only headers and first events.
        let read = source.read.into_inner();
        assert!(read < 10 * source.bytes.len(), "{read}");
    }

    #[test]
    fn a_file_after_the_maximum_number_of_sessions_has_no_session() {
        let file = buffer(80, buffer::TYPE_HEADER, 0);
        assert_eq!(scan(&file, 1, 0).unwrap().segments.len(), 1);
        let result = scan(&file, 1, MAX_SEGMENTS as u16).unwrap();
        assert!(result.segments.is_empty() && result.buffers.is_empty());
    }

    #[test]
    fn sequence_numbers_of_empty_buffers_are_not_missing() {
        let mut empty = buffer(80, 0, 2);
        empty[0x30..0x34].copy_from_slice(&(HEADER_SIZE as u32).to_le_bytes());
        let file = [buffer(80, 0, 1), empty, buffer(80, 0, 4)].concat();
        let result = scan(&file, 0, 0).unwrap();
        assert_eq!(result.buffers.len(), 2);
        assert_eq!(result.damage.missing_sequence_numbers(), Some(1));
    }

    #[test]
    fn absurd_sequence_numbers_make_the_count_unknown() {
        let numbers = [1, 2, i64::MIN, 4, i64::MAX, 1 << 50];
        let file = numbers.map(|number| buffer(80, 0, number)).concat();
        let mut damage = scan(&file, 0, 0).unwrap().damage;
        assert_eq!(damage.counts()["implausible_sequence"], 3);
        let offsets: Vec<u64> = damage.faults().iter().map(|f| f.buffer_offset).collect();
        assert_eq!(offsets[offsets.len() - 3..], [160, 400, 320]);
        damage.merge(damage.clone());
        assert_eq!(damage.missing_sequence_numbers(), None);
    }
}
