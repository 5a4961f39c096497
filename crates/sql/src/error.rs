//! Errors of SQL statements.

use std::fmt;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use tables::StoreError;

/// Position in the text of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, counted from 1.
    pub line: u64,
    /// Character in the line, counted from 1.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Kind of an error of a query that was evaluated. Its text contains no values of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A value cannot be converted to a type.
    #[error(
        "a value cannot be converted to the type that the query asks for; use TRY_CAST, which returns NULL for such \
         a value, or exclude it with WHERE"
    )]
    Conversion,
    /// A number is divided by zero.
    #[error("the query divides by zero; use NULLIF(…, 0) as the divisor")]
    DivideByZero,
    /// A result does not fit in its type.
    #[error("a result is too large for its type; use CAST(… AS DOUBLE)")]
    Overflow,
    /// A function or operator does not accept a value.
    #[error(
        "a function or operator of the query fails on one of the values, or its result is too large; exclude such \
         values with WHERE"
    )]
    Value,
    /// The engine cannot run the statement.
    #[error("the query engine cannot run this statement; write it in another way")]
    Unsupported,
}

/// Reason why a statement fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The text is not valid SQL.
    #[error("invalid SQL: {message}{}", at(place))]
    Syntax {
        /// Text that the parser expected and text that it found.
        message: String,
        /// Position, if known.
        place: Option<Place>,
    },
    /// There is no table or view with this name.
    #[error("there is no table `{name}`{}; {hint}", at(place))]
    UnknownTable {
        /// Name in the statement.
        name: String,
        /// Position, if known.
        place: Option<Place>,
        /// Advice: the most similar name, or all names.
        hint: String,
    },
    /// There is no column with this name.
    #[error("there is no column `{name}`{}; {hint}", at(place))]
    UnknownColumn {
        /// Name in the statement.
        name: String,
        /// Position, if known.
        place: Option<Place>,
        /// Advice: the most similar name, or all names.
        hint: String,
    },
    /// The statement would change a table of a trace or write a file.
    #[error("{what} is not possible: tables of a trace are read-only")]
    ReadOnly {
        /// Name of the forbidden operation.
        what: String,
    },
    /// The query needs more memory than its limit and cannot continue on disk.
    #[error(
        "the query needs more memory than its limit of {limit_mib} MiB and cannot continue on disk"
    )]
    Memory {
        /// Memory limit, in MiB.
        limit_mib: usize,
    },
    /// The tables that statements of the session created need more memory than the limit.
    #[error(
        "the tables of this session need more than {limit_mib} MiB; select fewer rows, use CREATE VIEW, or remove \
         tables that are not needed (DROP TABLE)"
    )]
    Tables {
        /// Memory limit, in MiB.
        limit_mib: usize,
    },
    /// The text is too long.
    #[error("the SQL text has {bytes} bytes; at most 4 MiB are possible")]
    TooLong {
        /// Length of the text, in bytes.
        bytes: usize,
    },
    /// A statement is too complex.
    #[error(
        "the statement is too complex: the statement and the session's views in it have {complexity} points; the \
         maximum is 4,000; use IN (…) instead of OR, join with VALUES, or split the statement (docs/sql.md \
         explains the points)"
    )]
    TooComplex {
        /// Complexity of the statement: the weighted number of its operators, keywords and views.
        complexity: usize,
    },
    /// A statement reads too many tables.
    #[error(
        "the statement reads more than 1,000 tables; each use of a view or WITH query counts all of its tables, so \
         store a result that is used often with CREATE TABLE … AS"
    )]
    TooManyTables,
    /// A query joins too many tables.
    #[error(
        "a query joins more than 100 tables; join fewer, or store an inner result with CREATE TABLE … AS"
    )]
    TooManyJoins,
    /// A query returns too many columns.
    #[error("a query has more than 4,000 columns; select fewer, or use rows: VALUES or UNION ALL")]
    TooManyColumns,
    /// Brackets are nested too deeply after words such as `CAST`.
    #[error(
        "more than 12 brackets are nested after words with special syntax, such as CAST, NOT, ARRAY, POSITION, \
         SUBSTRING and TRIM (POSITION counts twice); compute the inner parts in a WITH query"
    )]
    TooManyAttempts,
    /// An expression would be too large after the engine has replaced columns by the expressions of inner
    /// queries.
    #[error(
        "an expression has more than 10,000 parts, including the parts of the inner queries and views that compute \
         its columns; store an inner result with CREATE TABLE … AS"
    )]
    TooNested,
    /// A constant is too large.
    #[error(
        "a constant of {bytes} bytes would be repeated in every row; at most 32 KiB are possible"
    )]
    Constant {
        /// Size of the constant, in bytes.
        bytes: usize,
    },
    /// An `EXPLAIN FORMAT TREE` contains characters outside ASCII. The engine cuts long lines of a tree between bytes,
    /// so it would split such a character.
    #[error("EXPLAIN FORMAT TREE cannot draw characters outside ASCII; use EXPLAIN FORMAT INDENT")]
    Tree,
    /// The query engine panicked.
    #[error("the query engine failed on this statement; the returned rows are incomplete")]
    Engine,
    /// The query was cancelled.
    #[error("the query was cancelled")]
    Cancelled,
    /// A table cannot be built or read.
    #[error(transparent)]
    Store(StoreError),
    /// Two traces of a session have the same name.
    #[error("two traces have the name `{0}`; use different names")]
    SameName(String),
    /// The query engine cannot be started.
    #[error("cannot start the query engine: {0}")]
    Setup(#[source] std::io::Error),
    /// The query failed while it ran, or while its constants were computed.
    #[error("{message}")]
    Run {
        /// Kind of the error.
        kind: RunError,
        /// Error message of the engine. It can contain values of the tables.
        message: String,
    },
    /// The query engine reported another error.
    #[error("{message}{}", at(place))]
    Query {
        /// Error message of the engine.
        message: String,
        /// Position, if known.
        place: Option<Place>,
    },
}

