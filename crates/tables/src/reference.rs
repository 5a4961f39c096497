//! `docs/tables.md`, written from the declarations.

use std::fmt::Write;

use arrow_schema::DataType;

use crate::Table;

const INTRODUCTION: &str = "\
# Tables

<!-- Written by `UPDATE_EXPECT=1 cargo test -p tables`; edit the declarations in crates/tables. -->

Everything laglab knows about a trace is in these tables. Times are nanoseconds since the trace's
start; a column's name ends with its unit. What is unknown is `NULL`, never 0. *WPA* names the
column of Windows Performance Analyzer that shows the same.

Tables of events come in one batch per CPU, each sorted by time; those of processes, threads and
images in one batch.
";

const PROBES: &str = "
# Measured, not traced

`laglab measure` fills this table; no trace has it. `laglab open` and `laglab sql` read it from the
Parquet file that was written with `-o`.
";

/// The documentation of all tables, as Markdown.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let is_measured = |table: &Table| *table == Table::LatencySamples;
    let (measured, of_traces): (Vec<Table>, Vec<Table>) =
        Table::ALL.iter().copied().partition(is_measured);
    describe(&mut text, of_traces);
    text += PROBES;
    describe(&mut text, measured);
    text
}

fn describe(text: &mut String, tables: Vec<Table>) {
    for schema in tables.into_iter().map(Table::schema) {
        let _ = write!(text, "\n## {}\n\n{}\n\n", schema.name, schema.prose);
        let _ = writeln!(text, "Sorted by `{}`.\n", schema.sorted_by);
        *text += "| Column | Type | Unit | Meaning | Source | WPA |\n|---|---|---|---|---|---|\n";
        for column in &schema.columns {
            let _ = writeln!(
                text,
                "| `{}` | {}{} | {} | {} | {} | {} |",
                column.name,
                type_name(&column.data_type),
                if column.nullable { ", nullable" } else { "" },
                column.unit.unwrap_or_default(),
                column.meaning.replace('\n', " "),
                column.source,
                column.wpa.unwrap_or_default(),
            );
        }
    }
}

/// A type as people say it: a dictionary of text is text.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, values) => format!("{values}"),
        other => format!("{other}"),
    }
}
