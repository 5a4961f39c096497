//! Serialisation of values and fields as JSON.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Serialize, Serializer};

use crate::decode::Fields;
use crate::value::Value;

/// Makes field names unique, because the layouts of some real providers use a name several times.
#[derive(Clone, Debug, Default)]
pub struct OwnNames<'n> {
    /// Number of occurrences of each name so far.
    met: HashMap<Cow<'n, str>, u32>,
}

impl<'n> OwnNames<'n> {
    /// Returns the name unchanged at its first occurrence. At later occurrences, returns the name with a
    /// number. For example, `Reserved` becomes `Reserved#2`.
    pub fn own(&mut self, name: &'n str) -> Cow<'n, str> {
        let mut times = self.met.get(name).copied().unwrap_or(0);
        let mut own = Cow::Borrowed(name);
        while self.met.contains_key(&own) {
            times += 1;
            own = Cow::Owned(format!("{name}#{times}"));
        }
        self.met.insert(Cow::Borrowed(name), times.max(1));
        self.met.entry(own.clone()).or_insert(1);
        own
    }
}

/// Numbers, booleans, arrays and structs become JSON values of the corresponding type. All other values
/// become text.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_none(),
            Value::Int(n) => serializer.serialize_i64(*n),
            Value::UInt(n) => serializer.serialize_u64(*n),
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Float(f) => serializer.serialize_f64(*f),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Array(values) => serializer.collect_seq(values),
            Value::Struct(members) => {
                let mut names = OwnNames::default();
                let members = members.iter();
                serializer.collect_map(members.map(|(name, value)| (names.own(name), value)))
            }
            other => serializer.collect_str(other),
        }
    }
}

/// Fields become a JSON object in which each field has a unique name.
impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut names = OwnNames::default();
        let fields = self.values.iter();
        serializer.collect_map(fields.map(|(name, value)| (names.own(name), value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_name_is_used_once() {
        let mut names = OwnNames::default();
        let own = ["a", "b", "a", "a", "a#2", "a"].map(|name| names.own(name));
        assert_eq!(own, ["a", "b", "a#2", "a#3", "a#2#2", "a#4"]);
    }

    #[test]
    fn values_keep_their_kind_in_json() {
        let bits = Value::Struct(vec![
            ("Low".into(), Value::UInt(3)),
            ("Low".into(), Value::UInt(4)),
        ]);
        for (value, expected) in [
            (Value::UInt(u64::MAX), json!(u64::MAX)),
            (Value::Pointer(255), json!("0xff")),
            (Value::Float(f64::NAN), json!(null)),
            (Value::Named(5, "Waiting".into()), json!("Waiting")),
            (Value::Array(vec![Value::Int(-1)]), json!([-1])),
            (bits, json!({"Low": 3, "Low#2": 4})),
        ] {
            assert_eq!(serde_json::to_value(&value).unwrap(), expected);
        }
    }
}
