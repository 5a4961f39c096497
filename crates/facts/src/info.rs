//! Facts about a trace that `laglab info` prints.

use std::collections::BTreeSet;
use std::{fs, io};

use etl::compress::Compression;
use etl::{LogFileHeader, Trace, buffer_flag, mode};
use serde::Serialize;
use tables::{Options, Store, StoreError, Table};

use crate::contents::{self, Content, Missing};
use crate::damage::DamageReport;
use crate::fact_rows::{self, FactRows};
use crate::utc;
use crate::windows_release::windows_release;

/// Facts about a trace. The JSON form omits unknown values.
#[derive(Debug, Serialize)]
pub struct Info {
    /// True if laglab's simulator wrote the trace.
    #[serde(skip)]
    simulated: bool,
    /// True if all files were recorded on one machine between two of its restarts.
    pub one_system: bool,
    /// The recorded machine.
    pub system: System,
    /// Logging sessions that wrote the files.
    pub sessions: Vec<Session>,
    /// Facts about all files together.
    pub trace: Extent,
    /// CPUs of the recorded machine.
    pub cpus: Cpus,
    /// Kinds of kernel events that were enabled; empty if not recorded.
    pub kernel_flags: Vec<String>,
    /// Kinds of data in the trace.
    pub contents: Vec<Content>,
    /// Questions that the trace cannot answer.
    pub missing: Vec<Missing>,
    /// Lost events and unreadable parts.
    pub damage: DamageReport,
    /// CPUs that dropped events, each with the time of its last dropped event (recorded by Windows 11).
    pub last_dropped: Vec<Dropped>,
}

/// The machine that was recorded.
#[derive(Debug, Default, Serialize)]
pub struct System {
    /// True if the system is Linux.
    #[serde(skip)]
    pub is_linux: bool,
    /// Release of the kernel of Linux; `None` if it is unknown, or if the system is Windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linux: Option<String>,
    /// Major and minor version of Windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
    /// Number of the build of Windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<u32>,
    /// Public name of the build, such as `Windows 11 24H2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<&'static str>,
    /// Edition, in the words of Windows. Windows 11 still reports `Windows 10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Name of the lab that built Windows, and the time of the build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_lab: Option<String>,
    /// Name of the computer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computer: Option<String>,
    /// Manufacturer of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Model of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Version of the firmware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bios: Option<String>,
    /// Name of the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Nominal speed of the CPU, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<u32>,
    /// Size of the memory, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// True if Windows itself runs on its hypervisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<bool>,
    /// True if virtualisation-based security was on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualization_based_security: Option<bool>,
    /// Time at which the machine booted, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

impl System {
    /// Returns a description of the operating system for the user.
    pub fn name(&self) -> String {
        match (&self.linux, self.is_linux) {
            (Some(linux), _) => return format!("Linux {linux}"),
            (None, true) => return "Linux".to_owned(),
            (None, false) => {}
        }
        match (self.release, self.build) {
            (Some(release), Some(build)) => format!("{release} (build {build})"),
            (None, Some(build)) => format!("Windows build {build}"),
            _ => "an unknown system".to_owned(),
        }
    }
}

/// Logging session that wrote a part of a file.
#[derive(Debug, Serialize)]
pub struct Session {
    /// Name of the file.
    pub file: String,
    /// Name of the session.
    pub name: String,
    /// File name that the session recorded in the log file's header.
    pub log_file: String,
    /// Logging modes of the session.
    pub modes: Vec<&'static str>,
    /// Size of the session's buffers, in bytes.
    pub buffer_size: u32,
    /// Compression format; `None` if no buffer is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<&'static str>,
    /// Clock of the event times.
    pub clock: &'static str,
    /// Ticks of the clock per second.
    pub clock_frequency: u64,
    /// Start of the session, in UTC.
    pub start: String,
    /// End of the session, in UTC; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Duration of the session, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<i64>,
}

/// Size and time span of all files together.
#[derive(Debug, Default, Serialize)]
pub struct Extent {
    /// Names of the files.
    pub files: Vec<String>,
    /// Size of all files, in bytes.
    pub size_bytes: u64,
    /// Number of buffers that contain events.
    pub buffers: u64,
    /// Number of compressed buffers.
    pub compressed_buffers: u64,
    /// Size of all buffers after decompression, in bytes.
    pub uncompressed_bytes: u64,
    /// Number of events.
    pub events: u64,
    /// UTC time of the trace's start. The start is nanosecond 0 of all times in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Time of the first event, in nanoseconds since the trace's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_event_ns: Option<i64>,
    /// Time of the last event, in nanoseconds since the trace's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event_ns: Option<i64>,
}

impl Extent {
    /// Returns the time from the first to the last event, in nanoseconds.
    pub fn recorded_ns(&self) -> Option<i64> {
        let (first, last) = self.first_event_ns.zip(self.last_event_ns)?;
        Some(last.saturating_sub(first))
    }
}

/// CPUs of the recorded machine.
#[derive(Debug, Default, Serialize)]
pub struct Cpus {
    /// Number of CPUs according to the headers of the log files; of Linux, number of online CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<u32>,
    /// True if events contain the number of the CPU that logged them. Events of sessions without per-processor buffers
    /// do not contain this number.
    pub known: bool,
    /// CPUs that logged events.
    pub seen: Vec<CpuActivity>,
    /// Numbers of the CPUs that logged no events.
    pub without_events: Vec<u32>,
}

impl Cpus {
    /// Returns the number of CPUs as text. If the headers are damaged, this is the number of CPUs that logged events.
    pub fn counted(&self) -> String {
        let logged = Some(self.seen.len() as u32).filter(|logged| self.known && *logged > 0);
        match self.stated.max(logged) {
            Some(cpus) => wording::counted(cpus.into(), "CPU", "CPUs"),
            None => "an unknown number of CPUs".to_owned(),
        }
    }
}

/// Events that one CPU logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuActivity {
    /// Number of the CPU.
    pub cpu: u16,
    /// Number of events.
    pub events: u64,
    /// Time of the first event, in nanoseconds since the trace's start.
    pub first_ns: i64,
    /// Time of the last event, in nanoseconds since the trace's start.
    pub last_ns: i64,
    /// Longest time between two successive events, in nanoseconds.
    pub longest_silence_ns: i64,
    /// Start of the longest time between two successive events, in nanoseconds since the trace's start.
    pub longest_silence_from_ns: i64,
}

