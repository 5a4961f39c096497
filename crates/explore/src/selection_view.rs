//! Conversion of a typed [`Selection`] to a view that shows the same rows.

use std::ops::Range;

use ::selection::{Condition as Rule, During, Expression, Selection};
use tables::Identities;

use crate::catalogue::{self, ColumnDef, ColumnKind, ROWS, Source, TIME, TableDef};
use crate::{Condition, Graph, GraphKind, Id, View};

/// Maximum number of aggregates in the view of a selection. Aggregates are right of the golden bar.
const MAX_AGGREGATES: usize = 4;

/// Keys that group the rows if the selection has no grouping. Each key is a possible subject of the rows.
const SUBJECTS: [&str; 7] = [
    "process",
    "thread_id",
    "module",
    "function",
    "kind",
    "file",
    "remote_address",
];

impl View {
    /// Returns the view that shows the rows of a selection, grouped by the keys of the selection.
    ///
    /// `around` is used as the time range of the view if the selection shows single rows and has no time
    /// range. Returns `None` if no view can show exactly these rows. The reason can be the table, a grouping
    /// for which there is no key, or a condition that views do not have.
    pub fn of_selection(
        selection: &Selection,
        around: Option<Range<i64>>,
        names: &Identities,
    ) -> Option<View> {
        let def = catalogue::table(selection.table.name()).ok()?;
        let mut mapping = Mapping {
            def,
            names,
            filter: Vec::new(),
        };
        for rule in &selection.filter {
            mapping.add(rule)?;
        }
        let is_grouped = !selection.group_by.is_empty();
        let range = match &selection.during {
            None if is_grouped => None,
            None => around,
            Some(During::Overlapping(ranges)) => match ranges.as_slice() {
                [range] => Some(range.clone()),
                _ => return None,
            },
            Some(During::Within(column, range)) => {
                // If rows have a duration, the time range of a view selects the rows that overlap it. To select the
                // same rows as the selection, the view then needs an additional condition on the column.
                if *column != def.time || def.lasts.is_some() {
                    mapping.bound(column, Some(range.start), Some(range.end))?;
                }
                Some(range.clone())
            }
        };
        let mut keys: Vec<String> = Vec::new();
        for (_, expression) in &selection.columns {
            if let Some(key) = key_of(def, expression)
                && (is_grouped || SUBJECTS.contains(&key.name.as_str()))
                && !keys.contains(&key.name)
            {
                keys.push(key.name.clone());
            }
        }
        let by = keys.first().cloned()?;
        let measures = measures(def, selection);
        let graph = Graph {
            kind: GraphKind::Timeline,
            measure: match measures.first().map(|(name, _)| name.as_str()) {
                // If rows have a duration, the graph shows the time during which they last, not a total at one moment.
                None | Some("duration_ns" | "exclusive_ns") if def.lasts.is_some() => {
                    Some(TIME.to_owned())
                }
                first => first.map(str::to_owned),
            },
            by: Some(by),
            ..Graph::default()
        };
        let mut columns = keys;
        columns.push(View::BAR.to_owned());
        columns.push(ROWS.to_owned());
        let measures = measures.iter();
        columns.extend(measures.map(|(name, function)| format!("{name}:{function}")));
        Some(View {
            table: def.table.name().to_owned(),
            columns,
            graph,
            range: range
                .filter(|range| !range.is_empty())
                .map(|range| [range.start, range.end]),
            filter: mapping.filter,
            sort: None,
        })
    }
}

