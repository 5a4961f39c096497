//! Views that show the rows which evidence rests on: told from its query and its columns, where
//! these say enough.

use explore::{ColumnInfo, ColumnKind, Condition, Graph, GraphKind, TableInfo, View};
use serde_json::Value;

use super::where_clause::{self, RowNames};

/// Values of a column by which rows are picked; more of them would pick nearly all.
const MOST_VALUES: usize = 8;

/// Columns right of the bar.
const MOST_AGGREGATES: usize = 4;

/// The measure of how long rows last within the range.
const IN_VIEW: &str = "time";

/// What rows are picked by: other columns are what is to be seen.
const PICKED_BY: [&str; 7] = [
    "process",
    "thread_id",
    "module",
    "function",
    "kind",
    "file",
    "remote_address",
];

/// What evidence is about: the tables, and who their rows speak of.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) tables: &'a [TableInfo],
    pub(super) names: &'a RowNames<'a>,
}

/// Adds a view to each evidence of an explanation for which one can be told.
pub(super) fn add(explanation: &mut Value, about: About<'_>) {
    for finding in list(explanation, "findings") {
        let during = serde_json::from_value::<Option<Span>>(finding["during"].clone());
        let range = during.ok().flatten().map(|span| [span.start, span.end]);
        add_to(finding, range, about);
        for verdict in list(finding, "weighed") {
            add_to(verdict, range, about);
        }
    }
    for verdict in list(explanation, "theories") {
        add_to(verdict, None, about);
    }
}

/// When a finding was.
#[derive(serde::Deserialize)]
struct Span {
    start: i64,
    end: i64,
}

/// What is listed under that name; nothing if it is not there.
fn list<'v>(value: &'v mut Value, name: &str) -> &'v mut [Value] {
    let list = value.get_mut(name).and_then(Value::as_array_mut);
    list.map_or(&mut [], Vec::as_mut_slice)
}

/// Adds views to the evidence of a finding or verdict.
fn add_to(said: &mut Value, range: Option<[i64; 2]>, about: About<'_>) {
    for evidence in list(said, "evidence") {
        let view = view(evidence, range, about);
        if let (Value::Object(fields), Ok(view)) = (evidence, serde_json::to_value(view)) {
            fields.insert("view".to_owned(), view);
        }
    }
}

/// The view of one evidence: of the table that its query names first, grouped by its columns, of the
/// rows that it is about; nothing where a view cannot say which these are.
fn view(evidence: &Value, range: Option<[i64; 2]>, about: About<'_>) -> Option<View> {
    let query = evidence["query"].as_str()?;
    let words = where_clause::words(query);
    // What is reckoned from several tables in steps is in none of them: its own rows tell it best.
    if words.contains(&"WITH") {
        return None;
    }
    let named = words
        .windows(2)
        .filter(|pair| matches!(pair[0], "FROM" | "JOIN"));
    let table = named
        .filter_map(|pair| about.tables.iter().find(|table| table.name == pair[1]))
        .next()?;
    let columns = evidence["columns"].as_array()?;
    let names = columns.iter().filter_map(|column| column["name"].as_str());
    let names: Vec<&str> = names
        .map(|name| match name {
            // Of a run that is the rank it ended with.
            "rank" => "rank_out",
            other => other,
        })
        .collect();
    let of_kind = |name: &str, kind: ColumnKind| {
        let mut columns = table.columns.iter();
        columns.any(|column| column.name == name && column.kind == kind)
    };
    let is_grouped = words.contains(&"GROUP");
    let mut keys: Vec<String> = names
        .iter()
        .filter(|name| of_kind(name, ColumnKind::Key))
        .filter(|name| is_grouped || PICKED_BY.contains(name))
        .map(|name| (*name).to_owned())
        .collect();
    let (filter, range) = match is_grouped {
        true => {
            let rows = where_clause::rows(&words, table, about.names)?;
            let range = match (rows.from_ns, rows.to_ns, range) {
                // It is about all of the trace: groups have as many rows as the evidence says.
                (None, None, _) => None,
                (Some(from), Some(to), _) => Some([from, to]),
                (from, to, Some(range)) => Some([from.unwrap_or(range[0]), to.unwrap_or(range[1])]),
                _ => return None,
            };
            (rows.filter, range)
        }
        false => (picked(evidence, &names, &keys), spanning(evidence, range)),
    };
    if keys.is_empty() {
        return None;
    }
    let measures = measures(&names, &words, table);
    let graph = Graph {
        kind: GraphKind::Timeline,
        measure: match measures.first().map(String::as_str) {
            // How long rows last is drawn over all the time that they do.
            None | Some("duration_ns" | "exclusive_ns") if table.interval.is_some() => {
                Some(IN_VIEW.to_owned())
            }
            first => first.map(str::to_owned),
        },
        by: keys.first().cloned(),
        ..Graph::default()
    };
    keys.dedup();
    let mut columns = keys;
    columns.push(View::BAR.to_owned());
    columns.push("rows".to_owned());
    columns.extend(measures.iter().map(|measure| format!("{measure}:sum")));
    Some(View {
        table: table.name.to_owned(),
        columns,
        graph,
        range: range.filter(|[from, to]| from < to),
        filter,
        sort: None,
    })
}

