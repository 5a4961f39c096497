//! The tables that can be looked at, and what of them can be grouped by and summed up.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arrow_schema::DataType;
use serde::Serialize;
use tables::{ColumnSchema, StoredTable, Table};

use crate::ExploreError;
use crate::in_view::TIME;
use crate::offered::{OFFERED, Offered};

/// A table that can be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableInfo {
    /// Its name, as in SQL.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What a row is.
    pub about: String,
    /// How many rows it has; `null` while it is not made yet.
    pub rows: Option<u64>,
    /// Whether the trace holds any; `null` while it is not made yet.
    pub recorded: Option<bool>,
    /// The time of its last row.
    pub last_ns: Option<i64>,
    /// What to record if it holds nothing; empty where that is as it should be.
    pub record: &'static str,
    /// The column with the time that rows are sorted by.
    pub time: &'static str,
    /// From when to when a row lasts, if rows do.
    pub interval: Option<IntervalInfo>,
    /// Its columns.
    pub columns: Vec<ColumnInfo>,
    /// Its columns of stacks.
    pub stacks: Vec<&'static str>,
}

/// The columns that say from when to when a row lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IntervalInfo {
    /// Its first nanosecond.
    pub start: &'static str,
    /// The nanosecond after its last.
    pub end: &'static str,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its name for people: Windows Performance Analyzer's where it has one.
    pub title: String,
    /// What it says.
    pub about: String,
    /// What can be done with it.
    pub kind: ColumnKind,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// A key whose ids are numbers with a meaning, by which it can be summed up and bounded too.
    pub numeric_key: bool,
    /// How its numbers are called, where they have names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<i64, String>,
}

/// What can be done with a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Rows are grouped by it.
    Key,
    /// It is summed up.
    Measure,
    /// When something happened.
    Time,
    /// Text of its own in nearly every row: shown with rows, and searched.
    Text,
    /// Rows are left out by it or are left alone, and no more: a filter asks whether it is `true`.
    Test,
}

/// What is known of a table before it is made.
#[derive(Debug)]
pub(crate) struct TableDef {
    pub(crate) table: Table,
    pub(crate) title: &'static str,
    record: &'static str,
    about: String,
    /// The time that rows are sorted by.
    pub(crate) time: &'static str,
    pub(crate) lasts: Option<Lasts>,
    pub(crate) columns: Vec<ColumnDef>,
    pub(crate) stacks: Vec<&'static str>,
}

/// How long rows last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasts {
    pub(crate) start: &'static str,
    pub(crate) end: &'static str,
    /// What has no begin or end has always been or ever is, as a process; else it has no length.
    pub(crate) is_life: bool,
}

/// What is known of a column.
#[derive(Debug)]
pub(crate) struct ColumnDef {
    pub(crate) name: String,
    pub(crate) title: String,
    about: String,
    pub(crate) kind: ColumnKind,
    pub(crate) unit: &'static str,
    pub(crate) source: Source,
}

