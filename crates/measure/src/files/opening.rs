//! Opening the files of a set before the first file is read. All files are opened first because
//! opening is a separate phase, and because registrations need open files.

use std::fs::{File, OpenOptions};
use std::io;

use super::{CacheState, FileSet, FilesError};

/// Mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Mode in which a read returns when it is done.
    Synchronous,
    /// Mode of Windows in which a read may return before it is done (`FILE_FLAG_OVERLAPPED`).
    Overlapped,
}

/// Opens all files of a set.
pub(super) fn open_all(
    set: &FileSet,
    access: Access,
    cache: CacheState,
) -> Result<Vec<File>, FilesError> {
    let options = options(access, cache == CacheState::Direct);
    let open = |file: &super::set::FileToRead| {
        let opened = options.open(&file.path).and_then(|opened| {
            if cache == CacheState::Direct {
                bypass_cache(&opened)?;
            }
            Ok(opened)
        });
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput if cache == CacheState::Direct => {
                FilesError::Unavailable(format!(
                    "the file system of {} does not support reads that bypass its cache",
                    file.path.display()
                ))
            }
            _ => FilesError::of(&file.path, "open")(error),
        })
    };
    set.files().iter().map(open).collect()
}

/// Raises the program's limit of open files, if necessary, so that all files of a set may be open
/// at once.
#[cfg(unix)]
pub(super) fn allow(files: usize) -> Result<(), FilesError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Number of open files that do not belong to the set: terminal, results, a queue.
    const BESIDES: u64 = 64;

    let needed = files as u64 + BESIDES;
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    if enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        Ok(())
    } else {
        Err(FilesError::TooManyOpen {
            files,
            allowed: limit.maximum.unwrap_or(u64::MAX),
        })
    }
}

/// Does nothing, because Windows has no limit that a set could reach.
#[cfg(not(unix))]
pub(super) fn allow(_: usize) -> Result<(), FilesError> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn options(_: Access, is_direct: bool) -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = File::options();
    options.read(true);
    if is_direct {
        options.custom_flags(libc::O_DIRECT);
    }
    options
}

#[cfg(windows)]
fn options(access: Access, is_direct: bool) -> OpenOptions {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_NO_BUFFERING, FILE_FLAG_OVERLAPPED};

    let mut flags = 0;
    if access == Access::Overlapped {
        flags |= FILE_FLAG_OVERLAPPED;
    }
    if is_direct {
        flags |= FILE_FLAG_NO_BUFFERING;
    }
    let mut options = File::options();
    options.read(true).custom_flags(flags);
    options
}

#[cfg(not(any(target_os = "linux", windows)))]
fn options(_: Access, _: bool) -> OpenOptions {
    let mut options = File::options();
    options.read(true);
    options
}

/// Makes reads of an open file bypass the cache.
#[cfg(target_vendor = "apple")]
fn bypass_cache(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fcntl_nocache(file, true)?)
}

#[cfg(not(target_vendor = "apple"))]
fn bypass_cache(_: &File) -> io::Result<()> {
    Ok(())
}