/// Returns the key that shows the values of an expression, if there is one.
fn key_of(def: &'static TableDef, expression: &Expression) -> Option<&'static ColumnDef> {
    let has_source = |wanted: &dyn Fn(Source) -> bool| {
        let mut columns = def.columns.iter();
        columns.find(|column| column.kind == ColumnKind::Key && wanted(column.source))
    };
    match expression {
        Expression::Column(name) | Expression::TextOrEmpty(name) | Expression::WaitReason(name) => {
            def.key(name).ok()
        }
        Expression::FirstKnown(names) | Expression::Greatest(names) => def.key(names.first()?).ok(),
        Expression::Process(column) => {
            has_source(&|source| matches!(source, Source::Process { row, .. } if row == *column))
        }
        Expression::Module(column) => {
            has_source(&|source| matches!(source, Source::Module(row) if row == *column))
        }
        Expression::Function { image_row, address } => has_source(&|source| {
            matches!(source, Source::Function { image, address: at, .. }
                if (image, at) == (*image_row, *address))
        }),
        _ => None,
    }
}

/// Returns the measures that a selection sums up or shows, each with its aggregate function.
fn measures(def: &'static TableDef, selection: &Selection) -> Vec<(String, &'static str)> {
    let mut measures: Vec<(String, &'static str)> = Vec::new();
    for (_, expression) in &selection.columns {
        let (name, function) = match expression {
            Expression::Column(name)
            | Expression::Sum(name)
            | Expression::SumIf(name, _)
            | Expression::SumCapped(name, _) => (*name, "sum"),
            Expression::Min(name) => (*name, "min"),
            Expression::Max(name) => (*name, "max"),
            Expression::TimeWithin => (TIME, "sum"),
            _ => continue,
        };
        let is_measure = (def.column(name)).is_ok_and(|column| column.kind == ColumnKind::Measure);
        if !is_measure {
            continue;
        }
        // A run may be partly outside of the time range. The view shows only the CPU time within the range.
        let name = match name {
            "cpu_ns" if def.lasts.is_some() => TIME,
            name => name,
        };
        let measure = (name.to_owned(), function);
        if measures.len() < MAX_AGGREGATES && !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    measures
}

/// Conversion of the conditions of a selection to conditions of a view.
struct Mapping<'a> {
    def: &'static TableDef,
    names: &'a Identities,
    filter: Vec<Condition>,
}

impl Mapping<'_> {
    /// Adds a condition of the selection. Returns `None` if views have no such condition.
    fn add(&mut self, rule: &Rule) -> Option<()> {
        let flag = |column: &'static ColumnDef, flag: &str| Condition {
            is: Some(vec![flag.to_owned()]),
            ..condition(column)
        };
        let condition = match rule {
            Rule::IsOneOf(column, numbers) if self.key(column).is_none() => {
                let [number] = numbers.as_slice() else {
                    return None;
                };
                return self.bound(column, Some(*number), number.checked_add(1));
            }
            Rule::IsOneOf(column, numbers) => match self.ids(column, numbers)? {
                (key, Values::Ids(ids)) => Condition {
                    within: Some(ids),
                    ..condition(key)
                },
                (key, Values::Labels(labels)) => Condition {
                    is: Some(labels),
                    ..condition(key)
                },
            },
            Rule::IsNoneOf(column, numbers) => match self.ids(column, numbers)? {
                (key, Values::Ids(ids)) => Condition {
                    not_in: Some(ids),
                    ..condition(key)
                },
                (key, Values::Labels(labels)) => Condition {
                    is_not: Some(labels),
                    ..condition(key)
                },
            },
            Rule::IsText(column, texts) => Condition {
                is: Some(texts.clone()),
                ..condition(self.def.key(column).ok()?)
            },
            Rule::IsNotText(column, texts) => Condition {
                is_not: Some(texts.clone()),
                ..condition(self.def.key(column).ok()?)
            },
            Rule::HasLabel(expression, labels) => Condition {
                is: Some(labels.clone()),
                ..condition(key_of(self.def, expression)?)
            },
            Rule::IsNamed(expression) => Condition {
                not_in: Some(vec![None]),
                ..condition(key_of(self.def, expression)?)
            },
            Rule::IsKnown(column) => match self.key(column) {
                Some(key) => Condition {
                    not_in: Some(vec![None]),
                    ..condition(key)
                },
                None => return self.bound(column, Some(i64::MIN), None),
            },
            Rule::IsUnknown(column) => Condition {
                within: Some(vec![None]),
                ..condition(self.key(column)?)
            },
            Rule::IsTrue(column) => flag(self.def.key(column).ok()?, "true"),
            Rule::IsFalse(column) => flag(self.def.key(column).ok()?, "false"),
            Rule::AtLeast(column, least) => return self.bound(column, Some(*least), None),
            Rule::Below(column, bound) => return self.bound(column, None, Some(*bound)),
            Rule::All(rules) => {
                for rule in rules {
                    self.add(rule)?;
                }
                return Some(());
            }
            Rule::IsDoubtful(_) => flag(self.doubtful()?, "true"),
            Rule::Not(rule) if matches!(**rule, Rule::IsDoubtful(_)) => Condition {
                is_not: Some(vec!["true".to_owned()]),
                ..condition(self.doubtful()?)
            },
            Rule::AddressIn(..) | Rule::Any(_) | Rule::Not(_) | Rule::StackReaches(_) => {
                return None;
            }
        };
        self.filter.push(condition);
        Some(())
    }

    /// Adds a condition with bounds of a number. Returns `None` if the column has no numbers.
    fn bound(&mut self, column: &str, from: Option<i64>, to: Option<i64>) -> Option<()> {
        let column = self.def.column(column).ok()?;
        self.filter.push(Condition {
            from,
            to,
            ..condition(column.is_number().then_some(column)?)
        });
        Some(())
    }

    fn doubtful(&self) -> Option<&'static ColumnDef> {
        let mut columns = self.def.columns.iter();
        columns.find(|column| column.source == Source::Doubtful)
    }

    /// Returns the key that shows the values of a stored column.
    fn key(&self, column: &str) -> Option<&'static ColumnDef> {
        let is_shown = |key: &&ColumnDef| match key.source {
            Source::Process { row, .. } | Source::Thread { row, .. } | Source::Module(row) => {
                row == column
            }
            _ => key.name == column,
        };
        let mut keys = self.def.columns.iter();
        keys.find(|key| key.kind == ColumnKind::Key && is_shown(key))
    }

    /// Returns the key of a stored column, and the displayed values of the given stored numbers. If the
    /// numbers are rows of another table, the displayed values are the labels of these rows.
    fn ids(&self, column: &str, numbers: &[i64]) -> Option<(&'static ColumnDef, Values)> {
        let key = self.key(column)?;
        let label = |number: &i64| {
            let row = u32::try_from(*number).ok()?;
            match key.source {
                Source::Process { .. } => self.names.process_label(Some(row)),
                Source::Module(_) => self.names.module_label(Some(row)).map(str::to_owned),
                Source::Thread { .. } => {
                    let id = self.names.thread_id(row)?;
                    let name = self.names.thread_name(row);
                    Some(name.map_or_else(|| id.to_string(), |name| format!("{name} ({id})")))
                }
                _ => None,
            }
        };
        let values = if key.is_number() {
            Values::Ids(numbers.iter().map(|number| Some(*number)).collect())
        } else {
            Values::Labels(numbers.iter().map(label).collect::<Option<_>>()?)
        };
        Some((key, values))
    }
}

/// Values of a key in a condition.
enum Values {
    Ids(Vec<Id>),
    Labels(Vec<String>),
}

fn condition(column: &ColumnDef) -> Condition {
    Condition {
        column: column.name.clone(),
        ..Condition::default()
    }
}
