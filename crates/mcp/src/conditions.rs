//! Conditions and values of tables, for the tools that use the explorer.

use explore::{Condition, Value as Cell};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments;
use crate::failure::Failure;
use crate::marks::{Marks, unquoted};

/// Condition that a caller gives for the values of a column.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(
    deny_unknown_fields,
    expecting = "expected an object with `column` and a condition"
)]
pub(crate) struct Where {
    pub(crate) column: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    is: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_not: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contains: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
}

impl Where {
    /// Returns true if all rows satisfy the condition.
    fn is_empty(&self) -> bool {
        self.is.is_none()
            && self.is_not.is_none()
            && self.contains.is_none()
            && self.from.is_none()
            && self.to.is_none()
    }
}

/// Column of an answer.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) unit: String,
    /// True if texts in the column come from the trace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) from_trace: bool,
}

impl Column {
    /// Creates a column with names from the trace.
    pub(crate) fn of_names(name: &str) -> Column {
        Column {
            name: name.to_owned(),
            unit: String::new(),
            from_trace: true,
        }
    }

    /// Creates a column of numbers.
    pub(crate) fn of_numbers(name: &str, unit: &str) -> Column {
        Column {
            name: name.to_owned(),
            unit: unit.to_owned(),
            from_trace: false,
        }
    }
}

/// Returns the conditions for the explorer. Quotation marks and escapes of an answer are removed from names.
pub(crate) fn filter(conditions: Option<Vec<Where>>) -> Result<Vec<Condition>, Failure> {
    let plain = |names: Option<Vec<String>>| {
        names.map(|names| {
            names
                .iter()
                .map(|name| unquoted(name))
                .collect::<Vec<String>>()
        })
    };
    let conditions = conditions.unwrap_or_default().into_iter();
    conditions
        .map(|condition| {
            arguments::name("column", &condition.column)?;
            if condition.is_empty() {
                return Err(Failure::arguments(
                    "`where`: a condition needs `is`, `is_not`, `contains`, `from` or `to`",
                ));
            }
            Ok(Condition {
                column: condition.column,
                is: plain(condition.is),
                is_not: plain(condition.is_not),
                contains: condition.contains.map(|text| unquoted(&text)),
                from: condition.from,
                to: condition.to,
                ..Condition::default()
            })
        })
        .collect()
}

/// Returns a value for an answer.
pub(crate) fn value(cell: &Cell, marks: &Marks) -> Value {
    match cell {
        Cell::Unknown => Value::Null,
        Cell::Flag(flag) => json!(flag),
        Cell::Number(number) => json!(number),
        Cell::Text(text) => json!(marks.cell(text)),
        Cell::Different { different } => json!({ "different": different }),
    }
}
