//! What of the files is in memory before a run.

use std::fmt;
use std::str::FromStr;

use super::positional::read_all;
use super::{FileSet, FilesError};

/// What the system's file cache holds when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// All of it: every file was just read.
    Warm,
    /// Nothing, neither of the files nor of folders: Linux was told to drop all caches, which
    /// only root may.
    Dropped,
    /// Nothing of the files' content; Linux was advised so of each file, which anybody may.
    Evicted,
    /// Whatever: files are read past it (`O_DIRECT`, `FILE_FLAG_NO_BUFFERING`, `F_NOCACHE`).
    Direct,
}

impl CacheState {
    /// All of them.
    pub const ALL: [CacheState; 4] = [
        CacheState::Warm,
        CacheState::Dropped,
        CacheState::Evicted,
        CacheState::Direct,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CacheState::Warm => "warm",
            CacheState::Dropped => "dropped",
            CacheState::Evicted => "evicted",
            CacheState::Direct => "direct",
        }
    }

    /// Makes it so. Windows and macOS have no documented way to forget what was read.
    pub(super) fn prepare(self, set: &FileSet) -> Result<(), FilesError> {
        match self {
            CacheState::Warm => read_all(set).map(drop),
            CacheState::Dropped => drop_caches(),
            CacheState::Evicted => evict(set),
            CacheState::Direct => Ok(()),
        }
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CacheState {
    type Err = String;

    fn from_str(name: &str) -> Result<CacheState, String> {
        let found = CacheState::ALL
            .into_iter()
            .find(|state| state.name() == name);
        found.ok_or_else(|| format!("{name} is none of warm, dropped, evicted and direct"))
    }
}

#[cfg(target_os = "linux")]
fn drop_caches() -> Result<(), FilesError> {
    // What is not written yet cannot be dropped.
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| {
        FilesError::NotHere(format!(
            "the system's file cache cannot be dropped: {error}; run as root, or measure `--cache \
             evicted` or `direct`"
        ))
    })
}

#[cfg(target_os = "linux")]
fn evict(set: &FileSet) -> Result<(), FilesError> {
    rustix::fs::sync();
    for file in set.files() {
        let advised = std::fs::File::open(&file.path).and_then(|open| {
            let advice = rustix::fs::Advice::DontNeed;
            Ok(rustix::fs::fadvise(&open, 0, None, advice)?)
        });
        advised.map_err(FilesError::of(&file.path, "evicted from the cache"))?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn drop_caches() -> Result<(), FilesError> {
    Err(not_here())
}

#[cfg(not(target_os = "linux"))]
fn evict(_: &FileSet) -> Result<(), FilesError> {
    Err(not_here())
}

#[cfg(not(target_os = "linux"))]
fn not_here() -> FilesError {
    FilesError::NotHere(
        "only Linux forgets what was read on request; `--cache direct` reads past the cache"
            .to_owned(),
    )
}

/// The bytes that this program had read from a device so far; unknown where nobody counts them.
#[cfg(target_os = "linux")]
pub(super) fn bytes_from_device() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn bytes_from_device() -> Option<u64> {
    None
}
