//! One run of a reading method.

use ioring::Library;

use super::drive;
use super::opening::Access;
use super::ring::RingQueue;
use super::sums::Sums;
use super::watch::{ReadTime, Times};
use super::{CacheState, FileSet, FilesError, FilesMethod, positional};
use crate::Clock;

/// Conditions of a run.
pub(super) struct Conditions<'c> {
    pub(super) set: &'c FileSet,
    pub(super) cache: CacheState,
    pub(super) clock: &'c Clock,
    /// Library of I/O rings. `None` means the rings of the system.
    pub(super) rings: Option<Library>,
}

/// Result of a run.
pub(super) struct Run {
    pub(super) times: Times,
    pub(super) sums: Sums,
    /// Times of all reads, in order of completion. Reads of several threads are grouped by thread.
    pub(super) reads: Vec<ReadTime>,
}

impl FilesMethod {
    /// Reads all files once.
    pub(super) fn run(self, conditions: &Conditions<'_>) -> Result<Run, FilesError> {
        match self {
            FilesMethod::Positional { threads } => {
                positional::run(conditions, threads.max(1) as usize)
            }
            #[cfg(unix)]
            FilesMethod::Mapped => super::mapped::run(conditions),
            #[cfg(target_os = "linux")]
            FilesMethod::Uring { depth, batch, mode } => {
                let make = |files| super::uring::UringQueue::new(files, depth, mode);
                drive::run(conditions, Access::Synchronous, batch as usize, make)
            }
            #[cfg(windows)]
            FilesMethod::ReadFileEx { depth } => {
                let make = |files| Ok(super::overlapped::RoutineQueue::new(files, depth));
                drive::run(conditions, Access::Overlapped, 1, make)
            }
            #[cfg(windows)]
            FilesMethod::CompletionPort { depth } => {
                let make = |files| super::overlapped::PortQueue::new(files, depth);
                drive::run(conditions, Access::Overlapped, 1, make)
            }
            FilesMethod::IoRing {
                interface,
                depth,
                batch,
                registered,
            } => {
                let rings = conditions.rings;
                let make = |files| RingQueue::new(files, rings, interface, depth, registered);
                drive::run(conditions, Access::Overlapped, batch as usize, make)
            }
            #[allow(
                unreachable_patterns,
                reason = "on Linux only the methods of Windows remain"
            )]
            _ => Err(FilesError::Unavailable(
                "it exists on other systems only".to_owned(),
            )),
        }
    }
}
