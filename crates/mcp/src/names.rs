//! Errors of wrong names of tables and columns, with the closest right names.

use explore::Explorer;
use tables::Table;

/// Returns the message for a table that the tools `summarize` and `timeline` cannot read.
pub(crate) fn no_table(name: &str) -> String {
    if Table::ALL.iter().any(|table| table.name() == name) {
        return format!("only the tool `sql` reads the table `{name}`");
    }
    if is_view(name) {
        return format!("`{name}` is a view; only the tool `sql` reads it");
    }
    let tables = Explorer::catalogue();
    let names = tables.iter().map(|table| table.name);
    format!(
        "there is no such table; the closest are {} (`schema` lists all)",
        wording::closest(name, names, 3).join(", ")
    )
}

/// Returns the message for a column that the tools `summarize` and `timeline` cannot read.
pub(crate) fn no_column(table: &str, column: &str) -> String {
    let stored = Table::ALL.iter().find(|known| known.name() == table);
    let is_stored = stored.is_some_and(|stored| {
        let columns = stored.schema().columns;
        columns.iter().any(|known| known.name == column)
    });
    if is_stored {
        return format!("only the tool `sql` reads the column `{column}` of `{table}`");
    }
    let tables = Explorer::catalogue();
    let columns = tables.iter().filter(|known| known.name == table);
    let names = columns.flat_map(|table| table.columns.iter().map(|column| column.name.as_str()));
    format!(
        "`{table}` has no such column; the closest are {} (`schema` lists its columns)",
        wording::closest(column, names, 3).join(", ")
    )
}

/// Returns true if this is the name of a view of SQL.
pub(crate) fn is_view(name: &str) -> bool {
    #[cfg(feature = "sql")]
    return sql::view_names().any(|view| view == name);
    #[cfg(not(feature = "sql"))]
    return {
        let _ = name;
        false
    };
}
