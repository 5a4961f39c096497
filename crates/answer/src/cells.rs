//! Single values as text.

use std::io;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{DataType, FieldRef};

use super::io_error;

/// Settings that format single and nested values.
pub(super) struct Style {
    formats: FormatOptions<'static>,
    json: EncoderOptions,
}

/// Values of one column as text: numbers exactly, times as ISO 8601, bytes as hexadecimal, lists as JSON.
pub(super) struct Cells<'a> {
    /// Null values of the column. They are computed because arrays of some types have no null buffer.
    unknown: Option<NullBuffer>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Plain(ArrayFormatter<'a>),
    Nested(NullableEncoder<'a>),
}

impl Style {
    pub(super) fn new() -> Style {
        Style {
            formats: FormatOptions::new(),
            json: EncoderOptions::default(),
        }
    }

    /// Creates the cells of some rows with the given fields.
    pub(super) fn cells<'a>(
        &'a self,
        rows: &'a RecordBatch,
        fields: &'a [FieldRef],
    ) -> io::Result<Vec<Cells<'a>>> {
        rows.columns()
            .iter()
            .zip(fields)
            .map(|(array, field)| {
                let kind = if field.data_type().is_nested() {
                    Kind::Nested(make_encoder(field, array, &self.json).map_err(io_error)?)
                } else {
                    let formatter = ArrayFormatter::try_new(array, &self.formats);
                    Kind::Plain(formatter.map_err(io_error)?)
                };
                Ok(Cells {
                    unknown: array.logical_nulls(),
                    kind,
                })
            })
            .collect()
    }
}

impl Cells<'_> {
    /// Returns a value as text. Returns `None` if the value is unknown.
    pub(super) fn text(&mut self, row: usize) -> io::Result<Option<String>> {
        if self
            .unknown
            .as_ref()
            .is_some_and(|unknown| unknown.is_null(row))
        {
            return Ok(None);
        }
        Ok(Some(match &mut self.kind {
            Kind::Plain(formatter) => formatter.value(row).try_to_string().map_err(io_error)?,
            Kind::Nested(encoder) => {
                let mut json = Vec::new();
                encoder.encode(row, &mut json);
                String::from_utf8_lossy(&json).into_owned()
            }
        }))
    }
}

/// Returns true if columns of this type are aligned to the right.
pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}
