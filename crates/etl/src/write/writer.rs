//! The container: buffers per CPU, written in the order in which they fill.

use std::io::{Seek, SeekFrom, Write};

use super::error::WriteError;
use super::event::{ClassicEvent, Head, KernelEvent, ProviderEvent};
use super::log_header::{self, Totals};
use super::session::Session;
use crate::buffer::{HEADER_SIZE, TYPE_HEADER, flag};
use crate::clock::Clock;
use crate::compress::compress_xpress;
use crate::event::Event;

/// Largest record, header included: its size is a u16.
const MAX_RECORD: usize = 0xFFFF;

/// The logger id of a live session; any but 0, which is a relogger's.
const LIVE_LOGGER: u16 = 1;

/// What a session could not log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Events.
    pub events: u32,
    /// Buffers that could not be written. The events they held are lost too: count both.
    pub buffers: u32,
}

/// Writes one log. Events of each CPU must come in time order; CPUs are independent.
///
/// Buffers are numbered in the order in which their first event comes and written when they are
/// full, as a session of Windows does: a file whose events come in the order of time looks like a
/// real one.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    session: Session,
    clock: Clock,
    cpus: Vec<CpuBuffer>,
    next_sequence: i64,
    /// Raw time from which on all buffers are due to be written.
    next_flush: i64,
    last_time: i64,
    totals: Totals,
    compressed: Vec<u8>,
}

/// The buffer that a CPU fills.
#[derive(Debug)]
struct CpuBuffer {
    /// Room for a buffer header and the records so far; empty when no buffer is open.
    bytes: Vec<u8>,
    sequence: i64,
    /// Flags that the next buffer to be written has.
    flags: u16,
    last_time: i64,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a log at the output's present position, which must be its start.
    ///
    /// # Errors
    /// If the session cannot be written as asked, or the output fails.
    pub fn new(out: W, session: Session) -> Result<Writer<W>, WriteError> {
        session.check()?;
        let cpu = |_| CpuBuffer {
            bytes: Vec::new(),
            sequence: 0,
            flags: 0,
            last_time: i64::MIN,
        };
        let mut writer = Writer {
            out,
            clock: session.log_clock(),
            cpus: (0..session.processors).map(cpu).collect(),
            next_sequence: 1,
            next_flush: i64::MAX,
            last_time: session.raw_start,
            totals: Totals {
                events_lost: session.events_lost,
                buffers_lost: session.buffers_lost,
                ..Totals::default()
            },
            compressed: Vec::new(),
            session,
        };
        writer.set_flush_timer(writer.session.raw_start);
        writer.write_header()?;
        Ok(writer)
    }

    /// Logs a kernel event with a 64-bit payload.
    ///
    /// # Errors
    /// If the event is too large, its CPU unknown or its time before the CPU's last.
    #[inline]
    pub fn kernel(
        &mut self,
        cpu: u16,
        event: KernelEvent,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.put(cpu, &event, payload)
    }

    /// Logs a classic event with a 64-bit payload.
    ///
    /// # Errors
    /// As for [`Writer::kernel`].
    pub fn classic(
        &mut self,
        cpu: u16,
        event: ClassicEvent,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.put(cpu, &event, payload)
    }

    /// Logs a manifest or TraceLogging event with a 64-bit payload.
    ///
    /// # Errors
    /// As for [`Writer::kernel`].
    #[inline]
    pub fn provider(
        &mut self,
        cpu: u16,
        event: ProviderEvent<'_>,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.put(cpu, &event, payload)
    }

    #[inline]
    fn put(&mut self, cpu: u16, event: &impl Head, payload: &[u8]) -> Result<(), WriteError> {
        let size = event.head_size() + payload.len();
        let buffer = self.begin_record(cpu, event.time(), size)?;
        event.put_head(size as u16, buffer);
        buffer.extend_from_slice(payload);
        Ok(())
    }

    /// Logs an event that was read, byte for byte and of whatever kind, on its CPU. Its raw time
    /// must be of this session's clock; the header event of another log is not one to copy.
    ///
    /// # Errors
    /// As for [`Writer::kernel`].
    pub fn copy(&mut self, event: &Event<'_>) -> Result<(), WriteError> {
        self.copy_bytes(event, event.record())
    }

    /// Logs `record`, an event's record with some of its bytes changed, as [`Writer::copy`] does.
    ///
    /// # Errors
    /// As for [`Writer::kernel`].
    pub fn copy_bytes(&mut self, event: &Event<'_>, record: &[u8]) -> Result<(), WriteError> {
        let buffer = self.begin_record(event.cpu(), event.raw_time(), record.len())?;
        buffer.extend_from_slice(record);
        Ok(())
    }