/// What is summed up: those columns of the evidence that can be. Where these are reckoned, as bytes sent
/// and received are, what they are reckoned of.
fn measures(names: &[&str], words: &[&str], table: &TableInfo) -> Vec<String> {
    let of = |words: &[&str]| {
        let mut found: Vec<String> = Vec::new();
        for word in words {
            let is =
                |column: &&ColumnInfo| column.name == *word && column.kind == ColumnKind::Measure;
            let Some(column) = table.columns.iter().find(is) else {
                continue;
            };
            // What a run had beyond the range is no part of what is shown.
            let name = match column.name.as_str() {
                "cpu_ns" if table.interval.is_some() => IN_VIEW,
                name => name,
            };
            if !found.iter().any(|known| known == name) && found.len() < MOST_AGGREGATES {
                found.push(name.to_owned());
            }
        }
        found
    };
    let found = of(names);
    if found.is_empty() { of(words) } else { found }
}

/// The range with all moments that the rows name: a wait is told by the run after it.
fn spanning(evidence: &Value, range: Option<[i64; 2]>) -> Option<[i64; 2]> {
    let [mut from, mut to] = range?;
    let columns = evidence["columns"].as_array()?;
    for row in evidence["rows"].as_array()? {
        for (place, column) in columns.iter().enumerate() {
            if let Some(moment) = row[place].as_i64().filter(|_| column["unit"] == "moment") {
                from = from.min(moment);
                to = to.max(moment.saturating_add(1));
            }
        }
    }
    Some([from, to])
}

/// What holds of the rows: what each key is in them.
fn picked(evidence: &Value, names: &[&str], keys: &[String]) -> Vec<Condition> {
    let rows = evidence["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let of_key = |key: &String| {
        let place = names.iter().position(|name| name == key)?;
        let mut values: Vec<String> = Vec::new();
        for row in rows {
            let value = match &row[place] {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (1..=MOST_VALUES)
            .contains(&values.len())
            .then(|| Condition {
                column: key.clone(),
                is: Some(values),
                ..Condition::default()
            })
    };
    keys.iter().filter_map(of_key).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::where_clause::tests::runs;
    use super::*;

    /// The view of an evidence with that query and these rows of a process, a thread, how long and when.
    fn shown(query: &str, rows: Value) -> Value {
        let columns = [
            json!({"name": "process", "unit": "none"}),
            json!({"name": "thread_id", "unit": "none"}),
            json!({"name": "cpu_ns", "unit": "duration"}),
            json!({"name": "start_ns", "unit": "moment"}),
        ];
        let mut explanation = json!({"findings": [{
            "during": {"start": 5, "end": 9},
            "evidence": [{"query": query, "columns": columns, "rows": rows}],
        }]});
        let tables = [runs()];
        let about = About {
            tables: &tables,
            names: &|_, _| None,
        };
        add(&mut explanation, about);
        explanation["findings"][0]["evidence"][0]["view"].clone()
    }

    #[test]
    fn rows_are_picked_by_what_they_are_about() {
        let rows = json!([["a.exe (1)", 7, 10, 9], ["a.exe (1)", 8, 20, 3]]);
        let view = shown("SELECT process, thread_id, cpu_ns FROM cpu_runs", rows);
        assert_eq!(view["table"], "cpu_runs");
        assert_eq!(
            view["columns"],
            json!(["process", "thread_id", "|", "rows", "time:sum"])
        );
        // The run at 9 is no part of what ends there.
        assert_eq!(view["range"], json!([3, 10]));
        assert_eq!(
            view["filter"],
            json!([
                {"column": "process", "is": ["a.exe (1)"]},
                {"column": "thread_id", "is": ["7", "8"]},
            ])
        );
        let unknown = shown("SELECT * FROM cpu_runs", json!([[null, 7, 10, null]]));
        assert_eq!(
            unknown["filter"],
            json!([{"column": "thread_id", "is": ["7"]}])
        );
    }

    #[test]
    fn groups_are_shown_among_the_others() {
        let query = "SELECT process, sum(cpu_ns) AS cpu_ns FROM cpu_runs GROUP BY process";
        let view = shown(query, json!([["a.exe (1)", 7, 10, 1]]));
        assert_eq!(view["filter"], json!([]));
        assert_eq!(view["range"], Value::Null);
        let query = "SELECT process, sum(cpu_ns) AS cpu_ns FROM cpu_runs WHERE end_ns > 4 AND \
                     start_ns < 8 GROUP BY process";
        let view = shown(query, json!([["a.exe (1)", 7, 10, 1]]));
        assert_eq!(view["range"], json!([4, 8]));
    }

    #[test]
    fn what_is_reckoned_of_columns_is_shown_by_them() {
        let query = "SELECT process, max(ready_ns) AS longest FROM cpu_runs GROUP BY process";
        let mut explanation = json!({"findings": [{"during": null, "evidence": [{
            "query": query,
            "columns": [{"name": "process"}, {"name": "longest"}],
            "rows": [["a.exe (1)", 3]],
        }]}]});
        let tables = [runs()];
        let about = About {
            tables: &tables,
            names: &|_, _| None,
        };
        add(&mut explanation, about);
        let view = &explanation["findings"][0]["evidence"][0]["view"];
        assert_eq!(
            view["columns"],
            json!(["process", "|", "rows", "ready_ns:sum"])
        );
    }

    #[test]
    fn where_nothing_can_be_told_there_is_no_view() {
        assert_eq!(shown("SELECT 1 FROM elsewhere", json!([])), Value::Null);
        let steps = "WITH steps AS (SELECT 1) SELECT process, thread_id FROM cpu_runs JOIN steps";
        assert_eq!(shown(steps, json!([["a.exe (1)", 7, 10, 1]])), Value::Null);
    }
}
