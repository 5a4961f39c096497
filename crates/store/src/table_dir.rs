//! Storage location of the table files of one set of input files: a folder of the cache, or unnamed
//! temporary files.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use files::FileSource;
use tempfile::TempPath;

use crate::Error;
use crate::cache_folder::{CacheFolder, create_unfinished, record_use};
use crate::table_file::{Corrupt, TableFile, TableSpec, TableWriter};

/// Storage location of the table files of one set of input files.
#[derive(Debug)]
pub enum TableDir {
    /// A folder of the cache. Other processes may use the same folder.
    Cached {
        /// Cache that contains the folder.
        cache: CacheFolder,
        /// Key of the input files, see [`InputFiles::key`](crate::InputFiles::key).
        key: String,
    },
    /// Unnamed temporary files. The operating system removes them when they are closed, even if the
    /// process is killed.
    Temporary,
}

/// A table file that is being written.
#[derive(Debug)]
pub struct NewTableFile {
    file: File,
    /// Temporary name of a file in the cache. The file gets its final name when it is complete. `None` for an
    /// unnamed file.
    name: Option<TempPath>,
}

/// A table file that is open for reading.
pub struct TableFileHandle {
    file: TableFile,
    /// Path of the file; `None` if the file is unnamed or could not get its final name.
    path: Option<PathBuf>,
    /// Temporary name of a file that could not get its final name. Dropping this value removes the
    /// file.
    _temporary: Option<TempPath>,
}

impl TableDir {
    /// Returns the folder of the table files. For unnamed files, returns the system's folder of
    /// temporary files.
    pub fn folder(&self) -> PathBuf {
        match self {
            TableDir::Cached { cache, key } => cache.tables_folder(key),
            TableDir::Temporary => std::env::temp_dir(),
        }
    }

    /// Returns true if the files are in the cache, where later processes find them.
    pub fn is_cached(&self) -> bool {
        matches!(self, TableDir::Cached { .. })
    }

    /// Opens the table. Returns `None` if the table has no file.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or belongs to another trace. The file is then removed.
    pub fn find(&self, spec: &TableSpec) -> Result<Option<TableFileHandle>, Corrupt> {
        let Some(path) = self.path(spec) else {
            return Ok(None);
        };
        let Ok(source) = files::open_file(&path).and_then(FileSource::new) else {
            return Ok(None);
        };
        match TableFile::open(Box::new(source), spec.clone(), self.key()) {
            Ok(file) => Ok(Some(TableFileHandle {
                file,
                path: Some(path),
                _temporary: None,
            })),
            Err(corrupt) => {
                // If the file cannot be removed, the new file may replace it later. Otherwise, the new file stays
                // without a final name.
                let _ = fs::remove_file(path);
                Err(corrupt)
            }
        }
    }

    /// Creates a file for a table.
    ///
    /// # Errors
    /// Returns an error if the folder or the file cannot be created.
    pub fn create(&self, spec: TableSpec) -> io::Result<TableWriter<NewTableFile>> {
        let new = match self {
            TableDir::Cached { .. } => {
                let (file, name) = create_unfinished(&self.folder())?.into_parts();
                let name = Some(name);
                NewTableFile { file, name }
            }
            TableDir::Temporary => NewTableFile {
                file: tempfile::tempfile()?,
                name: None,
            },
        };
        Ok(TableWriter::new(new, spec, self.key()))
    }

    /// Renames a complete file to its final name, so that other processes find it, and opens it.
    ///
    /// # Errors
    /// Returns an error if the file is not a valid file of the table `spec`.
    pub fn publish(&self, spec: &TableSpec, new: NewTableFile) -> Result<TableFileHandle, Error> {
        let path = self.path(spec);
        let opened = FileSource::new(new.file)
            .map_err(|error| Corrupt {
                offset: 0,
                what: error.to_string(),
            })
            .and_then(|source| TableFile::open(Box::new(source), spec.clone(), self.key()));
        let opened = opened.map_err(|corrupt| corrupt.into_error(spec, path.as_deref()))?;
        let mut handle = TableFileHandle {
            file: opened,
            path,
            _temporary: None,
        };
        if let (Some(path), Some(name)) = (&handle.path, new.name)
            && let Err(error) = name.persist(path)
        {
            // Renaming can fail for two reasons: Windows does not replace a file that another
            // process reads, or another process has cleared the cache. The open file is valid in
            // both cases.
            handle.path = None;
            handle._temporary = Some(error.path);
        }
        Ok(handle)
    }

    /// Records that the tables were used now. The least recently used tables are evicted first.
    pub fn record_use(&self) {
        if self.is_cached() {
            record_use(&self.folder());
        }
    }

    /// Removes the least recently used tables of other input files until the cache is within its limit.
    pub fn evict(&self) {
        if let TableDir::Cached { cache, key } = self {
            cache.evict(key);
        }
    }

    /// Returns the key that is written into each table file.
    fn key(&self) -> Option<&str> {
        match self {
            TableDir::Cached { key, .. } => Some(key),
            TableDir::Temporary => None,
        }
    }

    fn path(&self, spec: &TableSpec) -> Option<PathBuf> {
        match self {
            TableDir::Cached { .. } => Some(self.folder().join(format!("{}.table", spec.name))),
            TableDir::Temporary => None,
        }
    }
}

impl TableFileHandle {
    /// Returns the open file.
    pub fn file(&self) -> &TableFile {
        &self.file
    }

    /// Removes a damaged file, so that no later process reads it.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            // If the file cannot be removed, the new file may replace it later. Otherwise, the new file stays without a
            // final name.
            let _ = fs::remove_file(path);
        }
    }

    /// Converts damage of this file to an error that names the table and the file.
    pub fn error(&self, corrupt: Corrupt) -> Error {
        corrupt.into_error(self.file.spec(), self.path.as_deref())
    }
}

impl Corrupt {
    fn into_error(self, spec: &TableSpec, file: Option<&Path>) -> Error {
        Error::Damaged {
            table: spec.name,
            file: file.map_or_else(std::env::temp_dir, Path::to_owned),
            offset: self.offset,
            what: self.what,
        }
    }
}

impl fmt::Debug for TableFileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableFileHandle")
            .field("table", &self.file.spec().name)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Write for NewTableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
