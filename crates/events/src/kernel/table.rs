//! Table of the kernel's classes and event layouts, from `data/kernel-events.txt`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use etl::{Event, Guid, HeaderKind};

use super::names;
use crate::ids::hook;
use crate::schema::{BitField, Count, Field, InType, Length, OutType, Schema, Source};

/// Class of kernel events. In the MOF repository of Windows, the class is an event class. In the kernel, the
/// class is a group of hooks (kernel event ids).
#[derive(Debug)]
pub struct Class {
    /// Name of the class: `Process`, `Thread`, `PerfInfo`, …
    pub name: &'static str,
    /// High byte of the class's hook ids; `None` if the class has only a GUID.
    pub group: Option<u8>,
    /// GUID of the class. FULL event headers of the class's events contain this GUID.
    pub guid: Guid,
    opcodes: BTreeMap<u8, Opcode>,
    /// Names of all 256 opcodes in the form `Class/Event`. They are built on first use.
    full_names: OnceLock<Vec<Arc<str>>>,
}

/// Name and layouts of one opcode.
#[derive(Debug)]
struct Opcode {
    name: &'static str,
    /// Versions and their layouts. The highest version comes first.
    layouts: Vec<(u8, Arc<Layout>)>,
}

/// One layout. It is parsed on first use, because most traces need few layouts.
#[derive(Debug)]
struct Layout {
    class: Guid,
    class_name: &'static str,
    name: &'static str,
    fields: Arc<str>,
    schema: OnceLock<Arc<Schema>>,
}

impl Layout {
    fn schema(&self) -> &Arc<Schema> {
        self.schema.get_or_init(|| {
            Arc::new(Schema {
                provider: self.class,
                provider_name: Some(self.class_name.into()),
                name: self.name.into(),
                message: None,
                source: Source::Kernel,
                fields: parse_fields(&self.fields, ';'),
            })
        })
    }
}

struct Table {
    classes: Vec<Class>,
    /// Index in `classes` of each hook group's class. The position in this list is the number of the group.
    by_group: Vec<Option<usize>>,
    by_guid: HashMap<Guid, usize>,
    hooks: HashMap<u16, &'static str>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let classes = parse_events(include_str!("../../data/kernel-events.txt"));
    Table {
        by_group: (0..=u8::MAX)
            .map(|group| classes.iter().position(|class| class.group == Some(group)))
            .collect(),
        by_guid: (0..)
            .zip(&classes)
            .map(|(i, class)| (class.guid, i))
            .collect(),
        hooks: parse_hooks(include_str!("../../data/kernel-hooks.txt")).collect(),
        classes,
    }
});

/// Returns all classes.
pub fn classes() -> &'static [Class] {
    &TABLE.classes
}

impl Class {
    /// Returns the class of a hook group.
    pub fn of_group(group: u8) -> Option<&'static Class> {
        TABLE.by_group[usize::from(group)].map(|i| &TABLE.classes[i])
    }

    /// Returns the class of a GUID.
    pub fn of_guid(guid: Guid) -> Option<&'static Class> {
        TABLE.by_guid.get(&guid).map(|i| &TABLE.classes[*i])
    }

    /// Returns the class and opcode of a hook id.
    pub fn of_hook(hook: u16) -> Option<(&'static Class, u8)> {
        // The hooks of image loads are in the group of the process class. But their events belong to the
        // image class.
        let hook = match hook {
            hook::PROCESS_LOAD_IMAGE => hook::IMAGE_LOAD,
            hook => hook,
        };
        let [group, opcode] = hook.to_be_bytes();
        Some((Class::of_group(group)?, opcode))
    }

    /// Returns the class and the opcode of an event. Returns `None` if the event is not a classic event of
    /// the kernel.
    pub fn of_event(event: &Event<'_>) -> Option<(&'static Class, u8)> {
        match event.kind() {
            HeaderKind::Full32
            | HeaderKind::Full64
            | HeaderKind::Instance32
            | HeaderKind::Instance64 => Some((Class::of_guid(event.guid()?)?, event.opcode()?)),
            _ => Class::of_hook(event.hook()?),
        }
    }

    /// Returns the layout of an opcode's events in `version`. If `version` is unknown, returns the layout of
    /// the next lower known version.
    pub fn layout(&'static self, opcode: u8, version: u8) -> Option<&'static Arc<Schema>> {
        let layouts = &self.opcodes.get(&opcode)?.layouts;
        layouts
            .iter()
            .find(|(known, _)| *known <= version)
            .map(|(_, layout)| layout.schema())
    }

    /// Returns the name of an opcode's event. This is the name in the layouts, for example `DCStart`. If the
    /// layouts have no name, returns the kernel's name of the hook, for example `PROCESS_CREATE`.
    pub fn event_name(&self, opcode: u8) -> Option<&'static str> {
        match self.opcodes.get(&opcode) {
            Some(opcode) => Some(opcode.name),
            None => hook_name(u16::from_be_bytes([self.group?, opcode])),
        }
    }

    /// Returns the name of the class and the name of the opcode's event, such as `Process/DCStart`. If the
    /// event has no name, the opcode replaces the name.
    pub(crate) fn full_name(&self, opcode: u8) -> &Arc<str> {
        let names = self.full_names.get_or_init(|| {
            let name = |opcode: u8| match self.event_name(opcode) {
                Some(name) => format!("{}/{name}", self.name),
                None => format!("{}/{opcode}", self.name),
            };
            (0..=u8::MAX).map(|opcode| name(opcode).into()).collect()
        });
        &names[usize::from(opcode)]
    }

    /// Returns all known layouts, with their opcodes and versions.
    pub fn layouts(&'static self) -> impl Iterator<Item = (u8, u8, &'static Arc<Schema>)> {
        self.opcodes.iter().flat_map(|(opcode, entry)| {
            entry
                .layouts
                .iter()
                .map(|(version, layout)| (*opcode, *version, layout.schema()))
        })
    }
}

