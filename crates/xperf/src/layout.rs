//! Layouts of tables: columns with their headings, names, formats and values.

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use tables::{Flags, NullableView, TextView};

/// Heading of the column with the name of the event, as in xperf.
pub(crate) const EVENT: &str = "                  Event";

/// Layout of one table of a report. `X` has the values of a row that no table stores.
pub(crate) struct Layout<X: 'static = ()> {
    /// Name of the table, printed in each JSON line.
    pub(crate) name: &'static str,
    /// Columns, from left to right.
    pub(crate) columns: &'static [Column<X>],
}

/// Column of a report. Its values come from the stored column with its name, unless it states another source.
pub(crate) struct Column<X: 'static = ()> {
    /// Heading in text. If it is empty, text does not have the column.
    pub(crate) heading: &'static str,
    /// Name in CSV and JSON, which the crate `tables` uses too. If it is empty, CSV and JSON do not have the column. For
    /// a process, the name is the prefix of `process_id` and `process_name`.
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    /// Aggregate of the values of a group. Without it, the column identifies the group.
    pub(crate) fold: Option<Fold>,
    source: Source<X>,
    convert: Option<Convert>,
}

/// Format of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Number, share, flag or text as it is.
    Plain,
    /// Time in nanoseconds. In text, it is rounded to microseconds.
    Time,
    /// Address or flags, in hexadecimal.
    Hex,
    /// Text, printed in quotes because it may contain commas.
    Quoted,
    /// Name of a module or function.
    Module,
    /// Process: `name ( id)` in text, two columns in CSV and JSON. They are stored as `process_row` and `process_id`, with
    /// the name of the column as a prefix.
    Process,
}

/// Aggregate of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Number of rows.
    Count,
    /// Sum of the known values. It is unknown if no value is known.
    Sum,
    /// Sum of the known values. It is 0 if no value is known.
    SumOrZero,
    /// Maximum of the known values.
    Max,
    /// Percentage of the time of all CPUs that the sum in the column on the left has.
    Share,
}

