//! Tool `schema`: tables and their columns.

use explore::{ColumnKind, Explorer, TableInfo};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Session;
use crate::answer::{Answer, Next, Room};
use crate::arguments;
use crate::failure::Failure;
use crate::names;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    table: Option<String>,
    max_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Tables {
    answer: String,
    tables: Vec<TableEntry>,
    /// Views of SQL, which are answers to frequent questions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    views: Vec<&'static str>,
    next: Vec<Next>,
}

#[derive(Debug, Serialize)]
struct TableEntry {
    name: &'static str,
    /// True if `summarize` and `timeline` do not read the table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_sql: bool,
    about: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Columns {
    answer: String,
    table: &'static str,
    about: String,
    columns: Vec<Column>,
    /// Number of columns for which there is no room.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    next: Vec<Next>,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    unit: String,
    /// `by`: the column groups rows; `measure`: it is summed.
    #[serde(skip_serializing_if = "str::is_empty")]
    use_as: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_in_sql: bool,
    /// True if `summarize` and `timeline` do not read the column.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_sql: bool,
    about: String,
}

/// Default maximum number of characters of a description in a list.
const ABOUT: usize = 100;

fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(super) fn answer(_: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let tokens = arguments::tokens(asked.max_tokens)?;
    match asked.table {
        None => tables(tokens),
        Some(name) => Answer::new(&table(&name, Room::new(tokens))?),
    }
}

/// Returns all tables. If they do not fit, their descriptions are shorter.
fn tables(tokens: Option<u32>) -> Result<Answer, Failure> {
    let mut content = all_tables(ABOUT);
    for about in [80, 60, 40, 20] {
        if Room::new(tokens).take(&content) {
            break;
        }
        content = all_tables(about);
    }
    Answer::new(&content)
}

/// Returns all tables, with at most `about` characters of each description.
fn all_tables(about: usize) -> Tables {
    let viewed = Explorer::catalogue();
    let listed = |name: &'static str, prose: &str| TableEntry {
        name,
        only_sql: !viewed.iter().any(|info| info.name == name),
        about: first_sentence(prose, about),
    };
    let all = tables::Table::ALL.iter().map(|table| {
        let schema = table.schema();
        listed(schema.name, &schema.prose)
    });
    #[cfg(feature = "sql")]
    let views = sql::views().map(|(name, _)| name).collect();
    #[cfg(not(feature = "sql"))]
    let views = Vec::new();
    Tables {
        answer: "Times are nanoseconds since the trace's start; unknown values are null."
            .to_owned(),
        tables: all.collect(),
        views,
        next: vec![Next {
            tool: "schema",
            arguments: json!({ "table": "cpu_runs" }),
            why: "lists the columns of a table",
        }],
    }
}

/// Returns the columns of a table, as far as they fit.
pub(crate) fn table(name: &str, room: Room) -> Result<Columns, Failure> {
    let table = tables::Table::ALL.iter().find(|table| table.name() == name);
    let Some(table) = table else {
        if names::is_view(name) {
            return Err(Failure::unknown(format!(
                "`{name}` is a view; `DESCRIBE {name}` in the tool `sql` lists its columns"
            )));
        }
        let names: Vec<&str> = tables::Table::ALL
            .iter()
            .map(|table| table.name())
            .collect();
        let close = wording::closest(name, names, 3).join(", ");
        return Err(Failure::unknown(format!(
            "there is no table with this name; the closest are {close} (`schema` without arguments lists all)"
        )));
    };
    let schema = table.schema();
    let viewed = Explorer::catalogue()
        .into_iter()
        .find(|info| info.name == name);
    let viewed = viewed.map_or_else(Vec::new, |info| info.columns);
    // Columns of `summarize` and `timeline` that the stored table lacks: names of processes, threads, modules and
    // functions.
    let stored = |name: &str| schema.columns.iter().any(|column| column.name == name);
    let computed = viewed
        .iter()
        .filter(|column| !stored(&column.name))
        .map(|column| Column {
            name: column.name.clone(),
            unit: column.unit.to_owned(),
            use_as: use_of(column.kind),
            not_in_sql: true,
            only_sql: false,
            about: one_line(&column.about),
        });
    let stored = schema.columns.iter().map(|column| {
        let use_as = viewed.iter().find(|viewed| viewed.name == column.name);
        Column {
            name: column.name.to_owned(),
            unit: column.unit.unwrap_or_default().to_owned(),
            use_as: use_as.map_or("", |viewed| use_of(viewed.kind)),
            not_in_sql: false,
            only_sql: use_as.is_none(),
            about: one_line(&column.meaning),
        }
    });
    let all: Vec<Column> = computed.chain(stored).collect();
    let mut columns = Columns {
        answer: format!("{} columns of `{}`.", all.len(), schema.name),
        table: schema.name,
        // An answer has no line breaks: only harmful names could have them.
        about: schema
            .prose
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        columns: Vec::new(),
        left_out: all.len(),
        next: vec![Next {
            tool: "summarize",
            arguments: json!({ "table": schema.name }),
            why: "counts and sums its rows",
        }],
    };
    let mut room = room.without(report::json_bytes(&columns) + 30);
    columns.columns = room.fit(all);
    columns.left_out -= columns.columns.len();
    Ok(columns)
}

/// Returns the description of a table that views can show.
pub(super) fn info(explorer: &Explorer, name: &str) -> Result<TableInfo, Failure> {
    let info = explorer
        .tables()?
        .into_iter()
        .find(|info| info.name == name);
    info.ok_or_else(|| Failure::unknown(names::no_table(name)))
}

/// Returns a description without its line breaks: in an answer, they would only take room.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first sentence of a description, cut to `most` characters.
fn first_sentence(about: &str, most: usize) -> String {
    let paragraph = about.split("\n\n").next().unwrap_or(about);
    let paragraph = paragraph.replace('\n', " ");
    let sentence = paragraph
        .split_inclusive(". ")
        .next()
        .unwrap_or_default()
        .trim();
    match sentence.char_indices().nth(most) {
        None => sentence.to_owned(),
        Some((end, _)) => format!("{}…", &sentence[..end]),
    }
}

/// Returns the use of a column in the tools `summarize` and `timeline`.
fn use_of(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Key => "by",
        ColumnKind::Measure => "measure",
        ColumnKind::Time | ColumnKind::Text | ColumnKind::Test => "",
    }
}
