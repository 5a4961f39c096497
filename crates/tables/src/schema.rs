//! What a table is: declared once, by [`table!`], with its prose.
//!
//! The documentation, the Arrow schema and the Rust struct of a table all come from that
//! declaration.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};

/// The declaration of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// Its name in SQL and everywhere else.
    pub name: &'static str,
    /// What a row is.
    pub prose: String,
    /// The column that rows are sorted by within a batch.
    pub sorted_by: &'static str,
    /// Its columns, in order.
    pub columns: Vec<ColumnSchema>,
}

/// The declaration of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: &'static str,
    /// Its Arrow type.
    pub data_type: DataType,
    /// Whether rows may be unknown.
    pub nullable: bool,
    /// The unit of its numbers: `ns`, `bytes`, …
    pub unit: Option<&'static str>,
    /// What it says.
    pub meaning: String,
    /// The column of Windows Performance Analyzer that shows the same.
    pub wpa: Option<&'static str>,
    /// The event and field that it comes from.
    pub source: &'static str,
}

impl TableSchema {
    /// The schema of the table's record batches. Fields carry `meaning`, `source`, and where there
    /// are such `unit` and `wpa`, as metadata.
    pub fn arrow(&self) -> Schema {
        let fields: Vec<Field> = self.columns.iter().map(ColumnSchema::field).collect();
        let about = HashMap::from([("prose".to_owned(), self.prose.clone())]);
        Schema::new(fields).with_metadata(about)
    }
}

impl ColumnSchema {
    fn field(&self) -> Field {
        let known = [
            ("meaning", Some(self.meaning.as_str())),
            ("source", Some(self.source)),
            ("unit", self.unit),
            ("wpa", self.wpa),
        ];
        let about = known
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
            .collect();
        Field::new(self.name, self.data_type.clone(), self.nullable).with_metadata(about)
    }
}

/// The unit that a column's name ends with, unless another is given.
pub(crate) fn unit_of(name: &'static str, given: Option<&'static str>) -> Option<&'static str> {
    given.or_else(|| {
        ["ns", "bytes"].into_iter().find(|unit| {
            name.strip_suffix(unit)
                .is_some_and(|rest| rest.ends_with('_'))
        })
    })
}

/// The rows of a table, whatever its columns are.
pub(crate) trait Rows {
    /// Puts the rows in order of time, if they are not: buffers of a CPU may overlap.
    fn sort(&mut self);
}

/// Joins the lines of a doc comment.
pub(crate) fn prose(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join("\n")
}

/// Declares a table: its struct of columns, and what the columns mean.
///
/// ```ignore
/// table! {
///     /// What a row is.
///     Switches = "switches" sorted by time_ns {
///         /// What the column says.
///         time_ns: Vec<i64> = "where it comes from" wpa "Switch-In Time",
///     }
/// }
/// ```
macro_rules! table {
    (
        $(#[doc = $prose:literal])+
        $name:ident = $table:literal sorted by $time:ident {
            $(
                $(#[doc = $meaning:literal])+
                $column:ident: $type:ty = $source:literal $(in $unit:literal)? $(wpa $wpa:literal)?,
            )+
        }
    ) => {
        $(#[doc = $prose])+
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $column: $type,)+
        }

        impl $name {
            /// The declaration of the table.
            pub fn schema() -> $crate::TableSchema {
                $crate::TableSchema {
                    name: $table,
                    prose: $crate::schema::prose(&[$($prose),+]),
                    sorted_by: stringify!($time),
                    columns: vec![$(
                        $crate::ColumnSchema {
                            name: stringify!($column),
                            data_type: <$type as $crate::column::Column>::data_type(),
                            nullable: <$type as $crate::column::Column>::NULLABLE,
                            unit: $crate::schema::unit_of(
                                stringify!($column),
                                None$(.or(Some($unit)))?,
                            ),
                            meaning: $crate::schema::prose(&[$($meaning),+]),
                            wpa: None$(.or(Some($wpa)))?,
                            source: $source,
                        },
                    )+],
                }
            }

            /// Number of rows.
            pub fn len(&self) -> usize {
                self.$time.len()
            }

            /// Whether there are no rows.
            pub fn is_empty(&self) -> bool {
                self.$time.is_empty()
            }

            /// The rows as an Arrow record batch; numbers and text are moved, not copied.
            ///
            /// # Panics
            /// If the columns were given different lengths.
            pub fn into_batch(self) -> arrow_array::RecordBatch {
                static SCHEMA: std::sync::LazyLock<arrow_schema::SchemaRef> =
                    std::sync::LazyLock::new(|| std::sync::Arc::new($name::schema().arrow()));
                let columns = vec![$($crate::column::Column::into_array(self.$column)),+];
                arrow_array::RecordBatch::try_new(SCHEMA.clone(), columns)
                    .expect("all columns of a table have one length")
            }
        }

        impl $crate::schema::Rows for $name {
            fn sort(&mut self) {
                if self.$time.is_sorted() {
                    return;
                }
                let mut order: Vec<usize> = (0..self.len()).collect();
                order.sort_by_key(|row| self.$time[*row]);
                $($crate::column::Column::permute(&mut self.$column, &order);)+
            }
        }
    };
}
pub(crate) use table;
