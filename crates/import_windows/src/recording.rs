//! Traces of Windows, and the packet captures that were opened with them.

use std::any::Any;
use std::collections::BTreeSet;
use std::path::PathBuf;

use etl::compress::Compression;
use etl::{BufferRef, Damage, LogFileHeader, Trace, mode};
use tables::import::{Slice, memory};
use tables::{
    Buffers, GiveRows, Losses, OperatingSystem, Options, Packets, RecordedSession, Recording,
    RecordingInfo, SessionHeader, Store, StoreError, Table, Unreadable,
};

use crate::build::run;
use crate::captures::{self, is_capture};
use crate::one_recording::check_one_recording;
use crate::stack_count;
use crate::time::unix_ns;

/// Trace of Windows.
#[derive(Debug)]
pub struct WindowsRecording {
    trace: Trace,
    /// Files with packet captures.
    captures: Vec<PathBuf>,
    info: RecordingInfo,
}

impl WindowsRecording {
    /// Opens the files of one trace. Files with packet captures can be among them.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not a trace, or if the files record the same CPUs at the same
    /// time.
    pub fn open(files: &[PathBuf]) -> Result<WindowsRecording, StoreError> {
        let (captures, logs): (Vec<PathBuf>, Vec<PathBuf>) =
            files.iter().cloned().partition(|file| is_capture(file));
        let trace = etl::open(&logs).map_err(StoreError::of_format)?;
        check_one_recording(&trace).map_err(StoreError::of_format)?;
        Ok(WindowsRecording::new(trace, captures))
    }

    /// Creates the recording of a trace and of the packet captures `captures`.
    pub fn new(trace: Trace, captures: Vec<PathBuf>) -> WindowsRecording {
        let info = info_of(&trace);
        WindowsRecording {
            trace,
            captures,
            info,
        }
    }

    /// Returns the recording of a store. Returns `None` if the store has tables of another format.
    pub fn from_store(store: &Store) -> Option<&WindowsRecording> {
        (store.recording() as &dyn Any).downcast_ref()
    }

    /// Returns the trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }
}

impl Recording for WindowsRecording {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn memory(&self, wanted: &[Table]) -> u64 {
        let needs_stacks = tables::import::Plan::new(wanted)
            .first
            .has_table(Table::Stacks);
        let stacks = if needs_stacks {
            stack_count::stack_events(&self.trace)
        } else {
            0
        };
        memory(wanted, stacks, stack_count::size(&self.trace))
    }

    /// Returns the start and boot times of the sessions, and the CPUs and times of the buffers.
    fn identity(&self) -> Vec<u8> {
        let mut identity = Vec::new();
        let segments = self.trace.segments().iter();
        for header in segments.filter_map(|segment| segment.header.as_ref()) {
            for number in [header.start, header.boot, header.raw_start] {
                identity.extend(number.to_le_bytes());
            }
        }
        for buffer in self.trace.buffers() {
            identity.extend(buffer.cpu.to_le_bytes());
            identity.extend(buffer.first_time.to_le_bytes());
        }
        identity
    }

    fn rows(
        &self,
        wanted: &[Table],
        options: Options<'_>,
        give: &mut GiveRows<'_>,
    ) -> Result<Vec<Unreadable>, StoreError> {
        let captured = if wanted.contains(&Table::Packets) {
            let clock = self.trace.clock();
            captures::read(&self.captures, clock.to_unix_ns(clock.origin()))
                .map_err(StoreError::of_format)?
        } else {
            Packets::default()
        };
        let take = &mut |slice: Slice| slice.give(give);
        let (mut whole, unreadable) = run(&self.trace, captured, wanted, options, take)?;
        whole.give(wanted, give)?;
        Ok(unreadable)
    }
}

