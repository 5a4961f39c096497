//! Opens files as one trace.

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use etl::write::{Session, Writer};
use etl::{FileSource, Trace};

use crate::linux_recording::LinuxRecording;
use crate::one_recording::check_one_recording;
use crate::sample_files::{self, SamplesError, is_parquet};
use crate::{StoreError, Table, captures, is_capture, linux_recording};

/// A trace, and the files without events that were opened with it. Such files can also be opened without a
/// trace.
pub(crate) struct Opened {
    pub(crate) trace: Trace,
    /// Files with packet captures.
    pub(crate) captures: Vec<PathBuf>,
    /// File with samples of a live probe. Such a file must be opened alone.
    pub(crate) samples: Option<PathBuf>,
    /// Recording of Linux. It is always opened alone.
    pub(crate) linux: Option<LinuxRecording>,
    /// The only table that can have rows. It is `None` if the files contain events.
    pub(crate) holds_only: Option<Table>,
}

/// Opens files as one trace.
///
/// # Errors
/// Returns an error if a file cannot be read or is not a trace.
pub(crate) fn open(files: &[PathBuf]) -> Result<Opened, StoreError> {
    if let Some(samples) = files.iter().find(|file| is_parquet(file)) {
        let file = samples.clone();
        if files.len() > 1 {
            return Err(SamplesError::NotAlone { file }.into());
        }
        let last = sample_files::last_ns(samples)?;
        // The trace ends at the first 100 ns tick after the start of the last sample.
        let end = last.map(|ns| ns.max(0) / 100 + 1);
        return Ok(Opened {
            trace: without_events(
                files,
                Session {
                    end,
                    name: "measurement".into(),
                    ..Session::default()
                },
            )?,
            captures: Vec::new(),
            samples: Some(file),
            linux: None,
            holds_only: Some(Table::LatencySamples),
        });
    }
    if let Some(file) = files.iter().find(|file| is_linux_recording(file)) {
        return open_recording(file, files);
    }
    let (captures, logs): (Vec<PathBuf>, Vec<PathBuf>) =
        files.iter().cloned().partition(|file| is_capture(file));
    let is_all_packets = logs.is_empty() && !captures.is_empty();
    let trace = match is_all_packets {
        true => {
            let (start, end) = captures::span_filetime(&captures)?;
            let session = Session {
                start,
                end,
                name: "packet capture".into(),
                ..Session::default()
            };
            without_events(&captures, session)?
        }
        false => etl::open(&logs)?,
    };
    check_one_recording(&trace)?;
    Ok(Opened {
        trace,
        captures,
        samples: None,
        linux: None,
        holds_only: is_all_packets.then_some(Table::Packets),
    })
}

/// Returns true if a file is a recording of Linux (`perf.data`, `trace.dat`). Returns false if the file cannot be read.
pub fn is_linux_recording(file: &Path) -> bool {
    sample_files::first_bytes::<8>(file).is_some_and(|first| linux::is_recording(&first))
}

/// Returns the files from which tables are made: the files `files`, and the existing files `FILE.proc` next to
/// recordings of Linux.
pub(crate) fn inputs(files: &[PathBuf]) -> Vec<PathBuf> {
    let recordings = files.iter().filter(|file| is_linux_recording(file));
    let facts = recordings.map(|file| linux_recording::path_of(file));
    let facts: Vec<PathBuf> = facts.filter(|path| path.exists()).collect();
    files.iter().cloned().chain(facts).collect()
}

/// Opens a recording of Linux.
fn open_recording(file: &Path, files: &[PathBuf]) -> Result<Opened, StoreError> {
    let error = |source| StoreError::Recording {
        file: file.to_owned(),
        source,
    };
    if files.len() > 1 {
        return Err(StoreError::RecordingNotAlone {
            file: file.to_owned(),
        });
    }
    let source = File::open(file).and_then(FileSource::new);
    let source = source.map_err(|read| error(read.into()))?;
    let recording = linux::Recording::open(Box::new(source)).map_err(error)?;
    let facts = linux_recording::ProcFacts::read(file).map_err(|read| StoreError::Recording {
        file: linux_recording::path_of(file),
        source: read.into(),
    })?;
    let start = linux_recording::start_filetime(&recording).unwrap_or(0);
    let end = start.saturating_add(linux_recording::length_ns(&recording) / 100 + 1);
    let lost = recording.damage().lost_events;
    let session = Session {
        start,
        end: Some(end),
        name: recording.recorder().name().into(),
        events_lost: u32::try_from(lost).unwrap_or(u32::MAX),
        processors: processors(&recording),
        ..Session::default()
    };
    Ok(Opened {
        trace: without_events(files, session)?,
        captures: Vec::new(),
        samples: None,
        linux: Some(LinuxRecording { recording, facts }),
        holds_only: None,
    })
}

/// Returns the number of CPUs of a recorded machine, limited to the range of a trace header: 1 to 2047.
fn processors(recording: &linux::Recording) -> u16 {
    let online = recording.system().cpus_online;
    let seen = recording.chunks().iter().filter_map(|chunk| chunk.cpu);
    let cpus = online
        .or_else(|| Some(seen.max()?.saturating_add(1)))
        .unwrap_or(1);
    cpus.clamp(1, 2047) as u16
}

/// Makes a trace without events for files that are not traces.
fn without_events(files: &[PathBuf], session: Session) -> Result<Trace, StoreError> {
    let session = Session {
        os_version: (0, 0),
        ..session
    };
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let log = Writer::new(Cursor::new(Vec::new()), session).and_then(Writer::finish);
    let bytes = log.map_or_else(|_| Vec::new(), Cursor::into_inner);
    Ok(Trace::from_sources(vec![(
        names.join(", "),
        Box::new(bytes),
    )])?)
}
