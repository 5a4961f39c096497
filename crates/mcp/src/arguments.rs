//! Arguments of tools, checked before any work.

use std::ops::Range;
use std::sync::Arc;

use explain::Scope;
use facts::Moment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tables::Store;

use crate::answer::{MAX_TOKENS, MIN_TOKENS};
use crate::call::Call;
use crate::failure::Failure;
use crate::marks::unquoted;
use crate::open_traces::OpenTrace;

/// Maximum number of characters of a name, and of a query.
const NAME: usize = 300;
const QUERY: usize = 20_000;

/// Parses the arguments of a call. Returns an error if they are too long or do not match the type `T`.
pub(crate) fn read<T: DeserializeOwned>(
    arguments: Option<Map<String, Value>>,
) -> Result<T, Failure> {
    let arguments = arguments.unwrap_or_default();
    check_size(&Value::Object(arguments.clone()), 0)?;
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Failure::arguments(format!("wrong arguments: {error}; see the tool's schema"))
    })
}

/// Returns an error if a text or list is longer than any argument may be.
fn check_size(value: &Value, depth: usize) -> Result<(), Failure> {
    let too_long = || Failure::arguments("wrong arguments: a text or list is too long; shorten it");
    match value {
        Value::String(text) if text.chars().count() > QUERY => Err(too_long()),
        Value::Array(items) if items.len() > 64 || depth > 4 => Err(too_long()),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check_size(item, depth + 1)),
        Value::Object(fields) if fields.len() > 64 || depth > 4 => Err(too_long()),
        Value::Object(fields) => fields
            .values()
            .try_for_each(|field| check_size(field, depth + 1)),
        _ => Ok(()),
    }
}

/// Returns an error if the requested limit of tokens is out of bounds.
pub(crate) fn tokens(asked: Option<u32>) -> Result<Option<u32>, Failure> {
    in_bounds("max_tokens", asked, MIN_TOKENS..=MAX_TOKENS)
}

/// Returns an error if a number is out of bounds. `field` is the name of the argument.
pub(crate) fn in_bounds(
    field: &str,
    asked: Option<u32>,
    bounds: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, Failure> {
    if asked.is_none_or(|asked| bounds.contains(&asked)) {
        Ok(asked)
    } else {
        Err(Failure::arguments(format!(
            "`{field}` must be from {} to {}",
            bounds.start(),
            bounds.end()
        )))
    }
}

/// Time of an argument: nanoseconds since the trace's start, or text as on the command line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Time {
    Ns(i64),
    Text(String),
}

impl Time {
    fn ns(&self, store: &Store) -> Result<i64, Failure> {
        match self {
            Time::Ns(ns) => Ok(*ns),
            Time::Text(text) => {
                let moment: Result<Moment, _> = text.parse();
                let moment =
                    moment.map_err(|error| Failure::arguments(format!("wrong time: {error}")))?;
                (moment.since_start(store.info().start_unix_ns))
                    .map_err(|error| Failure::arguments(error.to_string()))
            }
        }
    }
}

/// Converts an argument to a moment in nanoseconds since the trace's start. Returns an error if the moment is outside
/// the trace.
pub(crate) fn moment(at: &Time, store: &Store) -> Result<i64, Failure> {
    let ns = at.ns(store)?;
    check_time(&(ns..ns.saturating_add(1)), store)?;
    Ok(ns)
}

/// Converts the argument `between` to a time range in nanoseconds since the trace's start. Returns an error if the
/// range is empty or outside the trace.
pub(crate) fn range(
    between: Option<&[Time; 2]>,
    store: &Store,
) -> Result<Option<Range<i64>>, Failure> {
    let Some([from, to]) = between else {
        return Ok(None);
    };
    let range = from.ns(store)?..to.ns(store)?;
    if range.is_empty() {
        return Err(Failure::arguments(
            "`between`: the first time is not before the second one",
        ));
    }
    check_time(&range, store)?;
    Ok(Some(range))
}

/// Returns an error if a time range is outside the trace.
fn check_time(asked: &Range<i64>, store: &Store) -> Result<(), Failure> {
    let end = store.info().end_ns;
    if asked.start <= end && asked.end > 0 {
        Ok(())
    } else {
        Err(Failure::arguments(format!(
            "the time is outside the trace, which lasts from 0 to {end} ns"
        )))
    }
}

/// Threads, processes and time that a call asks about.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallScope {
    pub(crate) process: Option<String>,
    pub(crate) thread: Option<u32>,
    pub(crate) at: Option<Time>,
    pub(crate) between: Option<[Time; 2]>,
}

impl CallScope {
    /// Returns the scope of an explanation.
    pub(crate) fn scope(&self, trace: &OpenTrace, call: &Arc<Call>) -> Result<Scope, Failure> {
        if self.at.is_some() && self.between.is_some() {
            return Err(Failure::arguments("give `at` or `between`, not both"));
        }
        let store = &trace.store;
        let during = match &self.at {
            Some(at) => moment(at, store).map(|ns| Some(ns..ns.saturating_add(1)))?,
            None => range(self.between.as_ref(), store)?,
        };
        let mut scope = Scope {
            threads: Vec::new(),
            processes: Vec::new(),
            during,
        };
        if let Some(process) = &self.process {
            let process = name("process", process)?;
            let names = trace.names(call)?;
            let is_known = |name: &String| {
                let mut processes = names.processes();
                processes.any(|known| explain::is_called(known, name))
            };
            let Some(process) = meant(&process).into_iter().find(is_known) else {
                return Err(Failure::unknown(
                    "the trace has no process with this name or id; \
                     `summarize` the table `processes` by `image_name` to list them",
                ));
            };
            scope.processes.push(process);
        }
        if let Some(id) = self.thread {
            let names = trace.names(call)?;
            let mut rows = 0..names.thread_rows() as u32;
            if !rows.any(|row| names.thread_id(row) == Some(id)) {
                return Err(Failure::unknown("the trace has no thread with this id"));
            }
            scope.threads.push(id);
        }
        Ok(scope)
    }
}

/// Returns the names or ids that a caller may mean: a name as in the trace or as in an answer (“firefox.exe”), and
/// the id that follows a name in sentences (“firefox.exe” (4712)).
fn meant(process: &str) -> Vec<String> {
    let named = process
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("));
    let id = named
        .map(|(_, id)| id)
        .filter(|id| id.parse::<u32>().is_ok());
    let names = [Some(process.trim()), id].into_iter().flatten();
    names.map(unquoted).collect()
}

/// Returns a name, or an error if it is empty or too long.
pub(crate) fn name(field: &str, text: &str) -> Result<String, Failure> {
    if text.trim().is_empty() || text.chars().count() > NAME {
        Err(Failure::arguments(format!(
            "`{field}` must have 1 to {NAME} characters"
        )))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_characters() {
        let has_room = |characters: usize| {
            let query = Value::from("ä".repeat(characters));
            read::<Value>(Some(Map::from_iter([("query".to_owned(), query)]))).is_ok()
        };
        assert!(has_room(QUERY));
        assert!(!has_room(QUERY + 1));
    }
}