/// Returns the end of a message with the position, such as ` (at …)`. Returns an empty text if the position is
/// unknown.
fn at(place: &Option<Place>) -> String {
    place
        .map(|place| format!(" (at {place})"))
        .unwrap_or_default()
}

impl SqlError {
    /// Returns the position of the error, if known.
    pub fn place(&self) -> Option<Place> {
        match self {
            SqlError::Syntax { place, .. }
            | SqlError::UnknownTable { place, .. }
            | SqlError::UnknownColumn { place, .. }
            | SqlError::Query { place, .. } => *place,
            _ => None,
        }
    }

    pub(crate) fn unknown_table<'n>(
        name: &str,
        place: Option<Place>,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> SqlError {
        SqlError::UnknownTable {
            name: name.to_owned(),
            place,
            hint: hint(name, known),
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
            // Arrow errors and shared errors of a plan wrap the error that caused them.
            other => SqlError::of_root(other.find_root(), place),
        }
    }

    fn of_root(error: &DataFusionError, place: Option<Place>) -> SqlError {
        match error {
            DataFusionError::Plan(message)
            | DataFusionError::Execution(message)
            | DataFusionError::NotImplemented(message)
            | DataFusionError::Configuration(message) => SqlError::query(message, place),
            // DataFusion's own text asks the user to report a bug to its developers.
            DataFusionError::Internal(message) => SqlError::query(
                &format!("the query engine failed: {message}; write the statement in another way"),
                place,
            ),
            DataFusionError::ResourcesExhausted(_) => SqlError::Memory { limit_mib: 0 },
            DataFusionError::ArrowError(error, _) => SqlError::query(&error.to_string(), place),
            other => SqlError::query(&other.strip_backtrace(), place),
        }
    }

    fn query(message: &str, place: Option<Place>) -> SqlError {
        SqlError::Query {
            message: one_line(without_plea(message)),
            place,
        }
    }