/// Conversion of stored values.
type Convert = fn(Value<'_>) -> Value<'_>;

/// Source of a column's values.
enum Source<X: 'static> {
    /// Column of the table.
    Stored(&'static str),
    /// Value that the report computes.
    Computed(fn(&X) -> Value<'_>),
}

impl<X> Column<X> {
    pub(crate) const fn new(
        heading: &'static str,
        name: &'static str,
        format: Format,
    ) -> Column<X> {
        Column {
            heading,
            name,
            format,
            fold: None,
            source: Source::Stored(name),
            convert: None,
        }
    }

    /// Takes the values from a stored column with another name.
    pub(crate) const fn stored(self, name: &'static str) -> Column<X> {
        let source = Source::Stored(name);
        Column { source, ..self }
    }

    /// Takes the values from what the report computes for a row.
    pub(crate) const fn value(self, value: fn(&X) -> Value<'_>) -> Column<X> {
        let source = Source::Computed(value);
        Column { source, ..self }
    }

    /// Converts the stored values.
    pub(crate) const fn convert(self, convert: Convert) -> Column<X> {
        let convert = Some(convert);
        Column { convert, ..self }
    }

    /// Aggregates the values of each group.
    pub(crate) const fn fold(self, fold: Fold) -> Column<X> {
        let fold = Some(fold);
        Column { fold, ..self }
    }

    /// Sums what the report computes for the rows of each group.
    pub(crate) const fn sum(self, value: fn(&X) -> Value<'_>) -> Column<X> {
        self.value(value).fold(Fold::Sum)
    }

    /// Takes the maximum of what the report computes for the rows of each group.
    pub(crate) const fn max(self, value: fn(&X) -> Value<'_>) -> Column<X> {
        self.value(value).fold(Fold::Max)
    }

    /// Returns the names of the stored columns that the values need.
    pub(crate) fn stored_names(&self) -> Vec<String> {
        match self.source {
            _ if matches!(self.fold, Some(Fold::Count | Fold::Share)) => Vec::new(),
            Source::Computed(_) => Vec::new(),
            Source::Stored(prefix) if self.format == Format::Process => {
                vec![
                    format!("{prefix}process_row"),
                    format!("{prefix}process_id"),
                ]
            }
            Source::Stored(name) => vec![name.to_owned()],
        }
    }
}

/// Values of a column in a batch.
pub(crate) enum Cells<'b, X: 'static> {
    Computed(fn(&X) -> Value<'_>),
    Stored(Stored<'b>, Option<Convert>),
    /// Row and id of each process.
    Process(Stored<'b>, Stored<'b>),
    /// The column needs no value.
    None,
}

impl<'b, X> Cells<'b, X> {
    /// Finds the values of each column of a layout in a batch.
    pub(crate) fn of_layout(layout: &'static Layout<X>, batch: &'b RecordBatch) -> Vec<Self> {
        let cells = layout.columns.iter().map(|column| {
            let names = column.stored_names();
            match (&column.source, &names[..]) {
                (Source::Computed(value), _) => Cells::Computed(*value),
                (_, [row, id]) => Cells::Process(Stored::new(batch, row), Stored::new(batch, id)),
                (_, [name]) => Cells::Stored(Stored::new(batch, name), column.convert),
                _ => Cells::None,
            }
        });
        cells.collect()
    }

    /// Returns the value in a row of the batch. `computed` is what the report computed for this row.
    pub(crate) fn value<'v>(&'v self, row: usize, computed: &'v X) -> Value<'v> {
        match self {
            Cells::Computed(value) => value(computed),
            Cells::Stored(stored, None) => stored.value(row),
            Cells::Stored(stored, Some(convert)) => convert(stored.value(row)),
            Cells::Process(process, id) => Value::Process((process.id(row), id.id(row))),
            Cells::None => Value::Unknown,
        }
    }
}

/// Stored column of a batch. All values are unknown if the batch does not have the column.
#[derive(Clone, Copy)]
pub(crate) enum Stored<'b> {
    Int8(NullableView<'b, i8>),
    Int32(NullableView<'b, i32>),
    Int64(NullableView<'b, i64>),
    UInt8(NullableView<'b, u8>),
    UInt16(NullableView<'b, u16>),
    UInt32(NullableView<'b, u32>),
    UInt64(NullableView<'b, u64>),
    Flag(Flags<'b>),
    Text(TextView<'b>),
    Unknown,
}

impl<'b> Stored<'b> {
    pub(crate) fn new(batch: &'b RecordBatch, name: &str) -> Stored<'b> {
        let array = batch.column_by_name(name);
        let stored = match array.map(|array| array.data_type()) {
            Some(DataType::Int8) => NullableView::read(array).map(Stored::Int8),
            Some(DataType::Int32) => NullableView::read(array).map(Stored::Int32),
            Some(DataType::Int64) => NullableView::read(array).map(Stored::Int64),
            Some(DataType::UInt8) => NullableView::read(array).map(Stored::UInt8),
            Some(DataType::UInt16) => NullableView::read(array).map(Stored::UInt16),
            Some(DataType::UInt32) => NullableView::read(array).map(Stored::UInt32),
            Some(DataType::UInt64) => NullableView::read(array).map(Stored::UInt64),
            Some(DataType::Boolean) => Flags::read(array).map(Stored::Flag),
            Some(_) => TextView::read(array).map(Stored::Text),
            None => None,
        };
        stored.unwrap_or(Stored::Unknown)
    }

    /// Returns the value of a row.
    pub(crate) fn value(&self, row: usize) -> Value<'b> {
        match self {
            Stored::Int8(numbers) => numbers.get(row).into(),
            Stored::Int32(numbers) => numbers.get(row).into(),
            Stored::Int64(numbers) => numbers.get(row).into(),
            Stored::UInt8(numbers) => numbers.get(row).into(),
            Stored::UInt16(numbers) => numbers.get(row).into(),
            Stored::UInt32(numbers) => numbers.get(row).into(),
            Stored::UInt64(numbers) => numbers.get(row).into(),
            Stored::Flag(flags) => flags.get(row).map_or(Value::Unknown, Value::Flag),
            Stored::Text(texts) => texts.get(row).into(),
            Stored::Unknown => Value::Unknown,
        }
    }

    /// Returns the id, or the row of a table, that a row has.
    pub(crate) fn id(&self, row: usize) -> Option<u32> {
        self.value(row).number()?.try_into().ok()
    }
}

/// Row of a process in the table of processes, and its id.
pub(crate) type ProcessKey = (Option<u32>, Option<u32>);

/// Value of a cell. Unknown values come first in the order of values.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) enum Value<'a> {
    Unknown,
    /// No value, because the row cannot have one.
    Absent,
    Number(i64),
    /// Number above `i64::MAX`.
    Large(u64),
    /// Share in percent.
    Share(f64),
    Flag(bool),
    /// Text from the trace, or a word from a fixed list.
    Text(&'a str),
    Process(ProcessKey),
}

impl Value<'_> {
    /// Returns a number, at most `i64::MAX`.
    pub(crate) fn number(self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Large(_) => Some(i64::MAX),
            _ => None,
        }
    }
}

macro_rules! from_number {
    ($($number:ty)+) => {
        $(impl From<$number> for Value<'_> {
            fn from(number: $number) -> Self {
                Value::Number(number.into())
            }
        })+
    };
}

from_number!(i8 i16 i32 i64 u8 u16 u32);

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Value::Large(number), Value::Number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl From<ProcessKey> for Value<'_> {
    fn from(process: ProcessKey) -> Self {
        Value::Process(process)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Unknown, Into::into)
    }
}
