//! What a table is: declared once, by [`table!`], with its prose.
//!
//! The documentation, the Arrow schema and the Rust struct of a table all come from that
//! declaration.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};

use crate::column::Place;

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
pub(crate) trait Rows: Default + Send {
    /// Puts the rows in order of time, if they are not: buffers of a CPU may overlap. Rows of
    /// equal time keep their order.
    fn sort(&mut self);

    /// Adds the rows of another part of the table.
    fn append(&mut self, other: Self);

    /// The rows of several parts, each in order of time, in order of time. Rows of equal time are
    /// in the order of the parts.
    fn merge(parts: Vec<Self>) -> Self;

    /// Makes room for so many rows more.
    fn reserve(&mut self, rows: usize);

    /// Number of rows.
    fn rows(&self) -> usize;

    /// Takes the rows from `time_ns` on out of the sorted rows.
    fn split_off(&mut self, time_ns: i64) -> Self;
}

/// The rows of several parts in order of time, those of equal time in the order given.
pub(crate) fn order_of(times: &[&[i64]]) -> Vec<Place> {
    let mut order: Vec<(i64, Place)> = Vec::with_capacity(times.iter().map(|t| t.len()).sum());
    for (part, times) in (0..).zip(times) {
        let places = (0..).map(|row| Place { part, row });
        order.extend(times.iter().copied().zip(places));
    }
    // Stable, and quick where the parts are in order.
    order.sort_by_key(|(time, _)| *time);
    order.into_iter().map(|(_, place)| place).collect()
}

/// A record batch is not of the table that it is read as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the column `{column}` of `{table}` has the type {found}, not {expected}")]
pub struct WrongType {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// Its type in the table.
    pub expected: DataType,
    /// The type in the record batch.
    pub found: DataType,
}

/// Joins the lines of a doc comment.
pub(crate) fn prose(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join("\n")
}

/// Declares a table: its struct of columns, how they are read from a record batch, and what they
/// mean. Columns that nothing was pushed to become unknown.
///
/// ```ignore
/// table! {
///     /// What a row is.
///     Switches, SwitchesView = "switches" sorted by time_ns {
///         /// What the column says.
///         time_ns: Vec<i64> = "where it comes from" wpa "Switch-In Time",
///     }
/// }
/// ```
macro_rules! table {
    (
        $(#[doc = $prose:literal])+
        $name:ident, $view:ident = $table:literal sorted by $time:ident {
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

            /// The rows of several parts, in the order given.
            #[allow(dead_code, reason = "of tables that come sorted")]
            pub(crate) fn gather(parts: &[Self], order: &[$crate::column::Place]) -> Self {
                let mut gathered = Self::default();
                $({
                    let parts: Vec<_> = parts.iter().map(|part| &part.$column).collect();
                    if parts.iter().any(|part| $crate::column::Cells::rows(*part) > 0) {
                        gathered.$column = $crate::column::Cells::gather(&parts, order);
                    }
                })+
                gathered
            }

            /// Takes the rows from row `at` on out.
            #[allow(dead_code, reason = "of tables that come whole")]
            pub(crate) fn split_at(&mut self, at: usize) -> Self {
                let mut tail = Self::default();
                $(if $crate::column::Cells::rows(&self.$column) > 0 {
                    tail.$column = $crate::column::Cells::split_off(&mut self.$column, at);
                })+
                tail
            }

            /// The rows as an Arrow record batch; numbers and text are moved, not copied.
            ///
            /// # Panics
            /// If the columns were given different lengths.
            pub fn into_batch(mut self) -> arrow_array::RecordBatch {
                static SCHEMA: std::sync::LazyLock<arrow_schema::SchemaRef> =
                    std::sync::LazyLock::new(|| std::sync::Arc::new($name::schema().arrow()));
                let rows = self.len();
                $(if $crate::column::Cells::rows(&self.$column) == 0 {
                    $crate::column::Cells::fill(&mut self.$column, rows);
                })+
                let columns = vec![$($crate::column::Column::into_array(self.$column)),+];
                arrow_array::RecordBatch::try_new(SCHEMA.clone(), columns)
                    .expect("all columns of a table have one length")
            }
        }

        #[doc = concat!("Rows of `", $table, "` in a record batch, by column. Columns that the batch ")]
        /// lacks, because they were not read, are empty slices or unknown in every row.
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'b> {
            $($(#[doc = $meaning])+ pub $column: <$type as $crate::column::Column>::View<'b>,)+
            rows: usize,
        }

        impl<'b> $view<'b> {
            /// Reads a record batch of the table, or of some of its columns.
            ///
            /// # Errors
            /// If a column has another type than the table's.
            pub fn new(batch: &'b arrow_array::RecordBatch) -> Result<Self, $crate::WrongType> {
                Ok($view {
                    $($column: {
                        let array = batch.column_by_name(stringify!($column));
                        let view = <$type as $crate::column::Column>::view(array);
                        view.ok_or_else(|| $crate::WrongType {
                            table: $table,
                            column: stringify!($column),
                            expected: <$type as $crate::column::Column>::data_type(),
                            found: array.map_or(arrow_schema::DataType::Null, |array| {
                                arrow_array::Array::data_type(array).clone()
                            }),
                        })?
                    },)+
                    rows: batch.num_rows(),
                })
            }

            /// Number of rows.
            pub fn len(&self) -> usize {
                self.rows
            }

            /// Whether there are no rows.
            pub fn is_empty(&self) -> bool {
                self.rows == 0
            }
        }

        impl $crate::schema::Rows for $name {
            fn sort(&mut self) {
                if self.$time.is_sorted() {
                    return;
                }
                let order = $crate::schema::order_of(&[&self.$time]);
                *self = Self::gather(&[std::mem::take(self)], &order);
            }

            fn merge(mut parts: Vec<Self>) -> Self {
                parts.retain(|part| !part.is_empty());
                if parts.len() < 2 {
                    return parts.pop().unwrap_or_default();
                }
                let times: Vec<&[i64]> = parts.iter().map(|part| part.$time.as_slice()).collect();
                let order = $crate::schema::order_of(&times);
                Self::gather(&parts, &order)
            }

            fn reserve(&mut self, rows: usize) {
                $($crate::column::Cells::reserve(&mut self.$column, rows);)+
            }

            fn rows(&self) -> usize {
                self.len()
            }

            fn append(&mut self, other: Self) {
                $($crate::column::Cells::append(&mut self.$column, other.$column);)+
            }

            fn split_off(&mut self, time_ns: i64) -> Self {
                let at = self.$time.partition_point(|time| *time < time_ns);
                self.split_at(at)
            }
        }
    };
}
pub(crate) use table;
