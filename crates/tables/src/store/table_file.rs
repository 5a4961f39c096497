//! The file that a table is kept in: each column of each chunk lies apart, so that a question reads
//! only what it needs.
//!
//! ```text
//! piece … piece    an Arrow IPC stream each: one column of one chunk, at a multiple of 64 bytes
//! footer           JSON: which table, its chunks, where each piece is, its packing and checksum
//! trailer          length of the footer (u64), its checksum (u32), magic; little endian
//! ```
//!
//! Checksums are CRC-32, which finds every error of up to 32 bits in a row, and which CPUs compute
//! with instructions of their own.
//!
//! Pieces are packed (see [`Packing`]) but not compressed: LZ4 halved unpacked files, and made
//! writing them three and reading them two times as slow.

use std::io::{self, BufWriter, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use etl::{FileSource, Place, Source};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Chunk;
use super::packing::{Packing, pack};
use crate::{Table, Unreadable};

/// Changes with the layout of the file, and where rows are made otherwise of the same trace.
const FORMAT: u32 = 3;
const MAGIC: [u8; 8] = *b"\x89laglab\n";
const TRAILER: usize = 8 + 4 + MAGIC.len();
/// Where pieces may begin; what Arrow likes its buffers to be aligned to.
const ALIGNMENT: u64 = 64;
/// Rows of a chunk at most: few enough for a column to stay in a CPU's own caches, and for their
/// times to be narrow numbers.
const CHUNK_ROWS: usize = 1 << 16;

#[derive(Serialize, Deserialize)]
struct Footer {
    format: u32,
    table: String,
    schema: u32,
    chunks: Vec<Stretch>,
    unreadable: Option<Lost>,
}

#[derive(Serialize, Deserialize)]
struct Stretch {
    rows: usize,
    first: i64,
    last: i64,
    columns: Vec<Piece>,
}

#[derive(Serialize, Deserialize)]
struct Piece {
    offset: u64,
    length: u64,
    checksum: u32,
    packing: Packing,
}

/// [`Unreadable`] of the file's table.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Lost {
    count: u64,
    segment: u16,
    buffer_offset: u64,
    offset: u32,
}

/// A place in a file is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    /// Byte offset in the file.
    pub(crate) offset: u64,
    pub(crate) what: String,
}

/// Writes the file of a table, chunk by chunk.
pub(crate) struct TableWriter<W: Write> {
    into: BufWriter<W>,
    written: u64,
    table: Table,
    schema: SchemaRef,
    chunks: Vec<Stretch>,
}

impl<W: Write> TableWriter<W> {
    pub(crate) fn new(into: W, table: Table) -> Self {
        TableWriter {
            into: BufWriter::with_capacity(1 << 16, into),
            written: 0,
            table,
            schema: table.schema().arrow().into(),
            chunks: Vec::new(),
        }
    }

    /// Writes rows, in as many chunks as they need.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let of_table = (batch.schema_ref().fields().iter())
            .map(|field| field.data_type())
            .eq(self.schema.fields().iter().map(|field| field.data_type()));
        let sorted = batch
            .column_by_name(self.table.schema().sorted_by)
            .and_then(|array| array.as_primitive_opt::<Int64Type>());
        let (true, Some(sorted)) = (of_table, sorted) else {
            return Err(io::Error::other("the rows are of another table"));
        };
        // Side by side by several threads, which takes longer than writing it.
        let starts: Vec<usize> = (0..batch.num_rows()).step_by(CHUNK_ROWS).collect();
        let chunks = starts.par_iter().map(|start| {
            let rows = CHUNK_ROWS.min(batch.num_rows() - start);
            let chunk = batch.slice(*start, rows);
            chunk.columns().iter().map(encode).collect()
        });
        let chunks: Vec<Vec<Encoded>> =
            chunks.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let sorted = sorted.values().chunks(CHUNK_ROWS);
        for (columns, sorted) in chunks.into_iter().zip(sorted) {
            let columns = columns.into_iter().map(|column| self.write_piece(column));
            let stretch = Stretch {
                rows: sorted.len(),
                first: sorted[0],
                last: sorted[sorted.len() - 1],
                columns: columns.collect::<io::Result<_>>()?,
            };
            self.chunks.push(stretch);
        }
        Ok(())
    }

    fn write_piece(&mut self, column: Encoded) -> io::Result<Piece> {
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
        Ok(Piece {
            offset,
            length: column.length,
            checksum: column.checksum,
            packing: column.packing,
        })
    }

    /// Writes the end, with the events that the table lacks.
    pub(crate) fn finish(mut self, unreadable: Option<Unreadable>) -> io::Result<W> {
        let footer = Footer {
            format: FORMAT,
            table: self.table.name().to_owned(),
            schema: fingerprint(&self.schema),
            chunks: self.chunks,
            unreadable: unreadable.map(|lost| Lost {
                count: lost.count,
                segment: lost.place.segment,
                buffer_offset: lost.place.buffer_offset,
                offset: lost.place.offset,
            }),
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

/// A piece that is ready to be written.
struct Encoded {
    parts: Vec<Buffer>,
    length: u64,
    checksum: u32,
    packing: Packing,
}

fn encode(array: &ArrayRef) -> Result<Encoded, ArrowError> {
    let (packing, stored) = pack(array);
    let parts = stored.map_or(Ok(Vec::new()), |stored| stream(&stored))?;
    let mut checksum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| checksum.update(part));
    Ok(Encoded {
        length: parts.iter().map(|part| part.len() as u64).sum(),
        parts,
        checksum: checksum.finalize(),
        packing,
    })
}

/// One column as an Arrow IPC stream. Its field has no name and no metadata: the table's schema
/// says those.
fn stream(array: &ArrayRef) -> Result<Vec<Buffer>, ArrowError> {
    let field = Field::new("", array.data_type().clone(), true);
    let schema = SchemaRef::new(Schema::new(vec![field]));
    let mut encoder = StreamEncoder::try_new(&schema)?;
    let mut parts = encoder.encode(&RecordBatch::try_new(schema, vec![array.clone()])?)?;
    parts.extend(encoder.finish()?);
    Ok(parts)
}

fn decode(mut bytes: Buffer) -> Result<Option<ArrayRef>, ArrowError> {
    let mut decoder = StreamDecoder::new();
    let batch = decoder.decode(&mut bytes)?;
    Ok(batch.and_then(|batch| batch.columns().first().cloned()))
}

/// Names the columns of a table and their types.
fn fingerprint(schema: &Schema) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for field in schema.fields() {
        let column = (field.name(), field.data_type(), field.is_nullable());
        hasher.update(format!("{column:?}").as_bytes());
    }
    hasher.finalize()
}

