//! SQL text as statements.

use std::fmt;

use datafusion::sql::parser::{DFParserBuilder, Statement as Ast};

use crate::SqlError;

/// How deep expressions may nest.
const DEEPEST: usize = 50;

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    pub(crate) ast: Ast,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ast.fmt(f)
    }
}

impl Statement {
    /// Whether it calls the function, or looks as if.
    pub(crate) fn may_call(&self, function: &str) -> bool {
        let text = self.to_string().to_lowercase().replace('"', "");
        text.match_indices(function).any(|(at, _)| {
            text[at + function.len()..].starts_with('(')
                && !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    }
}

/// Reads statements, separated by semicolons.
///
/// # Errors
/// If the text is no SQL; says where.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    let statements = DFParserBuilder::new(text)
        .with_recursion_limit(DEEPEST)
        .build()?
        .parse_statements()?;
    Ok(statements
        .into_iter()
        .map(|ast| Statement { ast })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_seen() {
        let calls = |text: &str, function: &str| parse(text).unwrap()[0].may_call(function);
        assert!(calls(
            "SELECT Process(process_row) FROM cpu_runs",
            "process"
        ));
        assert!(calls("SELECT \"process\"(1)", "process"));
        assert!(!calls("SELECT process FROM processes", "process"));
        assert!(!calls("SELECT my_process(1)", "process"));
    }

    #[test]
    fn what_is_no_sql_is_refused_with_its_place() {
        let error = parse("SELECT 1\nFROM )").unwrap_err();
        assert_eq!(error.place().map(|place| place.line), Some(2), "{error}");
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert_eq!(parse("").unwrap().len(), 0);
        assert_eq!(parse("SELECT 1; SELECT 2;").unwrap().len(), 2);
    }
}
