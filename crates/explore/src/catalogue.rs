//! Catalogue of the tables and their columns. Views can group rows by keys, and can sum up the numbers in measures.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arrow_schema::DataType;
use serde::Serialize;
use tables::{ColumnSchema, StoredTable, Table};
use ts_rs::TS;

use crate::ExploreError;

/// Name of the computed column whose value is the part of a row's duration within the requested time range.
pub(crate) const TIME: &str = "time";
/// Name by which a request selects the number of rows as a measure or aggregate.
pub(crate) const ROWS: &str = "rows";

/// A table that views can show.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct TableInfo {
    /// Name of the table in SQL.
    pub name: &'static str,
    /// Title for the user.
    pub title: &'static str,
    /// Description of the table's rows.
    pub about: String,
    /// Number of rows; `null` until the table is built.
    pub rows: Option<u64>,
    /// True if the table has rows; `null` until the table is built.
    pub recorded: Option<bool>,
    /// Time of the last row, in nanoseconds since the trace's start; `null` until the table is built.
    pub last_ns: Option<i64>,
    /// Events to record if the table has no rows; empty if it is normal that the table has no rows.
    pub record: String,
    /// Name of the column of times by which the rows are sorted.
    pub time: &'static str,
    /// Columns with the start and the end of rows; `null` if rows are single moments.
    pub interval: Option<IntervalInfo>,
    /// Columns of the table, except columns of stacks.
    pub columns: Vec<ColumnInfo>,
    /// Names of the columns of stacks.
    pub stacks: Vec<&'static str>,
}

/// Names of the columns with the start and the end of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
pub struct IntervalInfo {
    /// Column with the first nanosecond of a row.
    pub start: &'static str,
    /// Column with the end of a row: the first nanosecond after it.
    pub end: &'static str,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct ColumnInfo {
    /// Name of the column.
    pub name: String,
    /// Title for the user. It is the title in Windows Performance Analyzer, if WPA has this column.
    pub title: String,
    /// Description of the column.
    pub about: String,
    /// Use of the column in views.
    pub kind: ColumnKind,
    /// Unit of the numbers; empty if they have no unit.
    pub unit: &'static str,
    /// True if the column is a key and its ids are meaningful numbers, which can be summed up and compared.
    pub numeric_key: bool,
    /// Numbers that have a name, with their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(optional = nullable)]
    pub names: BTreeMap<i64, String>,
}

/// Use of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Key: views group rows by this column.
    Key,
    /// Measure: views sum up this column.
    Measure,
    /// Time of an event, or start or end of a row.
    Time,
    /// Text that is different in nearly every row. Views show it in single rows and can search it.
    Text,
    /// Flag that only filters can use. The only valid conditions are `is` `true` and `is_not` `true`.
    Test,
}

/// Definition of a table.
#[derive(Debug)]
pub(crate) struct TableDef {
    pub(crate) table: Table,
    pub(crate) title: &'static str,
    record: &'static str,
    about: String,
    /// Name of the column of times by which the rows are sorted.
    pub(crate) time: &'static str,
    pub(crate) lasts: Option<Lasts>,
    pub(crate) columns: Vec<ColumnDef>,
    pub(crate) stacks: Vec<&'static str>,
}

/// Names of the columns with the start and the end of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasts {
    pub(crate) start: &'static str,
    pub(crate) end: &'static str,
    /// True if rows are lifetimes, for example of processes. A lifetime with an unknown start began before the trace,
    /// and a lifetime with an unknown end ends after the trace. If false, a row with an unknown start or end has length
    /// 0.
    pub(crate) is_life: bool,
}

/// Definition of a column.
#[derive(Debug)]
pub(crate) struct ColumnDef {
    pub(crate) name: String,
    pub(crate) title: String,
    about: String,
    pub(crate) kind: ColumnKind,
    pub(crate) unit: &'static str,
    pub(crate) source: Source,
}

