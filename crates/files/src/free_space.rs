//! Free space of a folder's disk. Unsafe code is allowed here, because a Windows function writes its result
//! through a pointer argument.
#![cfg_attr(windows, allow(unsafe_code))]

use std::path::{Path, PathBuf};

/// Number of bytes that must stay free on a disk to which laglab writes data of unknown size.
pub const RESERVE: u64 = 256 << 20;

/// Number of bytes that are written between two checks of the free space.
pub const BETWEEN_CHECKS: u64 = 64 << 20;

/// Environment variable that selects the folder of temporary files.
const TEMPORARY: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// Lack of space on the disk of temporary files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "needs {} MiB for a temporary file in {}, where {} MiB are free and {} MiB must stay free; free some space, or \
     set {TEMPORARY} to a folder with more free space",
    needed.div_ceil(1 << 20), folder.display(), free >> 20, RESERVE >> 20
)]
pub struct NoSpace {
    /// Number of bytes that are not written yet.
    pub needed: u64,
    /// Number of free bytes on the disk.
    pub free: u64,
    /// Folder of temporary files.
    pub folder: PathBuf,
}

impl NoSpace {
    /// Checks that a temporary file can grow by `needed` bytes, and that 256 MiB of its disk then stay free.
    ///
    /// # Errors
    /// Returns an error if the disk has too little space.
    pub fn check(needed: u64) -> Result<(), NoSpace> {
        NoSpace::check_free(needed, available_bytes(&std::env::temp_dir()))
    }

    /// Checks a disk with `free` free bytes. If the number is unknown, the disk counts as large enough.
    pub fn check_free(needed: u64, free: Option<u64>) -> Result<(), NoSpace> {
        match free {
            Some(free) if free < needed.saturating_add(RESERVE) => Err(NoSpace {
                needed,
                free,
                folder: std::env::temp_dir(),
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the number of bytes that this user can write to the disk of `folder`. Returns `None` if the system
/// does not report this number.
pub fn available_bytes(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(windows)]
    {
        use std::os::windows::ffi::OsStrExt;
        use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;

        let name: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
        let mut free = 0;
        let null = std::ptr::null_mut();
        // SAFETY: the text `name` ends with 0, `free` is valid, and the other two pointers may be null.
        let done = unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &mut free, null, null) };
        (done != 0).then_some(free)
    }
    #[cfg(not(any(unix, windows)))]
    {
        let _ = folder;
        None
    }
}
