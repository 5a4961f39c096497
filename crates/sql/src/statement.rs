//! Parser of SQL text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParserBuilder, Statement as Ast};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, SetExpr, Statement as SqlAst, Visit, Visitor,
    visit_expressions, visit_relations,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::large_stack::on_large_stack;
use crate::{Place, SqlError};

/// Maximum nesting depth of parentheses and brackets.
const MAX_DEPTH: usize = 50;

/// Maximum number of nested brackets that the parser may read twice. If it cannot read the content of such a bracket, it
/// reads it again as the argument of an ordinary function. A mistake in 40 nested brackets would take hours.
const MAX_ATTEMPTS: usize = 12;

/// Maximum length of the text, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Maximum complexity of a statement, including the views that it uses. The complexity is the number of operators. Some
/// operators count more, because DataFusion needs longer to plan many of them. `a OR b OR c` nests its operators, so
/// this maximum also limits the depth of expressions and plans.
pub(crate) const MAX_COMPLEXITY: usize = 4_000;

/// Maximum number of tables that a statement reads. A view or a `WITH` query that is used twice counts twice,
/// because DataFusion plans it twice. If each of 30 queries uses the previous query twice, a plan has a
/// billion nodes.
pub(crate) const MAX_TABLES: usize = 1_000;

/// Maximum number of tables in the `FROM` of one query. The time of planning is proportional to the third
/// power of this number: a build without optimisation needs 2.4 s for 100 tables and 16 s for 200.
pub(crate) const MAX_JOINED: usize = 100;

/// Maximum number of columns of one query. The time of planning is proportional to the square of this number:
/// a build without optimisation needs 0.3 s for 2,000 columns.
pub(crate) const MAX_COLUMNS: usize = 4_000;

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
        // If the thread cannot be started, the tree is dropped on the current thread.
        let _ = on_large_stack(move || drop(ast));
    }
}

impl Statement {
    pub(crate) fn ast(&self) -> &Ast {
        self.ast.as_ref().expect("present until dropped")
    }

    /// Returns the statement. If it is an `EXPLAIN`, returns the explained statement. Returns `None` for a kind of
    /// statement that only DataFusion has. Such a statement contains no query.
    fn standard(&self) -> Option<&SqlAst> {
        let mut ast = self.ast();
        while let Ast::Explain(explained) = ast {
            ast = &explained.statement;
        }
        match ast {
            Ast::Statement(ast) => Some(ast),
            _ => None,
        }
    }

    /// Returns the position of the first table with this name.
    pub(crate) fn place_of_table(&self, name: &str) -> Option<Place> {
        let start = visit_relations(self.standard()?, |table: &ObjectName| {
            let last = table.0.last().and_then(|part| part.as_ident());
            match last {
                Some(ident) if ident.value.eq_ignore_ascii_case(name) => {
                    ControlFlow::Break(ident.span.start)
                }
                _ => ControlFlow::Continue(()),
            }
        });
        // Lines are counted from 1. Line 0 means that the position is unknown.
        (start.break_value())
            .filter(|start| start.line > 0)
            .map(|start| Place {
                line: start.line,
                column: start.column,
            })
    }

    /// Returns true if the statement creates or drops a table or view. The table or view of such a statement need not
    /// exist yet.
    pub(crate) fn creates_or_drops(&self) -> bool {
        match self.ast() {
            Ast::Statement(ast) => matches!(
                ast.as_ref(),
                SqlAst::CreateTable(_) | SqlAst::CreateView(_) | SqlAst::Drop { .. }
            ),
            Ast::CreateExternalTable(_) => true,
            _ => false,
        }
    }

