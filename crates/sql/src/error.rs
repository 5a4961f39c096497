//! Why a statement has no answer.

use std::fmt;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use tables::StoreError;

/// Where in the text, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The text is no SQL.
    #[error("this is no SQL that laglab understands: {message}{}", at(place))]
    Syntax {
        /// What was expected and found.
        message: String,
        /// Where.
        place: Option<Place>,
    },
    /// There is no such table or view.
    #[error("there is no table `{name}`; {hint}")]
    UnknownTable {
        /// The name that was asked for.
        name: String,
        /// Which there are.
        hint: String,
    },
    /// There is no such column.
    #[error("there is no column `{name}`{}; {hint}", at(place))]
    UnknownColumn {
        /// The name that was asked for.
        name: String,
        /// Where.
        place: Option<Place>,
        /// Which there are.
        hint: String,
    },
    /// The statement would change something.
    #[error("{what} is not possible: tables of a trace are only read")]
    ReadOnly {
        /// What it would do.
        what: String,
    },
    /// The query needs more memory than it may have, and cannot go on on disk.
    #[error("the query needs more memory than the {limit_mib} MiB it may have: {message}")]
    Memory {
        /// The limit.
        limit_mib: usize,
        /// Who needed it.
        message: String,
    },
    /// The caller asked to stop.
    #[error("the query was cancelled")]
    Cancelled,
    /// A table cannot be made or read.
    #[error(transparent)]
    Store(StoreError),
    /// Two traces of a session have one name.
    #[error("two traces are called `{0}`; give them different names")]
    SameName(String),
    /// The session cannot be set up.
    #[error("cannot set up the query engine: {0}")]
    Setup(std::io::Error),
    /// Anything else.
    #[error("{message}{}", at(place))]
    Query {
        /// What.
        message: String,
        /// Where.
        place: Option<Place>,
    },
}

fn at(place: &Option<Place>) -> String {
    place
        .map(|place| format!(" (at {place})"))
        .unwrap_or_default()
}

impl SqlError {
    /// Where in the text, if that is known.
    pub fn place(&self) -> Option<Place> {
        match self {
            SqlError::Syntax { place, .. }
            | SqlError::UnknownColumn { place, .. }
            | SqlError::Query { place, .. } => *place,
            _ => None,
        }
    }

    pub(crate) fn unknown_table<'n>(
        name: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> SqlError {
        SqlError::UnknownTable {
            name: name.to_owned(),
            hint: hint(name, known, "there are"),
        }
    }

    fn new(error: DataFusionError, place: Option<Place>) -> SqlError {
        match error {
            DataFusionError::Diagnostic(about, inner) => {
                let place = about.span.map(|span| Place {
                    line: span.start.line,
                    column: span.start.column,
                });
                SqlError::new(*inner, place)
            }
            DataFusionError::Context(_, inner) => SqlError::new(*inner, place),
            DataFusionError::Collection(mut errors) if !errors.is_empty() => {
                SqlError::new(errors.swap_remove(0), place)
            }
            DataFusionError::SQL(error, _) => {
                let text = error.to_string();
                let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
                let (message, place) = split_place(text);
                SqlError::Syntax {
                    message: one_line(message),
                    place,
                }
            }
            DataFusionError::SchemaError(error, _) => match *error {
                SchemaError::FieldNotFound {
                    field,
                    valid_fields,
                } => SqlError::UnknownColumn {
                    hint: hint(
                        &field.name,
                        valid_fields.iter().map(|field| field.name.as_str()),
                        "here are",
                    ),
                    name: field.flat_name(),
                    place,
                },
                other => SqlError::query(&other.to_string(), place),
            },
            DataFusionError::External(error) => match error.downcast::<StoreError>() {
                Ok(error) => SqlError::from(*error),
                Err(other) => SqlError::query(&other.to_string(), place),
            },
            DataFusionError::Plan(message)
            | DataFusionError::Execution(message)
            | DataFusionError::NotImplemented(message)
            | DataFusionError::Configuration(message) => SqlError::query(&message, place),
            DataFusionError::ResourcesExhausted(message) => SqlError::Memory {
                limit_mib: 0,
                message: one_line(&message),
            },
            DataFusionError::ArrowError(error, _) => SqlError::query(&error.to_string(), place),
            // Several parts of a plan fail with one error.
            DataFusionError::Shared(error) => match error.find_root() {
                DataFusionError::ResourcesExhausted(message) => SqlError::Memory {
                    limit_mib: 0,
                    message: one_line(message),
                },
                root => SqlError::query(&root.strip_backtrace(), place),
            },
            other => SqlError::query(&other.strip_backtrace(), place),
        }
    }

    fn query(message: &str, place: Option<Place>) -> SqlError {
        SqlError::Query {
            message: one_line(message),
            place,
        }
    }

    /// The same, naming the memory that a query may have.
    pub(crate) fn with_limit(self, bytes: usize) -> SqlError {
        match self {
            SqlError::Memory { message, .. } => SqlError::Memory {
                limit_mib: bytes >> 20,
                message,
            },
            other => other,
        }
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> SqlError {
        SqlError::new(error, None)
    }
}

impl From<StoreError> for SqlError {
    fn from(error: StoreError) -> SqlError {
        match error {
            StoreError::Cancelled(_) => SqlError::Cancelled,
            other => SqlError::Store(other),
        }
    }
}

/// Takes the parser's `at Line: 1, Column: 8` off its message.
fn split_place(message: &str) -> (&str, Option<Place>) {
    let found = message.rsplit_once(" at Line: ").and_then(|(text, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((
            text,
            Place {
                line: line.trim().parse().ok()?,
                column: column.trim().parse().ok()?,
            },
        ))
    });
    match found {
        Some((text, place)) => (text, Some(place)),
        None => (message, None),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The known name that is most like the one asked for, or else all.
fn hint<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone, there_are: &str) -> String {
    let closest = known
        .clone()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min();
    match closest {
        Some((distance, closest)) if distance <= 1 + name.chars().count() / 4 => {
            format!("did you mean `{closest}`?")
        }
        _ => {
            let names: Vec<&str> = known.collect();
            format!("{there_are} {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_from_the_parsers_message() {
        assert_eq!(
            split_place("Expected: an expression, found: FROM at Line: 2, Column: 13"),
            (
                "Expected: an expression, found: FROM",
                Some(Place {
                    line: 2,
                    column: 13
                })
            )
        );
        assert_eq!(split_place("no place at all"), ("no place at all", None));
    }

    #[test]
    fn hints_name_what_is_alike() {
        let known = ["cpu_runs", "processes"];
        let of = |name| hint(name, known.into_iter(), "there are");
        assert_eq!(of("cpu_run"), "did you mean `cpu_runs`?");
        assert_eq!(of("proceses"), "did you mean `processes`?");
        assert_eq!(of("files"), "there are cpu_runs, processes");
    }
}
