//! Which rows count.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use views::{IdSet, NULL, Rows};

use crate::catalogue::{ColumnDef, ColumnKind};
use crate::columns::{Keys, Measures, Opened};
use crate::names::Names;
use crate::selection::{Ask, bounded};
use crate::{ExploreError, Id, decode, query};

/// A condition on one column; where it says several things, all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The column.
    pub column: String,
    /// A key's id is one of these; `null` is the unknown.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub within: Option<Vec<Id>>,
    /// A key's id is none of these. The unknown passes unless it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Vec<Id>>,
    /// A key's label is one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Vec<String>>,
    /// A key's label is none of these. The unknown passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_not: Option<Vec<String>>,
    /// A key's label, or a text, contains this, whatever the case. The unknown does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A number is at least this. The unknown does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// A number is less than this. The unknown does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
}

/// The most conditions of a request.
const MOST_CONDITIONS: u64 = 64;

/// The conditions of a request, ready to be put to rows.
pub(crate) struct Filter {
    tests: Vec<Test>,
    /// The conditions as SQL.
    pub(crate) sql: Vec<String>,
}

/// What a row must pass.
enum Test {
    /// A key's dense id is in the set.
    Ids(Arc<Keys>, IdSet),
    /// A number is in the bounds.
    Span(Arc<Measures>, Option<i64>, Option<i64>),
    /// A text that is not decoded contains this, which is in lower case.
    Contains(&'static ColumnDef, String),
}

impl Filter {
    pub(crate) fn new(
        ask: Ask<'_>,
        table: &Opened,
        conditions: &[Condition],
    ) -> Result<Filter, ExploreError> {
        bounded("filter", conditions.len() as u64, 0, MOST_CONDITIONS)?;
        // What is wrong with any of them is told before anything is decoded.
        let columns: Result<Vec<&'static ColumnDef>, ExploreError> = conditions
            .iter()
            .map(|condition| condition.column(table))
            .collect();
        let mut filter = Filter {
            tests: Vec::new(),
            sql: Vec::new(),
        };
        for (condition, column) in conditions.iter().zip(columns?) {
            filter.add(ask, table, condition, column)?;
        }
        Ok(filter)
    }

    fn add(
        &mut self,
        ask: Ask<'_>,
        table: &Opened,
        condition: &Condition,
        column: &'static ColumnDef,
    ) -> Result<(), ExploreError> {
        match column.kind {
            ColumnKind::Key => {
                let keys = ask.keys(table, column)?;
                let (sets, sql) = condition.sets(column, &keys.names);
                self.sql.extend(sql);
                let tests = sets.into_iter().map(|set| Test::Ids(keys.clone(), set));
                self.tests.extend(tests);
            }
            ColumnKind::Measure | ColumnKind::Time if condition.is_bounded() => {
                let (from, to) = (condition.from, condition.to);
                let numbers = ask.measures(table, column)?;
                self.sql.extend(query::bounds(column, from, to));
                self.tests.push(Test::Span(numbers, from, to));
            }
            ColumnKind::Text => {
                if let Some(text) = &condition.contains {
                    self.sql.push(query::contains(column, text));
                    self.tests.push(Test::Contains(column, text.to_lowercase()));
                }
            }
            ColumnKind::Measure | ColumnKind::Time => {}
            ColumnKind::Test => {
                let runs = ask.trace.doubtful_runs(ask.cancel)?;
                let wanted = condition.tested() == Some(true);
                // Of most traces none are.
                if runs.are_none() && !wanted {
                    return Ok(());
                }
                let is = format!("({})", runs.condition());
                let is_not = format!("NOT {is}");
                self.sql.push(if wanted { is } else { is_not });
                let keys = ask.keys(table, column)?;
                let ids = IdSet::new(keys.bound()).with([u32::from(wanted)]);
                self.tests.push(Test::Ids(keys, ids));
            }
        }
        Ok(())
    }

    /// Whether any row of a chunk may pass.
    pub(crate) fn may_pass(&self, chunk: usize) -> bool {
        self.tests.iter().all(|test| match test {
            Test::Span(numbers, from, to) => {
                numbers.spans[chunk].is_some_and(|(least, greatest)| {
                    from.is_none_or(|from| greatest >= from) && to.is_none_or(|to| least < to)
                })
            }
            Test::Ids(..) | Test::Contains(..) => true,
        })
    }

