//! Parser of SQL text.

use std::fmt;
use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParserBuilder, Statement as Ast};
use datafusion::sql::sqlparser::ast::{ObjectName, visit_relations};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::large_stack::on_large_stack;
use crate::{Place, SqlError};

/// Maximum nesting depth of parentheses and brackets.
const MAX_DEPTH: usize = 50;

/// Maximum length of the text, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Maximum complexity of a statement, including the views that it may use. The complexity is the number of
/// operators, where some operators count more because DataFusion needs longer to plan many of them. `a OR b
/// OR c` nests its operators, so this maximum also limits the depth of expressions and plans.
pub(crate) const MAX_COMPLEXITY: usize = 4_000;

/// A parsed statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Syntax tree; `None` only while the statement is dropped.
    ast: Option<Box<Ast>>,
    pub(crate) complexity: usize,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = on_large_stack(|| self.ast().to_string());
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl Drop for Statement {
    /// Drops the syntax tree on a large stack, because dropping nested expressions is recursive.
    fn drop(&mut self) {
        let ast = self.ast.take();
        // If the thread cannot be started, the tree is dropped here.
        let _ = on_large_stack(move || drop(ast));
    }
}

impl Statement {
    pub(crate) fn ast(&self) -> &Ast {
        self.ast.as_ref().expect("present until dropped")
    }

    /// Returns the position of the first table with this name.
    pub(crate) fn place_of_table(&self, name: &str) -> Option<Place> {
        let mut ast = self.ast();
        while let Ast::Explain(explained) = ast {
            ast = &explained.statement;
        }
        let Ast::Statement(ast) = ast else {
            return None;
        };
        let found = visit_relations(ast.as_ref(), |table: &ObjectName| {
            let last = table.0.last().and_then(|part| part.as_ident());
            match last {
                Some(ident) if ident.value.eq_ignore_ascii_case(name) => {
                    ControlFlow::Break(ident.span.start)
                }
                _ => ControlFlow::Continue(()),
            }
        });
        // Lines are counted from 1. Line 0 means that the position is unknown.
        (found.break_value())
            .filter(|start| start.line > 0)
            .map(|start| Place {
                line: start.line,
                column: start.column,
            })
    }

    /// Returns whether the statement may call the function. It can return true for a statement without a
    /// call.
    pub(crate) fn may_call(&self, function: &str) -> bool {
        let text = self.ast().to_string().to_lowercase().replace('"', "");
        text.match_indices(function).any(|(at, _)| {
            text[at + function.len()..].starts_with('(')
                && !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    }
}

/// Parses statements that are separated by semicolons.
///
/// # Errors
/// If the text is not valid SQL (the error contains the position), if it is longer than 4 MiB, or if a
/// statement is too complex.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    if text.len() > MAX_BYTES {
        return Err(SqlError::TooLong { bytes: text.len() });
    }
    let complexities = complexities(text);
    let is_too_complex = |complexity: &usize| *complexity > MAX_COMPLEXITY;
    if let Some(complexity) = complexities.iter().copied().find(is_too_complex) {
        return Err(SqlError::TooComplex { complexity });
    }
    on_large_stack(|| {
        let statements = DFParserBuilder::new(text)
            .with_recursion_limit(MAX_DEPTH)
            .build()?
            .parse_statements()?;
        // A statement that consists only of a comment has a complexity, but the parser returns no statement
        // for it. Then use the largest complexity for all statements.
        let most = complexities.iter().copied().max().unwrap_or(0);
        let complexities = (complexities.len() == statements.len()).then_some(complexities);
        Ok(statements
            .into_iter()
            .enumerate()
            .map(|(at, ast)| Statement {
                ast: Some(Box::new(ast)),
                complexity: complexities.as_ref().map_or(most, |each| each[at]),
            })
            .collect())
    })?
}

/// Returns the complexity of each statement. Returns nothing for text that is not SQL. The parser reports it
/// later.
fn complexities(text: &str) -> Vec<usize> {
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize()
        .unwrap_or_default();
    let mut tokens = tokens
        .into_iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .peekable();
    let mut counts = Vec::new();
    let mut count = 0;
    let mut is_empty = true;
    while let Some(token) = tokens.next() {
        count += match token {
            Token::SemiColon => {
                counts.extend((!is_empty).then_some(count));
                (count, is_empty) = (0, true);
                continue;
            }
            Token::Word(word) => weight(word.keyword),
            // Commas can separate the tables of a join. Lists of numbers and texts do not add nesting.
            Token::Comma if matches!(tokens.peek(), Some(Token::Word(_))) => 4,
            Token::Comma => 0,
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::LParen
            | Token::RParen
            | Token::Period
            | Token::EOF => 0,
            // Checked arithmetic is planned as function calls, and DataFusion plans a chain of calls in
            // cubic time.
            Token::Plus | Token::Minus | Token::Mul => 20,
            Token::StringConcat => 4,
            _ => 1,
        };
        is_empty = false;
    }
    counts.extend((!is_empty).then_some(count));
    counts
}

/// Returns the complexity of a keyword.
fn weight(keyword: Keyword) -> usize {
    match keyword {
        Keyword::JOIN => 20,
        Keyword::EXCEPT | Keyword::INTERSECT | Keyword::UNION => 8,
        Keyword::AND
        | Keyword::AT
        | Keyword::BETWEEN
        | Keyword::COLLATE
        | Keyword::DIV
        | Keyword::ILIKE
        | Keyword::IN
        | Keyword::IS
        | Keyword::LIKE
        | Keyword::NOT
        | Keyword::OR
        | Keyword::SIMILAR
        | Keyword::XOR => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found() {
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
    fn invalid_sql_is_refused_with_its_position() {
        let error = parse("SELECT 1\nFROM )").unwrap_err();
        assert_eq!(error.place().map(|place| place.line), Some(2), "{error}");
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert_eq!(parse("").unwrap().len(), 0);
        assert_eq!(parse("SELECT 1; SELECT 2;").unwrap().len(), 2);
    }

    #[test]
    fn each_statement_has_a_complexity() {
        assert_eq!(complexities("SELECT 1; ;SELECT a+1 OR b, c;"), [0, 25]);
        assert_eq!(complexities("SELECT a FROM t WHERE a IN (1, 2, 'x')"), [1]);
        assert_eq!(complexities("SELECT 'a+b' FROM t, u JOIN v -- +"), [24]);
    }

    #[test]
    fn texts_beyond_the_limits_are_refused() {
        let chain = |terms: usize| format!("SELECT 1{}", "=1".repeat(terms));
        assert!(parse(&chain(MAX_COMPLEXITY)).is_ok());
        let error = parse(&chain(MAX_COMPLEXITY + 1)).unwrap_err();
        assert!(
            matches!(error, SqlError::TooComplex { complexity } if complexity == MAX_COMPLEXITY + 1)
        );
        let error = parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err();
        assert!(matches!(error, SqlError::TooLong { .. }));
    }
}
