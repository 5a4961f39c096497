//! Wrappers around functions of DataFusion that can panic, or that can return much more than their arguments.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, Int64Array, new_empty_array};
use arrow_schema::{DataType, FieldRef, IntervalUnit, TimeUnit};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Names of the wrapped functions.
pub(crate) const NAMES: &[&str] = &[
    "array_append",
    "array_concat",
    "array_prepend",
    "array_repeat",
    "array_resize",
    "array_union",
    "concat",
    "concat_ws",
    "generate_series",
    "lpad",
    "make_array",
    "range",
    "regexp_replace",
    "repeat",
    "replace",
    "rpad",
    "to_char",
];

/// Maximum size of the result of one call, which processes a batch of rows, in bytes.
const MAX_BYTES: i64 = 256 << 20;

/// Maximum size of a constant that a call computes, in bytes. The optimizer computes constants several times while it plans
/// a query, which cannot be cancelled.
const MAX_CONSTANT: i64 = 1 << 20;

/// Estimated size of an array's element, in bytes.
const ELEMENT_BYTES: i64 = 16;

/// A function of DataFusion that fails if its result would be too large, and that accepts batches without rows.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BoundedFunction {
    inner: Arc<ScalarUDF>,
}

impl BoundedFunction {
    pub(crate) fn new(inner: Arc<ScalarUDF>) -> BoundedFunction {
        BoundedFunction { inner }
    }
}

impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(given)
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.inner.return_type(given)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if arguments.number_rows == 0 {
            // For a batch without rows, `to_char` panics, so it is not called.
            let empty = new_empty_array(arguments.return_field.data_type());
            return Ok(ColumnarValue::Array(empty));
        }
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        if ["lpad", "rpad"].contains(&self.name())
            && let Some(length) = arrays.get(1).and_then(numbers)
            && length.iter().flatten().any(|length| length < 0)
        {
            // If the length is negative, DataFusion panics instead of returning an empty text.
            let length: Int64Array = length
                .iter()
                .map(|length| length.map(|n| n.max(0)))
                .collect();
            arguments.args[1] = ColumnarValue::Array(Arc::new(length));
        }
        let is_constant = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Scalar(_));
        let limit = limit(arguments.args.iter().all(is_constant));
        check_bytes(self.name(), result_bytes(self.name(), &arrays), limit)
            .map_err(DataFusionError::Execution)?;
        self.inner.invoke_with_args(arguments)
    }
}

/// Returns the maximum size of the result of a call, in bytes. `is_constant` is true if all arguments are constants.
pub(crate) fn limit(is_constant: bool) -> i64 {
    if is_constant { MAX_CONSTANT } else { MAX_BYTES }
}

/// Returns an error if the result of a call has more bytes than `limit`.
pub(crate) fn check_bytes(name: &str, bytes: i64, limit: i64) -> std::result::Result<(), String> {
    if bytes > limit {
        Err(format!(
            "{name} would return {} MiB at once{}; at most {} MiB are possible",
            (bytes as u64).div_ceil(1 << 20),
            if limit == MAX_CONSTANT {
                ", as a constant"
            } else {
                ""
            },
            limit >> 20,
        ))
    } else {
        Ok(())
    }
}

/// Returns an upper bound of the size of the result, in bytes, limited to the maximum of `i64`. Returns 0 for
/// arguments of wrong types, because the function itself refuses them.
fn result_bytes(name: &str, arguments: &[ArrayRef]) -> i64 {
    let rows = arguments.first().map_or(0, |first| first.len());
    let number = |at: usize| arguments.get(at).and_then(numbers);
    let text = |at: usize| arguments.get(at).and_then(lengths);
    let value_at = |column: &Option<Int64Array>, row: usize| match column {
        Some(values) if values.is_valid(row) => values.value(row),
        _ => 0,
    };
    let sum = |bytes: &dyn Fn(usize) -> i64| {
        (0..rows).fold(0i64, |sum, row| sum.saturating_add(bytes(row).max(0)))
    };
    match name {
        "repeat" => {
            let (text, times) = (text(0), number(1));
            sum(&|row| value_at(&text, row).saturating_mul(value_at(&times, row)))
        }
        "lpad" | "rpad" => {
            let length = number(1);
            sum(&|row| value_at(&length, row).saturating_mul(4))
        }
        "array_repeat" => {
            let count = number(1);
            let element = arguments.first();
            sum(&|row| {
                let bytes = element.map_or(0, |element| bytes_in(element, row..row + 1));
                value_at(&count, row).saturating_mul(bytes)
            })
        }
        "array_resize" => {
            let count = number(1);
            let (array, element) = (arguments.first(), arguments.get(2));
            let bytes = |array: Option<&ArrayRef>, row| {
                array.map_or(0, |array| bytes_in(array, row..row + 1))
            };
            sum(&|row| {
                let each = bytes(element, row).max(ELEMENT_BYTES);
                let added = value_at(&count, row).saturating_mul(each);
                added.saturating_add(bytes(array, row))
            })
        }
        "range" | "generate_series" => {
            let at = |at: usize| arguments.get(at).and_then(positions);
            let (one, two, step) = (at(0), at(1), at(2));
            sum(&|row| {
                let (start, end) = match two {
                    Some(_) => (value_at(&one, row), value_at(&two, row)),
                    None => (0, value_at(&one, row)),
                };
                let step = value_at(&step, row).unsigned_abs().max(1);
                let count = end.abs_diff(start) / step;
                i64::try_from(count)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(ELEMENT_BYTES)
            })
        }
        "replace" | "regexp_replace" => {
            let (text, from, to) = (text(0), text(1), text(2));
            sum(&|row| {
                let length = value_at(&text, row);
                // A regular expression can match at every character, so its shortest match counts as 1 byte.
                let shortest = match name {
                    "replace" => value_at(&from, row).max(1),
                    _ => 1,
                };
                let places = length / shortest + 1;
                places
                    .saturating_mul(value_at(&to, row))
                    .saturating_add(length)
            })
        }
        _ => {
            let all = arguments.iter().map(|argument| bytes_in(argument, 0..rows));
            all.fold(0i64, i64::saturating_add)
        }
    }
}

