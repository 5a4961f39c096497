//! A row per line, for programs.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_json::writer::{LineDelimited, Writer, WriterBuilder};
use arrow_schema::SchemaRef;

use super::cells::Style;
use super::{RowWriter, io_error};
use crate::output::csv_error;

/// Comma-separated values; what is unknown is empty.
pub(super) struct Csv<W: Write> {
    out: csv::Writer<W>,
    schema: SchemaRef,
    style: Style,
}

impl<W: Write> Csv<W> {
    pub(super) fn new(out: W, schema: &SchemaRef) -> io::Result<Csv<W>> {
        let mut out = csv::Writer::from_writer(out);
        let names = schema.fields().iter().map(|field| field.name());
        out.write_record(names).map_err(csv_error)?;
        Ok(Csv {
            out,
            schema: SchemaRef::clone(schema),
            style: Style::new(),
        })
    }
}

impl<W: Write> RowWriter for Csv<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        let mut cells = self.style.cells(rows, self.schema.fields())?;
        for row in 0..rows.num_rows() {
            for cell in &mut cells {
                let text = cell.text(row)?.unwrap_or_default();
                self.out.write_field(text).map_err(csv_error)?;
            }
            self.out.write_record(None::<&[u8]>).map_err(csv_error)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// JSON objects; what is unknown is `null`.
pub(super) struct Jsonl<W: Write>(Writer<W, LineDelimited>);

impl<W: Write> Jsonl<W> {
    pub(super) fn new(out: W) -> Jsonl<W> {
        Jsonl(
            WriterBuilder::new()
                .with_explicit_nulls(true)
                .build::<_, LineDelimited>(out),
        )
    }
}

impl<W: Write> RowWriter for Jsonl<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.0.write(rows).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.finish().map_err(io_error)?;
        self.0.into_inner().flush()
    }
}
