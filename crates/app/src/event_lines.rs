//! Formats decoded events as text lines, JSON lines and CSV.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use etl::{Event, Guid, ext_type, le};
use events::{Decoded, OwnNames, Value};
use facts::{EventKind, Processes, known_id, processes_in};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use session::StackModules;

use crate::output::{Printable, Quoted};

/// Parts of the events that the output contains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Names of the fields to write; all fields if empty.
    pub(crate) fields: Vec<String>,
    /// True if stacks are written.
    pub(crate) stacks: bool,
}

impl Choice {
    fn wants(&self, name: &str) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|f| f.eq_ignore_ascii_case(name))
    }
}

/// Event with all data that its output needs.
pub(crate) struct Line<'a, 'e> {
    /// Event as it is stored in the trace.
    pub(crate) event: &'a Event<'e>,
    /// Decoded content of the event.
    pub(crate) decoded: &'a Decoded<'e>,
    /// Names that other events of the trace give to processes and addresses.
    pub(crate) names: Names<'a>,
}

/// Names that the trace gives to processes and addresses.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    /// Names of processes by id and time.
    pub(crate) processes: &'a Processes,
    /// Modules by address and time.
    pub(crate) modules: &'a StackModules,
}

impl<'a, 'e> Line<'a, 'e> {
    fn pid(&self) -> Option<u32> {
        known_id(self.event.process_id())
    }

    fn tid(&self) -> Option<u32> {
        known_id(self.event.thread_id())
    }