/// Returns the size of the values in a range of rows, in bytes. Nested values count with all their elements.
fn bytes_in(array: &ArrayRef, rows: Range<usize>) -> i64 {
    let own = (rows.len() as i64).saturating_mul(ELEMENT_BYTES);
    let inner = match array.data_type() {
        DataType::Utf8 => {
            let offsets = array.as_string::<i32>().value_offsets();
            i64::from(offsets[rows.end] - offsets[rows.start])
        }
        DataType::LargeUtf8 => {
            let offsets = array.as_string::<i64>().value_offsets();
            offsets[rows.end] - offsets[rows.start]
        }
        DataType::Utf8View => {
            let lengths = array.as_string_view().lengths();
            lengths
                .skip(rows.start)
                .take(rows.len())
                .map(i64::from)
                .sum()
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (start, end) = (
                list.value_offsets()[rows.start],
                list.value_offsets()[rows.end],
            );
            bytes_in(list.values(), start as usize..end as usize)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (start, end) = (
                list.value_offsets()[rows.start],
                list.value_offsets()[rows.end],
            );
            bytes_in(list.values(), start as usize..end as usize)
        }
        DataType::FixedSizeList(_, length) => {
            let (list, length) = (array.as_fixed_size_list(), *length as usize);
            bytes_in(list.values(), rows.start * length..rows.end * length)
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.fold(0i64, |sum, column| {
                sum.saturating_add(bytes_in(column, rows.clone()))
            })
        }
        other if other.is_primitive() || matches!(other, DataType::Null | DataType::Boolean) => 0,
        // The whole column is an upper bound.
        _ => array.get_array_memory_size() as i64,
    };
    own.saturating_add(inner)
}

fn numbers(array: &ArrayRef) -> Option<Int64Array> {
    let is_number = array.data_type().is_integer();
    let numbers = is_number.then(|| cast(array, &DataType::Int64).ok())??;
    Some(numbers.as_primitive::<Int64Type>().clone())
}

/// Returns the values of an array as integers. Times and intervals are converted to nanoseconds. Intervals
/// are rounded down: a month counts as 28 days.
fn positions(array: &ArrayRef) -> Option<Int64Array> {
    const DAY_NS: i64 = 86_400_000_000_000;
    const SHORTEST_MONTH_DAYS: i64 = 28;
    let unit_ns = match array.data_type() {
        DataType::Interval(_) => {
            let whole = DataType::Interval(IntervalUnit::MonthDayNano);
            let intervals = cast(array, &whole).ok()?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            let ns = intervals.iter().map(|interval| {
                let interval = interval?;
                let months = i64::from(interval.months).saturating_mul(SHORTEST_MONTH_DAYS);
                let days = months.saturating_add(i64::from(interval.days));
                Some(
                    days.saturating_mul(DAY_NS)
                        .saturating_add(interval.nanoseconds),
                )
            });
            return Some(ns.collect());
        }
        DataType::Date32 => DAY_NS,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
        _ => return numbers(array),
    };
    let times = cast(array, &DataType::Int64).ok()?;
    let times = times.as_primitive::<Int64Type>().iter();
    Some(
        times
            .map(|time| Some(time?.saturating_mul(unit_ns)))
            .collect(),
    )
}

/// Returns the lengths of texts, in bytes.
fn lengths(array: &ArrayRef) -> Option<Int64Array> {
    let is_text = matches!(
        array.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    let lengths = is_text.then(|| length(array).ok())??;
    numbers(&lengths)
}
