//! List of the formats that can be opened. A new format implements [`Import`] and has one line in [`IMPORTS`].

use std::path::PathBuf;

use crate::StoreError;
use crate::captures::Captures;
use crate::linux_recording::LinuxRecordings;
use crate::recording::Recording;
use crate::sample_files::SampleFiles;
use crate::windows_recording::WindowsTraces;

/// Format of recordings.
pub(crate) trait Import: Sync {
    /// Returns true if the format opens these files, according to their first bytes.
    fn opens(&self, files: &[PathBuf]) -> bool;

    /// Returns the existing files next to `files` that also contribute to the tables.
    fn companions(&self, _files: &[PathBuf]) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Opens files as one recording.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or if the files do not form one recording.
    fn open(&self, files: &[PathBuf]) -> Result<Box<dyn Recording>, StoreError>;
}

/// Formats in the order in which they are asked. The errors of the last format describe files that no format opens.
const IMPORTS: &[&dyn Import] = &[&SampleFiles, &LinuxRecordings, &Captures, &WindowsTraces];

fn import_of(files: &[PathBuf]) -> &'static dyn Import {
    let mut imports = IMPORTS.iter().copied();
    let import = imports.find(|import| import.opens(files));
    import.unwrap_or(&WindowsTraces)
}

/// Opens files as one recording.
///
/// # Errors
/// Returns an error if a file cannot be read, or if the files do not form one recording.
pub fn open_recording(files: &[PathBuf]) -> Result<Box<dyn Recording>, StoreError> {
    import_of(files).open(files)
}

/// Returns the files from which tables are made: `files` and the files next to them that also contribute.
pub(crate) fn inputs(files: &[PathBuf]) -> Vec<PathBuf> {
    [files, &import_of(files).companions(files)].concat()
}
