//! Finding the buffers of a file, whatever state it is in.
//!
//! A log is a chain: each buffer's header says where the next one is. Where the chain breaks, the
//! scan looks for the next place that can be a buffer and goes on from there; every byte is
//! looked at a bounded number of times.

use std::io;

use crate::buffer::{self, BufferHeader, BufferRef, HEADER_SIZE, MAX_BUFFER, flag};
use crate::clock::{Clock, ClockKind};
use crate::compress::{Compression, decompress};
use crate::damage::{Damage, Fault, FaultKind};
use crate::event::Record;
use crate::logfile::{LogFileHeader, mode};
use crate::source::Source;

/// Bytes read to see a buffer's header and the time of its first event.
const PEEK: usize = HEADER_SIZE + 56;
/// The same for a compressed buffer, whose first event must be decompressed.
const PEEK_COMPRESSED: usize = HEADER_SIZE + 1024;
/// Bytes looked at in one go when searching for the next buffer.
const SEARCH_CHUNK: usize = 1 << 20;

/// Sessions told apart; what follows further headers counts as the last one's.
pub(crate) const MAX_SEGMENTS: usize = u16::MAX as usize;

/// A stretch of a file written by one session: its header and its buffers.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Index of its file in [`crate::Trace::files`].
    pub file: u16,
    /// The log-file header; `None` if it was unreadable.
    pub header: Option<LogFileHeader>,
    /// Converts the segment's raw times; nanosecond 0 is the *trace's* start.
    pub clock: Clock,
    /// Format of its compressed buffers, if it has any.
    pub compression: Compression,
    /// `LoggerId` of its buffers, for finding further ones.
    logger_id: u16,
    /// The earliest and the latest raw time that is believed.
    times: (i64, i64),
}

impl Segment {
    /// Whether an event can bear this raw time.
    #[inline]
    pub(crate) fn is_plausible(&self, raw_time: i64) -> bool {
        (self.times.0..=self.times.1).contains(&raw_time)
    }

    fn buffer_size(&self) -> u32 {
        self.header.as_ref().map_or(0, |h| h.buffer_size)
    }
}

/// What a scan found in one file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) segments: Vec<Segment>,
    /// All buffers with at least one event's room, in file order.
    pub(crate) buffers: Vec<BufferRef>,
    pub(crate) damage: Damage,
    /// Buffers without an event, by segment: they carry sequence numbers too.
    empty: Vec<(u16, i64)>,
}

/// Scans file number `file` of a trace whose segments so far are `first_segment` many.
/// Returns a scan without segments when nothing in the file is a buffer.
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
    scanner.count_missing_sequence_numbers();
    Ok(scanner.scan)
}

struct Scanner<'s> {
    source: &'s dyn Source,
    file: u16,
    first_segment: u16,
    scan: Scan,
    peek: [u8; PEEK_COMPRESSED],
    /// The bytes last searched, and where they stand in the file. Kept, so that a file of false
    /// buffers does not have them read anew for each.
    window: Vec<u8>,
    window_at: u64,
}

