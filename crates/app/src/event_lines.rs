//! Formats decoded events as text lines, JSON lines and CSV.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use etl::{Event, Guid, ext_type, le};
use events::{Decoded, OwnNames, Value};
use facts::{EventKind, Processes, known_id, processes_in};
use import_linux::LinuxDecoder;
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
    /// Facts of the event's header.
    pub(crate) header: Header,
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

/// Facts of an event's header. Facts that the event does not have are `None`.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// Nanoseconds since the trace's start.
    pub(crate) time_ns: i64,
    /// Time of day as a FILETIME.
    pub(crate) unix_ns: Option<i64>,
    pub(crate) cpu: Option<u32>,
    pub(crate) process_id: Option<u32>,
    pub(crate) thread_id: Option<u32>,
    /// Name of the header's kind.
    pub(crate) kind: &'static str,
    /// Number that identifies the event within its provider.
    pub(crate) number: Number,
    pub(crate) opcode: Option<u8>,
    pub(crate) version: Option<u8>,
    pub(crate) level: Option<u8>,
    pub(crate) keyword: Option<u64>,
    pub(crate) activity: Option<Guid>,
    pub(crate) related_activity: Option<Guid>,
    /// Text between the names of provider and event; `None` if text lines do not show the provider.
    pub(crate) separator: Option<&'static str>,
    /// Addresses of the event's stack, innermost first. `None` if the output has no stacks.
    pub(crate) stack: Option<Vec<u64>>,
    /// True if the event itself is a stack, which the kernel logs as a separate event.
    pub(crate) is_stack: bool,
}

/// Number that identifies an event within its provider.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Number {
    /// The event has no number.
    #[default]
    None,
    /// Id.
    Id(u16),
    /// Number of a message.
    Message(u16),
    /// Opcode of a kernel or classic event.
    Opcode(u16),
}

impl Header {
    /// Returns the facts of an event of Windows. The stack is left out if `choice` does not ask for stacks.
    pub(crate) fn of_windows(event: &Event<'_>, decoded: &Decoded<'_>, choice: &Choice) -> Header {
        let is_stack = is_stack(event);
        Header {
            time_ns: event.time_ns(),
            unix_ns: i64::try_from(event.clock().to_unix_ns(event.raw_time())).ok(),
            cpu: Some(event.cpu().into()),
            process_id: known_id(event.process_id()),
            thread_id: known_id(event.thread_id()),
            kind: event.kind().name(),
            number: match EventKind::new(event) {
                EventKind::Provider { id, .. } => Number::Id(id),
                EventKind::Message { number, .. } => Number::Message(number),
                EventKind::Kernel { hook, .. } => Number::Opcode(hook & 0xFF),
                EventKind::Classic { opcode, .. } => Number::Opcode(opcode.into()),
                EventKind::Bare | EventKind::Further => Number::None,
            },
            opcode: event.opcode(),
            version: event.version(),
            level: event.level(),
            keyword: event.descriptor().map(|descriptor| descriptor.keyword),
            activity: event.activity_id(),
            related_activity: related_activity(event),
            separator: event.hook().is_none().then_some(" "),
            stack: if choice.stacks {
                stack(event, decoded, is_stack)
            } else {
                None
            },
            is_stack,
        }
    }

    /// Returns the facts of an event of Linux. `unix_ns` is its time of day. The stack is left out if `choice` does
    /// not ask for stacks.
    pub(crate) fn of_linux(
        event: &linux::Event<'_>,
        decoder: &LinuxDecoder<'_>,
        unix_ns: Option<i64>,
        choice: &Choice,
    ) -> Header {
        let id = event
            .attribute()
            .and_then(|attribute| decoder.id(attribute));
        let chain = event.chain().filter(|_| choice.stacks);
        let chain = chain.map(|chain| chain.addresses().collect());
        let running = match &event.kind {
            linux::EventKind::Tracepoint { tracepoint, .. } => Some(tracepoint.thread_id),
            _ => None,
        };
        Header {
            time_ns: decoder.time_ns(event),
            unix_ns,
            cpu: event.cpu,
            process_id: event.process_id,
            // When a thread ends, its event may have no thread id, but the fields of the tracepoint still have the id.
            thread_id: event.thread_id.or(running),
            kind: decoder.form(),
            number: id.map_or(Number::None, Number::Id),
            separator: Some(":"),
            stack: chain.filter(|chain: &Vec<u64>| !chain.is_empty()),
            ..Header::default()
        }
    }

    fn utc(&self) -> Option<String> {
        self.unix_ns.map(tables::utc)
    }
}

