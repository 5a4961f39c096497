//! Temporary files of queries whose rows need more memory than allowed.

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use etl::free_space::{self, RESERVE};
use store::ScratchFolder;

/// Maximum size of all temporary files of a session, in bytes.
const MAX_BYTES: u64 = 100 << 30;

/// Returns the settings with which temporary files are in this folder, and leave space on its disk.
pub(crate) fn within(folder: &ScratchFolder) -> DiskManagerBuilder {
    let free = free_space::of(folder.path()).map_or(MAX_BYTES, |free| free.saturating_sub(RESERVE));
    DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![folder.path().to_owned()]))
        .with_max_temp_directory_size(free.min(MAX_BYTES))
}
