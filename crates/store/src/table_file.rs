//! The table file format. Each column chunk (one column of one row group) is stored separately, so
//! that a query reads only the columns and row groups that it needs.
//!
//! ```text
//! chunk … chunk    column chunks; each is an Arrow IPC stream, aligned to 64 bytes
//! footer           JSON: key of the input files, table name, row groups, and offset, encoding and
//!                  checksum of each chunk
//! trailer          length of the footer (u64), its checksum (u32), magic; little endian
//! ```
//!
//! Checksums are CRC-32, because CRC-32 detects every error burst of up to 32 bits and CPUs have
//! instructions for it.
//!
//! Chunks are encoded (see [`Packing`]) but not compressed. A test with LZ4 compression instead of
//! this encoding halved the size of files, but writing took three times as long and reading took
//! twice as long.

use std::io::{self, BufWriter, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use files::Source;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::packing::{Packing, pack};

/// Version of the file format. Increase it with every change of the layout.
const FORMAT: u32 = 5;
const MAGIC: [u8; 8] = *b"\x89laglab\n";
const TRAILER: usize = 8 + 4 + MAGIC.len();
/// Alignment of chunks in bytes. Arrow recommends this alignment for buffers.
const ALIGNMENT: u64 = 64;
/// Maximum number of rows in a row group. The number is small for two reasons: a column chunk fits
/// into the private caches of a CPU core, and the times of a group lie close together and need few
/// bytes.
const GROUP_ROWS: usize = 1 << 16;

/// Description of a table: its name, its columns, and its sorted column. The rows are sorted by this column,
/// which has the type `Int64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Name of the table. It is also the name of the file without the extension.
    pub name: &'static str,
    /// Columns of the table.
    pub schema: SchemaRef,
    /// Name of the sorted column.
    pub sorted_by: &'static str,
}

/// A row group of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// Number of rows.
    pub rows: usize,
    /// Minimum of the sorted column in this group.
    pub first: i64,
    /// Maximum of the sorted column in this group.
    pub last: i64,
}

/// Damage that was found in a table file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Description of the damage.
    pub what: String,
}

#[derive(Serialize, Deserialize)]
struct Footer {
    format: u32,
    /// Key of the input files. Tables with the same key are in one folder of the cache. If the key in a file differs
    /// from the key of its folder, the file was copied from another folder and is not used. `None` for tables outside
    /// of the cache.
    key: Option<String>,
    table: String,
    schema: u32,
    row_groups: Vec<StoredRowGroup>,
    note: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct StoredRowGroup {
    rows: usize,
    first: i64,
    last: i64,
    columns: Vec<ColumnChunk>,
}

#[derive(Serialize, Deserialize)]
struct ColumnChunk {
    offset: u64,
    length: u64,
    checksum: u32,
    packing: Packing,
}

/// Writes a table file, row group by row group.
pub struct TableWriter<W: Write> {
    into: BufWriter<W>,
    written: u64,
    spec: TableSpec,
    key: Option<String>,
    row_groups: Vec<StoredRowGroup>,
}

impl<W: Write> TableWriter<W> {
    /// Creates a writer that has not written anything yet. `key` is the key of the input files, if
    /// the table is stored in the cache.
    pub fn new(into: W, spec: TableSpec, key: Option<&str>) -> Self {
        TableWriter {
            into: BufWriter::with_capacity(1 << 16, into),
            written: 0,
            spec,
            key: key.map(str::to_owned),
            row_groups: Vec::new(),
        }
    }

