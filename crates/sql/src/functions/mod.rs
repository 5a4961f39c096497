//! SQL functions in addition to DataFusion's own.

pub(crate) mod bounded;
mod codes;
mod names;
pub(crate) mod of_tables;
mod time;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use tables::Table;

use crate::lookups::Lookups;
use crate::traces::Traces;

pub use names::Symbols;

/// Description of an SQL function.
#[derive(Debug)]
pub(crate) struct About {
    /// Name of the function.
    pub(crate) name: &'static str,
    /// Names and types of the parameters. Arguments are cast to these types.
    pub(crate) arguments: &'static [(&'static str, DataType)],
    /// Number of optional parameters. They are the last parameters.
    pub(crate) optional: usize,
    /// Type of the result.
    pub(crate) returns: fn() -> DataType,
    /// Description in one sentence.
    pub(crate) meaning: &'static str,
    /// Table whose names the function returns, if any.
    pub(crate) looks_up: Option<Table>,
}

impl About {
    /// Returns a text of the form `name(argument, …)`, with optional arguments in brackets.
    pub(crate) fn signature(&self) -> String {
        let required = self.arguments.len() - self.optional;
        let mut text = format!("{}(", self.name);
        for (i, (argument, _)) in self.arguments.iter().enumerate() {
            text += match (i < required, i) {
                (true, 0) => "",
                (true, _) => ", ",
                (false, _) => "[, ",
            };
            text += argument;
        }
        text + &"]".repeat(self.optional) + ")"
    }
}

/// Returns the descriptions of all functions, in the order in which they are documented.
pub(crate) fn about() -> impl Iterator<Item = &'static About> {
    [time::ABOUT, codes::ABOUT, names::ABOUT]
        .into_iter()
        .flatten()
}

/// Returns the signature, such as `bucket(ns, width_ns)`, and the description of each function.
pub fn function_signatures() -> Vec<(String, &'static str)> {
    about()
        .map(|about| (about.signature(), about.meaning))
        .collect()
}

/// Creates all functions for these traces.
pub(crate) fn functions(
    traces: &Arc<Traces>,
    lookups: &Arc<Lookups>,
    symbols: Option<&Arc<dyn Symbols>>,
) -> Vec<ScalarUDF> {
    about()
        .filter_map(|about| {
            let body = time::body(about.name, traces)
                .or_else(|| codes::body(about.name))
                .or_else(|| names::body(about.name, lookups, symbols))?;
            Some(ScalarUDF::from(Function {
                about,
                body,
                signature: Signature::user_defined(Volatility::Immutable),
            }))
        })
        .collect()
}

/// Implementation of a function. All argument arrays have the same length.
type Body = Box<dyn Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync>;

/// A function in the form that DataFusion calls.
struct Function {
    about: &'static About,
    body: Body,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.about.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok((self.about.returns)())
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let all = self.about.arguments;
        if given.len() + self.about.optional < all.len() || given.len() > all.len() {
            return Err(DataFusionError::Plan(format!(
                "{} takes {} arguments, not {}: {}",
                self.about.name,
                match self.about.optional {
                    0 => all.len().to_string(),
                    optional => format!("{} or {}", all.len() - optional, all.len()),
                },
                given.len(),
                self.about.signature(),
            )));
        }
        let types = all.iter().take(given.len());
        Ok(types.map(|(_, data_type)| data_type.clone()).collect())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = arguments
            .args
            .iter()
            .all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let result = (self.body)(&ColumnarValue::values_to_arrays(&arguments.args)?)?;
        Ok(if is_constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.about.name == other.about.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.about.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_body() {
        let traces = Arc::new(Traces::new(Vec::new()));
        let lookups = Arc::new(Lookups::new(Arc::clone(&traces)));
        assert_eq!(
            functions(&traces, &lookups, None).len(),
            about().count(),
            "every function has an implementation"
        );
    }

    #[test]
    fn signatures_show_optional_arguments() {
        let about_of = |name: &str| {
            about()
                .find(|about| about.name == name)
                .unwrap()
                .signature()
        };
        assert_eq!(about_of("bucket"), "bucket(ns, width_ns)");
        assert_eq!(about_of("utc"), "utc(time_ns[, trace])");
    }
}
