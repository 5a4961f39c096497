//! Parquet: a folder of tables, in which each trace has its partition.
//!
//! `TABLE/trace=NAME/part-0.parquet` is how Hive, and so DuckDB, Spark and Arrow, expect a table to
//! be divided by the values of a column, here `trace`.

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
use etl::Trace;
use tables::Table;

use super::part::Part;
use crate::cli::{Failure, NewFile};

/// Under which a file keeps [`identity`].
const IDENTITY: &str = "laglab.trace_identity";

/// Begins a new row group after so many rows, where chunks are smaller.
const ROW_GROUP: usize = 1 << 20;

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Files, one for each table.
    pub(crate) files: u64,
    /// Rows in them.
    pub(crate) rows: u64,
    /// Bytes of them.
    pub(crate) bytes: u64,
}

/// Writes the tables of a part into the partition `name` of the folder.
///
/// # Errors
/// If the partition holds another trace, a table cannot be read or a file not be written.
pub(crate) fn write(
    part: &Part<'_>,
    tables: &[Table],
    folder: &Path,
    name: &str,
) -> Result<Written, Failure> {
    let identity = identity(part.trace());
    let files: Vec<(Table, PathBuf)> = tables
        .iter()
        .map(|table| (*table, place(folder, *table, name)))
        .collect();
    // All are looked at before any is written.
    for (_, path) in &files {
        check_place(path, name, &identity)?;
    }
    let mut written = Written::default();
    for (table, path) in &files {
        let (rows, bytes) = write_table(part, *table, path, &identity)?;
        written.files += 1;
        written.rows += rows;
        written.bytes += bytes;
    }
    Ok(written)
}

/// Where a table of a trace goes.
fn place(folder: &Path, table: Table, name: &str) -> PathBuf {
    folder
        .join(table.name())
        .join(format!("trace={}", escaped(name)))
        .join("part-0.parquet")
}

/// The name as a partition's folder, as Hive escapes it: what has a meaning in paths as its code.
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

/// What tells a trace from others: a hash of its sessions' starts and boots and of the times of its
/// buffers. Its files' names are not in it; they may change.
fn identity(trace: &Trace) -> String {
    let mut hash = blake3::Hasher::new();
    for segment in trace.segments() {
        for number in segment
            .header
            .iter()
            .flat_map(|header| [header.start, header.boot, header.raw_start])
        {
            hash.update(&number.to_le_bytes());
        }
    }
    for buffer in trace.buffers() {
        hash.update(&buffer.cpu.to_le_bytes());
        hash.update(&buffer.first_time.to_le_bytes());
    }
    hash.finalize().to_hex().to_string()
}

/// # Errors
/// If the file is there and not of that trace.
fn check_place(path: &Path, name: &str, identity: &str) -> Result<(), Failure> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::input(path, error)),
    };
    let reader = SerializedFileReader::new(file).ok();
    let found = reader.as_ref().and_then(|reader| {
        let pairs = reader.metadata().file_metadata().key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key == IDENTITY)?;
        pair.value.as_deref()
    });
    match found {
        Some(found) if found == identity => Ok(()),
        Some(_) => Err(Failure::input(
            path,
            format!(
                "is of another trace called `{name}`; give this one a name of its own (--name)"
            ),
        )),
        None => Err(Failure::input(
            path,
            "was not written by laglab; move it away, or give another folder",
        )),
    }
}

/// Writes a table: how many rows and bytes.
fn write_table(
    part: &Part<'_>,
    table: Table,
    path: &Path,
    identity: &str,
) -> Result<(u64, u64), Failure> {
    let failed = |error: ParquetError| match error {
        ParquetError::External(error) => Failure::input(path, error),
        other => Failure::input(path, other),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Failure::input(folder, error))?;
    }
    let rows = part.whole_rows(table)?;
    let mut about = vec![KeyValue::new(IDENTITY.to_owned(), identity.to_owned())];
    let clock = part.trace().clock();
    let start = clock.to_unix_ns(clock.from_ns(0));
    about.push(KeyValue::new(
        "laglab.start_unix_ns".to_owned(),
        start.to_string(),
    ));
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
        // A chunk is a row group, so that readers skip what the statistics rule out.
        writer.flush().map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok((count, new.finish()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_folder() {
        assert_eq!(escaped("boot_2024-05.a"), "boot_2024-05.a");
        assert_eq!(escaped("a/b=c %ü"), "a%2Fb%3Dc%20%25%C3%BC");
        assert_eq!(escaped(r"..\x"), "..%5Cx");
    }
}
