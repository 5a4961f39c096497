//! Free space of a folder's disk. Unsafe code is allowed here, because a Windows function writes its result
//! through a pointer argument.
#![cfg_attr(windows, allow(unsafe_code))]

use std::path::Path;

/// Number of bytes that must stay free on a disk to which laglab writes data of unknown size.
pub const RESERVE: u64 = 256 << 20;

/// Number of bytes that are written between two checks of the free space.
pub const BETWEEN_CHECKS: u64 = 64 << 20;

/// Returns the number of bytes that this user can write to the disk of `folder`. Returns `None` if the system
/// does not report this number.
pub fn of(folder: &Path) -> Option<u64> {
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
