//! The conditions of a query's `WHERE`, as a view has them.

use explore::{ColumnInfo, ColumnKind, Condition, TableInfo};

/// Which rows of a table a query is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) filter: Vec<Condition>,
    /// From when, and until when.
    pub(super) from_ns: Option<i64>,
    pub(super) to_ns: Option<i64>,
}

/// The label of a row of `processes` or `images`, by what it is called as a key: `process`, `module`.
pub(super) type RowNames<'n> = dyn Fn(&str, u32) -> Option<String> + 'n;

/// The rows that a query over one table is about, given in words. Nothing if it is about several tables,
/// or its conditions are more than a view can have: rows that are not meant would be shown.
pub(super) fn rows(words: &[&str], table: &TableInfo, names: &RowNames<'_>) -> Option<Rows> {
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    if count("JOIN") + count("WITH") + count("UNION") + count("VALUES") > 0 || count("WHERE") > 1 {
        return None;
    }
    let mut rows = Rows::default();
    let Some(begin) = words.iter().position(|word| *word == "WHERE") else {
        return Some(rows);
    };
    for condition in conjuncts(&words[begin + 1..])? {
        rows.add(condition, table, names)?;
    }
    Some(rows)
}

/// Names, numbers, texts with their quotes, and signs.
pub(super) fn words(query: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
        let length = match first {
            '\'' => {
                let mut end = 1;
                // A quote within a text is doubled.
                while let Some(at) = rest[end..].find('\'') {
                    end += at + 1;
                    if !rest[end..].starts_with('\'') {
                        break;
                    }
                    end += 1;
                }
                end
            }
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c if is_sign(c) => rest.find(|c| !is_sign(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// What stands between the `AND`s, to the end of the clause; nothing if there is an `OR` among them.
fn conjuncts<'w, 'q>(words: &'w [&'q str]) -> Option<Vec<&'w [&'q str]>> {
    let mut depth = 0_i32;
    let end = words.iter().position(|word| {
        depth += i32::from(*word == "(") - i32::from(*word == ")");
        depth < 0 || depth == 0 && matches!(*word, "GROUP" | "ORDER" | "LIMIT")
    });
    let clause = &words[..end.unwrap_or(words.len())];
    if clause.contains(&"OR") {
        return None;
    }
    Some(clause.split(|word| *word == "AND").collect())
}

impl Rows {
    /// Adds a condition; nothing if a view has none such.
    fn add(&mut self, condition: &[&str], table: &TableInfo, names: &RowNames<'_>) -> Option<()> {
        let (start, end) = match table.interval {
            Some(interval) => (interval.start, interval.end),
            None => (table.time, table.time),
        };
        match *condition {
            // A row that takes no time changes no sum.
            [one, ">", other] if (one, other) == (end, start) => {}
            [name, sign @ (">" | ">="), number] if name == end => {
                let from = since(number, sign == ">" && start == end)?;
                self.from_ns = self.from_ns.max(Some(from));
            }
            [name, sign @ ("<" | "<="), number] if name == start => {
                let to = since(number, sign == "<=")?;
                self.to_ns = Some(self.to_ns.map_or(to, |known| known.min(to)));
            }
            [name, "=", value] => self.filter.push(key(name, table)?.is(&[value], names)?),
            [name, "<>" | "!=", value] => {
                self.filter
                    .push(key(name, table)?.is_other_than(value, names)?);
            }
            [name, "IN", "(", ref values @ .., ")"] => {
                let values = values.split(|word| *word == ",");
                let values = values.map(|value| match value {
                    [value] => Some(*value),
                    _ => None,
                });
                let values: Vec<&str> = values.collect::<Option<_>>()?;
                self.filter.push(key(name, table)?.is(&values, names)?);
            }
            [name, sign @ (">" | ">="), number] => self.filter.push(Condition {
                from: Some(since(number, sign == ">")?),
                ..of_number(name, table)?
            }),
            _ => return None,
        }
        Some(())
    }
}

/// A key that a condition is about.
struct Key {
    name: String,
    called: Called,
}

/// By what a condition names a key's values.
enum Called {
    /// By rows of another table, which people call by names.
    Row,
    /// By numbers, which may have names: they are the ids.
    Number,
    Text,
}

/// The key of a column's name, or the one that rows of `processes` and `images` stand for.
fn key(name: &str, table: &TableInfo) -> Option<Key> {
    let by_row = match name.strip_suffix("process_row") {
        Some(prefix) => Some(format!("{prefix}process")),
        None => (name == "image_row").then(|| "module".to_owned()),
    };
    let called = by_row.as_deref().unwrap_or(name);
    let mut columns = table.columns.iter();
    let is_key = |column: &&ColumnInfo| column.name == called && column.kind == ColumnKind::Key;
    let column = columns.find(is_key)?;
    Some(Key {
        called: match (by_row.is_some(), column.numeric_key) {
            (true, _) => Called::Row,
            (false, true) => Called::Number,
            (false, false) => Called::Text,
        },
        name: called.to_owned(),
    })
}

impl Key {
    /// It is one of these.
    fn is(&self, values: &[&str], names: &RowNames<'_>) -> Option<Condition> {
        Some(match self.called {
            Called::Number => Condition {
                within: Some(
                    values
                        .iter()
                        .map(|value| id(value))
                        .collect::<Option<_>>()?,
                ),
                ..self.condition()
            },
            Called::Row | Called::Text => {
                let labels = values.iter().map(|value| self.label(value, names));
                Condition {
                    is: Some(labels.collect::<Option<_>>()?),
                    ..self.condition()
                }
            }
        })
    }

    /// It is not this.
    fn is_other_than(&self, value: &str, names: &RowNames<'_>) -> Option<Condition> {
        Some(match self.called {
            Called::Number => Condition {
                not_in: Some(vec![id(value)?]),
                ..self.condition()
            },
            Called::Row | Called::Text => Condition {
                is_not: Some(vec![self.label(value, names)?]),
                ..self.condition()
            },
        })
    }

    fn condition(&self) -> Condition {
        Condition {
            column: self.name.clone(),
            ..Condition::default()
        }
    }

    /// The label that a text or number stands for.
    fn label(&self, value: &str, names: &RowNames<'_>) -> Option<String> {
        match self.called {
            Called::Row => names(&self.name, value.parse().ok()?),
            Called::Number | Called::Text => label(value),
        }
    }
}

/// The id that a number is.
fn id(value: &str) -> Option<explore::Id> {
    value.parse().ok().map(Some)
}

fn of_number(name: &str, table: &TableInfo) -> Option<Condition> {
    let is_number = |column: &ColumnInfo| column.kind == ColumnKind::Measure || column.numeric_key;
    let mut columns = table.columns.iter();
    let found = columns.find(|column| column.name == name && is_number(column))?;
    Some(Condition {
        column: found.name.clone(),
        ..Condition::default()
    })
}

/// A number, or the next one.
fn since(number: &str, is_next: bool) -> Option<i64> {
    number.parse::<i64>().ok()?.checked_add(is_next.into())
}

/// The label that a text or number stands for.
fn label(value: &str) -> Option<String> {
    let text = value
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    match text {
        Some(text) => Some(text.replace("''", "'")),
        None => value.parse::<i64>().ok().map(|number| number.to_string()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use explore::{ColumnInfo, IntervalInfo};
    use serde_json::json;

    use super::*;

    /// A table of runs.
    pub(in crate::server) fn runs() -> TableInfo {
        let column = |name: &str, kind, numeric_key| ColumnInfo {
            name: name.to_owned(),
            title: String::new(),
            about: String::new(),
            kind,
            unit: "",
            numeric_key,
            names: BTreeMap::new(),
        };
        TableInfo {
            name: "cpu_runs",
            title: "",
            about: String::new(),
            rows: None,
            recorded: None,
            last_ns: None,
            record: "",
            time: "end_ns",
            interval: Some(IntervalInfo {
                start: "start_ns",
                end: "end_ns",
            }),
            columns: vec![
                column("process", ColumnKind::Key, false),
                column("thread_id", ColumnKind::Key, true),
                column("cpu_ns", ColumnKind::Measure, false),
                column("ready_ns", ColumnKind::Measure, false),
            ],
            stacks: Vec::new(),
        }
    }

    fn found(clause: &str) -> Option<Rows> {
        found_of(&format!("SELECT process FROM cpu_runs {clause}"))
    }

    fn found_of(query: &str) -> Option<Rows> {
        let name = |key: &str, row: u32| Some(format!("{key} of row {row}")).filter(|_| row < 9);
        rows(&words(query), &runs(), &name)
    }

    #[test]
    fn conditions_become_those_of_a_view() {
        assert_eq!(found("GROUP BY process"), Some(Rows::default()));
        let rows = found(
            "WHERE end_ns > 30 AND start_ns < 49 AND end_ns > start_ns AND thread_id <> 0 \
             AND process IN ('it''s (1)', 'b.exe (2)') AND ready_ns > 5 GROUP BY 1 LIMIT 3",
        );
        let rows = rows.expect("conditions that a view can have");
        assert_eq!((rows.from_ns, rows.to_ns), (Some(30), Some(49)));
        let filter = serde_json::to_value(&rows.filter).expect("it is plain data");
        assert_eq!(
            filter,
            json!([
                {"column": "thread_id", "not_in": [0]},
                {"column": "process", "is": ["it's (1)", "b.exe (2)"]},
                {"column": "ready_ns", "from": 6},
            ])
        );
    }

    #[test]
    fn rows_of_processes_are_called_as_people_call_them() {
        let rows = found("WHERE process_row = 3").expect("a condition that a view can have");
        assert_eq!(rows.filter[0].column, "process");
        assert_eq!(rows.filter[0].is, Some(vec!["process of row 3".to_owned()]));
    }

    #[test]
    fn a_clause_within_a_query_ends_with_it() {
        let query =
            "SELECT sum(n) FROM (SELECT * FROM cpu_runs WHERE thread_id = 7) GROUP BY process";
        let rows = found_of(query).expect("a condition that a view can have");
        assert_eq!(rows.filter.len(), 1);
    }

    #[test]
    fn what_a_view_cannot_say_is_no_view() {
        for clause in [
            "JOIN samples ON true",
            "WHERE thread_id = 1 OR thread_id = 2",
            "WHERE (thread_id = 1)",
            "WHERE process_row = 9",
            "WHERE image_row = 3",
            "WHERE process IS NULL",
            "WHERE NOT thread_id = 1",
            "WHERE ready_ns = 'much'",
            "WHERE thread_id IN (SELECT thread_id FROM threads WHERE true)",
            "WHERE process = 'never ends",
        ] {
            assert_eq!(found(clause), None, "{clause}");
        }
    }
}