/// Returns the name that the kernel uses for a hook id, for example `CONTEXTSWAP`.
pub fn hook_name(hook: u16) -> Option<&'static str> {
    TABLE.hooks.get(&hook).copied()
}

/// Returns the layout of a kernel event's payload.
pub fn schema(event: &Event<'_>) -> Option<&'static Arc<Schema>> {
    let (class, opcode) = Class::of_event(event)?;
    class.layout(opcode, event.version()?)
}

/// Returns the class of a kernel event.
pub fn class_name(event: &Event<'_>) -> Option<&'static str> {
    Class::of_event(event).map(|(class, _)| class.name)
}

/// Returns the name of a kernel event within its class.
pub fn event_name(event: &Event<'_>) -> Option<&'static str> {
    let (class, opcode) = Class::of_event(event)?;
    class.event_name(opcode)
}

// The table is part of the program, so a mistake in the table is a bug. Therefore the functions below panic
// and show the faulty line. The tests read the whole table.

fn parse_hooks(text: &'static str) -> impl Iterator<Item = (u16, &'static str)> {
    text.lines()
        .filter(|line| line.starts_with("0x"))
        .map(|line| {
            let (hook, name) = line.split_once(' ').unwrap_or_else(|| bad(line));
            (
                u16::from_str_radix(&hook[2..], 16).unwrap_or_else(|_| bad(line)),
                name,
            )
        })
}

fn parse_events(text: &'static str) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    let mut lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[') {
            classes.push(parse_class(heading.trim_end_matches(']')));
            continue;
        }
        let class = classes.last_mut().unwrap_or_else(|| bad(line));
        let mut events = vec![line];
        while !events.last().is_some_and(|line| line.ends_with(':')) {
            events.push(lines.next().unwrap_or_else(|| bad(line)));
        }
        let mut fields = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with(' ')) {
            fields.push_str(more.trim());
            fields.push(' ');
        }
        add_layout(class, &events, &fields);
    }
    for opcode in classes
        .iter_mut()
        .flat_map(|class| class.opcodes.values_mut())
    {
        opcode
            .layouts
            .sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    }
    classes
}

/// Parses the heading of a class: `Process 0x03 3d6fa8d0-…`.
fn parse_class(heading: &'static str) -> Class {
    let mut words = heading.split(' ');
    let mut next = || words.next().unwrap_or_else(|| bad(heading));
    Class {
        name: next(),
        group: match next() {
            "-" => None,
            group => Some(u8::from_str_radix(&group[2..], 16).unwrap_or_else(|_| bad(heading))),
        },
        guid: next().parse().unwrap_or_else(|_| bad(heading)),
        opcodes: BTreeMap::new(),
        full_names: OnceLock::new(),
    }
}