    /// Writes sorted rows, in one or more row groups.
    ///
    /// # Errors
    /// Returns an error if the batch does not have the columns of this table, or if the file cannot be
    /// written.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let is_of_table = (batch.schema_ref().fields().iter())
            .map(|field| field.data_type())
            .eq(self
                .spec
                .schema
                .fields()
                .iter()
                .map(|field| field.data_type()));
        let sorted = batch
            .column_by_name(self.spec.sorted_by)
            .and_then(|array| array.as_primitive_opt::<Int64Type>());
        let (true, Some(sorted)) = (is_of_table, sorted) else {
            return Err(io::Error::other("the rows belong to another table"));
        };
        // Row groups are encoded in parallel, because encoding takes longer than writing.
        let starts: Vec<usize> = (0..batch.num_rows()).step_by(GROUP_ROWS).collect();
        let groups = starts.par_iter().map(|start| {
            let rows = GROUP_ROWS.min(batch.num_rows() - start);
            let group = batch.slice(*start, rows);
            group.columns().iter().map(encode).collect()
        });
        let groups: Vec<Vec<EncodedChunk>> =
            groups.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let sorted = sorted.values().chunks(GROUP_ROWS);
        for (columns, sorted) in groups.into_iter().zip(sorted) {
            let columns = columns.into_iter().map(|column| self.write_chunk(column));
            let group = StoredRowGroup {
                rows: sorted.len(),
                first: sorted[0],
                last: sorted[sorted.len() - 1],
                columns: columns.collect::<io::Result<_>>()?,
            };
            self.row_groups.push(group);
        }
        Ok(())
    }

    fn write_chunk(&mut self, column: EncodedChunk) -> io::Result<ColumnChunk> {
        const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];
        let mut offset = self.written;
        if column.length > 0 {
            let padding = offset.next_multiple_of(ALIGNMENT) - offset;
            self.into.write_all(&ZEROS[..padding as usize])?;
            offset += padding;
        }
        for part in &column.parts {
            self.into.write_all(part)?;
        }
        self.written = offset + column.length;
        Ok(ColumnChunk {
            offset,
            length: column.length,
            checksum: column.checksum,
            packing: column.packing,
        })
    }

    /// Writes the footer, with an optional note of the caller (see [`TableFile::note`]).
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(mut self, note: Option<&impl Serialize>) -> io::Result<W> {
        let footer = Footer {
            format: FORMAT,
            key: self.key,
            table: self.spec.name.to_owned(),
            schema: fingerprint(&self.spec.schema),
            row_groups: self.row_groups,
            note: note.map(serde_json::to_value).transpose()?,
        };
        let footer = serde_json::to_vec(&footer)?;
        self.into.write_all(&footer)?;
        self.into.write_all(&(footer.len() as u64).to_le_bytes())?;
        self.into
            .write_all(&crc32fast::hash(&footer).to_le_bytes())?;
        self.into.write_all(&MAGIC)?;
        self.into.into_inner().map_err(|error| error.into_error())
    }
}

/// A column chunk that is ready to be written.
struct EncodedChunk {
    parts: Vec<Buffer>,
    length: u64,
    checksum: u32,
    packing: Packing,
}

fn encode(array: &ArrayRef) -> Result<EncodedChunk, ArrowError> {
    let (packing, stored) = pack(array);
    let parts = stored.map_or(Ok(Vec::new()), |stored| to_stream(&stored))?;
    let mut checksum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| checksum.update(part));
    Ok(EncodedChunk {
        length: parts.iter().map(|part| part.len() as u64).sum(),
        parts,
        checksum: checksum.finalize(),
        packing,
    })
}

/// Serialises one column as an Arrow IPC stream. The field in the stream has no name and no
/// metadata, because the table's schema has both.
fn to_stream(array: &ArrayRef) -> Result<Vec<Buffer>, ArrowError> {
    let field = Field::new("", array.data_type().clone(), true);
    let schema = SchemaRef::new(Schema::new(vec![field]));
    let mut encoder = StreamEncoder::try_new(&schema)?;
    let mut parts = encoder.encode(&RecordBatch::try_new(schema, vec![array.clone()])?)?;
    parts.extend(encoder.finish()?);
    Ok(parts)
}