    /// Notes that a CPU could not log something. The header will count it. The loss lies between
    /// two of the CPU's buffers: the present one, if any, is written, and the next one is marked.
    /// If no event follows on the CPU, only the header tells of it.
    ///
    /// Windows may also say it in events: [`super::companion`] has them.
    ///
    /// # Errors
    /// If the CPU is unknown or the output fails.
    pub fn lose(&mut self, cpu: u16, loss: Loss) -> Result<(), WriteError> {
        self.cpu(cpu)?;
        self.flush(cpu, self.last_time, 0)?;
        let buffer = &mut self.cpus[usize::from(cpu)];
        if loss.events > 0 {
            buffer.flags |= flag::EVENTS_LOST;
        }
        if loss.buffers > 0 {
            buffer.flags |= flag::BUFFER_LOST;
        }
        let totals = &mut self.totals;
        totals.events_lost = totals.events_lost.saturating_add(loss.events);
        totals.buffers_lost = totals.buffers_lost.saturating_add(loss.buffers);
        Ok(())
    }

    /// Writes all buffers, patches the header and returns the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        let is_open = |cpu: &u16| !self.cpus[usize::from(*cpu)].bytes.is_empty();
        let open: Vec<u16> = (0..self.session.processors).filter(is_open).collect();
        for (i, cpu) in open.iter().enumerate() {
            let last = i + 1 == open.len();
            let flags = if last { flag::FLUSH_MARKER } else { 0 };
            self.flush(*cpu, self.last_time, flags)?;
        }
        self.totals.end = match self.session.end {
            Some(end) => end,
            None => self.clock.to_filetime(self.last_time),
        };
        self.out.seek(SeekFrom::Start(0))?;
        self.totals.buffers_written -= 1;
        self.write_header()?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Makes room for a record of `size` bytes in the CPU's buffer and returns the buffer, to
    /// which exactly so many bytes must be appended.
    #[inline]
    fn begin_record(
        &mut self,
        cpu: u16,
        time: i64,
        size: usize,
    ) -> Result<&mut Vec<u8>, WriteError> {
        let buffer_size = self.session.buffer_size as usize;
        let limit = MAX_RECORD.min(buffer_size - HEADER_SIZE);
        let last = self.cpu(cpu)?.last_time;
        if time < last {
            return Err(WriteError::OutOfOrder { cpu, time, last });
        }
        if size > limit {
            return Err(WriteError::TooLarge { size, limit });
        }
        if time >= self.next_flush {
            self.flush_on_timer(time)?;
        }
        let used = self.cpus[usize::from(cpu)].bytes.len();
        if used.next_multiple_of(8) + size > buffer_size {
            self.flush(cpu, self.last_time, 0)?;
        }
        if self.cpus[usize::from(cpu)].bytes.is_empty() {
            self.open(cpu);
        }
        self.last_time = self.last_time.max(time);
        let buffer = &mut self.cpus[usize::from(cpu)];
        buffer.last_time = time;
        let aligned = buffer.bytes.len().next_multiple_of(8);
        buffer.bytes.resize(aligned, 0);
        Ok(&mut buffer.bytes)
    }

    #[inline]
    fn cpu(&self, cpu: u16) -> Result<&CpuBuffer, WriteError> {
        let processors = self.session.processors;
        self.cpus
            .get(usize::from(cpu))
            .ok_or(WriteError::NoSuchCpu { cpu, processors })
    }

    /// Begins a buffer for the CPU.
    fn open(&mut self, cpu: u16) {
        let buffer = &mut self.cpus[usize::from(cpu)];
        buffer
            .bytes
            .reserve_exact(self.session.buffer_size as usize);
        buffer.bytes.resize(HEADER_SIZE, 0);
        buffer.sequence = self.next_sequence;
        self.next_sequence += 1;
    }

    /// Writes the CPU's buffer, if one is open.
    fn flush(&mut self, cpu: u16, time: i64, flags: u16) -> Result<(), WriteError> {
        let buffer = &mut self.cpus[usize::from(cpu)];
        if buffer.bytes.is_empty() {
            return Ok(());
        }
        let head = BufferHead {
            cpu,
            sequence: buffer.sequence,
            time,
            logger: LIVE_LOGGER,
            buffer_type: 0,
            flags: std::mem::take(&mut buffer.flags) | flags | flag::PROCESSOR_INDEX,
            state: STATE_FLUSH,
        };
        let mut bytes = std::mem::take(&mut buffer.bytes);
        let written = self.write_buffer(head, &mut bytes);
        bytes.clear();
        self.cpus[usize::from(cpu)].bytes = bytes;
        written
    }