impl Scanner<'_> {
    /// Follows the chain of buffers of a Vista-or-later log.
    fn chain(&mut self) -> io::Result<()> {
        let len = self.source.len();
        let mut at = 0;
        // Where the last accepted buffer began, if its size is not vouched for by the session's.
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
                        // The last buffer's size reached over this one: it lied.
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

    /// Walks the equally large buffers of a Windows 2000/XP/2003 log.
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

    /// The buffer size of a pre-Vista log, if the file begins like one: a small reference count
    /// where later logs have the buffer's size, and a log-file header as first event.
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
            .and_then(|record| LogFileHeader::read(&bytes, &record));
        Ok(header
            .map(|h| h.buffer_size)
            .filter(|size| (HEADER_SIZE as u32 + 8..=MAX_BUFFER).contains(size)))
    }

    /// The header of the buffer at `at`, if there can be one.
    fn header_at(&mut self, at: u64) -> io::Result<Option<BufferHeader>> {
        let n = self.source.read_at(at, &mut self.peek[..PEEK])?;
        let Some(header) = BufferHeader::read(&self.peek[..n]) else {
            return Ok(None);
        };
        let usual_size =
            header.stored_size != 0 && header.stored_size == self.current_buffer_size();
        Ok((header.is_plausible() || usual_size).then_some(header))
    }

    /// Whether a buffer of the current session begins at `at`.
    fn is_buffer(&mut self, at: u64) -> io::Result<bool> {
        let n = self.source.read_at(at, &mut self.peek)?;
        Ok(self.begins_buffer(&self.peek[..n]))
    }

    /// The size that the session's header gives its buffers; 0 if it gives none that can be.
    fn current_buffer_size(&self) -> u32 {
        let size = self.scan.segments.last().map_or(0, Segment::buffer_size);
        if (HEADER_SIZE as u32..=MAX_BUFFER).contains(&size) {
            size
        } else {
            0
        }
    }

    /// Takes the buffer at `at` into the index; begins a new segment if it holds a log-file
    /// header.
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
            // The trace has as many segments as can be told apart.
            return Ok(());
        };
        let index = self.first_segment + segment as u16;
        if valid_size as usize <= HEADER_SIZE {
            self.scan.empty.push((index, header.sequence));
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
            .and_then(|record| LogFileHeader::read(&bytes, record));
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
        // The header buffer of a compressed log names the format where live buffers keep a state.
        // Without one, XPRESS is what the writers use.
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

    /// Raw time of the first event of the buffer at `at` whose first bytes are in `self.peek`.
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

    /// Looks for the next buffer from `from` on.
    fn search(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at < self.source.len() {
            // Where the search starts in the window, if it does.
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
                // A size field of zero begins most places in a preallocated tail.
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

    /// Whether `bytes` begin a buffer of the current session with a readable first event.
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

    /// Cuts the last buffer so that it ends at `end`.
    fn shorten_last(&mut self, end: u64) {
        if let Some(last) = self.scan.buffers.last_mut().filter(|b| b.offset < end) {
            let size = (end - last.offset).min(u64::from(last.stored_size)) as u32;
            last.stored_size = size;
            if !last.is_compressed() {
                last.valid_size = last.valid_size.min(size);
            }
        }
    }

    /// Says what the bytes from `at` to the end are: unused, or not a buffer.
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

    /// Notes a file that was cut off after a buffer: it has fewer than were written, though nothing in
    /// it is broken. Of the public traces that laglab was tried on, all headers count what is there.
    fn compare_with_headers(&mut self) {
        let scan = &self.scan;
        if !scan.damage.faults().is_empty() || scan.damage.unused_bytes > 0 {
            return;
        }
        let written = scan.segments.iter().map(|segment| {
            let header = segment.header.as_ref()?;
            // Of a ring all that were ever written are counted.
            let is_ring = header.log_file_mode & (mode::CIRCULAR | mode::BUFFERING) != 0;
            let is_finished = header.end.is_some();
            (is_finished && !is_ring).then_some(u64::from(header.buffers_written))
        });
        let Some(written) = written.sum::<Option<u64>>() else {
            return;
        };
        let found = (scan.buffers.len() + scan.empty.len()) as u64;
        if let buffers @ 1.. = written.saturating_sub(found) {
            self.fault(self.source.len(), FaultKind::EndsEarly { buffers });
        }
    }

    /// Counts, per segment, the sequence numbers that no buffer carries.
    fn count_missing_sequence_numbers(&mut self) {
        let empty = std::mem::take(&mut self.scan.empty);
        let mut numbers: Vec<(u16, i64)> = self
            .scan
            .buffers
            .iter()
            .map(|b| (b.segment, b.sequence))
            .chain(empty)
            .collect();
        numbers.sort_unstable();
        self.scan.damage.missing_sequence_numbers = numbers
            .array_windows()
            .filter(|[(a, _), (b, _)]| a == b)
            .map(|[(_, a), (_, b)]| b.abs_diff(*a).saturating_sub(1))
            .fold(0, u64::saturating_add);
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

    /// Bytes that counts how many of them were read.
    struct Counted {
        bytes: Vec<u8>,
        read: AtomicUsize,
    }

    impl Source for Counted {
        fn len(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            let n = self.bytes.read_at(offset, into)?;
            self.read.fetch_add(n, Ordering::Relaxed);
            Ok(n)
        }
    }

    /// A buffer of one 8-byte record that claims to be `stored_size` bytes long.
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
        let source = Counted {
            bytes: (0..2000).flat_map(|_| buffer(MAX_BUFFER, 0, 0)).collect(),
            read: AtomicUsize::new(0),
        };
        let found = scan(&source, 0, 0).unwrap();
        assert_eq!(found.buffers.len(), 2000);
        // Headers are looked at, and their first events.
        let read = source.read.into_inner();
        assert!(read < 10 * source.bytes.len(), "{read}");
    }

    #[test]
    fn a_file_behind_the_last_session_that_can_be_told_apart_has_none() {
        let file = buffer(80, buffer::TYPE_HEADER, 0);
        assert_eq!(scan(&file, 1, 0).unwrap().segments.len(), 1);
        let found = scan(&file, 1, MAX_SEGMENTS as u16).unwrap();
        assert!(found.segments.is_empty() && found.buffers.is_empty());
    }

    #[test]
    fn sequence_numbers_of_empty_buffers_are_not_missing() {
        let mut empty = buffer(80, 0, 2);
        empty[0x30..0x34].copy_from_slice(&(HEADER_SIZE as u32).to_le_bytes());
        let file = [buffer(80, 0, 1), empty, buffer(80, 0, 4)].concat();
        let found = scan(&file, 0, 0).unwrap();
        assert_eq!(found.buffers.len(), 2);
        assert_eq!(found.damage.missing_sequence_numbers, 1);
    }

    #[test]
    fn absurd_sequence_numbers_are_no_overflow() {
        let file = [buffer(80, 0, i64::MIN), buffer(80, 0, i64::MAX)].concat();
        let mut damage = scan(&file, 0, 0).unwrap().damage;
        damage.merge(damage.clone());
        assert_eq!(damage.missing_sequence_numbers, u64::MAX);
    }
}