fn from_stream(mut bytes: Buffer) -> Result<Option<ArrayRef>, ArrowError> {
    let mut decoder = StreamDecoder::new();
    let batch = decoder.decode(&mut bytes)?;
    Ok(batch.and_then(|batch| batch.columns().first().cloned()))
}

/// Returns a hash of the names, types and nullability of the columns.
fn fingerprint(schema: &Schema) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for field in schema.fields() {
        let column = (field.name(), field.data_type(), field.is_nullable());
        hasher.update(format!("{column:?}").as_bytes());
    }
    hasher.finalize()
}

/// A table file that is open for reading.
pub struct TableFile {
    source: Box<dyn Source>,
    spec: TableSpec,
    row_groups: Vec<RowGroup>,
    /// Column chunks, indexed by row group and then by column.
    chunks: Vec<Vec<ColumnChunk>>,
    note: Option<serde_json::Value>,
}

impl TableFile {
    /// Reads and checks the footer. `key` is the key with which the file was written.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or has another table, key or format version.
    pub fn open(
        source: Box<dyn Source>,
        spec: TableSpec,
        key: Option<&str>,
    ) -> Result<TableFile, Corrupt> {
        let (at, footer) = read_footer(&*source)?;
        let corrupt = |what: &str| Corrupt {
            offset: at,
            what: what.to_owned(),
        };
        let footer: Footer =
            serde_json::from_slice(&footer).map_err(|error| corrupt(&error.to_string()))?;
        let expected = (FORMAT, spec.name, fingerprint(&spec.schema));
        if (footer.format, footer.table.as_str(), footer.schema) != expected {
            return Err(corrupt("it belongs to another table or another version"));
        }
        if footer.key.as_deref() != key {
            return Err(corrupt("it belongs to another trace"));
        }
        let fits = |chunk: &ColumnChunk| {
            let end = chunk.offset.checked_add(chunk.length);
            end.is_some_and(|end| end <= at)
        };
        let columns = spec.schema.fields().len();
        let is_valid = |group: &StoredRowGroup| {
            group.columns.len() == columns
                && group.rows <= GROUP_ROWS
                && group.columns.iter().all(fits)
        };
        if !footer.row_groups.iter().all(is_valid) {
            return Err(corrupt("the footer has offsets outside the file"));
        }
        let group = |group: &StoredRowGroup| RowGroup {
            rows: group.rows,
            first: group.first,
            last: group.last,
        };
        Ok(TableFile {
            source,
            spec,
            row_groups: footer.row_groups.iter().map(group).collect(),
            chunks: footer.row_groups.into_iter().map(|g| g.columns).collect(),
            note: footer.note,
        })
    }

    /// Returns the description of the table in the file.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// Returns the row groups, in order.
    pub fn row_groups(&self) -> &[RowGroup] {
        &self.row_groups
    }

    /// Returns the note that was stored when the file was written. Returns `None` if there is no note of type
    /// `T`.
    pub fn note<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.note.as_ref()?).ok()
    }

    /// Reads the columns with the given indices in one row group.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    ///
    /// # Panics
    /// Panics if there is no such row group or column.
    pub fn read(&self, group: usize, columns: &[usize]) -> Result<RecordBatch, Corrupt> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for column in columns {
            let field = self.spec.schema.field(*column).clone();
            let (chunk, rows) = (&self.chunks[group][*column], self.row_groups[group].rows);
            arrays.push(self.read_chunk(chunk, field.data_type(), rows)?);
            fields.push(field);
        }
        let schema = Schema::new_with_metadata(fields, self.spec.schema.metadata().clone());
        let options = RecordBatchOptions::new().with_row_count(Some(self.row_groups[group].rows));
        RecordBatch::try_new_with_options(schema.into(), arrays, &options).map_err(|error| {
            let first = columns.first().map(|column| &self.chunks[group][*column]);
            Corrupt {
                offset: first.map_or(0, |chunk| chunk.offset),
                what: error.to_string(),
            }
        })
    }

    fn read_chunk(
        &self,
        chunk: &ColumnChunk,
        data_type: &DataType,
        rows: usize,
    ) -> Result<ArrayRef, Corrupt> {
        let corrupt = |what: String| Corrupt {
            offset: chunk.offset,
            what,
        };
        let stored = if chunk.packing.is_stored() {
            let bytes = read_exactly(&*self.source, chunk.offset, chunk.length)?;
            if crc32fast::hash(&bytes) != chunk.checksum {
                return Err(corrupt("the checksum differs".to_owned()));
            }
            // The returned array uses these bytes without copying them.
            from_stream(Buffer::from_vec(bytes)).map_err(|error| corrupt(error.to_string()))?
        } else {
            None
        };
        (chunk.packing.unpack(stored, data_type, rows))
            .ok_or_else(|| corrupt("it has no such column".to_owned()))
    }
}

