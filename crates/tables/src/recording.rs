//! Seam between formats and tables: what a format tells about a recording, and how it gives rows.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use arrow_array::RecordBatch;

use crate::{Options, StoreError, Table, Unreadable};

/// Function that receives the rows of tables.
pub type GiveRows<'g> = dyn FnMut(Table, RecordBatch) -> Result<(), StoreError> + Send + 'g;

/// Recording that was opened. Each format implements it.
pub trait Recording: Any + Debug + Send + Sync {
    /// Returns what is known before events are read.
    fn info(&self) -> &RecordingInfo;

    /// Estimates the memory that making these tables needs, in bytes.
    fn memory(&self, wanted: &[Table]) -> u64;

    /// Reads the events, and passes the rows of the requested tables to `give`. The batches of a table are in the order
    /// of its sorted column. The size of a batch does not depend on the length of the recording. Returns the events that
    /// are missing from the tables, because they could not be read.
    ///
    /// # Errors
    /// Returns an error if [`Options::progress`] asks to stop, if `give` fails, or if a file cannot be read. Faults of
    /// the recording are not errors.
    fn rows(
        &self,
        wanted: &[Table],
        options: Options<'_>,
        give: &mut GiveRows<'_>,
    ) -> Result<Vec<Unreadable>, StoreError>;

    /// Returns bytes by which recordings differ, such as times. Names of files are not included, because they may change.
    fn identity(&self) -> Vec<u8> {
        let info = self.info();
        let size = info.size_bytes.cast_signed();
        let numbers = [info.start_unix_ns.unwrap_or(0), info.end_ns, size];
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    /// Reads the symbols of the recorded kernel, in the form of `/proc/kallsyms`. The text of a recording also has those of
    /// programs. Returns `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    fn kernel_symbols(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Reads the maps of the code that these processes generated while they ran (`perf-PID.map`), by process id.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    fn code_maps(&self, _makers: &BTreeMap<u32, CodeMaker>) -> io::Result<BTreeMap<u32, Vec<u8>>> {
        Ok(BTreeMap::new())
    }
}

/// Process that generated code while it ran. Times are in nanoseconds from the start of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMaker {
    /// Id of the process.
    pub process_id: u32,
    /// Time at which the first of the code was mapped; `None` if this was before the recording.
    pub start_ns: Option<i64>,
    /// Time at which the process ended or started another program; `None` if it did neither during the recording.
    pub end_ns: Option<i64>,
}

/// Operating system of a recorded machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Windows.
    Windows,
    /// Linux.
    Linux,
}

impl OperatingSystem {
    /// Returns the name of the system.
    pub fn name(self) -> &'static str {
        match self {
            OperatingSystem::Windows => "Windows",
            OperatingSystem::Linux => "Linux",
        }
    }
}

/// Facts about a recording that are known before its events are read.
#[derive(Clone, Debug)]
pub struct RecordingInfo {
    /// Paths of the files, in the order in which they were given.
    pub files: Vec<String>,
    /// Number of bytes that one pass reads. Progress counts up to this number.
    pub size_bytes: u64,
    /// Operating system of the recorded machine. `None` if the files have no events of a system.
    pub system: Option<OperatingSystem>,
    /// Nanoseconds from 1970 (UTC) to the start of the recording. `None` if the files do not state the time of day.
    pub start_unix_ns: Option<i64>,
    /// End according to headers and buffers, in nanoseconds since the start. 0 if they state no end.
    pub end_ns: i64,
    /// Length of the first session according to its header. `None` if the header has no end, or if a file was cut off.
    pub stated_length_ns: Option<i64>,
    /// True if all files were recorded on one machine between two of its restarts.
    pub is_one_system: bool,
    /// The only table that can have rows. `None` if the files contain events.
    pub only_table: Option<Table>,
    /// Number of processors. `None` if it is not stated.
    pub processors: Option<u32>,
    /// True if events contain the number of the processor that logged them.
    pub has_cpu_numbers: bool,
    /// Sessions that wrote the files, in the order of the files.
    pub sessions: Vec<RecordedSession>,
    /// Buffers of all files.
    pub buffers: Buffers,
    /// Losses that the headers and the chain of buffers show.
    pub losses: Losses,
}

impl RecordingInfo {
    /// Creates the facts about files that state only their size.
    pub fn new(files: Vec<String>, size_bytes: u64) -> RecordingInfo {
        RecordingInfo {
            files,
            size_bytes,
            system: None,
            start_unix_ns: None,
            end_ns: 0,
            stated_length_ns: None,
            is_one_system: true,
            only_table: None,
            processors: None,
            has_cpu_numbers: true,
            sessions: Vec::new(),
            buffers: Buffers::default(),
            losses: Losses {
                missing_sequence_numbers: Some(0),
                ..Losses::default()
            },
        }
    }

