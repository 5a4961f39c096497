//! An output file that gets its name only after it was written completely.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Error of a file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason why the file cannot be written.
    #[source]
    pub problem: FileProblem,
}

/// Reason why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The path is a directory.
    #[error("is a directory; give a file to write")]
    Directory,
    /// The path is neither a file nor a directory.
    #[error("is a device or pipe; give a file to write")]
    Device,
    /// The directory of the path does not exist.
    #[error("its folder does not exist")]
    NoDirectory,
    /// The system refuses to create a file in the directory of the path.
    #[error("cannot be written: {}", refusal(*.0))]
    Create(ErrorKind),
    /// The system refuses to write or to rename the file.
    #[error(transparent)]
    Write(io::Error),
}

/// Returns the reason why the system refuses a new file, with advice if there is any.
fn refusal(kind: ErrorKind) -> String {
    let known = match kind {
        // Folders of the system, such as /proc.
        ErrorKind::NotFound | ErrorKind::Unsupported => "its folder takes no new files",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
        ErrorKind::StorageFull => "the disk is full",
        other => return other.to_string(),
    };
    format!("{known}; give another folder")
}

impl FileError {
    fn new(path: &Path, problem: FileProblem) -> FileError {
        FileError {
            path: path.to_owned(),
            problem,
        }
    }

    /// Creates an error from an error of the operating system during a write.
    pub fn write(path: &Path, error: io::Error) -> FileError {
        FileError::new(path, FileProblem::Write(error))
    }
}

/// Output file that is written under a temporary name in the folder of its final name. `finish` renames the
/// file and replaces an existing file of that name. Dropping a `NewFile` deletes the temporary file.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl NewFile {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// Returns an error if the folder of `path` does not exist or is not writable, or `path` is a directory
    /// or device.
    pub fn create(path: &Path) -> Result<NewFile, FileError> {
        match path.metadata() {
            Ok(there) if there.is_dir() => {
                return Err(FileError::new(path, FileProblem::Directory));
            }
            Ok(there) if !there.is_file() => {
                return Err(FileError::new(path, FileProblem::Device));
            }
            _ => {}
        }
        // If the path is a symbolic link, the target of the link is replaced, not the link.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path
            .as_os_str()
            .to_string_lossy()
            .ends_with(std::path::is_separator)
        {
            return Err(FileError::new(path, FileProblem::Directory));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".laglab-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // By default, `tempfile` makes the file private. With this mode, the user's umask applies as for
            // any new file.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary = builder
            .tempfile_in(folder)
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound if !folder.is_dir() => {
                    FileError::new(path, FileProblem::NoDirectory)
                }
                kind => FileError::new(path, FileProblem::Create(kind)),
            })?;
        Ok(NewFile {
            path: path.to_owned(),
            temporary,
        })
    }

    /// Returns the file to write to.
    pub fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Renames the file to its final name and returns its size in bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be renamed.
    pub fn finish(self) -> Result<u64, FileError> {
        let path = self.path;
        let length = self.temporary.as_file().metadata().map(|m| m.len());
        let length = length.map_err(|error| FileError::write(&path, error))?;
        self.temporary
            .persist(&path)
            .map_err(|error| FileError::write(&path, error.error))?;
        Ok(length)
    }
}