    fn process(&self) -> Option<&'a Arc<str>> {
        self.names.processes.name(self.pid()?, self.event.time_ns())
    }

    fn utc(&self) -> String {
        let filetime = self.event.clock().to_filetime(self.event.raw_time());
        facts::utc(filetime)
    }

    /// Returns the number that identifies the event within its provider. The first value is the kind of this
    /// number.
    fn number(&self) -> (&'static str, Option<u16>) {
        match EventKind::new(self.event) {
            EventKind::Provider { id, .. } => ("id", Some(id)),
            EventKind::Message { number, .. } => ("message", Some(number)),
            EventKind::Kernel { hook, .. } => ("opcode", Some(hook & 0xFF)),
            EventKind::Classic { opcode, .. } => ("opcode", Some(opcode.into())),
            EventKind::Bare | EventKind::Further => ("id", None),
        }
    }

    /// Returns the addresses of the event's stack, innermost first. The stack is attached to the event, or
    /// the event itself is a stack.
    fn stack(&self) -> Option<Vec<u64>> {
        if self.is_stack() {
            return match self.decoded.fields.get("Addresses")? {
                Value::Array(addresses) => {
                    Some(addresses.iter().filter_map(Value::as_u64).collect())
                }
                _ => None,
            };
        }
        self.event.extended_items().find_map(|item| {
            let addresses = item.data.get(8..)?;
            match item.ext_type {
                ext_type::STACK_TRACE_32 => Some(
                    addresses
                        .as_chunks::<4>()
                        .0
                        .iter()
                        .filter_map(|a| le::u32(a, 0).map(u64::from))
                        .collect(),
                ),
                ext_type::STACK_TRACE_64 => Some(
                    addresses
                        .as_chunks::<8>()
                        .0
                        .iter()
                        .filter_map(|a| le::u64(a, 0))
                        .collect(),
                ),
                _ => None,
            }
        })
    }

    /// Returns true if the event is a stack, which the kernel logs as a separate event.
    fn is_stack(&self) -> bool {
        const STACK_WALK: u16 = 0x18;
        self.event
            .hook()
            .is_some_and(|hook| hook >> 8 == STACK_WALK)
    }

    /// Formats an address of the stack with its module and function.
    fn frame(&self, address: u64) -> Option<String> {
        let pid = processes_in(&self.decoded.fields.values).find(|_| self.is_stack());
        let time_ns = self.event.time_ns();
        self.names
            .modules
            .name(pid.or(self.pid()), address, time_ns)
    }

    fn related_activity(&self) -> Option<Guid> {
        let mut items = self.event.extended_items();
        Guid::read(
            items
                .find(|i| i.ext_type == ext_type::RELATED_ACTIVITY_ID)?
                .data,
        )
    }

    /// Returns the selected fields with unique names.
    fn fields<'c>(
        &'c self,
        choice: &'c Choice,
    ) -> impl Iterator<Item = (Cow<'c, str>, &'c Value<'e>)> {
        let mut names = OwnNames::default();
        let values = self.decoded.fields.values.iter();
        values
            .filter(|(name, _)| choice.wants(name))
            .map(move |(name, value)| (names.own(name), value))
    }

    /// Writes the event as a line of text.
    pub(crate) fn write_text(&self, out: &mut dyn Write, choice: &Choice) -> io::Result<()> {
        const TIME: Style = Style::new().dimmed();
        const NAME: Style = Style::new().bold();
        let identity = &self.decoded.identity;
        let id = |id: Option<u32>| id.map(|id| id.to_string()).unwrap_or_default();
        write!(
            out,
            "{TIME}{:>16}{TIME:#} {:>3} {:>6} {:>6} ",
            seconds(self.event.time_ns()),
            self.event.cpu(),
            id(self.pid()),
            id(self.tid()),
        )?;
        if let Some(process) = self.process() {
            write!(out, "{} ", Quoted(process))?;
        }
        write!(out, "{NAME}")?;
        if self.event.hook().is_none() {
            match (&identity.provider, identity.guid) {
                (Some(provider), _) => write!(out, "{} ", Printable(provider))?,
                (None, Some(guid)) => write!(out, "{guid} ")?,
                (None, None) => {}
            }
        }
        match (&identity.name, self.number()) {
            (Some(name), _) => write!(out, "{}", Printable(name))?,
            (None, (what, Some(number))) => write!(out, "{what} {number}")?,
            (None, (_, None)) => write!(out, "{}", self.event.kind().name())?,
        }
        write!(out, "{NAME:#}")?;
        if let Some(message) = &self.decoded.message {
            write!(out, " {}", Quoted(message))?;
        }
        let shown_below = choice.stacks && self.is_stack();
        let fields = self.fields(choice);
        for (name, value) in fields.filter(|(name, _)| !(shown_below && name == "Addresses")) {
            write!(out, " {}=", Printable(&name))?;
            match value {
                Value::Text(text) => write!(out, "{}", Quoted(text))?,
                Value::Bytes(bytes) => write_bytes(out, bytes)?,
                other => write!(out, "{}", Printable(&other.to_string()))?,
            }
        }
        if let Some(field) = &self.decoded.fields.truncated {
            write!(out, " (payload ends inside {})", Printable(field))?;
        }
        if choice.fields.is_empty() && !self.decoded.fields.tail.is_empty() {
            let what = self.decoded.source.map_or("payload", |_| "tail");
            write!(out, " {what}=")?;
            write_bytes(out, self.decoded.fields.tail)?;
        }
        writeln!(out)?;
        for address in self.stack().filter(|_| choice.stacks).iter().flatten() {
            let frame = self.frame(*address).unwrap_or_default();
            let line = format!("{:>37}{address:#018x} {}", "", Printable(&frame));
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes the event as the JSON object that `docs/events-json.md` describes, in one line.
    pub(crate) fn write_json(&self, out: &mut dyn Write, choice: &Choice) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::new(&mut *out);
        self.serialize(choice, &mut serializer)?;
        writeln!(out)
    }

    fn serialize<S: Serializer>(&self, choice: &Choice, serializer: S) -> Result<S::Ok, S::Error> {
        let (event, identity) = (self.event, &self.decoded.identity);
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("time_ns", &event.time_ns())?;
        object.serialize_entry("time", &self.utc())?;
        object.serialize_entry("cpu", &event.cpu())?;
        put(&mut object, "pid", self.pid())?;
        put(&mut object, "tid", self.tid())?;
        put(&mut object, "process", self.process())?;
        put(&mut object, "provider", identity.provider.as_ref())?;
        put(&mut object, "guid", identity.guid.map(Shown))?;
        put(&mut object, "event", identity.name.as_ref())?;
        match self.number() {
            ("opcode", _) => {}
            ("message", number) => put(&mut object, "number", number)?,
            (what, number) => put(&mut object, what, number)?,
        }
        put(&mut object, "opcode", event.opcode())?;
        put(&mut object, "version", event.version())?;
        put(&mut object, "level", event.level())?;
        let keyword = event.descriptor().map(|d| format!("{:#x}", d.keyword));
        put(&mut object, "keyword", keyword)?;
        object.serialize_entry("header", event.kind().name())?;
        put(&mut object, "activity_id", event.activity_id().map(Shown))?;
        let related = self.related_activity().map(Shown);
        put(&mut object, "related_activity_id", related)?;
        put(&mut object, "message", self.decoded.message.as_ref())?;
        let fields = JsonFields { line: self, choice };
        object.serialize_entry("fields", &fields)?;
        let truncated = self.decoded.fields.truncated.as_ref();
        put(&mut object, "truncated", truncated)?;
        let tail = Some(self.decoded.fields.tail)
            .filter(|tail| !tail.is_empty() && choice.fields.is_empty());
        put(&mut object, "tail", tail.map(Value::Bytes).map(Shown))?;
        if choice.stacks {
            let stack = self.stack();
            let frames = stack.iter().flatten().map(|address| self.frame(*address));
            let frames: Vec<_> = frames.collect();
            let stack = stack.map(|s| s.into_iter().map(Value::Pointer).map(Shown).collect());
            put::<Vec<_>, _>(&mut object, "stack", stack)?;
            let known = frames.iter().any(Option::is_some);
            put(&mut object, "stack_modules", known.then_some(&frames))?;
        }
        object.end()
    }

    /// Returns the cells of the event's CSV row. They are in the order of [`csv_headings`].
    pub(crate) fn to_csv(&self, choice: &Choice) -> Vec<String> {
        let identity = &self.decoded.identity;
        let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
        let text = |t: Option<&Arc<str>>| t.map(|t| t.to_string()).unwrap_or_default();
        let (what, id) = self.number();
        let mut cells = vec![
            self.event.time_ns().to_string(),
            self.utc(),
            self.event.cpu().to_string(),
            number(self.pid()),
            number(self.tid()),
            text(self.process()),
            text(identity.provider.as_ref()),
            identity.guid.map(|g| g.to_string()).unwrap_or_default(),
            text(identity.name.as_ref()),
            number(id.filter(|_| what != "opcode").map(u32::from)),
            number(self.event.opcode().map(u32::from)),
            number(self.event.version().map(u32::from)),
            self.decoded.message.clone().unwrap_or_default(),
        ];
        if choice.fields.is_empty() {
            let fields = JsonFields { line: self, choice };
            cells.push(serde_json::to_string(&fields).unwrap_or_default());
        }
        for wanted in &choice.fields {
            let mut values = self.decoded.fields.values.iter();
            let value = values.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            cells.push(value.map(|(_, v)| v.to_string()).unwrap_or_default());
        }
        cells
    }
}