/// Returns the addresses of the event's stack, innermost first. The stack is attached to the event, or the event itself
/// is a stack.
fn stack(event: &Event<'_>, decoded: &Decoded<'_>, is_stack: bool) -> Option<Vec<u64>> {
    if is_stack {
        return match decoded.fields.get("Addresses")? {
            Value::Array(addresses) => Some(addresses.iter().filter_map(Value::as_u64).collect()),
            _ => None,
        };
    }
    event.extended_items().find_map(|item| {
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
fn is_stack(event: &Event<'_>) -> bool {
    const STACK_WALK: u16 = 0x18;
    event.hook().is_some_and(|hook| hook >> 8 == STACK_WALK)
}

fn related_activity(event: &Event<'_>) -> Option<Guid> {
    let mut items = event.extended_items();
    let item = items.find(|i| i.ext_type == ext_type::RELATED_ACTIVITY_ID)?;
    Guid::read(item.data)
}

impl<'a, 'e> Line<'a, 'e> {
    fn process(&self) -> Option<&'a Arc<str>> {
        let process_id = self.header.process_id?;
        self.names.processes.name(process_id, self.header.time_ns)
    }

    /// Formats an address of the stack with its module and function.
    fn frame(&self, address: u64) -> Option<String> {
        let header = &self.header;
        let pid = processes_in(&self.decoded.fields.values).find(|_| header.is_stack);
        let pid = pid.or(header.process_id);
        self.names.modules.name(pid, address, header.time_ns)
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
        let (header, identity) = (&self.header, &self.decoded.identity);
        let id = |id: Option<u32>| id.map(|id| id.to_string()).unwrap_or_default();
        write!(
            out,
            "{TIME}{:>16}{TIME:#} {:>3} {:>6} {:>6} ",
            seconds(header.time_ns),
            id(header.cpu),
            id(header.process_id),
            id(header.thread_id),
        )?;
        if let Some(process) = self.process() {
            write!(out, "{} ", Quoted(process))?;
        }
        write!(out, "{NAME}")?;
        if let Some(separator) = header.separator {
            match (&identity.provider, identity.guid) {
                (Some(provider), _) => write!(out, "{}{separator}", Printable(provider))?,
                (None, Some(guid)) => write!(out, "{guid} ")?,
                (None, None) => {}
            }
        }
        match (&identity.name, header.number) {
            (Some(name), _) => write!(out, "{}", Printable(name))?,
            (None, Number::Id(id)) => write!(out, "id {id}")?,
            (None, Number::Message(number)) => write!(out, "message {number}")?,
            (None, Number::Opcode(opcode)) => write!(out, "opcode {opcode}")?,
            (None, Number::None) => write!(out, "{}", header.kind)?,
        }
        write!(out, "{NAME:#}")?;
        if let Some(message) = &self.decoded.message {
            write!(out, " {}", Quoted(message))?;
        }
        let shown_below = choice.stacks && header.is_stack;
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
        for address in header.stack.iter().flatten() {
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
        let (header, identity) = (&self.header, &self.decoded.identity);
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("time_ns", &header.time_ns)?;
        put(&mut object, "time", header.utc())?;
        put(&mut object, "cpu", header.cpu)?;
        put(&mut object, "pid", header.process_id)?;
        put(&mut object, "tid", header.thread_id)?;
        put(&mut object, "process", self.process())?;
        put(&mut object, "provider", identity.provider.as_ref())?;
        put(&mut object, "guid", identity.guid.map(Shown))?;
        put(&mut object, "event", identity.name.as_ref())?;
        match header.number {
            Number::None | Number::Opcode(_) => {}
            Number::Message(number) => object.serialize_entry("number", &number)?,
            Number::Id(id) => object.serialize_entry("id", &id)?,
        }
        put(&mut object, "opcode", header.opcode)?;
        put(&mut object, "version", header.version)?;
        put(&mut object, "level", header.level)?;
        let keyword = header.keyword.map(|keyword| format!("{keyword:#x}"));
        put(&mut object, "keyword", keyword)?;
        object.serialize_entry("header", header.kind)?;
        put(&mut object, "activity_id", header.activity.map(Shown))?;
        let related = header.related_activity.map(Shown);
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
            let stack = &header.stack;
            let frames = stack.iter().flatten().map(|address| self.frame(*address));
            let frames: Vec<_> = frames.collect();
            let shown = |address: &u64| Shown(Value::Pointer(*address));
            let stack = stack.as_ref().map(|it| it.iter().map(shown).collect());
            put::<Vec<_>, _>(&mut object, "stack", stack)?;
            let known = frames.iter().any(Option::is_some);
            put(&mut object, "stack_modules", known.then_some(&frames))?;
        }
        object.end()
    }

    /// Returns the cells of the event's CSV row. They are in the order of [`csv_headings`].
    pub(crate) fn to_csv(&self, choice: &Choice) -> Vec<String> {
        let (header, identity) = (&self.header, &self.decoded.identity);
        let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
        let text = |t: Option<&Arc<str>>| t.map(|t| t.to_string()).unwrap_or_default();
        let id = match header.number {
            Number::Id(number) | Number::Message(number) => Some(number.into()),
            Number::None | Number::Opcode(_) => None,
        };
        let mut cells = vec![
            header.time_ns.to_string(),
            header.utc().unwrap_or_default(),
            number(header.cpu),
            number(header.process_id),
            number(header.thread_id),
            text(self.process()),
            text(identity.provider.as_ref()),
            identity.guid.map(|g| g.to_string()).unwrap_or_default(),
            text(identity.name.as_ref()),
            number(id),
            number(header.opcode.map(u32::from)),
            number(header.version.map(u32::from)),
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