/// A table's file, open for reading.
pub(crate) struct TableFile {
    source: FileSource,
    table: Table,
    schema: SchemaRef,
    chunks: Vec<Chunk>,
    pieces: Vec<Vec<Piece>>,
    unreadable: Option<Unreadable>,
}

impl TableFile {
    /// Reads the footer.
    pub(crate) fn open(source: FileSource, table: Table) -> Result<TableFile, Damaged> {
        let schema: SchemaRef = table.schema().arrow().into();
        let (at, footer) = read_footer(&source)?;
        let damaged = |what: &str| Damaged {
            offset: at,
            what: what.to_owned(),
        };
        let footer: Footer =
            serde_json::from_slice(&footer).map_err(|error| damaged(&error.to_string()))?;
        let expected = (FORMAT, table.name(), fingerprint(&schema));
        if (footer.format, footer.table.as_str(), footer.schema) != expected {
            return Err(damaged("it is of another table, or of another version"));
        }
        let fits = |piece: &Piece| {
            let end = piece.offset.checked_add(piece.length);
            end.is_some_and(|end| end <= at)
        };
        let columns = schema.fields().len();
        let whole = |chunk: &Stretch| chunk.columns.len() == columns && chunk.rows <= CHUNK_ROWS;
        let mut all = footer.chunks.iter();
        if !all.all(|chunk| whole(chunk) && chunk.columns.iter().all(fits)) {
            return Err(damaged("it names places that the file has not"));
        }
        let chunk = |chunk: &Stretch| Chunk {
            rows: chunk.rows,
            first: chunk.first,
            last: chunk.last,
        };
        Ok(TableFile {
            source,
            table,
            schema,
            chunks: footer.chunks.iter().map(chunk).collect(),
            pieces: footer.chunks.into_iter().map(|c| c.columns).collect(),
            unreadable: footer.unreadable.map(|lost| Unreadable {
                table,
                count: lost.count,
                place: Place {
                    segment: lost.segment,
                    buffer_offset: lost.buffer_offset,
                    offset: lost.offset,
                },
            }),
        })
    }

    pub(crate) fn table(&self) -> Table {
        self.table
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Events that the table lacks.
    pub(crate) fn unreadable(&self) -> Option<Unreadable> {
        self.unreadable
    }

    /// Reads columns of a chunk, named by their numbers.
    pub(crate) fn read(&self, chunk: usize, columns: &[usize]) -> Result<RecordBatch, Damaged> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for column in columns {
            let field = self.schema.field(*column).clone();
            let (piece, rows) = (&self.pieces[chunk][*column], self.chunks[chunk].rows);
            arrays.push(self.read_piece(piece, field.data_type(), rows)?);
            fields.push(field);
        }
        let schema = Schema::new_with_metadata(fields, self.schema.metadata().clone());
        let options = RecordBatchOptions::new().with_row_count(Some(self.chunks[chunk].rows));
        RecordBatch::try_new_with_options(schema.into(), arrays, &options).map_err(|error| {
            let first = columns.first().map(|column| &self.pieces[chunk][*column]);
            Damaged {
                offset: first.map_or(0, |piece| piece.offset),
                what: error.to_string(),
            }
        })
    }