/// A CPU that dropped events.
#[derive(Debug, Serialize)]
pub struct Dropped {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time of the last dropped event, in nanoseconds since the trace's start.
    pub last_ns: i64,
}

impl Info {
    /// Tables from which the facts are computed.
    pub const TABLES: [Table; 4] = fact_rows::TABLES;

    /// Reads the tables of a trace. Tables that do not exist yet are made first.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be made or read, or if the progress callback requests a stop.
    pub fn read(store: &Store, options: Options<'_>) -> Result<Info, StoreError> {
        let rows = FactRows::read(store, options)?;
        Ok(Info::new(store.trace(), store.is_linux(), rows))
    }

    /// Reads the tables of a trace. Returns `None` if one of them does not exist yet.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    pub fn made(store: &Store) -> Result<Option<Info>, StoreError> {
        let rows = FactRows::made(store)?;
        Ok(rows.map(|rows| Info::new(store.trace(), store.is_linux(), rows)))
    }

    /// Reads the events of a trace without storing tables.
    ///
    /// # Errors
    /// Returns an error if the progress callback requests a stop.
    pub fn from_events(trace: &Trace, options: Options<'_>) -> Result<Info, StoreError> {
        Ok(Info::new(trace, false, FactRows::stream(trace, options)?))
    }

    /// Returns the facts in the headers of the files, without reading events.
    pub fn from_headers(trace: &Trace) -> Info {
        Info::new(trace, false, FactRows::default())
    }

    /// Returns the facts about the trace of a store that were known when it was opened.
    pub fn opened(store: &Store) -> Info {
        Info::new(store.trace(), store.is_linux(), FactRows::default())
    }

    /// Returns true if laglab's simulator made the trace.
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    fn new(trace: &Trace, is_linux: bool, rows: FactRows) -> Info {
        let contents = contents::contents(&rows.kinds);
        let system = system(trace, &rows, is_linux);
        let headers = trace.segments().iter().filter_map(|s| s.header.as_ref());
        let stated = match is_linux {
            true => rows
                .number("CPU", "Online")
                .and_then(|cpus| u32::try_from(cpus).ok()),
            false => headers.filter_map(LogFileHeader::cpus).max(),
        };
        Info {
            simulated: rows.is_simulated(),
            one_system: trace.is_one_system(),
            system,
            // A recording of Linux has no session. Its `Trace` is a placeholder without events.
            sessions: if is_linux {
                Vec::new()
            } else {
                sessions(trace)
            },
            trace: extent(trace, &rows, is_linux),
            kernel_flags: rows.kernel_flags(),
            missing: contents::missing(&rows.kinds, &contents, is_linux),
            contents,
            cpus: cpus(trace, stated, rows.cpus),
            damage: DamageReport::from_losses(trace, rows.losses, is_linux),
            last_dropped: rows.last_dropped,
        }
    }
}