/// Source of a column's values. Texts in the variants are names of stored columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Stored number.
    Number(&'static str),
    /// Stored number whose values have names.
    Code(&'static str, Code),
    /// Stored flag.
    Flag(&'static str),
    /// Stored address or other number that is shown in hexadecimal.
    Address(&'static str),
    /// Stored text.
    Text(&'static str),
    /// Process, identified by its row. The idle process may have no row. It is then identified by the
    /// process id.
    Process {
        row: &'static str,
        id: Option<&'static str>,
    },
    /// Name of a process. Processes with equal names belong to the same group.
    ProcessName {
        row: &'static str,
        id: Option<&'static str>,
    },
    /// Thread, identified by its row. Idle threads have no row and are identified by the thread id.
    Thread {
        row: &'static str,
        id: Option<&'static str>,
    },
    /// Name of a thread. Threads with equal names belong to the same group.
    ThreadName(&'static str),
    /// Module, identified by the row of its image.
    Module(&'static str),
    /// Part of the row's duration that is within the requested time range.
    InView,
    /// True if the run in this row is doubtful.
    Doubtful,
    /// Function at an address in an image.
    Function {
        image: &'static str,
        address: &'static str,
        /// True if the label includes the offset in the function. Columns with the address of a routine do
        /// not need it, because the offset is usually 0.
        offset: bool,
    },
}

/// Coded numbers whose values have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    WaitReason,
    ThreadState,
}

impl Code {
    /// Returns all values that have a name, with their names.
    fn names(self) -> BTreeMap<i64, String> {
        let name = match self {
            Code::WaitReason => tables::wait_reason,
            Code::ThreadState => tables::thread_state,
        };
        let named = (0..=u8::MAX).filter_map(|number| Some((number.into(), name(number)?.into())));
        named.collect()
    }

    /// Returns a function that converts a number to its name. Without a name, it returns the number as text.
    pub(crate) fn name(self) -> fn(i64) -> String {
        fn name_or_number(number: i64, name: fn(u8) -> Option<&'static str>) -> String {
            let name = u8::try_from(number).ok().and_then(name);
            name.map_or_else(|| number.to_string(), str::to_owned)
        }
        match self {
            Code::WaitReason => |number| name_or_number(number, tables::wait_reason),
            Code::ThreadState => |number| name_or_number(number, tables::thread_state),
        }
    }
}

/// Definitions of all tables that views can show.
static TABLES: LazyLock<Vec<TableDef>> = LazyLock::new(|| {
    let tables = Table::ALL.iter();
    let titled = tables.filter_map(|table| Some((table, table.schema().title?)));
    let mut tables: Vec<TableDef> = titled
        .map(|(table, title)| TableDef::new(*table, title))
        .collect();
    let place = |table: &TableDef| FIRST.iter().position(|first| *first == table.table);
    tables.sort_by_key(|table| place(table).unwrap_or(FIRST.len()));
    tables
});

/// First tables in the list on the page. The other tables follow in the order of the documentation.
const FIRST: [Table; 20] = [
    Table::CpuRuns,
    Table::Samples,
    Table::Interrupts,
    Table::ReadyThreads,
    Table::ContextSwitches,
    Table::Priorities,
    Table::DiskIo,
    Table::FileIo,
    Table::HardFaults,
    Table::Network,
    Table::Packets,
    Table::Focus,
    Table::Input,
    Table::TimerRequests,
    Table::ProcessFreezes,
    Table::DotnetPauses,
    Table::DotnetPools,
    Table::Processes,
    Table::Threads,
    Table::Images,
];

/// Returns all tables that views can show.
pub(crate) fn tables() -> &'static [TableDef] {
    &TABLES
}

/// Returns the table with this name.
pub(crate) fn table(name: &str) -> Result<&'static TableDef, ExploreError> {
    let def = TABLES.iter().find(|def| def.table.name() == name);
    def.ok_or_else(|| ExploreError::NoTable(shortened(name)))
}

/// Shortens a name from a request, so that it fits into an error message.
fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

impl TableDef {
    fn new(table: Table, title: &'static str) -> TableDef {
        let schema = table.schema();
        let has = |name: &str| schema.columns.iter().any(|column| column.name == name);
        let mut columns = Vec::new();
        let mut stacks = Vec::new();
        for column in &schema.columns {
            if column.name.ends_with("stack_id") {
                stacks.push(column.name);
            } else {
                let derivation = Derivation {
                    column,
                    all: &schema.columns,
                    columns: &mut columns,
                };
                derivation.add();
            }
        }
        let lasts = schema.interval.map(|interval| {
            debug_assert!(has(interval.start) && has(interval.end));
            Lasts {
                start: interval.start,
                end: interval.end,
                is_life: interval.is_lifetime,
            }
        });
        if lasts.is_some() {
            columns.push(ColumnDef {
                name: TIME.to_owned(),
                title: "Time in view".to_owned(),
                about: "Time that the row lasts within the requested range.".to_owned(),
                kind: ColumnKind::Measure,
                unit: "ns",
                source: Source::InView,
            });
        }
        if table == Table::CpuRuns {
            columns.push(ColumnDef {
                name: "doubtful".to_owned(),
                title: "Doubtful runs".to_owned(),
                about:
                    "Context switches within the run are missing: the old thread of its last switch is not the new \
                     thread of the previous switch, or events are lost and samples confirm less than half of a long \
                     run. Which threads really ran is unknown."
                        .to_owned(),
                kind: ColumnKind::Test,
                unit: "",
                source: Source::Doubtful,
            });
        }
        TableDef {
            table,
            title,
            record: schema.record,
            about: schema.prose,
            time: schema.sorted_by,
            lasts,
            columns,
            stacks,
        }
    }

    /// Returns the column with this name. If the table lacks it, returns an error.
    pub(crate) fn column(&'static self, name: &str) -> Result<&'static ColumnDef, ExploreError> {
        let column = self.columns.iter().find(|column| column.name == name);
        column.ok_or_else(|| ExploreError::NoColumn {
            table: self.table.name(),
            column: shortened(name),
        })
    }

    /// Returns the key with this name. If there is no such key, returns an error.
    pub(crate) fn key(&'static self, name: &str) -> Result<&'static ColumnDef, ExploreError> {
        let column = self.column(name)?;
        match column.kind {
            ColumnKind::Key => Ok(column),
            _ => Err(self.wrong_kind(column, "does not group rows; choose a key")),
        }
    }

    /// Returns the column of numbers with this name. If there is no such column, returns an error.
    pub(crate) fn number(&'static self, name: &str) -> Result<&'static ColumnDef, ExploreError> {
        let column = self.column(name)?;
        if column.is_number() {
            Ok(column)
        } else {
            Err(self.wrong_kind(column, "has no numbers; choose a measure or a numeric key"))
        }
    }

    /// Returns the name of the column of stacks. If the table lacks it, returns an error.
    pub(crate) fn stack(&'static self, name: &str) -> Result<&'static str, ExploreError> {
        let stack = self.stacks.iter().find(|stack| **stack == name);
        stack.copied().ok_or_else(|| ExploreError::NoColumn {
            table: self.table.name(),
            column: shortened(name),
        })
    }

    /// Returns the error for a column that cannot be used as requested. `needed` describes the problem.
    pub(crate) fn wrong_kind(&self, column: &ColumnDef, needed: &'static str) -> ExploreError {
        ExploreError::WrongKind {
            table: self.table.name(),
            column: column.name.clone(),
            needed,
        }
    }

    /// Returns the description of the table for the page. `made` is the stored table, if it is built. `is_linux` is true if
    /// the trace is a recording of Linux.
    pub(crate) fn info(&self, made: Option<&StoredTable>, is_linux: bool) -> TableInfo {
        let rows = made.map(|made| made.rows() as u64);
        let last = made.and_then(|made| made.chunks().last());
        let columns = self.columns.iter().map(|column| ColumnInfo {
            name: column.name.clone(),
            title: column.title.clone(),
            about: column.about.clone(),
            kind: column.kind,
            unit: column.unit,
            numeric_key: column.kind == ColumnKind::Key && column.is_number(),
            names: match column.source {
                Source::Code(_, code) => code.names(),
                _ => BTreeMap::new(),
            },
        });
        TableInfo {
            name: self.table.name(),
            title: self.title,
            about: self.about.clone(),
            rows,
            recorded: rows.map(|rows| rows > 0),
            last_ns: last.map(|chunk| chunk.last),
            record: if is_linux {
                record::linux::for_table(self.table.name())
                    .map_or(String::new(), |(_, advice)| advice)
            } else {
                self.record.to_owned()
            },
            time: self.time,
            interval: self.lasts.map(|lasts| IntervalInfo {
                start: lasts.start,
                end: lasts.end,
            }),
            columns: columns.collect(),
            stacks: self.stacks.clone(),
        }
    }
}

/// Columns of nanoseconds that are times. All other columns of nanoseconds are durations.
const MOMENTS: [&str; 14] = [
    "time_ns",
    "start_ns",
    "intended_start_ns",
    "end_ns",
    "init_ns",
    "readied_ns",
    "previous_out_ns",
    "first_seen_ns",
    "last_thread_end_ns",
    "defunct_ns",
    "load_ns",
    "unload_ns",
    "from_ns",
    "to_ns",
];

/// Columns of numbers without a unit that are measures. All other columns of numbers without a unit are
/// keys.
const AMOUNTS: [&str; 17] = [
    "fragments",
    "count",
    "sequence",
    "count_waits",
    "repeats",
    "wheel_delta",
    "wait_ticks",
    "remaining_quantum_out",
    "previous_remaining_quantum",
    "old_remaining_quantum",
    "new_wait_time",
    "tcp_window",
    "tcp_sequence",
    "tcp_acknowledgment",
    "result",
    "x",
    "y",
];

/// Columns of text that is different in nearly every row.
const PROSE: [&str; 2] = ["fields", "message"];

impl ColumnDef {
    /// Returns true if the values of the column are meaningful numbers.
    pub(crate) fn is_number(&self) -> bool {
        self.number().is_some()
    }

    /// Returns the name of the stored column that has the values of this column. Returns `None` if these values
    /// are not meaningful numbers.
    pub(crate) fn number(&self) -> Option<&'static str> {
        match self.source {
            Source::Number(name) | Source::Code(name, _) => Some(name),
            _ => None,
        }
    }
}

/// Derivation of the columns that views show from a stored column.
struct Derivation<'a> {
    column: &'a ColumnSchema,
    /// All stored columns of the table.
    all: &'a [ColumnSchema],
    columns: &'a mut Vec<ColumnDef>,
}

impl Derivation<'_> {
    fn add(mut self) {
        let name = self.column.name;
        if let Some(prefix) = name.strip_suffix("process_row") {
            self.add_process(prefix);
        } else if let Some(prefix) = name.strip_suffix("thread_row") {
            self.add_thread(prefix);
        } else if name == "image_row" {
            self.add_module();
        } else {
            self.add_values();
        }
    }

    fn push(
        &mut self,
        name: String,
        wpa: Option<&str>,
        about: &str,
        kind: ColumnKind,
        source: Source,
    ) {
        let unit = match kind {
            ColumnKind::Key => "",
            _ => self.column.unit.unwrap_or_default(),
        };
        self.columns.push(ColumnDef {
            title: wpa.map_or_else(|| title_of(&name), without_unit),
            name,
            about: about.to_owned(),
            kind,
            unit,
            source,
        });
    }

    /// Returns the name of a stored column, if the table has this column.
    fn stored(&self, name: &str) -> Option<&'static str> {
        let mut names = self.all.iter().map(|column| column.name);
        names.find(|stored| *stored == name)
    }

    fn add_process(&mut self, prefix: &str) {
        let row = self.column.name;
        let id = self.stored(&format!("{prefix}process_id"));
        self.push(
            format!("{prefix}process"),
            self.column.wpa,
            "Name and id of the process.",
            ColumnKind::Key,
            Source::Process { row, id },
        );
        self.push(
            format!("{prefix}process_name"),
            None,
            "Name of the process. Groups all processes of the same name.",
            ColumnKind::Key,
            Source::ProcessName { row, id },
        );
    }

    fn add_thread(&mut self, prefix: &str) {
        let row = self.column.name;
        let id = self.stored(&format!("{prefix}thread_id"));
        self.push(
            format!("{prefix}thread"),
            self.column.wpa,
            "Name and id of the thread. Windows reuses ids: each value is one thread, or all idle threads.",
            ColumnKind::Key,
            Source::Thread { row, id },
        );
        self.push(
            format!("{prefix}thread_name"),
            None,
            "Name of the thread, as set by its program.",
            ColumnKind::Key,
            Source::ThreadName(row),
        );
    }

    fn add_module(&mut self) {
        let image = self.column.name;
        self.push(
            "module".to_owned(),
            Some("Module"),
            "File name of the image at the address.",
            ColumnKind::Key,
            Source::Module(image),
        );
        let routine = self.stored("routine").map(|routine| (routine, true));
        let Some((address, offset)) = routine.or_else(|| Some((self.stored("address")?, false)))
        else {
            return;
        };
        self.push(
            "function".to_owned(),
            Some("Function"),
            "Function at the address; the module if its symbols are missing.",
            ColumnKind::Key,
            Source::Function {
                image,
                address,
                offset,
            },
        );
    }

    /// Adds the column itself, unless its values have no form that a view shows.
    fn add_values(&mut self) {
        use ColumnKind::{Key, Measure, Text, Time};
        let column = self.column;
        let name = column.name;
        let is_amount = AMOUNTS.contains(&name);
        let (kind, source) = match &column.data_type {
            DataType::Boolean => (Key, Source::Flag(name)),
            DataType::Utf8 if PROSE.contains(&name) => (Text, Source::Text(name)),
            DataType::Utf8 | DataType::Dictionary(..) => (Key, Source::Text(name)),
            data_type if !data_type.is_integer() => return,
            _ if MOMENTS.contains(&name) => (Time, Source::Number(name)),
            _ if is_amount || matches!(column.unit, Some("ns" | "bytes" | "pixels")) => {
                (Measure, Source::Number(name))
            }
            DataType::UInt64 | DataType::Int64 => (Key, Source::Address(name)),
            _ if name.contains("wait_reason") => (Key, Source::Code(name, Code::WaitReason)),
            _ if matches!(name, "state_out" | "previous_state" | "old_state") => {
                (Key, Source::Code(name, Code::ThreadState))
            }
            _ => (Key, Source::Number(name)),
        };
        self.push(name.to_owned(), column.wpa, &column.meaning, kind, source);
    }
}

/// Returns the first of the titles that Windows Performance Analyzer uses, without the unit. The page
/// selects the unit itself.
fn without_unit(title: &str) -> String {
    let title = title.split_once(", ").map_or(title, |(first, _)| first);
    let units = [" (s)", " (us)", " (in view)"];
    let plain = units.iter().find_map(|unit| title.strip_suffix(unit));
    plain.unwrap_or(title).to_owned()
}

/// Returns a title that is derived from the name of a column.
fn title_of(name: &str) -> String {
    let words = name.strip_suffix("_ns").unwrap_or(name);
    let words = words.strip_suffix("_bytes").unwrap_or(words);
    let known = |word: &str| match word {
        "cpu" | "id" | "irp" | "sid" | "vlan" | "dscp" | "ecn" | "tcp" | "dpc" | "isr" | "ip"
        | "guid" | "teb" | "mac" | "io" => word.to_uppercase(),
        word => word.to_owned(),
    };
    let title: Vec<String> = words.split('_').map(known).collect();
    let title = title.join(" ");
    let mut chars = title.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
