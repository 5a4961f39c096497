//! List of the formats that can be opened. A new format is one crate with an implementation of [`Recording`], and one
//! line in the constant `FORMATS`.

mod sample_conditions;
mod samples;

use std::path::PathBuf;

use import_linux::LinuxRecording;
use import_windows::{CaptureRecording, WindowsRecording};
use tables::{Cache, InputFiles, Recording, Store, StoreError};

pub use sample_conditions::SampleConditions;
pub use samples::{SampleRecording, SamplesError, check_parquet, is_parquet};

/// Function that opens files as one recording.
type Open = fn(&[PathBuf]) -> Result<Box<dyn Recording>, StoreError>;

/// Format of recordings.
struct Format {
    /// Returns true if the format opens these files, according to their first bytes.
    opens: fn(&[PathBuf]) -> bool,
    open: Open,
}

/// Formats in the order in which they are asked. The errors of the last format describe files that no format opens.
const FORMATS: &[Format] = &[
    Format {
        opens: |files| files.iter().any(|file| is_parquet(file)),
        open: |files| Ok(Box::new(SampleRecording::open(files)?)),
    },
    Format {
        opens: |files| files.iter().any(|file| import_linux::is_recording(file)),
        open: |files| Ok(Box::new(LinuxRecording::open(files)?)),
    },
    Format {
        opens: |files| {
            !files.is_empty() && files.iter().all(|file| import_windows::is_capture(file))
        },
        open: |files| Ok(Box::new(CaptureRecording::open(files)?)),
    },
    Format {
        opens: |_| true,
        open: |files| Ok(Box::new(WindowsRecording::open(files)?)),
    },
];

/// Opens files as one recording.
///
/// # Errors
/// Returns an error if a file cannot be read, or if the files do not form one recording.
pub fn open(files: &[PathBuf]) -> Result<Box<dyn Recording>, StoreError> {
    let mut formats = FORMATS.iter();
    let format = formats.find(|format| (format.opens)(files));
    (format.unwrap_or(&FORMATS[0]).open)(files)
}

/// Opens files as one recording, with a store of its tables.
///
/// # Errors
/// Returns an error if a file cannot be read, or if the files do not form one recording.
pub fn open_store(files: &[PathBuf], cache: Cache) -> Result<Store, StoreError> {
    let companions = files.iter().flat_map(|file| import_linux::companions(file));
    let inputs: Vec<PathBuf> = files.iter().cloned().chain(companions).collect();
    let inputs = InputFiles::inspect(&inputs);
    // If a file is missing or has another format, the errors of `open` are more precise. So these errors are returned
    // first.
    let recording = open(files)?;
    Ok(Store::new(recording, inputs?, env!("TABLES_CODE"), cache))
}