    /// Returns the number of tables that the statement reads, and the names of the views that it uses. The
    /// tables of a `WITH` query or view count once for each use. `of_view` returns the number of tables of a
    /// view.
    pub(crate) fn tables(
        &self,
        of_view: &dyn Fn(&str) -> Option<usize>,
    ) -> (usize, BTreeSet<String>) {
        let mut counter = TableCounter {
            of_view,
            views: BTreeSet::new(),
            of_with: BTreeMap::new(),
            names: BTreeMap::new(),
            counts: vec![0],
        };
        if let Some(ast) = self.standard() {
            let _ = ast.visit(&mut counter);
        }
        (counter.counts[0], counter.views)
    }

    /// Returns the width of the widest of the statement's queries.
    pub(crate) fn width(&self) -> Width {
        let mut width = Width::default();
        if let Some(ast) = self.standard() {
            let _ = ast.visit(&mut width);
        }
        width
    }

    /// Returns the names of the functions that the statement calls, in lower case.
    pub(crate) fn called_functions(&self) -> BTreeSet<String> {
        let mut called = BTreeSet::new();
        if let Some(ast) = self.standard() {
            let _ = visit_expressions(ast, |expression: &Expr| {
                if let Expr::Function(function) = expression
                    && let Some(name) = function.name.0.last().and_then(|part| part.as_ident())
                {
                    called.insert(name.value.to_lowercase());
                }
                ControlFlow::<()>::Continue(())
            });
        }
        called
    }
}

/// Largest number of columns of a query, and largest number of joined tables of a query. The struct is also
/// the visitor that finds these numbers.
#[derive(Debug, Default)]
pub(crate) struct Width {
    pub(crate) columns: usize,
    pub(crate) joined: usize,
}

