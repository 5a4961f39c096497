//! Rows as JSON for JavaScript. JavaScript represents integers exactly only up to 2^53.

use std::io;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, downcast_integer_array};
use arrow_schema::{DataType, Field, SchemaRef};
use serde::Serialize;
use serde_json::{Number, Value};
use ts_rs::TS;

use super::cells::Style;

/// Largest absolute value up to which JavaScript represents all integers exactly.
const EXACT: u64 = 1 << 53;

/// Description of a column for JavaScript.
#[derive(Debug, Serialize, TS)]
pub struct JsonColumn {
    name: String,
    /// Data type, as in SQL. An integer that JavaScript cannot represent exactly is sent as text.
    #[serde(rename = "type")]
    data_type: String,
    /// Unit of the values: `ns`, `bytes`, or empty.
    unit: &'static str,
}

impl JsonColumn {
    /// Describes a column.
    pub fn of(field: &Field) -> JsonColumn {
        let unit = ["ns", "bytes"].into_iter().find(|unit| {
            let rest = field.name().strip_suffix(unit);
            rest.is_some_and(|rest| rest.ends_with('_'))
        });
        JsonColumn {
            name: field.name().clone(),
            data_type: field.data_type().to_string(),
            unit: unit.unwrap_or_default(),
        }
    }
}

/// Appends rows of the batch as JSON. Stops after `most_rows` rows, or when the values have `most_bytes` bytes in
/// total. `bytes` counts the bytes of the values of all rows so far. Returns true if rows were left out.
pub fn json_rows(
    batch: &RecordBatch,
    schema: &SchemaRef,
    most_rows: usize,
    most_bytes: usize,
    bytes: &mut usize,
    rows: &mut Vec<Vec<Value>>,
) -> io::Result<bool> {
    let style = Style::new();
    let cells = style.cells(batch, schema.fields())?;
    let mut columns: Vec<_> = batch.columns().iter().zip(cells).collect();
    for row in 0..batch.num_rows() {
        if row == most_rows || *bytes >= most_bytes {
            return Ok(true);
        }
        let mut values = Vec::with_capacity(columns.len());
        for (array, cell) in &mut columns {
            if let Some(number) = number(array, row) {
                *bytes += size_of::<u64>();
                values.push(number);
                continue;
            }
            let text = cell.text(row)?;
            *bytes += text.as_ref().map_or(4, String::len);
            values.push(text.map_or(Value::Null, |text| value(text, array.data_type())));
        }
        rows.push(values);
    }
    Ok(false)
}

/// Returns a number or a flag. Returns `None` for null, for other types, and for numbers that JavaScript cannot represent.
fn number(array: &ArrayRef, row: usize) -> Option<Value> {
    if array.is_null(row) {
        return None;
    }
    downcast_integer_array! {
        array => {
            let number = i64::try_from(i128::from(array.value(row))).ok()?;
            (number.unsigned_abs() <= EXACT).then(|| number.into())
        },
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            Number::from_f64(number).map(Value::Number)
        },
        DataType::Boolean => Some(array.as_boolean().value(row).into()),
        _ => None
    }
}

/// Returns a value that is given as text. The text of a list is JSON.
fn value(text: String, data_type: &DataType) -> Value {
    let read = match data_type {
        _ if data_type.is_nested() => serde_json::from_str(&text).ok(),
        // Decimal and short floating-point numbers have the digits of their text.
        _ if data_type.is_numeric() && !data_type.is_integer() => {
            let number = text.parse().ok().and_then(Number::from_f64);
            number.map(Value::Number)
        }
        _ => None,
    };
    read.unwrap_or(Value::String(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Float64Array, Int64Array, StringArray};
    use serde_json::json;

    #[test]
    fn values_are_what_a_script_can_hold() {
        let batch = RecordBatch::try_from_iter_with_nullable([
            (
                "wait_ns",
                Arc::new(Int64Array::from(vec![
                    Some(1 << 53),
                    Some((1 << 53) + 1),
                    None,
                ])) as ArrayRef,
                true,
            ),
            (
                "share",
                Arc::new(Float64Array::from(vec![0.5, f64::NAN, 2.0])) as ArrayRef,
                false,
            ),
            (
                "is",
                Arc::new(BooleanArray::from(vec![true, false, true])) as ArrayRef,
                false,
            ),
            (
                "text",
                Arc::new(StringArray::from(vec!["1", "<b>", "null"])) as ArrayRef,
                false,
            ),
        ])
        .unwrap();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let schema = batch.schema();
        let more = json_rows(&batch, &schema, 3, 1000, &mut bytes, &mut rows).unwrap();
        assert!(!more);
        assert_eq!(
            json!(rows),
            json!([
                [9_007_199_254_740_992_i64, 0.5, true, "1"],
                ["9007199254740993", "NaN", false, "<b>"],
                [null, 2.0, true, "null"],
            ])
        );
        let columns: Vec<Value> = schema
            .fields()
            .iter()
            .map(|f| json!(JsonColumn::of(f)))
            .collect();
        assert_eq!(
            columns[0],
            json!({"name": "wait_ns", "type": "Int64", "unit": "ns"})
        );
        assert_eq!(
            columns[3],
            json!({"name": "text", "type": "Utf8", "unit": ""})
        );

        rows.clear();
        assert!(json_rows(&batch, &schema, 2, 1000, &mut bytes, &mut rows).unwrap());
        assert_eq!(rows.len(), 2);
        (rows, bytes) = (Vec::new(), 0);
        assert!(json_rows(&batch, &schema, 3, 1, &mut bytes, &mut rows).unwrap());
        assert_eq!(rows.len(), 1);
    }
}
