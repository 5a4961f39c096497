//! The columns that SQL sees of a table: the table's own, its row number, and the trace's name.

use arrow_schema::{DataType, Field, Schema};
use tables::Table;

/// The column with the name of the trace that a row is of.
pub(crate) const TRACE: &str = "trace";

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// The stored column of that name.
    Stored(&'static str),
    /// The stored column of that name, which holds row numbers of another table, or is the table's
    /// own stored numbering.
    RowNumbers(&'static str),
    /// The number of the row.
    Row,
    /// The name of the trace.
    Trace,
}

/// The name by which other tables refer to this table's rows, where these do not store it.
pub(crate) fn row_column(table: Table) -> Option<&'static str> {
    match table {
        Table::Processes => Some("process_row"),
        Table::Threads => Some("thread_row"),
        Table::Images => Some("image_row"),
        _ => None,
    }
}

/// Whether its rows happened at a time, and not rather last, as processes, or hold all the time, as
/// what is known of the system.
pub(crate) fn is_of_moments(table: Table) -> bool {
    match table {
        Table::LatencySamples => true,
        Table::SystemConfig => false,
        _ => matches!(table.schema().sorted_by, "time_ns" | "end_ns"),
    }
}

/// The columns of a table, in order, with their fields.
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
        // A column of row numbers must lead to a table that has them.
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
    fn what_others_refer_to_is_whole() {
        for table in [
            Table::Processes,
            Table::Threads,
            Table::Images,
            Table::Stacks,
        ] {
            assert!(!is_of_moments(table), "{table}");
        }
        assert!(is_of_moments(Table::Samples));
        assert!(is_of_moments(Table::CpuRuns));
        assert!(is_of_moments(Table::LatencySamples));
    }

    #[test]
    fn names_are_used_once() {
        for table in Table::ALL {
            let (_, schema) = columns(*table);
            let mut names: Vec<_> = schema.fields().iter().map(|f| f.name().clone()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), schema.fields().len(), "{table}");
        }
    }
}