impl Visitor for Width {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut parts = vec![query.body.as_ref()];
        while let Some(part) = parts.pop() {
            match part {
                SetExpr::Select(select) => {
                    let joins = select.from.iter().map(|from| 1 + from.joins.len());
                    self.joined = self.joined.max(joins.sum());
                    self.columns = self.columns.max(select.projection.len());
                }
                SetExpr::SetOperation { left, right, .. } => parts.extend([&**left, &**right]),
                SetExpr::Values(values) => {
                    let columns = values.rows.iter().map(|row| row.len()).max();
                    self.columns = self.columns.max(columns.unwrap_or(0));
                }
                // The visitor visits inner queries by itself.
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that counts tables.
struct TableCounter<'v> {
    of_view: &'v dyn Fn(&str) -> Option<usize>,
    /// Names of the views that were found.
    views: BTreeSet<String>,
    /// Number of tables of each `WITH` query, by name. If several queries have the same name, this is their
    /// largest number.
    of_with: BTreeMap<String, usize>,
    /// Names of `WITH` queries, by the address of the query.
    names: BTreeMap<*const Query, String>,
    /// Numbers of tables of the statement and of the visited queries, from the outside to the inside.
    counts: Vec<usize>,
}

impl TableCounter<'_> {
    fn add(&mut self, tables: usize) {
        if let Some(count) = self.counts.last_mut() {
            *count = count.saturating_add(tables);
        }
    }
}

impl Visitor for TableCounter<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for with in query.with.iter().flat_map(|with| &with.cte_tables) {
            let address: *const Query = with.query.as_ref();
            self.names.insert(address, normalized(&with.alias.name));
        }
        self.counts.push(0);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        // Outside of queries, the visited names belong to tables that the statement creates or drops.
        if self.counts.len() > 1 {
            let name = name.0.last().and_then(|part| part.as_ident());
            let name = name.map(normalized).unwrap_or_default();
            let of_with = self.of_with.get(&name).copied();
            let of_view = (self.of_view)(&name);
            self.add(of_with.max(of_view).unwrap_or(1).max(1));
            if of_view.is_some() {
                self.views.insert(name);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = self.counts.pop().unwrap_or(0);
        let address: *const Query = query;
        match self.names.remove(&address) {
            // The tables of a `WITH` query are counted where the query is used.
            Some(name) => {
                let known = self.of_with.entry(name).or_default();
                *known = tables.max(*known);
            }
            None => self.add(tables),
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name in the form in which DataFusion compares it.
fn normalized(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// Parses statements that are separated by semicolons.
///
/// # Errors
/// Returns an error if the text is not valid SQL (the error contains the position), if it is longer than 4
/// MiB, or if a statement is too complex.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    if text.len() > MAX_BYTES {
        return Err(SqlError::TooLong { bytes: text.len() });
    }
    let Tokens {
        complexities,
        attempts,
    } = Tokens::read(text);
    if attempts > MAX_ATTEMPTS {
        return Err(SqlError::TooManyAttempts);
    }
    let is_too_complex = |complexity: &usize| *complexity > MAX_COMPLEXITY;
    if let Some(complexity) = complexities.iter().copied().find(is_too_complex) {
        return Err(SqlError::TooComplex { complexity });
    }
    on_large_stack(|| {
        let statements = DFParserBuilder::new(text)
            .with_recursion_limit(MAX_DEPTH)
            .build()?
            .parse_statements()?;
        // If the parser returns another number of statements than `complexities`, it is unknown which complexity
        // belongs to which statement. Then the largest complexity is used for all statements.
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

/// Facts about a text that are known before it is parsed.
#[derive(Debug, Default)]
struct Tokens {
    /// Complexity of each statement.
    complexities: Vec<usize>,
    /// Largest number of nested brackets that the parser may read twice. A bracket that it may read four times counts as two.
    attempts: usize,
}

impl Tokens {
    /// Reads the tokens. Text that is not SQL has none; the parser reports such text later.
    fn read(text: &str) -> Tokens {
        let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
        let mut tokens = tokens.unwrap_or_default();
        tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
        Tokens {
            attempts: attempts(&tokens),
            complexities: complexities(tokens),
        }
    }
}

fn attempts(tokens: &[Token]) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let (mut now, mut most) = (0, 0);
    let mut before = 0;
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket => {
                open.push(before);
                now += before;
                most = most.max(now);
            }
            Token::RParen | Token::RBracket => now -= open.pop().unwrap_or(0),
            _ => {}
        }
        before = match token {
            Token::Word(word) => attempts_after(word.keyword),
            _ => 0,
        };
    }
    most
}

/// Returns the number of times that the parser doubles its work for the bracket after a keyword. These keywords begin
/// expressions with special syntax.
fn attempts_after(keyword: Keyword) -> usize {
    match keyword {
        Keyword::POSITION => 2,
        Keyword::ARRAY
        | Keyword::CAST
        | Keyword::CEIL
        | Keyword::CONVERT
        | Keyword::EXISTS
        | Keyword::EXTRACT
        | Keyword::FLOOR
        | Keyword::INTERVAL
        | Keyword::LAMBDA
        | Keyword::MATCH
        | Keyword::NOT
        | Keyword::OVERLAY
        | Keyword::PRIOR
        | Keyword::SAFE_CAST
        | Keyword::STRUCT
        | Keyword::SUBSTR
        | Keyword::SUBSTRING
        | Keyword::TRIM
        | Keyword::TRY_CAST
        | Keyword::TRY_CONVERT => 1,
        _ => 0,
    }
}

/// Returns the complexity of each statement.
fn complexities(tokens: Vec<Token>) -> Vec<usize> {
    let mut tokens = tokens.into_iter().peekable();
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
            // A comma before a word can separate tables of a join. Commas between numbers and texts do not add
            // nesting.
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
        for (text, called) in [
            ("SELECT Process(process_row) FROM cpu_runs", "process"),
            ("EXPLAIN SELECT \"process\"(1)", "process"),
            ("SELECT process FROM processes WHERE a = 'symbol(1, 2)'", ""),
            (
                "CREATE VIEW v AS SELECT 1 FROM (SELECT 1 ORDER BY utc(5)) WHERE ms(module(2)) > 0",
                "module ms utc",
            ),
            ("SELECT sum(1) OVER (PARTITION BY thread(3))", "sum thread"),
        ] {
            let functions = parse(text).unwrap()[0].called_functions();
            let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
            assert_eq!(functions.join(" "), called, "{text}");
        }
    }

    #[test]
    fn tables_count_as_often_as_they_are_used() {
        let of_view = |name: &str| (name == "v").then_some(10);
        for (text, count) in [
            ("CREATE OR REPLACE VIEW v AS SELECT * FROM a", 1),
            ("DROP TABLE v", 0),
            ("SELECT 1", 0),
            ("SELECT * FROM a, b WHERE c IN (SELECT d FROM e)", 3),
            ("SELECT * FROM v JOIN a.V USING (b)", 20),
            ("SELECT * FROM \"V\"", 1),
            ("EXPLAIN WITH x AS (SELECT * FROM a, b) SELECT 1", 0),
            (
                "WITH x AS (SELECT * FROM a, b), y AS (SELECT * FROM x, X) SELECT * FROM y, y",
                8,
            ),
            (
                "WITH x AS (SELECT * FROM v, v) SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x)",
                20,
            ),
            (
                "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r, a) SELECT * FROM r",
                2,
            ),
        ] {
            let (tables, views) = parse(text).unwrap()[0].tables(&of_view);
            assert_eq!(tables, count, "{text}");
            assert_eq!(views.contains("v"), count >= 10, "{text}");
        }
        let steps: String = (1..100)
            .map(|at| format!(", s{at} AS (SELECT * FROM s{0}, s{0})", at - 1))
            .collect();
        let text = format!("WITH s0 AS (SELECT * FROM a){steps} SELECT * FROM s99");
        assert_eq!(parse(&text).unwrap()[0].tables(&of_view).0, usize::MAX);
    }

    #[test]
    fn statements_that_create_or_drop_are_found() {
        for (text, expected) in [
            ("CREATE TABLE a AS SELECT 1", true),
            ("CREATE OR REPLACE VIEW a AS SELECT 1", true),
            ("DROP TABLE IF EXISTS a", true),
            ("DROP VIEW a", true),
            (
                "CREATE EXTERNAL TABLE a STORED AS CSV LOCATION 'a.csv'",
                true,
            ),
            ("SELECT 'CREATE TABLE a'", false),
            ("EXPLAIN SELECT 1", false),
        ] {
            assert_eq!(
                parse(text).unwrap()[0].creates_or_drops(),
                expected,
                "{text}"
            );
        }
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
        let complexities = |text| Tokens::read(text).complexities;
        assert_eq!(complexities("SELECT 1; ;SELECT a+1 OR b, c;"), [0, 25]);
        assert_eq!(complexities("SELECT a FROM t WHERE a IN (1, 2, 'x')"), [1]);
        assert_eq!(complexities("SELECT 'a+b' FROM t, u JOIN v -- +"), [24]);
    }

    /// Without a limit, a mistake in the middle takes minutes to years.
    #[test]
    fn nested_brackets_that_are_read_twice_are_limited() {
        for (start, end) in [
            ("array[", "]"),
            ("not(", ")"),
            ("cast(", " as int)"),
            ("position(", " in 'a')"),
            ("substring(", " from 1)"),
            ("trim(", ")"),
        ] {
            let nested = |depth: usize, inner: &str| {
                format!("SELECT {}{inner}{}", start.repeat(depth), end.repeat(depth))
            };
            assert!(parse(&nested(6, "1")).is_ok(), "{start}");
            for depth in [20, 48] {
                for inner in ["1", "1 1"] {
                    let error = parse(&nested(depth, inner)).unwrap_err();
                    assert!(
                        matches!(error, SqlError::TooManyAttempts),
                        "{start}: {error}"
                    );
                }
            }
        }
        assert!(parse(&format!("SELECT {}", ["not(a)"; 40].join(" AND "))).is_ok());
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