/// Reads the footer. Returns the offset and the bytes of the footer.
fn read_footer(source: &dyn Source) -> Result<(u64, Vec<u8>), Corrupt> {
    let corrupt = |offset: u64, what: &str| Corrupt {
        offset,
        what: what.to_owned(),
    };
    let Some(end) = source.len().checked_sub(TRAILER as u64) else {
        return Err(corrupt(0, "it is too short for a table file"));
    };
    let trailer = read_exactly(source, end, TRAILER as u64)?;
    let (length, rest) = trailer.split_at(8);
    let (checksum, magic) = rest.split_at(4);
    if magic != MAGIC {
        return Err(corrupt(end, "it does not end like a table file"));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let Some(at) = end.checked_sub(length) else {
        return Err(corrupt(end, "its footer is longer than the file"));
    };
    let footer = read_exactly(source, at, length)?;
    if crc32fast::hash(&footer).to_le_bytes() != checksum {
        return Err(corrupt(at, "the footer's checksum differs"));
    }
    Ok((at, footer))
}

fn read_exactly(source: &dyn Source, offset: u64, length: u64) -> Result<Vec<u8>, Corrupt> {
    let corrupt = |what: String| Corrupt { offset, what };
    let length = usize::try_from(length).map_err(|error| corrupt(error.to_string()))?;
    let mut bytes = vec![0; length];
    match source.read_at(offset, &mut bytes) {
        Ok(n) if n == length => Ok(bytes),
        Ok(n) => Err(corrupt(format!(
            "the file ends after {n} of {length} bytes"
        ))),
        Err(error) => Err(corrupt(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Seek;
    use std::slice;
    use std::sync::Arc;

    use arrow_array::types::UInt64Type;
    use arrow_array::{
        BooleanArray, Int64Array, ListArray, StringArray, UInt16Array, UInt32Array, UInt64Array,
    };
    use files::FileSource;

    use super::*;

    const KEY: Option<&str> = Some("key");

    fn samples_spec() -> TableSpec {
        let fields = vec![
            Field::new("time_ns", DataType::Int64, false),
            Field::new("cpu", DataType::UInt16, false),
            Field::new("address", DataType::UInt64, false),
            Field::new("thread_row", DataType::UInt32, true),
            Field::new("in_dpc", DataType::Boolean, true),
            Field::new("label", DataType::Utf8, true),
        ];
        TableSpec {
            name: "samples",
            schema: Arc::new(Schema::new(fields)),
            sorted_by: "time_ns",
        }
    }

    fn stacks_spec() -> TableSpec {
        let item = Field::new("item", DataType::UInt64, true);
        let fields = vec![
            Field::new("stack_id", DataType::Int64, false),
            Field::new("addresses", DataType::List(item.into()), false),
        ];
        TableSpec {
            name: "stacks",
            schema: Arc::new(Schema::new(fields)),
            sorted_by: "stack_id",
        }
    }

    /// Writes row groups into an unnamed file.
    fn written(spec: TableSpec, batches: &[RecordBatch]) -> File {
        let mut writer = TableWriter::new(tempfile::tempfile().unwrap(), spec, KEY);
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        writer.finish(None::<&()>).unwrap()
    }

    fn open(file: File, spec: TableSpec) -> Result<TableFile, Corrupt> {
        TableFile::open(Box::new(FileSource::new(file).unwrap()), spec, KEY)
    }

    fn read_all(file: &TableFile) -> Result<Vec<RecordBatch>, Corrupt> {
        let columns: Vec<usize> = (0..file.spec().schema.fields().len()).collect();
        let groups = 0..file.row_groups().len();
        groups.map(|group| file.read(group, &columns)).collect()
    }

    fn samples(rows: std::ops::Range<i64>) -> RecordBatch {
        let each = || rows.clone();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(each().map(|row| row * 1000))),
            Arc::new(UInt16Array::from_iter_values(
                each().map(|row| (row % 8) as u16),
            )),
            Arc::new(UInt64Array::from_iter_values(
                each().map(|row| 0xFFFF_8000_0000_0000 + row as u64 * 4),
            )),
            Arc::new(UInt32Array::from_iter(
                each().map(|row| (row % 3 > 0).then_some(7)),
            )),
            Arc::new(BooleanArray::from_iter(
                each().map(|row| (row % 5 > 0).then_some(row % 2 == 0)),
            )),
            Arc::new(StringArray::from_iter(
                each().map(|row| (row % 7 > 0).then(|| format!("row {row}"))),
            )),
        ];
        RecordBatch::try_new(samples_spec().schema, columns).unwrap()
    }

    #[test]
    fn lists_survive() {
        let ids = Int64Array::from(vec![0, 1]);
        let rows = [Some(vec![Some(1), Some(u64::MAX)]), Some(Vec::new())];
        let addresses = ListArray::from_iter_primitive::<UInt64Type, _, _>(rows);
        let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(addresses)];
        let stacks = RecordBatch::try_new(stacks_spec().schema, columns).unwrap();
        let file = written(stacks_spec(), slice::from_ref(&stacks));
        let file = open(file, stacks_spec()).unwrap();
        assert_eq!(read_all(&file).unwrap(), [stacks]);
    }

    #[test]
    fn columns_are_read_alone() {
        let (first, second) = (samples(0..1000), samples(1000..1100));
        let file = written(samples_spec(), &[first, second.clone()]);
        let file = open(file, samples_spec()).unwrap();
        let groups: Vec<_> = file
            .row_groups()
            .iter()
            .map(|group| (group.rows, group.first, group.last))
            .collect();
        assert_eq!(groups, [(1000, 0, 999_000), (100, 1_000_000, 1_099_000)]);
        let batch = file.read(1, &[2]).unwrap();
        assert_eq!(batch, second.project(&[2]).unwrap());
        assert_eq!(file.read(1, &[]).unwrap().num_rows(), 100);
    }

    #[test]
    fn a_note_survives() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Note {
            count: u64,
        }
        let writer = TableWriter::new(tempfile::tempfile().unwrap(), samples_spec(), KEY);
        let file = writer.finish(Some(&Note { count: u64::MAX })).unwrap();
        let file = open(file, samples_spec()).unwrap();
        assert_eq!(file.note(), Some(Note { count: u64::MAX }));
        assert_eq!(file.note::<Vec<String>>(), None);
        let without = open(written(samples_spec(), &[]), samples_spec()).unwrap();
        assert_eq!(without.note::<Note>(), None);
    }

    #[test]
    fn row_groups_have_a_maximum_size() {
        let rows = 2 * GROUP_ROWS as i64 + 5;
        let all = samples(0..rows);
        let file = written(samples_spec(), slice::from_ref(&all));
        let file = open(file, samples_spec()).unwrap();
        let lengths: Vec<usize> = file.row_groups().iter().map(|group| group.rows).collect();
        assert_eq!(lengths, [GROUP_ROWS, GROUP_ROWS, 5]);
        let mut from = 0;
        for (read, length) in read_all(&file).unwrap().iter().zip(lengths) {
            assert_eq!(*read, all.slice(from, length));
            from += length;
        }
    }

    /// A constant column takes no bytes, so the file's size does not limit the number of rows that
    /// a damaged footer can state.
    #[test]
    fn a_row_group_with_more_rows_is_refused() {
        let mut writer = TableWriter::new(tempfile::tempfile().unwrap(), samples_spec(), KEY);
        writer.write(&samples(0..10)).unwrap();
        writer.row_groups[0].rows = GROUP_ROWS + 1;
        let file = writer.finish(None::<&()>).unwrap();
        assert!(open(file, samples_spec()).is_err());
    }

    /// Checks that a change of one byte is detected or harmless. CRC-32 detects every such change. Only
    /// padding bytes have no checksum.
    #[test]
    fn a_changed_byte_is_found_or_harmless() {
        let original = samples(0..500);
        let mut file = written(samples_spec(), slice::from_ref(&original));
        let length = file.metadata().unwrap().len();
        let mut rng = testdata::Rng(1);
        let mut detected = 0;
        for _ in 0..3000 {
            let at = rng.below(length as usize) as u64;
            let flip = 1 + rng.below(255) as u8;
            change(&mut file, at, flip);
            let opened = open(file.try_clone().unwrap(), samples_spec());
            match opened.and_then(|file| read_all(&file)) {
                Ok(batches) => {
                    assert_eq!(batches, slice::from_ref(&original), "byte {at} was changed")
                }
                Err(_) => detected += 1,
            }
            change(&mut file, at, flip);
        }
        assert!(
            detected > 2000,
            "only {detected} of 3000 changes were found"
        );
    }

    fn change(file: &mut File, at: u64, flip: u8) {
        use std::io::{Read, SeekFrom};
        let mut byte = [0];
        file.seek(SeekFrom::Start(at)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[byte[0] ^ flip]).unwrap();
    }

    #[test]
    fn a_truncated_file_is_refused() {
        let file = written(samples_spec(), &[samples(0..100)]);
        let length = file.metadata().unwrap().len();
        for shorter in (0..length).rev() {
            file.set_len(shorter).unwrap();
            assert!(
                open(file.try_clone().unwrap(), samples_spec()).is_err(),
                "{shorter} bytes"
            );
        }
    }

    #[test]
    fn another_table_is_refused() {
        let file = written(samples_spec(), &[samples(0..10)]);
        assert!(open(file, stacks_spec()).is_err());
        let mut writer = TableWriter::new(Vec::new(), stacks_spec(), KEY);
        assert!(writer.write(&samples(0..10)).is_err());
    }

    #[test]
    fn a_table_of_another_key_is_refused() {
        let file = written(samples_spec(), &[samples(0..10)]);
        for (key, is_opened) in [(KEY, true), (Some("other"), false), (None, false)] {
            let source = FileSource::new(file.try_clone().unwrap()).unwrap();
            let opened = TableFile::open(Box::new(source), samples_spec(), key);
            assert_eq!(opened.is_ok(), is_opened, "{key:?}");
        }
    }

    /// Simulated disk with room for this number of bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let written = bytes.len().min(self.0);
            self.0 -= written;
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_fills() {
        let batch = samples(0..10_000);
        let file = written(samples_spec(), slice::from_ref(&batch));
        let length = file.metadata().unwrap().len() as usize;
        let on = |size: usize| {
            let mut writer = TableWriter::new(Disk(size), samples_spec(), KEY);
            writer
                .write(&batch)
                .and_then(|()| writer.finish(None::<&()>))
        };
        for size in (0..length).step_by(997).chain([length - 1]) {
            let error = on(size).err().expect("the disk is full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{size} bytes");
        }
        assert!(on(length).is_ok());
    }
}
