//! Time unit of the results: mapping a file and summing its bytes on one thread. The code is `unsafe` because
//! it maps files, which must not change while a benchmark runs.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

/// Maps a file and returns the sum of its 64-bit words.
pub(crate) fn map_and_sum(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    // SAFETY: the file does not change while a benchmark reads it.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let (words, rest) = map.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, word| {
        sum.wrapping_add(u64::from_le_bytes(*word))
    });
    Ok(rest
        .iter()
        .fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte))))
}
