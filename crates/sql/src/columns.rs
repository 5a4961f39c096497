//! Columns of tables in SQL: the stored columns, the row number and the name of the trace.

use arrow_schema::{DataType, Field, Schema};
use tables::Table;

/// Column with the name of the trace of a row.
pub(crate) const TRACE: &str = "trace";

/// Source of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Stored column with this name.
    Stored(&'static str),
    /// Stored column with this name that contains row numbers. They are the row numbers of another table, or
    /// numbers that the table itself assigns to its rows.
    RowNumbers(&'static str),
    /// Row number that is unique in the session.
    Row,
    /// Name of the trace.
    Trace,
}

/// Returns the name of the column for a table's row numbers. Other tables use the same name to refer to rows of this
/// table. Returns `None` if rows have no numbers, or if the numbers are a stored column.
pub(crate) fn row_column(table: Table) -> Option<&'static str> {
    match table {
        Table::Processes => Some("process_row"),
        Table::Threads => Some("thread_row"),
        Table::Images => Some("image_row"),
        _ => None,
    }
}

/// Returns true if the rows of a table are events with a time. Other tables contain lifetimes (such as the
/// lifetimes of processes) or facts that do not change (such as facts about the system).
pub(crate) fn contains_events(table: Table) -> bool {
    match table {
        Table::LatencySamples => true,
        Table::SystemConfig => false,
        _ => matches!(table.schema().sorted_by, "time_ns" | "end_ns"),
    }
}

/// Returns the columns of a table and their Arrow fields, in the same order.
pub(crate) fn columns(table: Table) -> (Vec<Column>, Schema) {
    let mut columns = Vec::new();
    let mut fields = Vec::new();
    let own = table.schema();
    if let Some(name) = row_column(table) {
        columns.push(Column::Row);
        fields.push(Field::new(name, DataType::UInt32, false));
    }
    for column in own.columns {
        columns.push(
            if column.name.ends_with("_row") || column.name.ends_with("stack_id") {
                Column::RowNumbers(column.name)
            } else {
                Column::Stored(column.name)
            },
        );
        fields.push(Field::new(column.name, column.data_type, column.nullable));
    }
    columns.push(Column::Trace);
    fields.push(Field::new(TRACE, DataType::Utf8, false));
    (columns, Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_its_table() {
        // Each column of row numbers must have the name that a table uses for its own rows.
        let known = ["process_row", "thread_row", "image_row", "stack_id"];
        for table in Table::ALL {
            let (columns, schema) = columns(*table);
            assert_eq!(columns.len(), schema.fields().len());
            for column in columns {
                if let Column::RowNumbers(name) = column {
                    assert!(known.iter().any(|known| name.ends_with(known)), "{name}");
                }
            }
        }
    }

    #[test]
    fn tables_that_others_refer_to_contain_no_events() {
        for table in [
            Table::Processes,
            Table::Threads,
            Table::Images,
            Table::Stacks,
        ] {
            assert!(!contains_events(table), "{table}");
        }
        assert!(contains_events(Table::Samples));
        assert!(contains_events(Table::CpuRuns));
        assert!(contains_events(Table::LatencySamples));
    }

    #[test]
    fn column_names_are_unique() {
        for table in Table::ALL {
            let (_, schema) = columns(*table);
            let mut names: Vec<_> = schema.fields().iter().map(|f| f.name().clone()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), schema.fields().len(), "{table}");
        }
    }
}