    /// Returns the error of a query that ran, or whose constants were computed.
    pub(crate) fn of_run(error: DataFusionError) -> SqlError {
        let kind = RunError::from_datafusion(error.find_root());
        match SqlError::from(error) {
            SqlError::Query { message, .. } | SqlError::Syntax { message, .. } => {
                SqlError::Run { kind, message }
            }
            other => other,
        }
    }

    /// Returns the error of a statement that is planned or analyzed. The engine computes only arguments of table
    /// functions in this phase, and these errors come from Arrow. All other errors contain only words of the statement.
    pub(crate) fn of_planning(error: DataFusionError) -> SqlError {
        match error.find_root() {
            DataFusionError::ArrowError(..) => SqlError::of_run(error),
            _ => SqlError::from(error),
        }
    }

    /// Adds the memory limit of queries to the error. The limit is given in bytes.
    pub(crate) fn with_limit(self, bytes: usize) -> SqlError {
        match self {
            SqlError::Memory { .. } => SqlError::Memory {
                limit_mib: bytes >> 20,
            },
            other => other,
        }
    }
}

impl RunError {
    fn from_datafusion(error: &DataFusionError) -> RunError {
        use arrow_schema::ArrowError;
        match error {
            DataFusionError::ArrowError(error, _) => match &**error {
                ArrowError::CastError(_) | ArrowError::ParseError(_) => RunError::Conversion,
                ArrowError::DivideByZero => RunError::DivideByZero,
                ArrowError::ArithmeticOverflow(_) => RunError::Overflow,
                _ => RunError::Value,
            },
            DataFusionError::Internal(_) | DataFusionError::NotImplemented(_) => {
                RunError::Unsupported
            }
            _ => RunError::Value,
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

/// Removes DataFusion's request to report a bug, and the text before this request, if another message follows.
/// DataFusion inserts the request into messages about calls that match no signature.
fn without_plea(message: &str) -> &str {
    match message.split_once("https://github.com/apache/datafusion/issues. ") {
        Some((_, summary)) => summary,
        None => message,
    }
}

/// Splits a position such as `at Line: 1, Column: 8` from a message of the parser.
fn split_place(message: &str) -> (&str, Option<Place>) {
    let location = message.rsplit_once(" at Line: ").and_then(|(text, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((
            text,
            Place {
                line: line.trim().parse().ok()?,
                column: column.trim().parse().ok()?,
            },
        ))
    });
    match location {
        Some((text, place)) => (text, Some(place)),
        None => (message, None),
    }
}

/// Joins the lines of a text to one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Suggests the most similar known name, or lists all known names.
fn hint<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
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
            format!("choose one of {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn positions_are_split_from_messages_of_the_parser() {
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
        assert_eq!(split_place("no position"), ("no position", None));
    }

    #[test]
    fn the_cause_of_an_error_is_named_wherever_it_is() {
        let internal = || DataFusionError::Internal("no such thing".to_owned());
        let arrow = |error: DataFusionError| {
            let error = arrow_schema::ArrowError::ExternalError(Box::new(error));
            DataFusionError::ArrowError(Box::new(error), None)
        };
        for error in [
            internal(),
            arrow(internal()),
            DataFusionError::Shared(Arc::new(arrow(internal()))),
        ] {
            assert_eq!(
                SqlError::from(error).to_string(),
                "the query engine failed: no such thing; write the statement in another way"
            );
        }
        let nested = DataFusionError::Plan(format!("{}. No function matches 'f(a)'", internal()));
        assert_eq!(
            SqlError::from(nested).to_string(),
            "No function matches 'f(a)'"
        );
        let memory = DataFusionError::ResourcesExhausted(String::new());
        assert!(matches!(
            SqlError::from(arrow(memory)),
            SqlError::Memory { .. }
        ));
    }

    #[test]
    fn hints_suggest_similar_names() {
        let known = ["cpu_runs", "processes"];
        let suggested = |name| hint(name, known.into_iter());
        assert_eq!(suggested("cpu_run"), "did you mean `cpu_runs`?");
        assert_eq!(suggested("proceses"), "did you mean `processes`?");
        assert_eq!(suggested("files"), "choose one of cpu_runs, processes");
    }
}