/// Returns the facts in the headers of a trace's files.
pub fn info_of(trace: &Trace) -> RecordingInfo {
    let headers = || trace.segments().iter().filter_map(|s| s.header.as_ref());
    let shares_buffers =
        |header: &LogFileHeader| header.log_file_mode & mode::NO_PER_PROCESSOR_BUFFERING != 0;
    let stated = trace.header().filter(|_| !trace.damage().is_cut_off());
    let is_compressed = |buffer: &&BufferRef| buffer.is_compressed();
    RecordingInfo {
        system: Some(OperatingSystem::Windows),
        start_unix_ns: (trace.header()).and_then(|_| unix_ns(trace.clock().origin_filetime())),
        end_ns: span_of(trace).1,
        stated_length_ns: stated.and_then(|header| {
            let ticks = header.end?.checked_sub(header.start)?;
            ticks.checked_mul(100).filter(|length| *length > 0)
        }),
        is_one_system: trace.is_one_system(),
        processors: headers().filter_map(LogFileHeader::cpus).max(),
        has_cpu_numbers: !headers().any(shares_buffers),
        sessions: sessions(trace),
        buffers: Buffers {
            count: trace.buffers().len() as u64,
            compressed: trace.buffers().iter().filter(is_compressed).count() as u64,
            uncompressed_bytes: trace
                .buffers()
                .iter()
                .map(|b| u64::from(b.valid_size))
                .sum(),
        },
        losses: losses_of(trace.damage()),
        ..RecordingInfo::new(
            trace.files().map(str::to_owned).collect(),
            trace.size_bytes(),
        )
    }
}

/// Returns the losses in the damage of a trace.
pub fn losses_of(damage: &Damage) -> Losses {
    Losses {
        events_lost: damage.events_lost,
        buffers_lost: damage.buffers_lost,
        buffers_marking_lost_events: damage.buffers_marking_lost_events,
        buffers_marking_lost_buffers: damage.buffers_marking_lost_buffers,
        missing_sequence_numbers: damage.missing_sequence_numbers(),
        unused_bytes: damage.unused_bytes,
        unfinished_sessions: damage.unfinished_segments,
        faults: damage.counts().values().sum(),
    }
}

fn sessions(trace: &Trace) -> Vec<RecordedSession> {
    let compressed: BTreeSet<u16> = trace
        .buffers()
        .iter()
        .filter(|buffer| buffer.is_compressed())
        .map(|buffer| buffer.segment)
        .collect();
    let sessions = (0..).zip(trace.segments()).map(|(index, segment)| {
        let origin = segment.clock.origin_filetime();
        let ns = |filetime: i64| filetime.saturating_sub(origin).saturating_mul(100);
        let known = |number: u32| Some(number).filter(|number| *number != 0);
        let header = segment.header.as_ref().map(|header| {
            let version = Some(header.os_version).filter(|version| *version != (0, 0));
            SessionHeader {
                name: header.session.clone(),
                log_file: Some(header.log_file.clone()).filter(|name| !name.is_empty()),
                modes: Some(header.modes()),
                start_ns: ns(header.start),
                end_ns: header.end.map(ns),
                start_unix_ns: unix_ns(header.start),
                end_unix_ns: header.end.and_then(unix_ns),
                boot_unix_ns: unix_ns(header.boot),
                time_zone_bias: Some(header.time_zone_bias),
                system: version.map(|_| OperatingSystem::Windows),
                os_version: version.map(|(major, minor)| format!("{major}.{minor}")),
                os_build: known(header.os_build),
                processors: header.cpus(),
                cpu_mhz: known(header.cpu_mhz),
                clock: Some(header.clock().kind().name()),
                clock_hz: Some(header.clock().frequency()),
                clock_interrupt_ns: known(header.timer_resolution)
                    .map(|units| i64::from(units) * 100),
                buffer_size: known(header.buffer_size),
                compression: compressed
                    .contains(&index)
                    .then(|| compression_name(segment.compression)),
                buffers_written: known(header.buffers_written),
                events_lost: Some(header.events_lost),
                buffers_lost: Some(header.buffers_lost),
                controller_process_id: Some(header.process_id).filter(|id| *id != u32::MAX),
            }
        });
        RecordedSession {
            file: segment.file.into(),
            header,
        }
    });
    sessions.collect()
}

fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::Lznt1 => "LZNT1",
        Compression::Xpress => "XPRESS",
        Compression::XpressHuffman => "XPRESS Huffman",
    }
}

/// Returns the start and the end of the trace in nanoseconds, according to its headers and buffers.
/// The start is 0.
pub(crate) fn span_of(trace: &Trace) -> (i64, i64) {
    let ends = trace.segments().iter().filter_map(|segment| {
        let end = segment.header.as_ref()?.end?;
        let since = end.saturating_sub(segment.clock.origin_filetime());
        Some(since.saturating_mul(100))
    });
    // The times of buffers also count, because sessions that were never finalised have no end time.
    let buffers = trace.buffers().iter().map(|buffer| {
        let segment = &trace.segments()[usize::from(buffer.segment)];
        segment.clock.to_ns(buffer.first_time)
    });
    (0, ends.chain(buffers).max().unwrap_or(0).max(0))
}
