//! Facts about a trace that `laglab info` prints.

use std::collections::BTreeSet;

use serde::Serialize;
use tables::{Options, Recording, RecordingInfo, Store, StoreError, Table, utc};

use crate::contents::{self, Content, UnansweredQuestion};
use crate::damage::DamageReport;
use crate::fact_rows::{self, FactRows};
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
    pub missing: Vec<UnansweredQuestion>,
    /// Lost events and unreadable parts.
    pub damage: DamageReport,
    /// CPUs that dropped events, each with the time of its last dropped event (recorded by Windows 11).
    pub last_dropped: Vec<CpuDrops>,
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
    /// Size of the session's buffers, in bytes; `None` if there are no buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_size: Option<u32>,
    /// Compression format; `None` if no buffer is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<&'static str>,
    /// Clock of the event times; `None` if there are no events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<&'static str>,
    /// Ticks of the clock per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_frequency: Option<u64>,
    /// Start of the session, in UTC; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
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
pub struct CpuDrops {
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
        Ok(Info::new(store.info(), rows))
    }

    /// Reads the tables of a trace. Returns `None` if one of them does not exist yet.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    pub fn made(store: &Store) -> Result<Option<Info>, StoreError> {
        let rows = FactRows::made(store)?;
        Ok(rows.map(|rows| Info::new(store.info(), rows)))
    }

    /// Reads the events of a recording without storing tables.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or if the progress callback requests a stop.
    pub fn from_events(
        recording: &dyn Recording,
        options: Options<'_>,
    ) -> Result<Info, StoreError> {
        let rows = FactRows::stream(recording, options)?;
        Ok(Info::new(recording.info(), rows))
    }

    /// Returns the facts that are known before events are read.
    pub fn from_headers(info: &RecordingInfo) -> Info {
        Info::new(info, FactRows::default())
    }

    /// Returns true if laglab's simulator made the trace.
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    fn new(info: &RecordingInfo, rows: FactRows) -> Info {
        let contents = contents::contents(&rows.kinds);
        Info {
            simulated: rows.is_simulated(),
            one_system: info.is_one_system,
            system: system(info, &rows),
            sessions: sessions(info),
            trace: extent(info, &rows),
            kernel_flags: rows.kernel_flags(),
            missing: contents::missing(&rows.kinds, &contents, info.is_linux()),
            contents,
            cpus: cpus(info, rows.cpus),
            damage: DamageReport::from_losses(info, rows.losses),
            last_dropped: rows.last_dropped,
        }
    }
}

fn extent(info: &RecordingInfo, rows: &FactRows) -> Extent {
    let of_cpus = rows.cpus.iter().map(|cpu| (cpu.first_ns, cpu.last_ns));
    let mut times: Vec<(i64, i64)> = of_cpus.collect();
    if times.is_empty() {
        // The events of a recording of one program may have no CPU.
        times = rows.kinds.iter().map(|kind| kind.times_ns).collect();
    }
    Extent {
        files: info.files.clone(),
        size_bytes: info.size_bytes,
        buffers: info.buffers.count,
        compressed_buffers: info.buffers.compressed,
        uncompressed_bytes: info.buffers.uncompressed_bytes,
        events: rows.events(),
        start: info.start_unix_ns.map(utc),
        first_event_ns: times.iter().map(|(first, _)| *first).min(),
        last_event_ns: times.iter().map(|(_, last)| *last).max(),
    }
}

fn cpus(info: &RecordingInfo, seen: Vec<CpuActivity>) -> Cpus {
    let known = info.has_cpu_numbers;
    let logged: BTreeSet<u32> = seen.iter().map(|c| u32::from(c.cpu)).collect();
    let without_events = (0..info.processors.unwrap_or(0))
        .filter(|cpu| known && !logged.contains(cpu))
        .collect();
    Cpus {
        stated: info.processors.filter(|_| known),
        known,
        seen,
        without_events,
    }
}

/// Returns the logging sessions of a trace of Windows. A recording of Linux has no logging session.
fn sessions(info: &RecordingInfo) -> Vec<Session> {
    let sessions = info.sessions.iter().filter(|_| !info.is_linux());
    let sessions = sessions.filter_map(|session| {
        let header = session.header.as_ref()?;
        Some(Session {
            file: info.files.get(session.file).cloned().unwrap_or_default(),
            name: header.name.clone(),
            log_file: header.log_file.clone().unwrap_or_default(),
            modes: header.modes.clone().unwrap_or_default(),
            buffer_size: header.buffer_size,
            compression: header.compression,
            clock: header.clock,
            clock_frequency: header.clock_hz,
            start: header.start_unix_ns.map(utc),
            end: header.end_unix_ns.map(utc),
            duration_ns: header.end_ns.map(|end| end.saturating_sub(header.start_ns)),
        })
    });
    sessions.collect()
}

fn system(info: &RecordingInfo, rows: &FactRows) -> System {
    let mut system = System {
        is_linux: info.is_linux(),
        ..System::default()
    };
    if system.is_linux {
        system.linux = rows.text("System", "KernelRelease");
        system.computer = rows.text("System", "HostName");
        system.cpu = rows.text("CPU", "Model");
        system.memory_mib = rows.number("Memory", "Bytes").map(|bytes| bytes >> 20);
        return system;
    }
    if let Some(header) = info.header() {
        system.os_version.clone_from(&header.os_version);
        system.build = header.os_build;
        system.release = header.os_build.and_then(windows_release);
        system.cpu_mhz = header.cpu_mhz;
        system.boot = header.boot_unix_ns.map(utc);
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
