//! Writing valid logs: buffers per CPU in the order a live session would flush them.
//!
//! The recipe is the reader's mirror image: one header buffer, then fixed-size data buffers (or
//! XPRESS-compressed ones), patched at the end with what is known only then.

use std::io::{self, Seek, SeekFrom, Write};

use crate::buffer::{HEADER_SIZE, TYPE_HEADER, flag};
use crate::compress::compress_xpress;
use crate::event::{Descriptor, HeaderKind};
use crate::guid::Guid;
use crate::logfile::mode;

/// Largest record, header included: its size is a u16.
const MAX_RECORD: usize = 0xFFFF;

/// What a written log says about its session and machine.
#[derive(Clone, Debug)]
pub struct Session {
    /// Buffer size in bytes; a power of two from 1 KiB to 16 MiB.
    pub buffer_size: u32,
    /// Number of CPUs.
    pub processors: u16,
    /// Ticks of the performance counter per second.
    pub perf_frequency: u64,
    /// Raw time of the session's start.
    pub raw_start: i64,
    /// Session start as FILETIME (100 ns since 1601 UTC).
    pub start: i64,
    /// Boot time as FILETIME.
    pub boot: i64,
    /// Operating system version.
    pub os_version: (u8, u8),
    /// Operating system build.
    pub os_build: u32,
    /// Nominal CPU speed.
    pub cpu_mhz: u32,
    /// Session name.
    pub name: String,
    /// Log file name.
    pub log_file: String,
    /// Compress the data buffers (XPRESS).
    pub compressed: bool,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            buffer_size: 64 << 10,
            processors: 1,
            perf_frequency: 10_000_000,
            raw_start: 0,
            start: 0,
            boot: 0,
            os_version: (10, 0),
            os_build: 0,
            cpu_mhz: 0,
            name: String::new(),
            log_file: String::new(),
            compressed: false,
        }
    }
}

/// Identity of a kernel event: its hook, version, and who logged it when.
#[derive(Clone, Copy, Debug)]
pub struct KernelEvent {
    /// Group in the high byte, opcode in the low one.
    pub hook: u16,
    /// Version of the payload's layout.
    pub version: u8,
    /// Raw time.
    pub time: i64,
    /// Logging thread and process (SYSTEM header), or `None` for a PERFINFO header.
    pub thread: Option<(u32, u32)>,
}

/// Identity of a classic event.
#[derive(Clone, Copy, Debug)]
pub struct ClassicEvent {
    /// Event class.
    pub class: Guid,
    /// Opcode.
    pub opcode: u8,
    /// Version of the payload's layout.
    pub version: u8,
    /// Raw time.
    pub time: i64,
    /// Logging thread.
    pub thread_id: u32,
    /// Logging process.
    pub process_id: u32,
}

/// Identity of a manifest or TraceLogging event.
#[derive(Clone, Copy, Debug)]
pub struct ProviderEvent<'a> {
    /// Provider.
    pub provider: Guid,
    /// Id, version, level, opcode, task and keyword.
    pub descriptor: Descriptor,
    /// Raw time.
    pub time: i64,
    /// Logging thread.
    pub thread_id: u32,
    /// Logging process.
    pub process_id: u32,
    /// Activity id; zero for none.
    pub activity: Guid,
    /// Extended items: type and data.
    pub extended: &'a [(u16, &'a [u8])],
}

