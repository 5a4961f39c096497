//! Formatting of evidence: text of cells and alignment of columns.

use explain::{Evidence, Unit, Value};
use wording::{Side, duration, grouped, size};

/// Returns the text of a value with the given unit; `?` if the value is unknown.
pub fn cell(value: Option<&Value>, unit: Unit) -> String {
    let Some(value) = value else {
        return "?".to_owned();
    };
    match (value, unit) {
        (Value::Integer(ns), Unit::Duration) => duration(*ns),
        (Value::Integer(ns), Unit::Moment) => format!("{:.6} s", *ns as f64 / 1e9),
        (Value::Integer(count), Unit::Count) if *count >= 0 => grouped(count.unsigned_abs()),
        (Value::Integer(bytes), Unit::Bytes) if *bytes >= 0 => size(bytes.unsigned_abs()),
        (Value::Real(percent), Unit::Percent) => format!("{percent:.1} %"),
        (Value::Real(bits), Unit::BitsPerSecond) => format!("{:.1} Mb/s", bits / 1e6),
        (Value::Real(ns), Unit::Duration) => duration(*ns as i64),
        (Value::Integer(number), _) => number.to_string(),
        (Value::Real(number), _) => format!("{number:.3}"),
        (Value::Flag(flag), _) => if *flag { "yes" } else { "no" }.to_owned(),
        (Value::Text(text), _) => text.clone(),
    }
}

/// Returns the alignment of a column. A column with text is left-aligned. A column with only numbers is
/// right-aligned.
pub fn side(evidence: &Evidence, place: usize) -> Side {
    let mut cells = evidence.rows.iter().filter_map(|row| row[place].as_ref());
    if cells.any(|cell| matches!(cell, Value::Text(_))) {
        Side::Left
    } else {
        Side::Right
    }
}
