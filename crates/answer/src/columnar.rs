//! Column-oriented file formats, for programs that read Arrow or Parquet.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{RowWriter, io_error};

/// Writer of an Arrow IPC file.
pub(super) struct Arrow<W: Write>(FileWriter<W>);

impl<W: Write> Arrow<W> {
    pub(super) fn new(out: W, schema: &SchemaRef) -> io::Result<Arrow<W>> {
        FileWriter::try_new(out, schema)
            .map(Arrow)
            .map_err(io_error)
    }
}

impl<W: Write> RowWriter for Arrow<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.0.write(rows).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.finish().map_err(io_error)?;
        self.0.into_inner().map_err(io_error)?.flush()
    }
}

/// Writer of a Parquet file.
pub(super) struct Parquet<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(out: W, schema: &SchemaRef) -> io::Result<Parquet<W>> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        ArrowWriter::try_new(out, SchemaRef::clone(schema), Some(properties))
            .map(Parquet)
            .map_err(parquet_error)
    }
}

impl<W: Write + Send> RowWriter for Parquet<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.0.write(rows).map_err(parquet_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        // `into_inner` finishes too, but its error is a text without the cause.
        self.0.finish().map_err(parquet_error)?;
        self.0.inner_mut().flush()
    }
}

fn parquet_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