    /// Writes all open buffers when the flush timer has expired.
    #[cold]
    fn flush_on_timer(&mut self, now: i64) -> Result<(), WriteError> {
        let due = self.next_flush;
        for cpu in 0..self.session.processors {
            self.flush(cpu, due, 0)?;
        }
        self.set_flush_timer(now);
        Ok(())
    }

    /// Sets the flush timer to the first multiple of its interval after `now`.
    fn set_flush_timer(&mut self, now: i64) {
        let Some(interval) = self.session.flush_interval else {
            return;
        };
        let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let expired = self.clock.to_ns(now).div_euclid(interval);
        let next = expired.saturating_add(1).saturating_mul(interval);
        self.next_flush = self.clock.from_ns(next).max(now.saturating_add(1));
    }

    /// Writes the header buffer at the output's position.
    fn write_header(&mut self) -> Result<(), WriteError> {
        let relogged = self.session.is_relogged();
        let head = BufferHead {
            cpu: 0,
            sequence: 0,
            time: self.last_time,
            logger: LIVE_LOGGER,
            buffer_type: TYPE_HEADER,
            flags: match relogged {
                true => flag::FLUSH_MARKER,
                false => flag::FLUSH_MARKER | flag::PROCESSOR_INDEX,
            },
            // A relogger names the compression here.
            state: match (relogged, self.session.compressed) {
                (true, false) => 0,
                (_, true) => FORMAT_XPRESS,
                (false, false) => STATE_FLUSH,
            },
        };
        let totals = Totals {
            // As far as known while the log is being written; this buffer counts, too.
            buffers_written: self.totals.buffers_written + 1,
            ..self.totals
        };
        let mut bytes = vec![0; HEADER_SIZE];
        bytes.extend(log_header::records(&self.session, totals));
        self.write_buffer(head, &mut bytes)
    }

    /// Writes a buffer whose records follow the room for its header in `bytes`.
    fn write_buffer(&mut self, head: BufferHead, bytes: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut head = head;
        // Some readers want the last record padded, too.
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let valid = bytes.len() as u32;
        if self.session.is_relogged() {
            head.logger = 0;
            head.time = self.clock.to_filetime(head.time);
        }
        if self.session.compressed && head.buffer_type != TYPE_HEADER {
            head.flags |= flag::COMPRESSED;
            self.compressed.clear();
            self.compressed.resize(HEADER_SIZE, 0);
            compress_xpress(&bytes[HEADER_SIZE..], &mut self.compressed);
            head.put(&mut self.compressed, valid);
            self.out.write_all(&self.compressed)?;
        } else {
            bytes.resize(self.session.buffer_size as usize, 0xFF);
            head.put(bytes, valid);
            self.out.write_all(bytes)?;
        }
        self.totals.buffers_written += 1;
        Ok(())
    }
}

/// `State` of a buffer that was written.
const STATE_FLUSH: u32 = 3;

/// The compression format in the place of `State` in the header buffer of a compressed log.
const FORMAT_XPRESS: u32 = 3;

/// What a buffer's header says, apart from sizes.
#[derive(Clone, Copy, Debug)]
struct BufferHead {
    cpu: u16,
    sequence: i64,
    /// Time at which it is written.
    time: i64,
    logger: u16,
    buffer_type: u16,
    flags: u16,
    state: u32,
}

impl BufferHead {
    /// Writes the header to the first bytes of a buffer that is as long as it will be stored.
    fn put(self, buffer: &mut [u8], valid: u32) {
        let stored = buffer.len() as u32;
        let mut put = |at: usize, bytes: &[u8]| {
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(0x00, &stored.to_le_bytes());
        for at in [0x04, 0x08, 0x30] {
            put(at, &valid.to_le_bytes());
        }
        put(0x10, &self.time.to_le_bytes());
        put(0x18, &self.sequence.to_le_bytes());
        put(0x28, &self.cpu.to_le_bytes());
        put(0x2A, &self.logger.to_le_bytes());
        put(0x2C, &self.state.to_le_bytes());
        put(0x34, &self.flags.to_le_bytes());
        put(0x36, &self.buffer_type.to_le_bytes());
    }
}
