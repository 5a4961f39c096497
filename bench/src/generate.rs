//! A log of any size with the mixture of a context-switch recording: what the speed is measured
//! on where real files are too small. The contents are made up; the layouts are Windows'.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use etl::write::{KernelEvent, Session, WriteError, Writer};

const CPUS: u64 = 16;

/// Writes a log of about `size` bytes to `path`; returns how many events it has.
pub(crate) fn write(path: &Path, size: u64, compressed: bool) -> io::Result<u64> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let session = Session {
        processors: CPUS as u16,
        start: 134_000_000_000_000_000,
        boot: 133_999_000_000_000_000,
        os_build: 26_100,
        cpu_mhz: 3_600,
        name: "bench".into(),
        compressed,
        ..Session::default()
    };
    let mut log = Log {
        writer: Writer::new(BufWriter::with_capacity(1 << 20, file), session).map_err(other)?,
        random: 0x2545_F491_4F6C_DD1D,
        time: 0,
        events: 1,
        bytes: 0,
    };
    while log.bytes < size {
        log.round().map_err(other)?;
    }
    log.writer.finish().map_err(other)?;
    Ok(log.events)
}

fn other(error: WriteError) -> io::Error {
    io::Error::other(error)
}

struct Log<W> {
    writer: Writer<W>,
    random: u64,
    time: i64,
    events: u64,
    bytes: u64,
}

impl<W: io::Write + io::Seek> Log<W> {
    /// Ten events on one CPU: three context switches with their ready events, two samples with a
    /// stack each of up to 40 frames, a DPC and an ISR... in the proportions of a busy machine.
    fn round(&mut self) -> Result<(), WriteError> {
        let r = self.next();
        let cpu = (r % CPUS) as u16;
        let threads = [(r >> 8) as u32 & 0x3FFC, (r >> 24) as u32 & 0x3FFC];
        for i in 0..3 {
            self.log(cpu, 0x0532, 2, &[&threads[0].to_le_bytes(), &[1, 0, 0, 0]])?;
            let (new, old) = (threads[i & 1], threads[1 - (i & 1)]);
            let switch: [&[u8]; 4] = [
                &new.to_le_bytes(),
                &old.to_le_bytes(),
                &[9, 8, 0, 0, 6, 1, 5, cpu as u8],
                &[7, 0, 0, 0, 99, 0, 0, 0, 4, 0, 0, 0],
            ];
            self.log(cpu, 0x0524, 5, &switch)?;
        }
        let routine = (0xFFFF_F800_0000_0000 | (r & 0xFFF_FFFF)).to_le_bytes();
        let entry = (self.time - 40).to_le_bytes();
        self.log(cpu, 0x0F44, 2, &[&entry, &routine])?;
        self.log(cpu, 0x0F43, 2, &[&entry, &routine, &[1, 0x31, 0, 0]])?;
        let sample_time = self.time;
        let thread = threads[0].to_le_bytes();
        self.log(cpu, 0x0F2E, 2, &[&routine, &thread, &[1, 0, 0x48, 0]])?;
        let mut frames = [0u8; 8 * 40];
        for frame in frames.chunks_exact_mut(8) {
            frame.copy_from_slice(&(0x7FF6_0000_0000 | (self.next() & 0xFFF_FFFF)).to_le_bytes());
        }
        let used = 8 * (20 + self.next() as usize % 20);
        let time = sample_time.to_le_bytes();
        self.log(
            cpu,
            0x1820,
            2,
            &[&time, &[8, 16, 0, 0], &thread, &frames[..used]],
        )?;
        Ok(())
    }

    fn log(&mut self, cpu: u16, hook: u16, version: u8, parts: &[&[u8]]) -> Result<(), WriteError> {
        let mut payload = [0; 512];
        let mut size = 0;
        for part in parts {
            payload[size..size + part.len()].copy_from_slice(part);
            size += part.len();
        }
        let time = self.time;
        self.time += 1 + (self.random >> 60) as i64;
        let event = KernelEvent {
            hook,
            version,
            time,
            thread: None,
        };
        self.writer.kernel(cpu, event, &payload[..size])?;
        self.events += 1;
        self.bytes += (16 + size).next_multiple_of(8) as u64;
        Ok(())
    }

    /// Xorshift: a fixed sequence, so that every run measures the same file.
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
