//! State of the file cache before a run.

use std::fmt;
use std::str::FromStr;

use super::positional::read_all;
use super::{FileSet, FilesError};
use crate::UnknownName;

/// State of the system's file cache when a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// All files are cached, because each file was read just before the run.
    Warm,
    /// Files and folders are not cached, because Linux dropped all caches. This needs root.
    Dropped,
    /// The content of the files is not cached, because Linux was advised to evict each file. This
    /// needs no privilege.
    Evicted,
    /// The state is unknown, because reads bypass the cache (`O_DIRECT`, `FILE_FLAG_NO_BUFFERING`,
    /// `F_NOCACHE`).
    Direct,
}

impl CacheState {
    /// All states.
    pub const ALL: [CacheState; 4] = [
        CacheState::Warm,
        CacheState::Dropped,
        CacheState::Evicted,
        CacheState::Direct,
    ];

    /// Returns the name of the cache state.
    pub fn name(self) -> &'static str {
        match self {
            CacheState::Warm => "warm",
            CacheState::Dropped => "dropped",
            CacheState::Evicted => "evicted",
            CacheState::Direct => "direct",
        }
    }

    /// Prepares the state before a run. Windows and macOS have no documented way to drop cached
    /// content.
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
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<CacheState, UnknownName> {
        let state = CacheState::ALL
            .into_iter()
            .find(|state| state.name() == name);
        state.ok_or_else(|| {
            let known = CacheState::ALL.map(CacheState::name);
            UnknownName::new("cache state", name, known)
        })
    }
}

#[cfg(target_os = "linux")]
fn drop_caches() -> Result<(), FilesError> {
    // Dirty pages cannot be dropped, so they are written first.
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| {
        FilesError::Unavailable(format!(
            "cannot drop the system's file cache: {error}; run as root, or use `--cache evicted` or \
             `direct`"
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
        advised.map_err(FilesError::at(&file.path, "evict"))?;
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
    FilesError::Unavailable(
        "only Linux can drop cached files; use `--cache direct` to bypass the cache".to_owned(),
    )
}

/// Returns the number of bytes that the device delivered to this program so far. Returns `None` if the system
/// does not count them.
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
