//! Temporary files of queries whose rows need more memory than allowed.

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use tables::ScratchFolder;

/// Maximum size of all temporary files of a session, in bytes.
const MAX_BYTES: u64 = 100 << 30;

/// Returns the settings with which temporary files are in this folder, and leave space on its disk.
pub(crate) fn within(folder: &ScratchFolder) -> DiskManagerBuilder {
    DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![folder.path().to_owned()]))
        .with_max_temp_directory_size(folder.free_bytes().unwrap_or(MAX_BYTES).min(MAX_BYTES))
}