/// Adds a layout with `fields` to all events in the lines `events`. An example of a line is `1 Start, 2 End
/// v2-3 v5, 39 Defunct v2:`. If an event has no versions, the versions of the next event apply to it.
fn add_layout(class: &mut Class, events: &[&'static str], fields: &str) {
    let fields: Arc<str> = fields.into();
    let mut waiting: Vec<(u8, &'static str)> = Vec::new();
    for event in events
        .iter()
        .flat_map(|line| line.split([',', ':']))
        .map(str::trim)
    {
        let mut words = event.split(' ');
        let (Some(opcode), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        waiting.push((opcode.parse().unwrap_or_else(|_| bad(event)), name));
        let versions: Vec<u8> = words.flat_map(parse_versions).collect();
        if versions.is_empty() {
            continue;
        }
        for (opcode, name) in waiting.drain(..) {
            let layout = Arc::new(Layout {
                class: class.guid,
                class_name: class.name,
                name,
                fields: fields.clone(),
                schema: OnceLock::new(),
            });
            let known = class.opcodes.entry(opcode).or_insert(Opcode {
                name,
                layouts: Vec::new(),
            });
            known
                .layouts
                .extend(versions.iter().map(|version| (*version, layout.clone())));
        }
    }
}

/// Parses a range of versions: `v2` or `v2-4`.
fn parse_versions(word: &str) -> std::ops::RangeInclusive<u8> {
    let number = |text: &str| text.parse().unwrap_or_else(|_| bad(word));
    let range = word.strip_prefix('v').unwrap_or_else(|| bad(word));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    number(first)..=number(last)
}

/// Parses fields of the form `Name type`, with `separator` between them.
fn parse_fields(text: &str, separator: char) -> Vec<Field> {
    text.split(separator)
        .map(str::trim)
        .filter(|field| !field.is_empty())
        .map(parse_field)
        .collect()
}

fn parse_field(text: &str) -> Field {
    if text == "align" {
        return Field::new("", InType::Align);
    }
    let (name, of_type) = text.split_once(' ').unwrap_or_else(|| bad(text));
    let (of_type, optional) = match of_type.strip_suffix('?') {
        Some(of_type) => (of_type, true),
        None => (of_type, false),
    };
    let (of_type, map) = match of_type.split_once('=') {
        Some((of_type, map)) => (
            of_type,
            Some(Arc::new(names::value_map(map).unwrap_or_else(|| bad(text)))),
        ),
        None => (of_type, None),
    };
    let (of_type, number) = match of_type.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
        Some((of_type, number)) => (of_type, Some(number)),
        None => (of_type, None),
    };
    let (of_type, braced) = match of_type.strip_suffix('}').and_then(|t| t.split_once('{')) {
        Some((of_type, braced)) => (of_type, braced),
        None => (of_type, ""),
    };
    let mut field = Field {
        optional,
        map,
        ..Field::new(name, InType::Null)
    };
    (field.in_type, field.out_type) = match of_type {
        "struct" => (InType::Struct(parse_fields(braced, ',')), OutType::Default),
        _ => parse_type(of_type).unwrap_or_else(|| bad(text)),
    };
    if of_type != "struct" {
        field.bits = parse_bits(braced);
    }
    match (of_type, number) {
        ("wchar" | "bytes", Some("rest")) => {}
        ("wchar" | "bytes", Some(number)) => {
            field.length = match number.parse() {
                Ok(length) => Length::Fixed(length),
                Err(_) => Length::Field(number.into()),
            };
        }
        ("ipv6", None) => field.length = Length::Fixed(16),
        (_, Some("rest")) => field.count = Count::Rest,
        (_, Some(number)) => {
            field.count = match number.parse() {
                Ok(count) => Count::Fixed(count),
                Err(_) => Count::Field(number.into()),
            };
        }
        (_, None) => {}
    }
    field
}

fn parse_type(text: &str) -> Option<(InType, OutType)> {
    let in_type = match text {
        "u8" => InType::U8,
        "u16" => InType::U16,
        "u32" => InType::U32,
        "u64" => InType::U64,
        "i8" => InType::I8,
        "i16" => InType::I16,
        "i32" => InType::I32,
        "i64" => InType::I64,
        "hex32" => InType::Hex32,
        "bool8" => InType::Bool8,
        "ptr" => InType::Pointer,
        "sizet" => InType::SizeT,
        "filetime" => InType::FileTime,
        "systemtime" => InType::SystemTime,
        "guid" => InType::Guid,
        "sid" => InType::WbemSid,
        "asz" => InType::Ansi,
        "wsz" | "wchar" => InType::Utf16,
        "bytes" => InType::Binary,
        "utf8z" => return Some((InType::Ansi, OutType::Utf8)),
        "status" => return Some((InType::U32, OutType::NtStatus)),
        "port" => return Some((InType::U16, OutType::Port)),
        "ipv4" => return Some((InType::U32, OutType::Ipv4)),
        "ipv6" => return Some((InType::Binary, OutType::Ipv6)),
        _ => return None,
    };
    Some((in_type, OutType::Default))
}

/// Parses bit fields with names and widths, such as `A:1, _:2, B:3`. The first bit field starts at the lowest
/// bit. `_` marks unused bits.
fn parse_bits(text: &str) -> Vec<BitField> {
    let mut low = 0;
    let mut bits = Vec::new();
    for part in text.split(", ").filter(|part| !part.is_empty()) {
        let (name, width) = part.split_once(':').unwrap_or_else(|| bad(text));
        let width = width.parse().unwrap_or_else(|_| bad(text));
        if name != "_" {
            bits.push(BitField {
                name: name.into(),
                low,
                width,
            });
        }
        low += width;
    }
    bits
}

fn bad(what: &str) -> ! {
    panic!("kernel table: cannot read `{what}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the field names of a layout.
    fn fields(hook: u16, version: u8) -> Vec<String> {
        let (class, opcode) = Class::of_hook(hook).unwrap();
        let schema = class.layout(opcode, version).unwrap();
        schema
            .fields
            .iter()
            .map(|field| field.name.to_string())
            .collect()
    }

    #[test]
    fn the_whole_table_is_read() {
        // The expected numbers are the number of layouts and classes in `data/kernel-events.txt` and the
        // number of hooks in `data/kernel-hooks.txt`.
        assert_eq!(classes().iter().flat_map(Class::layouts).count(), 690);
        assert_eq!(classes().len(), 38);
        assert_eq!(TABLE.hooks.len(), 593);
        for (_, _, schema) in classes().iter().flat_map(Class::layouts) {
            let names: Vec<_> = schema.fields.iter().map(|field| &field.name).collect();
            for field in &schema.fields {
                if let Count::Field(name) = &field.count {
                    assert!(names.contains(&name), "{schema:?}");
                }
            }
        }
    }

    #[test]
    fn classes_are_found_by_group_and_guid() {
        // These GUIDs are from Microsoft's ETW reference.
        let thread: Guid = "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c".parse().unwrap();
        assert_eq!(Class::of_guid(thread).unwrap().name, "Thread");
        assert_eq!(Class::of_group(5).unwrap().guid, thread);
        assert!(Class::of_group(0x1F).is_none());
        let lost: Guid = "6a399ae0-4bc6-4de9-870b-3657f8947e7e".parse().unwrap();
        assert_eq!(Class::of_guid(lost).unwrap().group, None);
    }

    #[test]
    fn the_highest_version_not_above_the_events_is_taken() {
        assert_eq!(fields(0x0524, 5).len(), fields(0x0524, 9).len());
        assert!(fields(0x0524, 5).len() > fields(0x0524, 4).len());
        let (process, start) = Class::of_hook(0x0301).unwrap();
        assert_eq!(fields(0x0301, 2)[0], "UniqueProcessKey");
        assert_eq!(fields(0x0301, 1)[0], "PageDirectoryBase");
        assert_eq!(process.event_name(start), Some("Start"));
        // The table contains the event Terminate since version 2.
        assert!(process.layout(11, 1).is_none() && process.layout(11, 2).is_some());
        assert!(process.layout(200, 2).is_none());
    }

    #[test]
    fn image_loads_of_the_process_group_are_the_image_classs() {
        let (class, opcode) = Class::of_hook(0x030A).unwrap();
        assert_eq!((class.name, opcode), ("Image", 10));
        assert_eq!(class.event_name(opcode), Some("Load"));
        assert_eq!(fields(0x030A, 3), fields(0x1402, 3));
    }

    #[test]
    fn hooks_without_a_layout_have_a_name() {
        assert_eq!(hook_name(0x0524), Some("CONTEXTSWAP"));
        let (disk, _) = Class::of_hook(0x0120).unwrap();
        assert_eq!(disk.event_name(0x20), Some("DRIVER_INIT"));
        assert_eq!(disk.event_name(0xEE), None);
    }

    #[test]
    fn heap_structures_are_aligned() {
        let (heap, create) = Class::of_hook(0x1020).unwrap();
        let types: Vec<_> = heap
            .layout(create, 2)
            .unwrap()
            .fields
            .iter()
            .map(|f| &f.in_type)
            .collect();
        use InType::{Align, Hex32, Pointer, SizeT};
        assert_eq!(types, [&Pointer, &Hex32, &Align, &SizeT, &SizeT, &SizeT]);
    }
}
