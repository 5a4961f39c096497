//! Generates `docs/tables.md` from the declarations of tables.

use std::fmt::Write;

use arrow_schema::DataType;

use crate::Table;

const INTRODUCTION: &str = "\
# Tables

<!-- Written by `UPDATE_EXPECT=1 cargo test -p tables`; edit the declarations in crates/tables. -->

These tables contain everything that laglab knows about a trace. Times are nanoseconds since the
trace's start. If a column has a unit, its name ends with it. Unknown values are `NULL`, never 0. The
column *WPA* gives the corresponding column of Windows Performance Analyzer.
";

const PROBES: &str = "
# Measurements

No trace has this table. `laglab measure -o FILE.parquet` writes it, and `laglab open` and `laglab sql`
read it from that file.
";

/// Returns the documentation of all tables, as Markdown.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let is_measured = |table: &Table| *table == Table::LatencySamples;
    let (measured, traced): (Vec<Table>, Vec<Table>) =
        Table::ALL.iter().copied().partition(is_measured);
    describe(&mut text, traced);
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

/// Returns the name of a type. For a dictionary, returns the name of the type of its values.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, values) => format!("{values}"),
        other => format!("{other}"),
    }
}
