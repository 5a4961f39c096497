//! Defaults of a setting.

use std::fmt;

use serde::Deserialize;

use super::{Condition, Datum};

/// A default and the machines that have it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "DefaultToml")]
pub struct DefaultRule {
    /// Machines that have the default.
    pub when: Condition,
    /// Default of the setting on these machines.
    pub value: DefaultValue,
    /// Remark on the default for the user.
    pub note: Option<String>,
}

/// Default of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// Windows stores this value.
    Value(Datum),
    /// Windows stores no value, and acts as if this value were stored. `None` if the behaviour of Windows is
    /// unknown.
    Absent(Option<Datum>),
    /// The default depends on a fact outside the catalogue, such as the driver or the memory size.
    Varies(String),
}

impl DefaultValue {
    /// Returns the value that has the same effect as the default, if it is known.
    pub fn effective(&self) -> Option<&Datum> {
        match self {
            DefaultValue::Value(value) | DefaultValue::Absent(Some(value)) => Some(value),
            DefaultValue::Absent(None) | DefaultValue::Varies(_) => None,
        }
    }
}

/// TOML form of a [`DefaultRule`]. Exactly one of `value`, `absent` and `varies` is given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultToml {
    #[serde(default)]
    when: Condition,
    value: Option<Datum>,
    #[serde(default)]
    absent: bool,
    acts_as: Option<Datum>,
    varies: Option<String>,
    note: Option<String>,
}

impl TryFrom<DefaultToml> for DefaultRule {
    type Error = &'static str;

    fn try_from(written: DefaultToml) -> Result<DefaultRule, Self::Error> {
        let value = match (written.value, written.absent, written.varies) {
            (Some(value), false, None) if written.acts_as.is_none() => DefaultValue::Value(value),
            (None, true, None) => DefaultValue::Absent(written.acts_as),
            (None, false, Some(how)) if written.acts_as.is_none() => DefaultValue::Varies(how),
            _ => {
                return Err(
                    "a default has exactly one of value, absent (with optional acts_as) and varies",
                );
            }
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
