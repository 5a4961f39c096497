//! Folders for temporary files, and folders that only their owner can read.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::Path;

use files::free_space::{self, RESERVE};
use tempfile::TempDir;

/// Start of the names of temporary folders.
const PREFIX: &str = "laglab-";
/// Name of a file in a temporary folder. The program that uses the folder holds a lock on it.
const LOCK: &str = "in-use";

/// Temporary folder that only its owner can read. It is deleted when this value is dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    /// Holds the lock. It is closed before the folder is deleted, because Windows keeps open files.
    _lock: File,
    folder: TempDir,
}

impl ScratchFolder {
    /// Creates a folder in the system's folder for temporary files. Also deletes the folders of programs that were killed.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn new() -> io::Result<ScratchFolder> {
        ScratchFolder::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<ScratchFolder> {
        clear(parent);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o700));
        }
        let folder = builder.tempdir_in(parent)?;
        // The file gets its name when it is locked: other programs delete a folder whose file is not locked.
        let unnamed = folder.path().join("new");
        let lock = File::create(&unnamed)?;
        // Some network drives have no locks. There, the folder has no lock file and is never taken for an abandoned one.
        if lock.try_lock().is_ok() {
            fs::rename(unnamed, folder.path().join(LOCK))?;
        }
        Ok(ScratchFolder {
            _lock: lock,
            folder,
        })
    }

    /// Returns the number of bytes that files in the folder may have, so that some space stays free on its disk. Returns
    /// `None` if the free space is unknown.
    pub fn free_bytes(&self) -> Option<u64> {
        let free = free_space::available_bytes(self.path())?;
        Some(free.saturating_sub(RESERVE))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Deletes the temporary folders that programs left behind when they were killed. Errors are ignored, because another user
/// may own the folder.
fn clear(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        // Another user may have made a pipe of this name, whose opening would wait for ever.
        let is_left = files::open_file(&path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if is_left {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Creates a folder and its parents. Only their owner can read the new folders.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_programs_are_deleted() {
        let parent = tempfile::tempdir().unwrap();
        let used = ScratchFolder::new_in(parent.path()).unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("rows"), "of a query").unwrap();
        let foreign = parent.path().join(format!("{PREFIX}notes"));
        fs::create_dir(&foreign).unwrap();
        let new = ScratchFolder::new_in(parent.path()).unwrap();
        assert!(used.path().is_dir() && new.path().is_dir());
        assert!(!left.exists());
        assert!(
            foreign.is_dir(),
            "it has no lock file, so another program made it"
        );
        let path = new.path().to_owned();
        drop(new);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_folders() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let parent = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new_in(parent.path()).unwrap();
        assert_eq!(mode(scratch.path()), 0o700);
        let inner = parent.path().join("cache/tables");
        create_private(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&parent.path().join("cache")), 0o700);
    }
}