fn extent(trace: &Trace, rows: &FactRows, is_linux: bool) -> Extent {
    let buffers = match is_linux {
        true => [].iter(),
        false => trace.buffers().iter(),
    };
    let compressed = buffers
        .clone()
        .filter(|b| b.flags & buffer_flag::COMPRESSED != 0);
    Extent {
        files: trace.files().map(str::to_owned).collect(),
        size_bytes: match is_linux {
            true => size_of_files(trace).unwrap_or_else(|_| trace.size_bytes()),
            false => trace.size_bytes(),
        },
        buffers: buffers.len() as u64,
        compressed_buffers: compressed.count() as u64,
        uncompressed_bytes: buffers.map(|b| u64::from(b.valid_size)).sum(),
        events: rows.events(),
        // Windows uses the FILETIME 0 for an unknown time.
        start: (trace.header())
            .map(|_| trace.clock().origin_filetime())
            .filter(|origin| *origin != 0)
            .map(utc),
        first_event_ns: rows.cpus.iter().map(|cpu| cpu.first_ns).min(),
        last_event_ns: rows.cpus.iter().map(|cpu| cpu.last_ns).max(),
    }
}

/// Returns the size of a trace's files in bytes.
fn size_of_files(trace: &Trace) -> io::Result<u64> {
    let sizes = trace.files().map(|file| Ok(fs::metadata(file)?.len()));
    sizes.sum()
}

fn cpus(trace: &Trace, stated: Option<u32>, seen: Vec<CpuActivity>) -> Cpus {
    let shares_buffers =
        |h: &LogFileHeader| h.log_file_mode & mode::NO_PER_PROCESSOR_BUFFERING != 0;
    let mut headers = trace.segments().iter().filter_map(|s| s.header.as_ref());
    let known = !headers.any(shares_buffers);
    let logged: BTreeSet<u32> = seen.iter().map(|c| u32::from(c.cpu)).collect();
    let without_events = (0..stated.unwrap_or(0))
        .filter(|cpu| known && !logged.contains(cpu))
        .collect();
    Cpus {
        stated: stated.filter(|_| known),
        known,
        seen,
        without_events,
    }
}

fn sessions(trace: &Trace) -> Vec<Session> {
    let compressed: BTreeSet<u16> = trace
        .buffers()
        .iter()
        .filter(|b| b.is_compressed())
        .map(|b| b.segment)
        .collect();
    (0..)
        .zip(trace.segments())
        .filter_map(|(index, segment)| {
            let header = segment.header.as_ref()?;
            let compression = match segment.compression {
                Compression::Lznt1 => "LZNT1",
                Compression::Xpress => "XPRESS",
                Compression::XpressHuffman => "XPRESS Huffman",
            };
            Some(Session {
                file: trace
                    .files()
                    .nth(segment.file.into())
                    .unwrap_or_default()
                    .to_owned(),
                name: header.session.clone(),
                log_file: header.log_file.clone(),
                modes: header.modes(),
                buffer_size: header.buffer_size,
                compression: compressed.contains(&index).then_some(compression),
                clock: segment.clock.kind().name(),
                clock_frequency: segment.clock.frequency(),
                start: utc(header.start),
                end: header.end.map(utc),
                duration_ns: header
                    .end
                    .map(|end| end.saturating_sub(header.start).saturating_mul(100)),
            })
        })
        .collect()
}

fn system(trace: &Trace, rows: &FactRows, is_linux: bool) -> System {
    let mut system = System {
        is_linux,
        ..System::default()
    };
    if is_linux {
        system.linux = rows.text("System", "KernelRelease");
        system.computer = rows.text("System", "HostName");
        system.cpu = rows.text("CPU", "Model");
        system.memory_mib = rows.number("Memory", "Bytes").map(|bytes| bytes >> 20);
        return system;
    }
    if let Some(header) = trace.header() {
        let (major, minor) = header.os_version;
        system.os_version = Some(format!("{major}.{minor}"));
        system.build = Some(header.os_build).filter(|build| *build != 0);
        system.release = windows_release(header.os_build);
        system.cpu_mhz = Some(header.cpu_mhz).filter(|mhz| *mhz != 0);
        system.boot = Some(header.boot).filter(|boot| *boot != 0).map(utc);
    }
    let flag = |key| rows.number("Virtualization", key).map(|number| number != 0);
    system.computer = rows.text("CPU", "ComputerName");
    system.memory_mib = rows.number("CPU", "MemSize");
    system.manufacturer = rows.text("Platform", "SystemManufacturer");
    system.model = rows.text("Platform", "SystemProductName");
    system.bios = rows.text("Platform", "BiosVersion");
    system.cpu = rows.text("Processors", "ProcessorName");
    system.hypervisor = flag("HyperVisorEnabled");
    system.virtualization_based_security = flag("VbsEnabled");
    system.product = rows.text("BuildInfo", "ProductName");
    let build_lab = rows.text("BuildInfo", "BuildLab");
    system.build_lab = build_lab.or_else(|| rows.text("BuildLab", "BuildString"));
    system
}