    /// Creates the facts about files that contain only rows of the table `only`.
    pub fn without_events(files: &[PathBuf], header: SessionHeader, only: Table) -> RecordingInfo {
        let sizes = files
            .iter()
            .filter_map(|file| Some(file.metadata().ok()?.len()));
        let size_bytes = sizes.sum();
        let names = files.iter().map(|file| file.display().to_string());
        RecordingInfo {
            start_unix_ns: header.start_unix_ns,
            end_ns: header.end_ns.unwrap_or(0),
            stated_length_ns: header.end_ns,
            only_table: Some(only),
            sessions: vec![RecordedSession {
                file: 0,
                header: Some(header),
            }],
            ..RecordingInfo::new(names.collect(), size_bytes)
        }
    }

    /// Returns true if the recorded machine ran Linux.
    pub fn is_linux(&self) -> bool {
        self.system == Some(OperatingSystem::Linux)
    }

    /// Returns the header of the first session that has a readable header.
    pub fn header(&self) -> Option<&SessionHeader> {
        self.sessions
            .iter()
            .find_map(|session| session.header.as_ref())
    }
}

/// Session that wrote a file or a part of a file.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    /// Index of the file in [`RecordingInfo::files`].
    pub file: usize,
    /// Facts in the header of the session. `None` if the header is unreadable.
    pub header: Option<SessionHeader>,
}

/// Facts in the header of a session. A value is `None` if the header or the format does not have it.
#[derive(Clone, Debug, Default)]
pub struct SessionHeader {
    /// Name of the session, or of the program that recorded.
    pub name: String,
    /// Path of the log file at the time of the recording.
    pub log_file: Option<String>,
    /// Modes of the session.
    pub modes: Option<Vec<&'static str>>,
    /// Start in nanoseconds since the start of the recording.
    pub start_ns: i64,
    /// End in nanoseconds since the start of the recording.
    pub end_ns: Option<i64>,
    /// Start in nanoseconds since 1970 (UTC).
    pub start_unix_ns: Option<i64>,
    /// End in nanoseconds since 1970 (UTC).
    pub end_unix_ns: Option<i64>,
    /// Time at which the machine booted, in nanoseconds since 1970 (UTC).
    pub boot_unix_ns: Option<i64>,
    /// Minutes to add to the machine's local time to get UTC, outside daylight saving time.
    pub time_zone_bias: Option<i32>,
    /// Operating system.
    pub system: Option<OperatingSystem>,
    /// Version of Windows, or release of the kernel of Linux.
    pub os_version: Option<String>,
    /// Build number of Windows.
    pub os_build: Option<u32>,
    /// Number of processors.
    pub processors: Option<u32>,
    /// Nominal frequency of the processors, in MHz.
    pub cpu_mhz: Option<u32>,
    /// Name of the clock of the event times.
    pub clock: Option<&'static str>,
    /// Frequency of the clock, in Hz.
    pub clock_hz: Option<u64>,
    /// Time between two clock interrupts at the start of the session, in nanoseconds.
    pub clock_interrupt_ns: Option<i64>,
    /// Size of a buffer, in bytes.
    pub buffer_size: Option<u32>,
    /// Compression format. `None` if no buffer is compressed.
    pub compression: Option<&'static str>,
    /// Number of buffers written, including the buffer of the header.
    pub buffers_written: Option<u32>,
    /// Number of events that the session lost.
    pub events_lost: Option<u32>,
    /// Number of buffers that the session lost.
    pub buffers_lost: Option<u32>,
    /// Process that controlled the session.
    pub controller_process_id: Option<u32>,
}

/// Number and size of the buffers that contain events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    /// Number of buffers.
    pub count: u64,
    /// Number of compressed buffers.
    pub compressed: u64,
    /// Size of all buffers after decompression, in bytes.
    pub uncompressed_bytes: u64,
}

/// Losses that headers and the chain of buffers show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of lost events according to the headers.
    pub events_lost: u64,
    /// Number of lost buffers according to the headers.
    pub buffers_lost: u64,
    /// Number of buffers that state that events were lost while the buffer was filled.
    pub buffers_marking_lost_events: u64,
    /// Number of buffers that state that buffers were lost before this buffer.
    pub buffers_marking_lost_buffers: u64,
    /// Number of missing sequence numbers of buffers. `None` if damaged numbers make it unknown.
    pub missing_sequence_numbers: Option<u64>,
    /// Number of unused bytes at the ends of files. Nothing is lost there.
    pub unused_bytes: u64,
    /// Number of sessions that never stopped, so that their ends and counts are unknown.
    pub unfinished_sessions: u64,
    /// Number of unreadable places.
    pub faults: u64,
}

impl Losses {
    /// Returns true if nothing is lost or unreadable.
    pub fn are_none(&self) -> bool {
        let nothing = Losses {
            unused_bytes: self.unused_bytes,
            missing_sequence_numbers: self.missing_sequence_numbers.filter(|count| *count == 0),
            ..Losses::default()
        };
        *self == nothing
    }
}