    /// Takes out the rows of a chunk that do not pass.
    pub(crate) fn apply<'r>(
        &self,
        table: &Opened,
        chunk: usize,
        rows: Rows<'r>,
    ) -> Result<Rows<'r>, ExploreError> {
        self.tests.iter().try_fold(rows, |rows, test| {
            Ok(match test {
                Test::Ids(keys, ids) => rows.keep(&keys.chunks[chunk], ids),
                Test::Span(numbers, from, to) => {
                    let numbers = &numbers.chunks[chunk];
                    // The unknown is the least number.
                    let from = from.unwrap_or(NULL).max(NULL + 1);
                    match to {
                        Some(to) => rows.keep_if(|row| (from..*to).contains(&numbers[row])),
                        None => rows.keep_if(|row| numbers[row] >= from),
                    }
                }
                Test::Contains(column, text) => {
                    let contains = |cell: &str| cell.to_lowercase().contains(text);
                    let passes = decode::text_passes(table, chunk, &column.name, &contains)?;
                    rows.keep_if(|row| passes[row])
                }
            })
        })
    }
}

impl Condition {
    fn is_bounded(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Whether it leaves what passes a test or what does not; nothing if it asks for anything else.
    fn tested(&self) -> Option<bool> {
        let of = |is, is_not| Condition {
            column: self.column.clone(),
            is,
            is_not,
            ..Condition::default()
        };
        let passes = || Some(vec!["true".to_owned()]);
        match self {
            asked if *asked == of(passes(), None) => Some(true),
            asked if *asked == of(None, passes()) => Some(false),
            _ => None,
        }
    }

    /// Its column, if that can be put to the condition.
    fn column(&self, table: &Opened) -> Result<&'static ColumnDef, ExploreError> {
        let column = table.def.column(&self.column)?;
        let of_ids = [self.within.is_some(), self.not_in.is_some()];
        let of_labels = [self.is.is_some(), self.is_not.is_some()];
        let has_ids = of_ids.contains(&true) || of_labels.contains(&true);
        let wrong = match column.kind {
            ColumnKind::Key if self.is_bounded() && !column.is_number() => {
                "has ids without an order; use `in`, `is` or `contains`, not `from` and `to`"
            }
            ColumnKind::Measure | ColumnKind::Time if has_ids || self.contains.is_some() => {
                "holds numbers; use `from` and `to`"
            }
            ColumnKind::Text if has_ids || self.is_bounded() => {
                "holds text of its own in nearly every row; use `contains`"
            }
            ColumnKind::Test if self.tested().is_none() => {
                "is true or not; use `is` or `is_not` with [\"true\"] alone"
            }
            _ => return Ok(column),
        };
        Err(table.def.wrong(column, wrong))
    }

    /// The sets of dense ids that a key must be in, and the same as SQL.
    fn sets(&self, column: &ColumnDef, names: &Names) -> (Vec<IdSet>, Vec<String>) {
        let bound = names.len() as u32;
        let of =
            |ids: &[Id]| -> Vec<u32> { ids.iter().filter_map(|id| names.dense(*id)).collect() };
        let none_of = |set: &IdSet| {
            let others = (0..=bound).filter(|dense| !set.contains(*dense));
            IdSet::new(bound).with(others)
        };
        let of_labels = |labels: &[String]| names.whose(|label| labels.iter().any(|l| l == label));
        let (mut sets, mut sql) = (Vec::new(), Vec::new());
        if let Some(ids) = &self.within {
            let ids = of(ids);
            sql.push(query::is_one_of(column, names, &ids));
            sets.push(IdSet::new(bound).with(ids));
        }
        if let Some(ids) = &self.not_in {
            let ids = of(ids);
            sql.push(query::is_none_of(column, names, &ids));
            sets.push(none_of(&IdSet::new(bound).with(ids)));
        }
        if let Some(labels) = &self.is {
            sql.push(query::is_label(column, labels));
            sets.push(of_labels(labels));
        }
        if let Some(labels) = &self.is_not {
            sql.push(query::is_no_label(column, labels));
            sets.push(none_of(&of_labels(labels)));
        }
        if let Some(text) = &self.contains {
            sql.push(query::contains(column, text));
            let text = text.to_lowercase();
            sets.push(names.whose(|label| label.to_lowercase().contains(&text)));
        }
        if self.is_bounded() {
            sql.extend(query::bounds(column, self.from, self.to));
            sets.push(names.whose_number(|number| {
                self.from.is_none_or(|from| number >= from) && self.to.is_none_or(|to| number < to)
            }));
        }
        (sets, sql)
    }
}
