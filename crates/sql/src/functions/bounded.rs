//! Wrappers around functions of DataFusion that can panic, or that can return much more than their arguments.

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
    "array_repeat",
    "array_resize",
    "concat",
    "concat_ws",
    "generate_series",
    "lpad",
    "range",
    "regexp_replace",
    "repeat",
    "replace",
    "rpad",
    "to_char",
];

/// Maximum size of the result of one call, which processes a batch of rows, in bytes.
const MAX_BYTES: i64 = 256 << 20;

/// Estimated size of an array's element, in bytes.
const ELEMENT_BYTES: i64 = 16;

/// A function of DataFusion that fails if its result would be too large, and that accepts batches without rows.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl Bounded {
    pub(crate) fn new(inner: Arc<ScalarUDF>) -> Bounded {
        Bounded { inner }
    }
}

impl ScalarUDFImpl for Bounded {
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
        let bytes = result_bytes(self.name(), &arrays);
        if bytes > MAX_BYTES {
            return Err(DataFusionError::Execution(format!(
                "{} would return {} MiB at once; at most {} MiB are possible",
                self.name(),
                bytes >> 20,
                MAX_BYTES >> 20,
            )));
        }
        self.inner.invoke_with_args(arguments)
    }
}

/// Returns an upper bound of the size of the result, in bytes, limited to the maximum of `i64`. Returns 0 for
/// arguments of wrong types, because the function itself refuses them.
fn result_bytes(name: &str, arguments: &[ArrayRef]) -> i64 {
    let rows = arguments.first().map_or(0, |first| first.len());
    let number = |at: usize| arguments.get(at).and_then(numbers);
    let text = |at: usize| arguments.get(at).and_then(lengths);
    let of = |column: &Option<Int64Array>, row: usize| match column {
        Some(values) if values.is_valid(row) => values.value(row),
        _ => 0,
    };
    let sum = |bytes: &dyn Fn(usize) -> i64| {
        (0..rows).fold(0i64, |sum, row| sum.saturating_add(bytes(row).max(0)))
    };
    match name {
        "repeat" => {
            let (text, times) = (text(0), number(1));
            sum(&|row| of(&text, row).saturating_mul(of(&times, row)))
        }
        "lpad" | "rpad" => {
            let length = number(1);
            sum(&|row| of(&length, row).saturating_mul(4))
        }
        "array_repeat" | "array_resize" => {
            let count = number(1);
            sum(&|row| of(&count, row).saturating_mul(ELEMENT_BYTES))
        }
        "range" | "generate_series" => {
            let at = |at: usize| arguments.get(at).and_then(positions);
            let (one, two, step) = (at(0), at(1), at(2));
            sum(&|row| {
                let (start, end) = match two {
                    Some(_) => (of(&one, row), of(&two, row)),
                    None => (0, of(&one, row)),
                };
                let step = of(&step, row).unsigned_abs().max(1);
                let count = end.abs_diff(start) / step;
                i64::try_from(count)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(ELEMENT_BYTES)
            })
        }
        "replace" | "regexp_replace" => {
            let (text, from, to) = (text(0), text(1), text(2));
            sum(&|row| {
                let length = of(&text, row);
                // A regular expression can match at every character, so its shortest match counts as 1 byte.
                let shortest = match name {
                    "replace" => of(&from, row).max(1),
                    _ => 1,
                };
                let places = length / shortest + 1;
                places.saturating_mul(of(&to, row)).saturating_add(length)
            })
        }
        _ => {
            let texts: Vec<_> = (0..arguments.len()).map(text).collect();
            sum(&|row| {
                let lengths = texts.iter().map(|text| of(text, row));
                lengths.fold(0i64, i64::saturating_add)
            })
        }
    }
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
