//! Opens files as one trace.

use std::io::Cursor;
use std::path::PathBuf;

use etl::Trace;
use etl::write::{Session, Writer};

use crate::sample_files::{self, SamplesError, is_parquet};
use crate::{StoreError, Table, captures, is_capture, one_recording};

/// A trace, and the files without events that were opened with it. Such files can also be opened without a
/// trace.
pub(crate) struct Opened {
    pub(crate) trace: Trace,
    /// Files with packet captures.
    pub(crate) captures: Vec<PathBuf>,
    /// File with samples of a live probe. Such a file must be opened alone.
    pub(crate) samples: Option<PathBuf>,
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
            trace: without_events("measurement", files, 0, end)?,
            captures: Vec::new(),
            samples: Some(file),
            holds_only: Some(Table::LatencySamples),
        });
    }
    let (captures, logs): (Vec<PathBuf>, Vec<PathBuf>) =
        files.iter().cloned().partition(|file| is_capture(file));
    let is_all_packets = logs.is_empty() && !captures.is_empty();
    let trace = match is_all_packets {
        true => {
            let (start, end) = captures::span_filetime(&captures)?;
            without_events("packet capture", &captures, start, end)?
        }
        false => etl::open(&logs)?,
    };
    one_recording::check(&trace)?;
    Ok(Opened {
        trace,
        captures,
        samples: None,
        holds_only: is_all_packets.then_some(Table::Packets),
    })
}

/// Makes a trace without events. It is used for files that are not traces. `start` and `end` are FILETIMEs.
fn without_events(
    name: &str,
    files: &[PathBuf],
    start: i64,
    end: Option<i64>,
) -> Result<Trace, StoreError> {
    let session = Session {
        start,
        end,
        os_version: (0, 0),
        name: name.into(),
        ..Session::default()
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
