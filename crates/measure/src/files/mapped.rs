//! Reading by mapping each file into memory. `unsafe` because what is mapped may change while it is
//! read, or end: the safety of the sum rests on nobody doing so. A file that is cut short meanwhile
//! ends the program, which is why this method is not among those that a folder of somebody else's is
//! measured with unless it is asked for.

#![allow(unsafe_code)]

use memmap2::MmapOptions;

use super::method::{Conditions, Run};
use super::opening::{Access, open_all};
use super::sums::Sums;
use super::watch::{ReadTime, Times, Watch};
use super::{CacheState, FilesError};

/// Maps one file after the other, its content with it where the system can (`MAP_POPULATE`), and
/// sums it.
pub(super) fn run(conditions: &Conditions<'_>) -> Result<Run, FilesError> {
    if conditions.cache == CacheState::Direct {
        return Err(FilesError::NotHere(
            "what is mapped is in the cache, so nothing is read past it".to_owned(),
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
            continue; // cannot be mapped
        }
        // SAFETY: nobody cuts the file short while it is mapped; this is documented, since it
        // cannot be seen to.
        let mapped = unsafe { MmapOptions::new().populate().map(open) }
            .map_err(FilesError::of(&file.path, "mapped"))?;
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
