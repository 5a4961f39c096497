//! Conditions of requests, which rows must satisfy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use views::{IdSet, NULL, Rows};

use crate::catalogue::{ColumnDef, ColumnKind};
use crate::context::{OpenTable, check_bounds};
use crate::decoded_columns::{Keys, Measures};
use crate::names::Names;
use crate::{ExploreError, Id, decode, query};

/// Condition on one column. If several fields are set, a row must satisfy all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields)]
pub struct Condition {
    /// Name of the column.
    pub column: String,
    /// Ids of the key. A row must have one of these ids. `null` is the id of unknown values.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub within: Option<Vec<Id>>,
    /// Ids of the key. A row must have none of these ids. Rows with an unknown id pass unless the list
    /// contains `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Vec<Id>>,
    /// Labels of the key. A row must have one of these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Vec<String>>,
    /// Labels of the key. A row must have none of these labels. Rows with an unknown id pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_not: Option<Vec<String>>,
    /// Text that the key's label or the column's text must contain. Case is ignored. Rows with an unknown
    /// value do not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Minimum of the number, inclusive. Rows with an unknown number do not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Maximum of the number, exclusive. Rows with an unknown number do not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
}

/// Maximum number of conditions in a request.
const MAX_CONDITIONS: u64 = 64;

/// Conditions of a request, in a form that can test rows.
pub(crate) struct Filter {
    tests: Vec<Test>,
    /// SQL form of the conditions.
    pub(crate) sql: Vec<String>,
}

/// One test of a row.
enum Test {
    /// Test that the set contains the dense id of a key.
    Ids(Arc<Keys>, IdSet),
    /// Test that a number is at least the first bound and less than the second bound.
    Span(Arc<Measures>, Option<i64>, Option<i64>),
    /// Test that a text contains the given lower-case text. The column is not cached.
    Contains(&'static ColumnDef, String),
}

impl Filter {
    pub(crate) fn new(
        table: &OpenTable<'_>,
        conditions: &[Condition],
    ) -> Result<Filter, ExploreError> {
        check_bounds("filter", conditions.len() as u64, 0, MAX_CONDITIONS)?;
        // All conditions are checked before anything is decoded, so that mistakes are reported immediately.
        let columns: Result<Vec<&'static ColumnDef>, ExploreError> = conditions
            .iter()
            .map(|condition| condition.column(table))
            .collect();
        let mut filter = Filter {
            tests: Vec::new(),
            sql: Vec::new(),
        };
        for (condition, column) in conditions.iter().zip(columns?) {
            filter.add(table, condition, column)?;
        }
        Ok(filter)
    }

    fn add(
        &mut self,
        table: &OpenTable<'_>,
        condition: &Condition,
        column: &'static ColumnDef,
    ) -> Result<(), ExploreError> {
        match column.kind {
            ColumnKind::Key => {
                let keys = table.keys(column)?;
                let (sets, sql) = condition.sets(column, &keys.names);
                self.sql.extend(sql);
                let tests = sets.into_iter().map(|set| Test::Ids(keys.clone(), set));
                self.tests.extend(tests);
            }
            ColumnKind::Measure | ColumnKind::Time if condition.is_bounded() => {
                let (from, to) = (condition.from, condition.to);
                let numbers = table.measures(column)?;
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
                let runs = table.context.trace.doubtful_runs(table.context.cancel)?;
                let wanted = condition.tested() == Some(true);
                // If the trace has no doubtful runs, all rows pass this condition. Most traces have none.
                if runs.are_none() && !wanted {
                    return Ok(());
                }
                let is = format!("({})", runs.condition());
                let is_not = format!("NOT {is}");
                self.sql.push(if wanted { is } else { is_not });
                let keys = table.keys(column)?;
                let ids = IdSet::new(keys.bound()).with([u32::from(wanted)]);
                self.tests.push(Test::Ids(keys, ids));
            }
        }
        Ok(())
    }

    /// Returns false if no row of a chunk can pass.
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

