//! Where the tables of one trace are put: a folder of the cache, or nameless temporary files.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use etl::FileSource;
use tempfile::TempPath;

use super::StoreError;
use super::cache_folder::{CacheFolder, note_use, unfinished};
use super::table_file::{Damaged, TableFile};
use crate::Table;

/// Where the tables of one trace are put.
#[derive(Debug)]
pub(crate) enum Shelf {
    /// The folder of the cache for the trace with this key.
    Kept { cache: CacheFolder, key: String },
    /// Files without a name, which the system removes when they are closed, however that happens.
    Nameless,
}

/// A table's file that is being written.
pub(crate) struct NewFile {
    file: File,
    /// Where it is until it is whole; of a file with a name.
    name: Option<TempPath>,
}

/// A table's file that is read.
pub(crate) struct ShelvedFile {
    pub(crate) table: TableFile,
    /// Its name, if it has one.
    path: Option<PathBuf>,
    /// Removes a file that could not get its name.
    _unnamed: Option<TempPath>,
}

impl Shelf {
    /// The folder, for messages.
    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            Shelf::Kept { cache, key } => cache.tables_of(key),
            Shelf::Nameless => std::env::temp_dir(),
        }
    }

    /// The table, if it is there and whole as far as its footer tells. What is damaged is removed.
    pub(crate) fn find(&self, table: Table) -> Option<ShelvedFile> {
        let path = self.path(table)?;
        let source = FileSource::new(File::open(&path).ok()?).ok()?;
        match TableFile::open(source, table) {
            Ok(table) => Some(ShelvedFile {
                table,
                path: Some(path),
                _unnamed: None,
            }),
            Err(_) => {
                // Where it cannot be removed it is written over, or other files are used.
                let _ = fs::remove_file(path);
                None
            }
        }
    }

    /// A new file for a table.
    pub(crate) fn create(&self) -> io::Result<NewFile> {
        match self {
            Shelf::Kept { .. } => {
                let (file, name) = unfinished(&self.folder())?.into_parts();
                Ok(NewFile {
                    file,
                    name: Some(name),
                })
            }
            Shelf::Nameless => Ok(NewFile {
                file: tempfile::tempfile()?,
                name: None,
            }),
        }
    }

    /// Puts a table's whole file where everybody finds it.
    pub(crate) fn publish(&self, table: Table, new: NewFile) -> Result<ShelvedFile, StoreError> {
        let path = self.path(table);
        let opened = FileSource::new(new.file)
            .map_err(|error| Damaged {
                offset: 0,
                what: error.to_string(),
            })
            .and_then(|source| TableFile::open(source, table));
        let opened = opened.map_err(|damaged| damaged.error(table, path.as_deref()))?;
        let mut file = ShelvedFile {
            table: opened,
            path,
            _unnamed: None,
        };
        if let (Some(path), Some(name)) = (&file.path, new.name)
            && let Err(error) = name.persist(path)
        {
            // Windows keeps a file that somebody reads, who then was quicker; and somebody may have
            // cleared the cache. What is open is good in any case.
            file.path = None;
            file._unnamed = Some(error.path);
        }
        Ok(file)
    }

    /// Notes that tables were asked for.
    pub(crate) fn note_use(&self) {
        if let Shelf::Kept { .. } = self {
            note_use(&self.folder());
        }
    }

    /// Keeps the cache within its limit, after something was put there.
    pub(crate) fn tidy(&self) {
        if let Shelf::Kept { cache, key } = self {
            cache.tidy(key);
        }
    }

    fn path(&self, table: Table) -> Option<PathBuf> {
        match self {
            Shelf::Kept { .. } => Some(self.folder().join(format!("{table}.table"))),
            Shelf::Nameless => None,
        }
    }
}

impl ShelvedFile {
    /// Takes a damaged file away, so that nobody is answered from it.
    pub(crate) fn remove(&self) {
        if let Some(path) = &self.path {
            // It is written over where it cannot be removed.
            let _ = fs::remove_file(path);
        }
    }

    /// Says that something in the file is not as it was written.
    pub(crate) fn error(&self, damaged: Damaged) -> StoreError {
        damaged.error(self.table.table(), self.path.as_deref())
    }
}

impl Damaged {
    fn error(self, table: Table, file: Option<&Path>) -> StoreError {
        StoreError::Damaged {
            table,
            file: file.map_or_else(std::env::temp_dir, Path::to_owned),
            offset: self.offset,
            what: self.what,
        }
    }
}

impl fmt::Debug for ShelvedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShelvedFile")
            .field("table", &self.table.table())
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