/// Returns the header row of CSV output.
pub(crate) fn csv_headings(choice: &Choice) -> Vec<&str> {
    let mut headings = vec![
        "time_ns", "time", "cpu", "pid", "tid", "process", "provider", "guid", "event", "id",
        "opcode", "version", "message",
    ];
    if choice.fields.is_empty() {
        headings.push("fields");
    }
    headings.extend(choice.fields.iter().map(String::as_str));
    headings
}

/// Writes the header line of text output.
pub(crate) fn write_heading(out: &mut dyn Write) -> io::Result<()> {
    const HEADING: Style = Style::new().dimmed();
    writeln!(
        out,
        "{HEADING}{:>16} {:>3} {:>6} {:>6} event{HEADING:#}",
        "seconds", "cpu", "pid", "tid"
    )
}

/// Writes the first 48 bytes. If there are more bytes, also writes the number of bytes that were left out.
fn write_bytes(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    const SHOWN: usize = 48;
    let (shown, rest) = bytes.split_at(bytes.len().min(SHOWN));
    write!(out, "{}", Value::Bytes(shown))?;
    match rest.len() {
        0 => Ok(()),
        more => write!(out, "…(+{more} bytes)"),
    }
}

/// Formats nanoseconds as seconds, without rounding.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Adds an entry to a JSON object if there is a value.
fn put<T: Serialize, M: SerializeMap>(
    object: &mut M,
    name: &'static str,
    value: Option<T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => object.serialize_entry(name, &value),
        None => Ok(()),
    }
}

/// Wrapper that serializes a value as the text that `Display` gives.
struct Shown<T>(T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Selected fields of an event, serialized as a JSON object.
struct JsonFields<'l, 'a, 'e> {
    line: &'l Line<'a, 'e>,
    choice: &'l Choice,
}

impl Serialize for JsonFields<'_, '_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.line.fields(self.choice);
        serializer.collect_map(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(seconds(0), "0.000000000");
        assert_eq!(seconds(-100), "-0.000000100");
        assert_eq!(seconds(12_345_678_901), "12.345678901");
        assert_eq!(seconds(i64::MIN), "-9223372036.854775808");
    }
}
