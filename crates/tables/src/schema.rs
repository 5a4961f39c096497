//! Declarations of tables. [`table!`] makes the Rust struct, the Arrow schema and the documentation
//! of a table from one declaration.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};

use crate::column::Place;

/// The declaration of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// Name of the table. SQL and all other parts of the program use this name.
    pub name: &'static str,
    /// Description of a row of the table.
    pub prose: String,
    /// Name of the column by which the rows of a batch are sorted.
    pub sorted_by: &'static str,
    /// Title in user interfaces. `None` if user interfaces do not list the table.
    pub title: Option<&'static str>,
    /// Advice for an empty table: the events that must be recorded. The text is empty if no events need to be
    /// recorded.
    pub record: &'static str,
    /// Columns with the start and the end of a row. `None` if rows have no duration.
    pub interval: Option<RowInterval>,
    /// Columns of the table, in order.
    pub columns: Vec<ColumnSchema>,
}

/// Names of the columns with the start and the end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowInterval {
    /// Name of the column with the start.
    pub start: &'static str,
    /// Name of the column with the end.
    pub end: &'static str,
    /// True if unknown times have a meaning. An unknown start then means a start before the trace. An unknown
    /// end means an end after the trace.
    pub is_lifetime: bool,
}

/// The declaration of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Name of the column.
    pub name: &'static str,
    /// Arrow type of the column.
    pub data_type: DataType,
    /// True if values of the column may be null.
    pub nullable: bool,
    /// Unit of the numbers: `ns`, `bytes`, …
    pub unit: Option<&'static str>,
    /// Description of the column.
    pub meaning: String,
    /// Name of the corresponding column in Windows Performance Analyzer.
    pub wpa: Option<&'static str>,
    /// Event and field from which the values come.
    pub source: &'static str,
}

impl TableSchema {
    /// Returns the schema of the table's record batches. The metadata of a field has the entries `meaning`
    /// and `source`. It also has the entries `unit` and `wpa` if the column has them.
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

/// Returns the unit `given`. If `given` is `None`, returns the unit at the end of the column's name.
pub(crate) fn unit_of(name: &'static str, given: Option<&'static str>) -> Option<&'static str> {
    given.or_else(|| {
        ["ns", "bytes"].into_iter().find(|unit| {
            name.strip_suffix(unit)
                .is_some_and(|rest| rest.ends_with('_'))
        })
    })
}

/// Rows with times. The rows are sorted, merged and split by time.
pub trait Rows: Default + Send {
    /// Sorts the rows by time. The rows may be unsorted, because buffers of a CPU may overlap. Rows of equal
    /// time keep their order.
    fn sort(&mut self);

    /// Merges sorted parts into sorted rows. Rows of equal time are in the order of the parts.
    fn merge(parts: Vec<Self>) -> Self;

    /// Reserves memory for additional rows.
    fn reserve(&mut self, rows: usize);

    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Removes the rows whose time is `time_ns` or later. Returns the removed rows. The rows must be sorted.
    fn split_off(&mut self, time_ns: i64) -> Self;
}

/// Returns the positions of the rows of several parts, in time order. Rows of equal time are in the order of
/// the parts.
pub(crate) fn order_of(times: &[&[i64]]) -> Vec<Place> {
    let mut order: Vec<(i64, Place)> = Vec::with_capacity(times.iter().map(|t| t.len()).sum());
    for (part, times) in (0..).zip(times) {
        let places = (0..).map(|row| Place { part, row });
        order.extend(times.iter().copied().zip(places));
    }
    // This sort is stable, and it is fast for sorted parts.
    order.sort_by_key(|(time, _)| *time);
    order.into_iter().map(|(_, place)| place).collect()
}

/// Error that occurs if a column of a record batch and the column of the table have different types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the column `{column}` of `{table}` has the type {found}, not {expected}")]
pub struct WrongType {
    /// Name of the table.
    pub table: &'static str,
    /// Name of the column.
    pub column: &'static str,
    /// Type of the column in the table.
    pub expected: DataType,
    /// Type of the column in the record batch.
    pub found: DataType,
}

/// Joins the lines of a doc comment.
pub(crate) fn prose(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join("\n")
}

/// Declares a table: a struct of columns, a view of a record batch, and the documentation. If no value was
/// pushed into a column, the column becomes null in all rows.
///
/// ```ignore
/// table! {
///     /// Description of a row.
///     Switches, SwitchesView = "switches" sorted by time_ns
///         title "Title in user interfaces"
///         record "what to record if it is empty"
///         lasts start_ns to time_ns
///     {
///         /// Description of the column.
///         time_ns: Vec<i64> = "where it comes from" wpa "Switch-In Time",
///     }
/// }
/// ```
macro_rules! table {
    (
        $(#[doc = $prose:literal])+
        $name:ident, $view:ident = $table:literal sorted by $time:ident
        $(title $title:literal)?
        $(record $record:literal)?
        $(lasts $start:ident to $end:ident)?
        $(lives $born:ident to $died:ident)?
        {
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
            pub(crate) const NAME: &'static str = $table;

            /// Returns the declaration of the table.
            pub fn schema() -> $crate::TableSchema {
                let interval = None::<$crate::RowInterval>
                    $(.or(Some($crate::RowInterval {
                        start: stringify!($start),
                        end: stringify!($end),
                        is_lifetime: false,
                    })))?
                    $(.or(Some($crate::RowInterval {
                        start: stringify!($born),
                        end: stringify!($died),
                        is_lifetime: true,
                    })))?;
                $crate::TableSchema {
                    name: $table,
                    prose: $crate::schema::prose(&[$($prose),+]),
                    sorted_by: stringify!($time),
                    title: None$(.or(Some($title)))?,
                    record: concat!($($record)?),
                    interval,
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

            /// Returns the number of rows.
            pub fn len(&self) -> usize {
                self.$time.len()
            }

            /// Returns true if there are no rows.
            pub fn is_empty(&self) -> bool {
                self.$time.is_empty()
            }

            /// Copies rows of several parts in the given order.
            #[allow(dead_code, reason = "not needed by tables that are made sorted")]
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

            /// Appends the rows of another part of the table.
            #[allow(dead_code, reason = "not needed by tables that are made at once")]
            pub(crate) fn append(&mut self, other: Self) {
                $($crate::column::Cells::append(&mut self.$column, other.$column);)+
            }

            /// Returns the rows as an Arrow record batch. Numbers and text are moved, not copied.
            ///
            /// # Panics
            /// Panics if the columns have different lengths.
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

        #[doc = concat!("Columns of a record batch of `", $table, "`. A column that the batch lacks, ")]
        /// because it was not read, is an empty slice or null in all rows.
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'b> {
            $($(#[doc = $meaning])+ pub $column: <$type as $crate::column::Column>::View<'b>,)+
            rows: usize,
        }

        impl<'b> $view<'b> {
            /// Reads a record batch of the table, or of some of its columns.
            ///
            /// # Errors
            /// Returns an error if a column has another type than the column of the table.
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

            /// Returns the number of rows.
            pub fn len(&self) -> usize {
                self.rows
            }

            /// Returns true if there are no rows.
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

            fn split_off(&mut self, time_ns: i64) -> Self {
                let at = self.$time.partition_point(|time| *time < time_ns);
                let mut tail = Self::default();
                $(if $crate::column::Cells::rows(&self.$column) > 0 {
                    tail.$column = $crate::column::Cells::split_off(&mut self.$column, at);
                })+
                tail
            }
        }
    };
}
pub(crate) use table;
