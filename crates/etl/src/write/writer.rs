//! Writer of a log file. Each CPU has separate buffers. Buffers are written in the order in which they become
//! full.

use std::io::{Seek, SeekFrom, Write};

use super::error::WriteError;
use super::event::{ClassicEvent, Head, KernelEvent, ProviderEvent};
use super::log_header::{self, Totals};
use super::session::Session;
use crate::buffer::{HEADER_SIZE, TYPE_HEADER, flag};
use crate::clock::Clock;
use crate::compress::compress_xpress;
use crate::event::Event;

/// Maximum size of a record in bytes, including its header. The size field is a u16.
const MAX_RECORD: usize = 0xFFFF;

/// Logger id in the buffer headers of a live session. A relogger writes 0 instead.
const LIVE_LOGGER: u16 = 1;

/// Number of lost events and number of lost buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Number of lost events.
    pub events: u32,
    /// Number of lost buffers. A lost buffer could not be written. The events of the lost buffers must be
    /// included in `events`.
    pub buffers: u32,
}

/// Writer of one log. The events of each CPU must be in time order. Events of different CPUs can be in any
/// order.
///
/// As in a Windows session, a buffer gets its sequence number at its first event. The buffer is written when
/// it is full. If events arrive in time order, the file looks like a real log.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    session: Session,
    clock: Clock,
    cpus: Vec<CpuBuffer>,
    next_sequence: i64,
    /// Raw time at which the flush timer expires and all buffers must be written.
    next_flush: i64,
    last_time: i64,
    totals: Totals,
    compressed: Vec<u8>,
}

/// Buffer that a CPU is filling.
#[derive(Debug)]
struct CpuBuffer {
    /// Space for a buffer header, then the records so far. The vector is empty if the CPU has no open buffer.
    bytes: Vec<u8>,
    sequence: i64,
    /// Flags that the CPU's next written buffer gets.
    flags: u16,
    last_time: i64,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a log. The position of `out` must be at the start of `out`.
    ///
    /// # Errors
    /// Returns an error if the session's settings are invalid, or if the output fails.
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

    /// Writes a kernel event with a 64-bit payload.
    ///
    /// # Errors
    /// Returns an error if the event is too large, if its CPU is unknown, if its time is before the
    /// CPU's last event, or if the output fails.
    #[inline]
    pub fn kernel(
        &mut self,
        cpu: u16,
        event: KernelEvent,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.put(cpu, &event, payload)
    }

    /// Writes a classic event with a 64-bit payload.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::kernel`].
    pub fn classic(
        &mut self,
        cpu: u16,
        event: ClassicEvent,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.put(cpu, &event, payload)
    }

    /// Writes a manifest or TraceLogging event with a 64-bit payload.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::kernel`].
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

    /// Writes an event of another log without a change, for the same CPU. The event can have any kind of header. The
    /// raw time of the event must be in ticks of this session's clock. The header event of the other log must not be
    /// copied.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::kernel`].
    pub fn copy(&mut self, event: &Event<'_>) -> Result<(), WriteError> {
        self.copy_bytes(event, event.record())
    }

    /// Writes `record`, like [`Writer::copy`]. `record` is a modified copy of the record of `event`.
    ///
    /// # Errors
    /// Returns the errors of [`Writer::kernel`].
    pub fn copy_bytes(&mut self, event: &Event<'_>, record: &[u8]) -> Result<(), WriteError> {
        let buffer = self.begin_record(event.cpu(), event.raw_time(), record.len())?;
        buffer.extend_from_slice(record);
        Ok(())
    }

    /// Records that events or buffers of a CPU were lost, and adds them to the header's totals. The CPU's
    /// current buffer is written, and the CPU's next buffer is marked. So the marked loss is between these
    /// two buffers. If no event follows on the CPU, only the header records the loss.
    ///
    /// Windows can also log an event about a loss: see [`super::companion`].
    ///
    /// # Errors
    /// Returns an error if the CPU is unknown or the output fails.
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

    /// Writes all buffers, overwrites the header with the final values and returns the output.
    ///
    /// # Errors
    /// Returns an error if the output fails.
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

    /// Makes room for a record of `size` bytes in the CPU's buffer. Returns the buffer. The caller must
    /// append exactly `size` bytes to the buffer.
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

    /// Begins a new buffer for the CPU.
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

    /// Writes all open buffers after the flush timer expired.
    #[cold]
    fn flush_on_timer(&mut self, now: i64) -> Result<(), WriteError> {
        let due = self.next_flush;
        for cpu in 0..self.session.processors {
            self.flush(cpu, due, 0)?;
        }
        self.set_flush_timer(now);
        Ok(())
    }

    /// Sets the time of the next flush to the first multiple of the flush interval after `now`.
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
            flags: if relogged {
                flag::FLUSH_MARKER
            } else {
                flag::FLUSH_MARKER | flag::PROCESSOR_INDEX
            },
            // If the log is compressed, the header buffer has the compression format in this field.
            state: match (relogged, self.session.compressed) {
                (true, false) => 0,
                (_, true) => FORMAT_XPRESS,
                (false, false) => STATE_FLUSH,
            },
        };
        let totals = Totals {
            // `buffers_written` includes this header buffer. While the log is being written,
            // `buffers_written` is preliminary.
            buffers_written: self.totals.buffers_written + 1,
            ..self.totals
        };
        let mut bytes = vec![0; HEADER_SIZE];
        bytes.extend(log_header::records(&self.session, totals));
        self.write_buffer(head, &mut bytes)
    }

    /// Writes a buffer. `bytes` contains space for the buffer header, then the records.
    fn write_buffer(&mut self, head: BufferHead, bytes: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut head = head;
        // The last record is padded too, because some readers expect this.
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

/// Value that `State` has in the header of a written buffer.
const STATE_FLUSH: u32 = 3;

/// Number of the compression format XPRESS. In a compressed log, the field `State` of the header buffer
/// contains this number.
const FORMAT_XPRESS: u32 = 3;

/// Fields of a buffer header, without the sizes.
#[derive(Clone, Copy, Debug)]
struct BufferHead {
    cpu: u16,
    sequence: i64,
    /// Raw time at which the buffer is written.
    time: i64,
    logger: u16,
    buffer_type: u16,
    flags: u16,
    state: u32,
}

impl BufferHead {
    /// Writes the header into the first bytes of `buffer`. `buffer` already has its final stored size.
    /// `valid` is the number of valid bytes before compression.
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