/// Why an event was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The record does not fit in a buffer or in a record's 16-bit size.
    #[error("event of {size} bytes is larger than the {limit} a record can have")]
    TooLarge {
        /// Size of the record, header included.
        size: usize,
        /// Largest size.
        limit: usize,
    },
    /// The CPU is not one of the session's.
    #[error("CPU {cpu} is not one of the session's {processors}")]
    NoSuchCpu {
        /// CPU asked for.
        cpu: u16,
        /// CPUs there are.
        processors: u16,
    },
    /// The CPU's last event is later than this one.
    #[error("event at raw time {time} follows one at {last} on CPU {cpu}")]
    OutOfOrder {
        /// CPU concerned.
        cpu: u16,
        /// Time of the event.
        time: i64,
        /// Time of the CPU's last event.
        last: i64,
    },
    /// The session cannot be written as asked.
    #[error("session: {0}")]
    BadSession(&'static str),
    /// The output failed.
    #[error("writing the trace: {0}")]
    Io(#[from] io::Error),
}

/// Writes one log. Events of each CPU must come in time order; CPUs are independent.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    session: Session,
    cpus: Vec<CpuBuffer>,
    sequence: i64,
    last_time: i64,
    buffers_written: u32,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct CpuBuffer {
    /// Records so far, without the buffer header.
    records: Vec<u8>,
    last_time: i64,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a log at the output's present position, which must be its start.
    ///
    /// # Errors
    /// If the session's buffer size or CPU count is out of range, or the output fails.
    pub fn new(out: W, session: Session) -> Result<Writer<W>, WriteError> {
        if !session.buffer_size.is_power_of_two()
            || !(1 << 10..=16 << 20).contains(&session.buffer_size)
        {
            return Err(WriteError::BadSession(
                "buffer size is no power of two from 1 KiB to 16 MiB",
            ));
        }
        if session.processors == 0 || session.processors > 0x7FF {
            return Err(WriteError::BadSession("processors are not 1 to 2047"));
        }
        let cpu = || CpuBuffer {
            records: Vec::new(),
            last_time: i64::MIN,
        };
        let cpus = (0..session.processors).map(|_| cpu()).collect();
        let last_time = session.raw_start;
        let mut writer = Writer {
            out,
            session,
            cpus,
            sequence: 0,
            last_time,
            buffers_written: 0,
            scratch: Vec::new(),
        };
        let record = writer.header_record(0);
        writer.write_buffer(0, &record, TYPE_HEADER, flag::FLUSH_MARKER)?;
        Ok(writer)
    }

    /// Logs a kernel event with a 64-bit payload.
    ///
    /// # Errors
    /// If the event is too large, its CPU unknown or its time before the CPU's last.
    pub fn kernel(
        &mut self,
        cpu: u16,
        event: KernelEvent,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        let mut head = [0; 32];
        let kind = match event.thread {
            Some((thread, process)) => {
                head[8..12].copy_from_slice(&thread.to_le_bytes());
                head[12..16].copy_from_slice(&process.to_le_bytes());
                head[16..24].copy_from_slice(&event.time.to_le_bytes());
                HeaderKind::System64
            }
            None => {
                head[8..16].copy_from_slice(&event.time.to_le_bytes());
                HeaderKind::PerfInfo64
            }
        };
        let head_size = kind.min_size();
        let size = checked_size(head_size + payload.len())?;
        head[0] = event.version;
        head[2..4].copy_from_slice(&[kind as u8, 0xC0]);
        head[4..6].copy_from_slice(&size.to_le_bytes());
        head[6..8].copy_from_slice(&event.hook.to_le_bytes());
        self.log(cpu, event.time, &[&head[..head_size], payload])
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
        let mut head = [0; 48];
        let size = checked_size(head.len() + payload.len())?;
        head[0..2].copy_from_slice(&size.to_le_bytes());
        head[2..4].copy_from_slice(&[HeaderKind::Full64 as u8, 0xC0]);
        head[4] = event.opcode;
        head[6] = event.version;
        head[8..12].copy_from_slice(&event.thread_id.to_le_bytes());
        head[12..16].copy_from_slice(&event.process_id.to_le_bytes());
        head[16..24].copy_from_slice(&event.time.to_le_bytes());
        head[24..40].copy_from_slice(&event.class.0);
        self.log(cpu, event.time, &[&head, payload])
    }

    /// Logs a manifest or TraceLogging event with a 64-bit payload.
    ///
    /// # Errors
    /// As for [`Writer::kernel`].
    pub fn provider(
        &mut self,
        cpu: u16,
        event: ProviderEvent<'_>,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        let mut items = Vec::new();
        for (i, (ext_type, data)) in event.extended.iter().enumerate() {
            let data_size = checked_size(data.len())?;
            let total = checked_size(8 + data.len().next_multiple_of(8))?;
            items.extend_from_slice(&total.to_le_bytes());
            items.extend_from_slice(&ext_type.to_le_bytes());
            items.extend_from_slice(&u16::from(i + 1 < event.extended.len()).to_le_bytes());
            items.extend_from_slice(&data_size.to_le_bytes());
            items.extend_from_slice(data);
            items.resize(items.len().next_multiple_of(8), 0);
        }
        let size = checked_size(80 + items.len() + payload.len())?;
        let d = &event.descriptor;
        let mut head = Vec::with_capacity(80);
        head.extend_from_slice(&size.to_le_bytes());
        head.extend_from_slice(&[HeaderKind::EventHeader64 as u8, 0xC0]);
        head.extend_from_slice(&u16::from(!items.is_empty()).to_le_bytes());
        head.extend_from_slice(&[0, 0]);
        head.extend_from_slice(&event.thread_id.to_le_bytes());
        head.extend_from_slice(&event.process_id.to_le_bytes());
        head.extend_from_slice(&event.time.to_le_bytes());
        head.extend_from_slice(&event.provider.0);
        head.extend_from_slice(&d.id.to_le_bytes());
        head.extend_from_slice(&[d.version, d.channel, d.level, d.opcode]);
        head.extend_from_slice(&d.task.to_le_bytes());
        head.extend_from_slice(&d.keyword.to_le_bytes());
        head.extend_from_slice(&[0; 8]);
        head.extend_from_slice(&event.activity.0);
        self.log(cpu, event.time, &[&head, &items, payload])
    }

    /// Flushes all buffers, patches the header and returns the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        let open: Vec<u16> = (0..self.session.processors)
            .filter(|cpu| !self.cpus[usize::from(*cpu)].records.is_empty())
            .collect();
        for (i, cpu) in open.iter().enumerate() {
            let flags = if i + 1 == open.len() {
                flag::FLUSH_MARKER
            } else {
                0
            };
            self.flush(*cpu, flags)?;
        }
        let ticks = i128::from(self.last_time) - i128::from(self.session.raw_start);
        let units = ticks * 10_000_000 / i128::from(self.session.perf_frequency.max(1));
        let end = (i128::from(self.session.start) + units) as i64;
        let total = self.buffers_written;
        let record = self.header_record(end);
        self.out.seek(SeekFrom::Start(0))?;
        self.sequence = 0;
        self.write_buffer(0, &record, TYPE_HEADER, flag::FLUSH_MARKER)?;
        debug_assert!(
            self.buffers_written == total + 1,
            "the header buffer was written twice"
        );
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn log(&mut self, cpu: u16, time: i64, parts: &[&[u8]]) -> Result<(), WriteError> {
        let processors = self.session.processors;
        let room = self.session.buffer_size as usize - HEADER_SIZE;
        let buffer = self
            .cpus
            .get_mut(usize::from(cpu))
            .ok_or(WriteError::NoSuchCpu { cpu, processors })?;
        if time < buffer.last_time {
            return Err(WriteError::OutOfOrder {
                cpu,
                time,
                last: buffer.last_time,
            });
        }
        let size: usize = parts.iter().map(|p| p.len()).sum();
        if size.next_multiple_of(8) > room {
            return Err(WriteError::TooLarge { size, limit: room });
        }
        if buffer.records.len() + size.next_multiple_of(8) > room {
            self.flush(cpu, 0)?;
        }
        let buffer = &mut self.cpus[usize::from(cpu)];
        buffer.last_time = time;
        for part in parts {
            buffer.records.extend_from_slice(part);
        }
        buffer
            .records
            .resize(buffer.records.len().next_multiple_of(8), 0);
        self.last_time = self.last_time.max(time);
        Ok(())
    }

    fn flush(&mut self, cpu: u16, flags: u16) -> Result<(), WriteError> {
        let mut records = std::mem::take(&mut self.cpus[usize::from(cpu)].records);
        self.write_buffer(cpu, &records, 0, flags)?;
        records.clear();
        self.cpus[usize::from(cpu)].records = records;
        Ok(())
    }

    fn write_buffer(
        &mut self,
        cpu: u16,
        records: &[u8],
        buffer_type: u16,
        flags: u16,
    ) -> Result<(), WriteError> {
        let valid = (HEADER_SIZE + records.len()) as u32;
        let is_header = buffer_type == TYPE_HEADER;
        let compress = self.session.compressed && !is_header;
        self.scratch.clear();
        let (body, stored, flags): (&[u8], u32, u16) = if compress {
            compress_xpress(records, &mut self.scratch);
            let stored = (HEADER_SIZE + self.scratch.len()) as u32;
            (&self.scratch, stored, flags | flag::COMPRESSED)
        } else {
            (records, self.session.buffer_size, flags)
        };
        let mut head = [0; HEADER_SIZE];
        head[0x00..0x04].copy_from_slice(&stored.to_le_bytes());
        for at in [0x04, 0x08, 0x30] {
            head[at..at + 4].copy_from_slice(&valid.to_le_bytes());
        }
        head[0x10..0x18].copy_from_slice(&self.last_time.to_le_bytes());
        head[0x18..0x20].copy_from_slice(&self.sequence.to_le_bytes());
        head[0x28..0x2A].copy_from_slice(&cpu.to_le_bytes());
        head[0x2A..0x2C].copy_from_slice(&1u16.to_le_bytes());
        // A flushed buffer; in the header buffer of a compressed log the same 3 names XPRESS.
        head[0x2C..0x30].copy_from_slice(&3u32.to_le_bytes());
        head[0x34..0x36].copy_from_slice(&(flags | flag::PROCESSOR_INDEX).to_le_bytes());
        head[0x36..0x38].copy_from_slice(&buffer_type.to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(body)?;
        let mut fill = stored as usize - HEADER_SIZE - body.len();
        const FILL: [u8; 4096] = [0xFF; 4096];
        while fill > 0 {
            let n = fill.min(FILL.len());
            self.out.write_all(&FILL[..n])?;
            fill -= n;
        }
        self.sequence += 1;
        self.buffers_written += 1;
        Ok(())
    }

    /// The log-file header event, as one SYSTEM64 record.
    fn header_record(&self, end: i64) -> Vec<u8> {
        let s = &self.session;
        let mut p = vec![0; 0x118];
        let mut put = |at: usize, bytes: &[u8]| p[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x00, &s.buffer_size.to_le_bytes());
        put(0x04, &[s.os_version.0, s.os_version.1]);
        put(0x06, if s.compressed { &[2, 0] } else { &[1, 5] });
        put(0x08, &s.os_build.to_le_bytes());
        put(0x0C, &u32::from(s.processors).to_le_bytes());
        put(0x10, &end.to_le_bytes());
        put(0x18, &156_250u32.to_le_bytes());
        put(
            0x20,
            &(1 | if s.compressed { mode::COMPRESSED } else { 0 }).to_le_bytes(),
        );
        put(0x24, &self.buffers_written.to_le_bytes());
        put(0x28, &1u32.to_le_bytes());
        put(0x2C, &8u32.to_le_bytes());
        put(0x34, &s.cpu_mhz.to_le_bytes());
        put(0xF8, &s.boot.to_le_bytes());
        put(0x100, &s.perf_frequency.to_le_bytes());
        put(0x108, &s.start.to_le_bytes());
        put(0x110, &1u32.to_le_bytes());
        // The names share what is left of a 1 KiB buffer, the smallest there is.
        for name in [&s.name, &s.log_file] {
            p.extend(name.encode_utf16().take(150).flat_map(u16::to_le_bytes));
            p.extend([0, 0]);
        }
        let mut record = vec![0; 32];
        record[0..4].copy_from_slice(&[2, 0, HeaderKind::System64 as u8, 0xC0]);
        record[4..6].copy_from_slice(&((32 + p.len()) as u16).to_le_bytes());
        record[16..24].copy_from_slice(&s.raw_start.to_le_bytes());
        record.extend(p);
        record.resize(record.len().next_multiple_of(8), 0);
        record
    }
}

fn checked_size(size: usize) -> Result<u16, WriteError> {
    u16::try_from(size).map_err(|_| WriteError::TooLarge {
        size,
        limit: MAX_RECORD,
    })
}
