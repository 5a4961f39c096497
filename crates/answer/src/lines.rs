//! Formats with one row per line, for programs.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_json::writer::{LineDelimited, Writer, WriterBuilder};
use arrow_schema::SchemaRef;

use wording::{JsonText, csv_cell};

use super::cells::Style;
use super::{RowWriter, csv_error, io_error};

/// Writer of comma-separated values. Unknown values are empty.
pub(super) struct Csv<W: Write> {
    out: csv::Writer<W>,
    schema: SchemaRef,
    style: Style,
}

impl<W: Write> Csv<W> {
    pub(super) fn new(out: W, schema: &SchemaRef) -> io::Result<Csv<W>> {
        let mut out = csv::Writer::from_writer(out);
        let names = schema.fields().iter();
        let names: Vec<_> = names.map(|field| csv_cell(field.name())).collect();
        out.write_record(names.iter().map(|name| name.as_bytes()))
            .map_err(csv_error)?;
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
                self.out.write_field(&*csv_cell(&text)).map_err(csv_error)?;
            }
            self.out.write_record(None::<&[u8]>).map_err(csv_error)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writer of JSON objects, one per line. Unknown values are `null`.
pub(super) struct Jsonl<W: Write>(Writer<JsonText<W>, LineDelimited>);

impl<W: Write> Jsonl<W> {
    pub(super) fn new(out: W) -> Jsonl<W> {
        Jsonl(
            WriterBuilder::new()
                .with_explicit_nulls(true)
                .build::<_, LineDelimited>(JsonText::new(out)),
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
