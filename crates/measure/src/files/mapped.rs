//! Reading by memory mapping. Unsafe code is allowed because another program may change or truncate a file
//! while this program reads the mapped content. Reading is safe only if no other program does this. If a
//! mapped file is truncated, this program ends. Mapping is therefore used on a user's folder only if the user
//! requests it.

#![allow(unsafe_code)]

use memmap2::MmapOptions;

use super::opening::{Access, open_all};
use super::run::{Conditions, Run};
use super::sums::Sums;
use super::watch::{ReadTime, Times, Watch};
use super::{CacheState, FilesError};

/// Maps one file after the other and sums its bytes. Mapping also loads the content if the system
/// supports it (`MAP_POPULATE`).
pub(super) fn run(conditions: &Conditions<'_>) -> Result<Run, FilesError> {
    if conditions.cache == CacheState::Direct {
        return Err(FilesError::Unavailable(
            "mapped files are always read through the cache".to_owned(),
        ));
    }
    let mut times = Times::default();
    let mut watch = Watch::start(conditions.clock);
    let files = open_all(conditions.set, Access::Synchronous, conditions.cache)?;
    times.open_ns = watch.lap();
    let mut sums = Sums::new(conditions.set.count());
    let mut reads = Vec::with_capacity(files.len());
    let named = conditions.set.files().iter();
    for (number, (open, file)) in files.iter().zip(named).enumerate() {
        if file.size == 0 {
            continue; // an empty file cannot be mapped
        }
        // SAFETY: no other program truncates the file while it is mapped. This cannot be checked,
        // so it is a documented requirement.
        let mapped = unsafe { MmapOptions::new().populate().map(open) }
            .map_err(FilesError::at(&file.path, "map"))?;
        let start_ns = watch.last_ns();
        times.read_ns += watch.lap();
        let end_ns = watch.last_ns();
        reads.push(ReadTime { start_ns, end_ns });
        sums.add(number, &mapped);
        times.sum_ns += watch.lap();
        drop(mapped);
        times.read_ns += watch.lap();
    }
    Ok(Run { times, sums, reads })
}
