//! What a setting is when nobody has set it.

use std::fmt;

use serde::Deserialize;

use super::{Datum, When};

/// A default and where it holds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct DefaultRule {
    /// Where it holds.
    pub when: When,
    /// What it is there.
    pub value: DefaultValue,
    /// What else is to be said.
    pub note: Option<String>,
}

/// What is there by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// A value.
    Value(Datum),
    /// Nothing; Windows then acts as if it were this value, if that is known.
    Absent(Option<Datum>),
    /// It hangs on what this catalogue does not know: a driver, a memory size.
    Varies(String),
}

impl DefaultValue {
    /// What Windows acts on by default, if that is known.
    pub fn effective(&self) -> Option<&Datum> {
        match self {
            DefaultValue::Value(value) | DefaultValue::Absent(Some(value)) => Some(value),
            DefaultValue::Absent(None) | DefaultValue::Varies(_) => None,
        }
    }
}

/// How the files write a [`DefaultRule`]: one of `value`, `absent`, `varies`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    when: When,
    value: Option<Datum>,
    #[serde(default)]
    absent: bool,
    acts_as: Option<Datum>,
    varies: Option<String>,
    note: Option<String>,
}

impl TryFrom<Written> for DefaultRule {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<DefaultRule, Self::Error> {
        let value = match (written.value, written.absent, written.varies) {
            (Some(value), false, None) if written.acts_as.is_none() => DefaultValue::Value(value),
            (None, true, None) => DefaultValue::Absent(written.acts_as),
            (None, false, Some(how)) if written.acts_as.is_none() => DefaultValue::Varies(how),
            _ => return Err("a default is one of value, absent (with acts_as) and varies"),
        };
        Ok(DefaultRule {
            when: written.when,
            value,
            note: written.note,
        })
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Value(value) => write!(f, "{value}"),
            DefaultValue::Absent(None) => f.write_str("not set"),
            DefaultValue::Absent(Some(value)) => write!(f, "not set, which acts as {value}"),
            DefaultValue::Varies(how) => f.write_str(how),
        }
    }
}
