//! Parquet export: a folder of tables with one partition for each trace.
//!
//! The layout is `TABLE/trace=NAME/part-0.parquet`. Hive, DuckDB, Spark and Arrow use this layout for tables
//! that are partitioned by a column. Here, this column is `trace`.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use session::{FileError, NewFile};
use tables::Table;

use super::part::Part;
use crate::{Error, PartitionProblem};

/// Key of the trace's identity, a hash, in the metadata of a file.
const IDENTITY: &str = "laglab.trace_identity";

/// Maximum number of rows in a row group.
const ROW_GROUP: usize = 1 << 20;

/// Summary of the written files.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParquetSummary {
    /// Number of files, one for each table.
    pub files: u64,
    /// Total number of rows.
    pub rows: u64,
    /// Total size in bytes.
    pub bytes: u64,
}

/// Writes the tables of a part into the partition `name` of the folder, one file for each table.
///
/// The files get their names when all of them are complete.
///
/// # Errors
/// Returns an error if the partition contains another trace, a table cannot be read or a file cannot be written.
/// After an error, no new file or folder remains, with one exception: if a complete file cannot be renamed, the
/// files that were renamed before it remain.
pub fn write(
    part: &Part<'_>,
    tables: &[Table],
    folder: &Path,
    name: &str,
) -> Result<ParquetSummary, Error> {
    let identity = blake3::hash(&part.recording().identity());
    let identity = identity.to_hex().to_string();
    let files: Vec<(Table, PathBuf)> = tables
        .iter()
        .map(|table| (*table, place(folder, *table, name)))
        .collect();
    // All files are checked before any is written.
    for (_, path) in &files {
        check_place(path, name, &identity)?;
    }
    let mut written = ParquetSummary::default();
    // If an error occurs, the new files are dropped first, which deletes them. Then the new folders are
    // dropped.
    let mut folders = NewFolders::default();
    let mut complete = Vec::new();
    for (table, path) in &files {
        if let Some(folder) = path.parent() {
            folders.create(folder)?;
        }
        let (rows, new) = write_table(part, *table, path, &identity)?;
        written.rows += rows;
        complete.push(new);
    }
    for new in complete {
        written.files += 1;
        written.bytes += new.finish()?;
    }
    Ok(written)
}

/// Created folders. When this value is dropped, the folders that are still empty are deleted.
#[derive(Default)]
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Creates a folder and its parents.
    fn create(&mut self, folder: &Path) -> Result<(), FileError> {
        let missing: Vec<&Path> = (folder.ancestors())
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        let missing = missing.into_iter().rev().map(Path::to_owned);
        self.0.extend(missing);
        std::fs::create_dir_all(folder).map_err(|error| FileError::write(folder, error))
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // This fails if the folder is not empty.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Returns the path of a table's file.
fn place(folder: &Path, table: Table, name: &str) -> PathBuf {
    folder
        .join(table.name())
        .join(format!("trace={}", escaped(name)))
        .join("part-0.parquet")
}

/// Returns the name in a form that is safe in the name of a partition's folder. Every byte except ASCII letters,
/// digits, `_`, `-` and `.` becomes `%` and its hexadecimal code, as in Hive.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => text.push(byte.into()),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
        text
    })
}

/// Checks that the file of a partition can be written.
///
/// # Errors
/// Returns an error if the file exists and contains another trace, or was not written by laglab.
fn check_place(path: &Path, name: &str, identity: &str) -> Result<(), Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FileError::write(path, error).into()),
    };
    let reader = SerializedFileReader::new(file).ok();
    let stored = reader.as_ref().and_then(|reader| {
        let pairs = reader.metadata().file_metadata().key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key == IDENTITY)?;
        pair.value.as_deref()
    });
    match stored {
        Some(stored) if stored == identity => Ok(()),
        Some(_) => Err(Error::Partition {
            path: path.to_owned(),
            problem: PartitionProblem::OtherTrace(name.to_owned()),
        }),
        None => Err(Error::Partition {
            path: path.to_owned(),
            problem: PartitionProblem::Foreign,
        }),
    }
}

/// Writes a table to a new file that has a temporary name. Also returns the number of rows.
fn write_table(
    part: &Part<'_>,
    table: Table,
    path: &Path,
    identity: &str,
) -> Result<(u64, NewFile), Error> {
    let failed = |source: ParquetError| Error::Parquet {
        path: path.to_owned(),
        source: match source {
            ParquetError::External(error) => error,
            other => Box::new(other),
        },
    };
    let rows = part.whole_rows(table)?;
    let mut about = vec![KeyValue::new(IDENTITY.to_owned(), identity.to_owned())];
    about.extend(
        part.start_unix_ns()
            .map(|start| KeyValue::new("laglab.start_unix_ns".to_owned(), start.to_string())),
    );
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("laglab ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(about))
        .build();
    let new = NewFile::create(path)?;
    let schema = Arc::clone(rows.table().schema());
    let mut writer = ArrowWriter::try_new(new.file(), schema, Some(properties)).map_err(failed)?;
    let mut count = 0;
    for batch in rows {
        let batch = batch?;
        count += batch.num_rows() as u64;
        writer.write(&batch).map_err(failed)?;
        // Each chunk becomes a row group, so that readers can skip it by its statistics.
        writer.flush().map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok((count, new))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use testdata::HOSTILE_NAMES;

    use super::*;

    #[test]
    fn names_cannot_leave_their_folder() {
        assert_eq!(escaped("boot_2024-05.a"), "boot_2024-05.a");
        assert_eq!(escaped("a/b=c %ü"), "a%2Fb%3Dc%20%25%C3%BC");
        assert_eq!(escaped(r"..\x"), "..%5Cx");
        let names = HOSTILE_NAMES.iter().chain(&[".", "..", "CON", "nul.txt"]);
        let mut folders = BTreeSet::new();
        for name in names.clone() {
            let path = place(Path::new("folder"), Table::Samples, name);
            let inside = path.strip_prefix("folder/samples").unwrap();
            let parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
            let [folder, "part-0.parquet"] = parts[..] else {
                panic!("{name:?}: {parts:?}");
            };
            // Windows reserves names such as CON, with any extension. No reserved name starts like this.
            let written = folder.strip_prefix("trace=").unwrap();
            let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-.%".contains(c);
            assert!(written.chars().all(is_safe), "{written}");
            folders.insert(folder.to_owned());
        }
        assert_eq!(folders.len(), names.count(), "no two names share a folder");
    }
}