    fn read_piece(
        &self,
        piece: &Piece,
        data_type: &DataType,
        rows: usize,
    ) -> Result<ArrayRef, Damaged> {
        let damaged = |what: String| Damaged {
            offset: piece.offset,
            what,
        };
        let stored = match piece.packing.is_stored() {
            true => {
                let bytes = read_exactly(&self.source, piece.offset, piece.length)?;
                if crc32fast::hash(&bytes) != piece.checksum {
                    return Err(damaged("the checksum differs".to_owned()));
                }
                // The buffer takes the bytes over, and the array lies in them.
                decode(Buffer::from_vec(bytes)).map_err(|error| damaged(error.to_string()))?
            }
            false => None,
        };
        (piece.packing.unpack(stored, data_type, rows))
            .ok_or_else(|| damaged("it holds no such column".to_owned()))
    }
}

/// The footer and where it begins.
fn read_footer(source: &FileSource) -> Result<(u64, Vec<u8>), Damaged> {
    let damaged = |offset: u64, what: &str| Damaged {
        offset,
        what: what.to_owned(),
    };
    let Some(end) = source.len().checked_sub(TRAILER as u64) else {
        return Err(damaged(0, "it is shorter than any"));
    };
    let trailer = read_exactly(source, end, TRAILER as u64)?;
    let (length, rest) = trailer.split_at(8);
    let (checksum, magic) = rest.split_at(4);
    if magic != MAGIC {
        return Err(damaged(end, "it does not end as a table does"));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let Some(at) = end.checked_sub(length) else {
        return Err(damaged(end, "its footer is longer than the file"));
    };
    let footer = read_exactly(source, at, length)?;
    if crc32fast::hash(&footer).to_le_bytes() != checksum {
        return Err(damaged(at, "the footer's checksum differs"));
    }
    Ok((at, footer))
}

fn read_exactly(source: &FileSource, offset: u64, length: u64) -> Result<Vec<u8>, Damaged> {
    let damaged = |what: String| Damaged { offset, what };
    let length = usize::try_from(length).map_err(|error| damaged(error.to_string()))?;
    let mut bytes = vec![0; length];
    match source.read_at(offset, &mut bytes) {
        Ok(n) if n == length => Ok(bytes),
        Ok(n) => Err(damaged(format!(
            "the file ends after {n} of {length} bytes"
        ))),
        Err(error) => Err(damaged(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::Seek;
    use std::slice;

    use super::*;
    use crate::{Options, Samples, SamplesView, Stacks};

    /// Writes chunks into a nameless file.
    fn written(table: Table, batches: &[RecordBatch]) -> File {
        let mut writer = TableWriter::new(tempfile::tempfile().unwrap(), table);
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        writer.finish(None).unwrap()
    }

    fn open(file: File, table: Table) -> Result<TableFile, Damaged> {
        TableFile::open(FileSource::new(file).unwrap(), table)
    }

    fn read_all(file: &TableFile) -> Result<Vec<RecordBatch>, Damaged> {
        let columns: Vec<usize> = (0..file.schema().fields().len()).collect();
        let chunks = 0..file.chunks().len();
        chunks.map(|chunk| file.read(chunk, &columns)).collect()
    }

    fn samples(times: std::ops::Range<i64>) -> RecordBatch {
        let mut samples = Samples::default();
        for time in times {
            samples.time_ns.push(time * 1000);
            samples.cpu.push((time % 8) as u16);
            samples
                .address
                .push(0xFFFF_8000_0000_0000 + time as u64 * 4);
            samples.thread_id.push((time % 100 * 4) as u32);
            samples.thread_row.push((time % 3 > 0).then_some(7));
            samples.in_dpc.push((time % 5 > 0).then_some(time % 2 == 0));
            samples.count.push(1);
        }
        samples.into_batch()
    }

    #[test]
    fn tables_of_a_real_trace_are_read_as_they_were_written() {
        let path = testdata::path("etl/filtrace__etw.etl");
        let trace = etl::open(&[path]).unwrap();
        let mut batches: BTreeMap<Table, Vec<RecordBatch>> = BTreeMap::new();
        crate::stream(
            &trace,
            Table::ALL,
            Options::default(),
            &mut |table, batch| {
                batches.entry(table).or_default().push(batch);
                Ok::<(), ()>(())
            },
        )
        .unwrap();
        assert!(batches.len() > 6);
        for (table, batches) in batches {
            let file = open(written(table, &batches), table).unwrap();
            assert_eq!(read_all(&file).unwrap(), batches, "{table}");
        }
    }

    #[test]
    fn lists_are_kept() {
        let mut stacks = Stacks::default();
        stacks.stack_id.extend([0, 1]);
        stacks.addresses.push(&[1, u64::MAX]);
        stacks.addresses.push(&[]);
        let stacks = stacks.into_batch();
        let file = open(
            written(Table::Stacks, slice::from_ref(&stacks)),
            Table::Stacks,
        )
        .unwrap();
        assert_eq!(read_all(&file).unwrap(), [stacks]);
    }

    #[test]
    fn columns_are_read_alone() {
        let (first, second) = (samples(0..1000), samples(1000..1100));
        let file = open(written(Table::Samples, &[first, second]), Table::Samples).unwrap();
        let chunks: Vec<_> = file
            .chunks()
            .iter()
            .map(|c| (c.rows, c.first, c.last))
            .collect();
        assert_eq!(chunks, [(1000, 0, 999_000), (100, 1_000_000, 1_099_000)]);
        let address = file.schema().index_of("address").unwrap();
        let batch = file.read(1, &[address]).unwrap();
        let view = SamplesView::new(&batch).unwrap();
        assert_eq!(view.address[1], 0xFFFF_8000_0000_0000 + 1001 * 4);
        assert!(view.time_ns.is_empty());
        assert_eq!(file.read(1, &[]).unwrap().num_rows(), 100);
    }

    #[test]
    fn a_chunk_holds_so_many_rows_at_most() {
        let rows = 2 * CHUNK_ROWS as i64 + 5;
        let all = samples(0..rows);
        let file = open(
            written(Table::Samples, slice::from_ref(&all)),
            Table::Samples,
        )
        .unwrap();
        let lengths: Vec<usize> = file.chunks().iter().map(|chunk| chunk.rows).collect();
        assert_eq!(lengths, [CHUNK_ROWS, CHUNK_ROWS, 5]);
        let mut from = 0;
        for (read, length) in read_all(&file).unwrap().iter().zip(lengths) {
            assert_eq!(*read, all.slice(from, length));
            from += length;
        }
    }

    /// Rows that take no bytes could be said to be any number.
    #[test]
    fn a_chunk_of_more_rows_is_refused() {
        let mut writer = TableWriter::new(tempfile::tempfile().unwrap(), Table::Samples);
        writer.write(&samples(0..10)).unwrap();
        writer.chunks[0].rows = CHUNK_ROWS + 1;
        let file = writer.finish(None).unwrap();
        assert!(open(file, Table::Samples).is_err());
    }

    /// CRC-32 finds every change of a single byte of what it covers; the rest is padding.
    #[test]
    fn a_changed_byte_is_found_or_harmless() {
        let original = samples(0..500);
        let mut file = written(Table::Samples, slice::from_ref(&original));
        let length = file.metadata().unwrap().len();
        let mut rng = testdata::Rng(1);
        let mut found = 0;
        for _ in 0..3000 {
            let at = rng.below(length as usize) as u64;
            let flip = 1 + rng.below(255) as u8;
            change(&mut file, at, flip);
            match open(file.try_clone().unwrap(), Table::Samples).and_then(|file| read_all(&file)) {
                Ok(batches) => {
                    assert_eq!(batches, slice::from_ref(&original), "byte {at} was changed")
                }
                Err(_) => found += 1,
            }
            change(&mut file, at, flip);
        }
        assert!(found > 2000, "only {found} of 3000 changes were found");
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
    fn a_file_cut_anywhere_is_refused() {
        let file = written(Table::Samples, &[samples(0..100)]);
        let length = file.metadata().unwrap().len();
        for shorter in (0..length).rev() {
            file.set_len(shorter).unwrap();
            assert!(
                open(file.try_clone().unwrap(), Table::Samples).is_err(),
                "{shorter} bytes"
            );
        }
    }

    #[test]
    fn another_table_is_refused() {
        let file = written(Table::Samples, &[samples(0..10)]);
        assert!(open(file, Table::Stacks).is_err());
        let mut writer = TableWriter::new(Vec::new(), Table::Stacks);
        assert!(writer.write(&samples(0..10)).is_err());
    }

    /// Takes so many bytes, then is full.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_fills() {
        let batch = samples(0..10_000);
        let file = written(Table::Samples, slice::from_ref(&batch));
        let length = file.metadata().unwrap().len() as usize;
        let on = |size: usize| {
            let mut writer = TableWriter::new(Disk(size), Table::Samples);
            writer.write(&batch).and_then(|()| writer.finish(None))
        };
        for size in (0..length).step_by(997).chain([length - 1]) {
            let error = on(size).err().expect("the disk is full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{size} bytes");
        }
        assert!(on(length).is_ok());
    }
}