/// Where a column's values come from, by names of stored columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A number.
    Number(&'static str),
    /// A number that has a name.
    Code(&'static str, Code),
    /// A flag.
    Flag(&'static str),
    /// An address, or another number that is written in hexadecimal.
    Address(&'static str),
    /// Text.
    Text(&'static str),
    /// A process by its row; the idle one, where it has none, by its id.
    Process {
        row: &'static str,
        id: Option<&'static str>,
    },
    /// Its name.
    ProcessName {
        row: &'static str,
        id: Option<&'static str>,
    },
    /// A thread by its row; the idle ones, where they have none, by their id.
    Thread {
        row: &'static str,
        id: Option<&'static str>,
    },
    /// Its name.
    ThreadName(&'static str),
    /// The module of an image's row.
    Module(&'static str),
    /// How long rows last within the stretch of time that is looked at.
    InView,
    /// Whether a run was several in truth.
    Doubtful,
    /// The function at an address in an image.
    Function {
        image: &'static str,
        address: &'static str,
        /// With the offset within it: the address is where the function begins, as a rule.
        offset: bool,
    },
}

/// Numbers that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    WaitReason,
    ThreadState,
}

impl Code {
    /// All numbers that have names.
    fn names(self) -> BTreeMap<i64, String> {
        let name = match self {
            Code::WaitReason => events::kernel::wait_reason,
            Code::ThreadState => events::kernel::thread_state,
        };
        let named = (0..=u8::MAX).filter_map(|number| Some((number.into(), name(number)?.into())));
        named.collect()
    }

    /// The name of a number; the number itself where it has none.
    pub(crate) fn name(self) -> fn(i64) -> String {
        fn of(number: i64, name: fn(u8) -> Option<&'static str>) -> String {
            let name = u8::try_from(number).ok().and_then(name);
            name.map_or_else(|| number.to_string(), str::to_owned)
        }
        match self {
            Code::WaitReason => |number| of(number, events::kernel::wait_reason),
            Code::ThreadState => |number| of(number, events::kernel::thread_state),
        }
    }
}

/// Every table that can be looked at.
static TABLES: LazyLock<Vec<TableDef>> =
    LazyLock::new(|| OFFERED.iter().map(TableDef::new).collect());

/// Every table that can be looked at.
pub(crate) fn tables() -> &'static [TableDef] {
    &TABLES
}

/// The table of a name.
pub(crate) fn table(name: &str) -> Result<&'static TableDef, ExploreError> {
    let found = TABLES.iter().find(|def| def.table.name() == name);
    found.ok_or_else(|| ExploreError::NoTable(shortened(name)))
}

/// At most so much of a name is repeated to whoever sent it.
fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

impl TableDef {
    fn new(offered: &Offered) -> TableDef {
        let schema = offered.table.schema();
        let has = |name: &str| schema.columns.iter().any(|column| column.name == name);
        let mut columns = Vec::new();
        let mut stacks = Vec::new();
        for column in &schema.columns {
            if column.name.ends_with("stack_id") {
                stacks.push(column.name);
            } else {
                ColumnDef::add(&mut columns, column, &schema.columns);
            }
        }
        let lasts = offered.lasts.map(|(start, end)| {
            debug_assert!(has(start) && has(end));
            Lasts {
                start,
                end,
                is_life: offered.is_life,
            }
        });
        if lasts.is_some() {
            columns.push(ColumnDef {
                name: TIME.to_owned(),
                title: "Time in view".to_owned(),
                about: "How long the row lasts within the stretch of time that is looked at."
                    .to_owned(),
                kind: ColumnKind::Measure,
                unit: "ns",
                source: Source::InView,
            });
        }
        if offered.table == Table::CpuRuns {
            columns.push(ColumnDef {
                name: "doubtful".to_owned(),
                title: "Doubtful runs".to_owned(),
                about: "Switches within the run are missing: another thread was announced than the \
                        one that ended it, or events are lost and samples tell of less than half of \
                        a long run. Who had the CPU meanwhile is not known."
                    .to_owned(),
                kind: ColumnKind::Test,
                unit: "",
                source: Source::Doubtful,
            });
        }
        TableDef {
            table: offered.table,
            title: offered.title,
            record: offered.record,
            about: schema.prose,
            time: schema.sorted_by,
            lasts,
            columns,
            stacks,
        }
    }

    /// The column of a name.
    pub(crate) fn column(&'static self, name: &str) -> Result<&'static ColumnDef, ExploreError> {
        let found = self.columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| ExploreError::NoColumn {
            table: self.table.name(),
            column: shortened(name),
        })
    }

    /// The column of a name by which rows can be grouped.
    pub(crate) fn key(&'static self, name: &str) -> Result<&'static ColumnDef, ExploreError> {
        let column = self.column(name)?;
        match column.kind {
            ColumnKind::Key => Ok(column),
            _ => Err(self.wrong(column, "cannot be grouped by; take a column of kind `key`")),
        }
    }

    /// The column of a name that can be summed up.
    pub(crate) fn number(&'static self, name: &str) -> Result<&'static ColumnDef, ExploreError> {
        let column = self.column(name)?;
        match column.is_number() {
            true => Ok(column),
            false => Err(self.wrong(
                column,
                "holds no numbers; take one of kind `measure` or a numeric key",
            )),
        }
    }

    /// The column of stacks of a name.
    pub(crate) fn stack(&'static self, name: &str) -> Result<&'static str, ExploreError> {
        let found = self.stacks.iter().find(|stack| **stack == name);
        found.copied().ok_or_else(|| ExploreError::NoColumn {
            table: self.table.name(),
            column: shortened(name),
        })
    }

    /// The column is of another kind than needed.
    pub(crate) fn wrong(&self, column: &ColumnDef, needed: &'static str) -> ExploreError {
        ExploreError::WrongKind {
            table: self.table.name(),
            column: column.name.clone(),
            needed,
        }
    }

    /// What requests see of it, and of what is stored if it is made.
    pub(crate) fn info(&self, made: Option<&StoredTable>) -> TableInfo {
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
            record: self.record,
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

/// Times at which something happened; other columns of nanoseconds say how long it took.
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

/// Numbers without a unit that are summed up and not grouped by.
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

/// Text that nearly every row has its own of.
const PROSE: [&str; 2] = ["fields", "message"];

impl ColumnDef {
    /// Adds what is made of a stored column.
    fn add(columns: &mut Vec<ColumnDef>, column: &ColumnSchema, all: &[ColumnSchema]) {
        use ColumnKind::{Key, Measure, Text, Time};
        let name = column.name;
        let stored = |wanted: String| {
            let found = all.iter().find(|other| other.name == wanted);
            found.map(|found| found.name)
        };
        let unit = column.unit.unwrap_or_default();
        let mut add = |name: String, wpa: Option<&str>, about: String, kind, source| {
            columns.push(ColumnDef {
                title: wpa.map_or_else(|| title_of(&name), without_unit),
                name,
                about,
                kind,
                unit: if kind == Key { "" } else { unit },
                source,
            });
        };
        if let Some(prefix) = name.strip_suffix("process_row") {
            let id = stored(format!("{prefix}process_id"));
            add(
                format!("{prefix}process"),
                column.wpa,
                "Name and id of the process.".to_owned(),
                Key,
                Source::Process { row: name, id },
            );
            add(
                format!("{prefix}process_name"),
                None,
                "Name of the process: all of that name together.".to_owned(),
                Key,
                Source::ProcessName { row: name, id },
            );
            return;
        }
        if let Some(prefix) = name.strip_suffix("thread_row") {
            let id = stored(format!("{prefix}thread_id"));
            add(
                format!("{prefix}thread"),
                column.wpa,
                "Id of the thread and the name that it was given. Ids are reused; this is one \
                 thread, or all idle ones."
                    .to_owned(),
                Key,
                Source::Thread { row: name, id },
            );
            add(
                format!("{prefix}thread_name"),
                None,
                "Name that the thread was given.".to_owned(),
                Key,
                Source::ThreadName(name),
            );
            return;
        }
        if name == "image_row" {
            add(
                "module".to_owned(),
                Some("Module"),
                "File name of the image at the address.".to_owned(),
                Key,
                Source::Module(name),
            );
            let address = stored("routine".to_owned()).map(|routine| (routine, true));
            let address = address.or_else(|| Some((stored("address".to_owned())?, false)));
            if let Some((address, offset)) = address {
                add(
                    "function".to_owned(),
                    Some("Function"),
                    "The function at the address; the module where symbols are not known."
                        .to_owned(),
                    Key,
                    Source::Function {
                        image: name,
                        address,
                        offset,
                    },
                );
            }
            return;
        }
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
        add(
            name.to_owned(),
            column.wpa,
            column.meaning.clone(),
            kind,
            source,
        );
    }

    /// Whether its values are numbers with a meaning.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.source, Source::Number(_) | Source::Code(..))
    }
}

/// A title of Windows Performance Analyzer, the first where its tables have several, without the unit
/// that it shows values in: here they are shown in the one that fits.
fn without_unit(title: &str) -> String {
    let title = title.split_once(", ").map_or(title, |(first, _)| first);
    let units = [" (s)", " (us)", " (in view)"];
    let plain = units.iter().find_map(|unit| title.strip_suffix(unit));
    plain.unwrap_or(title).to_owned()
}

/// A name for people made of a column's name.
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