    /// Removes the rows of a chunk that do not pass the filter.
    pub(crate) fn apply<'r>(
        &self,
        table: &OpenTable<'_>,
        chunk: usize,
        rows: Rows<'r>,
    ) -> Result<Rows<'r>, ExploreError> {
        self.tests.iter().try_fold(rows, |rows, test| {
            Ok(match test {
                Test::Ids(keys, ids) => rows.keep(&keys.chunks[chunk], ids),
                Test::Span(numbers, from, to) => {
                    let numbers = &numbers.chunks[chunk];
                    // NULL is the smallest i64 number, so this bound excludes unknown numbers.
                    let from = from.unwrap_or(NULL).max(NULL + 1);
                    match to {
                        Some(to) => rows.keep_if(|row| (from..*to).contains(&numbers[row])),
                        None => rows.keep_if(|row| numbers[row] >= from),
                    }
                }
                Test::Contains(column, text) => {
                    let contains = |cell: &str| cell.to_lowercase().contains(text);
                    let passes =
                        decode::text_passes(&table.stored, chunk, &column.name, &contains)?;
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

    /// Returns the value that a condition requires of a flag. `is` or `is_not` must be exactly `["true"]`.
    /// Returns `None` for all other conditions.
    fn tested(&self) -> Option<bool> {
        let condition = |is, is_not| Condition {
            column: self.column.clone(),
            is,
            is_not,
            ..Condition::default()
        };
        let passes = || Some(vec!["true".to_owned()]);
        match self {
            given if *given == condition(passes(), None) => Some(true),
            given if *given == condition(None, passes()) => Some(false),
            _ => None,
        }
    }

    /// Returns the column of the condition. If the column does not support the condition, returns an error.
    fn column(&self, table: &OpenTable<'_>) -> Result<&'static ColumnDef, ExploreError> {
        let column = table.def.column(&self.column)?;
        let has_ids = self.within.is_some()
            || self.not_in.is_some()
            || self.is.is_some()
            || self.is_not.is_some();
        let wrong = match column.kind {
            ColumnKind::Key if self.is_bounded() && !column.is_number() => {
                "has ids without an order; use `is` or `contains` instead of `from` and `to`"
            }
            ColumnKind::Measure | ColumnKind::Time if has_ids || self.contains.is_some() => {
                "has numbers; use `from` and `to`"
            }
            ColumnKind::Text if has_ids || self.is_bounded() => {
                "has text that differs in nearly every row; use `contains`"
            }
            ColumnKind::Test if self.tested().is_none() => {
                "is a flag; use only `is` or `is_not`, with [\"true\"]"
            }
            _ => return Ok(column),
        };
        Err(table.def.wrong_kind(column, wrong))
    }

    /// Returns sets of dense ids and SQL conditions. The key of a row must be in all sets.
    fn sets(&self, column: &ColumnDef, names: &Names) -> (Vec<IdSet>, Vec<String>) {
        let bound = names.len() as u32;
        let dense =
            |ids: &[Id]| -> Vec<u32> { ids.iter().filter_map(|id| names.dense(*id)).collect() };
        let none_of = |set: &IdSet| {
            let others = (0..=bound).filter(|dense| !set.contains(*dense));
            IdSet::new(bound).with(others)
        };
        let with_labels =
            |labels: &[String]| names.ids_with_label(|label| labels.iter().any(|l| l == label));
        let (mut sets, mut sql) = (Vec::new(), Vec::new());
        if let Some(ids) = &self.within {
            let ids = dense(ids);
            sql.push(query::is_one_of(column, names, &ids));
            sets.push(IdSet::new(bound).with(ids));
        }
        if let Some(ids) = &self.not_in {
            let ids = dense(ids);
            sql.push(query::is_none_of(column, names, &ids));
            sets.push(none_of(&IdSet::new(bound).with(ids)));
        }
        if let Some(labels) = &self.is {
            sql.push(query::is_label(column, labels));
            sets.push(with_labels(labels));
        }
        if let Some(labels) = &self.is_not {
            sql.push(query::is_no_label(column, labels));
            sets.push(none_of(&with_labels(labels)));
        }
        if let Some(text) = &self.contains {
            sql.push(query::contains(column, text));
            let text = text.to_lowercase();
            sets.push(names.ids_with_label(|label| label.to_lowercase().contains(&text)));
        }
        if self.is_bounded() {
            sql.extend(query::bounds(column, self.from, self.to));
            sets.push(names.ids_with_number(|number| {
                self.from.is_none_or(|from| number >= from) && self.to.is_none_or(|to| number < to)
            }));
        }
        (sets, sql)
    }
}
