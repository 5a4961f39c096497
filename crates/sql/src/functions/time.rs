//! SQL functions that convert times and durations to other units.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, TimestampNanosecondArray};
use arrow_schema::{DataType, TimeUnit};
use datafusion::error::{DataFusionError, Result};

use super::{About, Body};
use crate::traces::Traces;

/// Arrow name of the time zone UTC.
const UTC: &str = "+00:00";

pub(super) static ABOUT: &[About] = &[
    About {
        name: "s",
        arguments: &[("ns", DataType::Int64)],
        optional: 0,
        returns: || DataType::Float64,
        meaning: "Nanoseconds as seconds.",
        looks_up: None,
    },
    About {
        name: "ms",
        arguments: &[("ns", DataType::Int64)],
        optional: 0,
        returns: || DataType::Float64,
        meaning: "Nanoseconds as milliseconds.",
        looks_up: None,
    },
    About {
        name: "us",
        arguments: &[("ns", DataType::Int64)],
        optional: 0,
        returns: || DataType::Float64,
        meaning: "Nanoseconds as microseconds.",
        looks_up: None,
    },
    About {
        name: "bucket",
        arguments: &[("ns", DataType::Int64), ("width_ns", DataType::Int64)],
        optional: 0,
        returns: || DataType::Int64,
        meaning: "Start of the time bucket of this width that contains the time.",
        looks_up: None,
    },
    About {
        name: "utc",
        arguments: &[("time_ns", DataType::Int64), ("trace", DataType::Utf8)],
        optional: 1,
        returns: utc_type,
        meaning: "UTC of a time in the trace. With several traces, pass the name of the trace.",
        looks_up: None,
    },
];

fn utc_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()))
}

pub(super) fn body(name: &str, traces: &Arc<Traces>) -> Option<Body> {
    Some(match name {
        "s" => Box::new(|arguments| Ok(divided(arguments, 1e9))),
        "ms" => Box::new(|arguments| Ok(divided(arguments, 1e6))),
        "us" => Box::new(|arguments| Ok(divided(arguments, 1e3))),
        "bucket" => Box::new(bucket),
        "utc" => {
            let traces = Arc::clone(traces);
            Box::new(move |arguments| utc(&traces, arguments))
        }
        _ => return None,
    })
}

fn integers(array: &ArrayRef) -> &Int64Array {
    array.as_primitive()
}

fn divided(arguments: &[ArrayRef], by: f64) -> ArrayRef {
    Arc::new(integers(&arguments[0]).unary::<_, Float64Type>(|ns| ns as f64 / by))
}

fn bucket(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let (times, widths) = (integers(&arguments[0]), integers(&arguments[1]));
    if widths.iter().flatten().any(|width| width <= 0) {
        return Err(DataFusionError::Execution(
            "the width of a bucket must be greater than 0".to_owned(),
        ));
    }
    Ok(Arc::new(
        arrow_array::PrimitiveArray::<Int64Type>::from_iter(
            times
                .iter()
                .zip(widths)
                .map(|(time, width)| Some(floor(time?, width?))),
        ),
    ))
}

/// Returns the largest multiple of `width` that is at most `time`.
fn floor(time: i64, width: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(width))
}

fn utc(traces: &Traces, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let times = integers(&arguments[0]);
    let starts: Vec<(&str, Option<i64>)> = traces
        .iter()
        .map(|trace| (trace.name.as_str(), trace.store.info().start_unix_ns))
        .collect();
    let moments: TimestampNanosecondArray = match (arguments.get(1), starts.as_slice()) {
        (None, [(_, start)]) => (times.iter())
            .map(|time| time?.checked_add((*start)?))
            .collect(),
        (None, _) => {
            return Err(DataFusionError::Execution(
                "the session has several traces: use utc(time_ns, trace)".to_owned(),
            ));
        }
        (Some(names), starts) => {
            let names = names.as_string::<i32>();
            (0..times.len())
                .map(|row| {
                    let name = names.is_valid(row).then(|| names.value(row))?;
                    let (_, start) = starts.iter().find(|(known, _)| *known == name)?;
                    times
                        .is_valid(row)
                        .then(|| times.value(row))?
                        .checked_add((*start)?)
                })
                .collect()
        }
    };
    Ok(Arc::new(moments.with_timezone(UTC)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_start_at_multiples_of_their_width() {
        assert_eq!(floor(0, 10), 0);
        assert_eq!(floor(19, 10), 10);
        assert_eq!(floor(20, 10), 20);
        // Objects that existed before the trace's start have negative times.
        assert_eq!(floor(-1, 10), -10);
        assert_eq!(floor(i64::MIN, 10), i64::MIN);
    }

    #[test]
    fn a_bucket_without_width_is_refused() {
        let array = |value| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        assert!(bucket(&[array(5), array(0)]).is_err());
        assert!(bucket(&[array(5), array(-5)]).is_err());
    }
}
