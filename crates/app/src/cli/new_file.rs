//! A file that appears under its name only when all of it is written.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Failure;

/// A file being written: in the folder of its name, which it takes when it is done. One that is
/// there is replaced then; one that is given up leaves nothing behind.
pub(crate) struct NewFile {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl NewFile {
    /// # Errors
    /// If nothing can be written in the folder of `path`, or `path` is one.
    pub(crate) fn create(path: &Path) -> Result<NewFile, Failure> {
        match path.metadata() {
            Ok(there) if there.is_dir() => {
                return Err(Failure::input(path, "is a directory; give a file to write"));
            }
            Ok(there) if !there.is_file() => {
                let message = "is a device or pipe; give a file to write";
                return Err(Failure::input(path, message));
            }
            _ => {}
        }
        // What a link leads to is replaced, not the link.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".laglab-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // What the user's umask leaves of these, as of any new file.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary = builder
            .tempfile_in(folder)
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => Failure::input(path, "its folder does not exist"),
                kind => Failure::input(path, format!("cannot be written: {kind}")),
            })?;
        Ok(NewFile {
            path: path.to_owned(),
            temporary,
        })
    }

    /// What to write to.
    pub(crate) fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Gives the file its name, and says how many bytes it has.
    ///
    /// # Errors
    /// If the name cannot be taken.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        let path = self.path;
        let length = self.temporary.as_file().metadata().map(|m| m.len());
        let length = length.map_err(|error| Failure::input(&path, error))?;
        self.temporary
            .persist(&path)
            .map_err(|error| Failure::input(&path, error.error))?;
        Ok(length)
    }
}
