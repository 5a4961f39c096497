//! Built-in layouts of manifest events, for traces that do not describe their own events.
//!
//! The layouts are in the text files `data/manifest-events.txt` and `data/dotnet-events.txt`. The
//! first lines of each file give its sources and syntax. A description in the trace or a manifest
//! from the user takes precedence over these layouts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use etl::Guid;

use crate::schema::{Count, Field, InType, Length, Schema, Source, ValueMap};
use crate::tdh;

const TEXTS: [&str; 2] = [
    include_str!("../data/manifest-events.txt"),
    include_str!("../data/dotnet-events.txt"),
];

/// Returns the schema of event `id` of `provider` in layout `version`. A new version of an event appends
/// fields. So for an unknown version, returns the schema of the nearest earlier version. The list of fields
/// ends before the first field whose layout is unknown.
pub fn schema(provider: Guid, id: u16, version: u8) -> Option<Arc<Schema>> {
    let events = PROVIDERS.get(&provider)?.events();
    events
        .range((id, 0)..=(id, version))
        .next_back()
        .map(|(_, schema)| schema.clone())
}

/// Returns the name of `provider` if it has built-in layouts.
pub fn provider_name(provider: Guid) -> Option<&'static str> {
    PROVIDERS.get(&provider).map(|provider| provider.name)
}

// The texts are compiled into the program, and a test reads all their lines. So errors can be ignored here.
static PROVIDERS: LazyLock<HashMap<Guid, Provider>> =
    LazyLock::new(|| providers().unwrap_or_default());

type Events = BTreeMap<(u16, u8), Arc<Schema>>;

/// A provider and the sections of `TEXTS` that describe its events.
struct Provider {
    guid: Guid,
    name: &'static str,
    texts: Vec<&'static str>,
    /// Layouts by event id and version. They are parsed on first use, because most traces have
    /// events of few providers.
    events: OnceLock<Events>,
}

/// Finds the headings of the providers in the texts. If a heading cannot be read, returns this heading as the
/// error.
fn providers() -> Result<HashMap<Guid, Provider>, &'static str> {
    const HEADING: &str = "\nprovider ";
    let mut providers = HashMap::new();
    for text in TEXTS {
        for section in text.split(HEADING).skip(1) {
            let (heading, lines) = section.split_once('\n').unwrap_or((section, ""));
            let (name, guid) = heading.rsplit_once(' ').ok_or(heading)?;
            let guid: Guid = guid.parse().map_err(|_| heading)?;
            let (texts, events) = (Vec::new(), OnceLock::new());
            let provider = providers.entry(guid).or_insert(Provider {
                guid,
                name,
                texts,
                events,
            });
            provider.texts.push(lines);
        }
    }
    Ok(providers)
}

impl Provider {
    fn events(&self) -> &Events {
        self.events.get_or_init(|| self.read().unwrap_or_default())
    }

    /// Reads the provider's lines. If a line cannot be read, returns this line as the error.
    fn read(&self) -> Result<Events, &'static str> {
        let mut events = Events::new();
        let mut maps = HashMap::new();
        let lines = self.texts.iter().flat_map(|text| text.lines());
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words = line.split_once(' ').ok_or(line)?;
            if let ("map" | "bitmap", definition) = words {
                let (name, entries) = definition.split_once(": ").ok_or(line)?;
                let entries = entries.split("; ").map(map_entry);
                let map = ValueMap {
                    name: name.into(),
                    is_bitmap: words.0 == "bitmap",
                    entries: entries.collect::<Option<_>>().ok_or(line)?,
                };
                maps.insert(name, Arc::new(map));
            } else {
                let (key, schema) = event(line, self, &maps).ok_or(line)?;
                events.insert(key, Arc::new(schema));
            }
        }
        Ok(events)
    }
}

type Maps = HashMap<&'static str, Arc<ValueMap>>;

/// Parses an entry of a value map. The entry has the form `0x1 Name`.
fn map_entry(text: &str) -> Option<(u64, Arc<str>)> {
    let (value, name) = text.split_once(' ')?;
    Some((tdh::number(value)?, name.into()))
}

/// Parses an event's line: `26 v0 Task/Opcode [Keyword …]: Field Type; …`. Returns the id, the
/// version and the schema.
fn event(line: &str, provider: &Provider, maps: &Maps) -> Option<((u16, u8), Schema)> {
    let (id, rest) = line.split_once(' ')?;
    let (version, rest) = rest.strip_prefix('v')?.split_once(' ')?;
    let (title, fields) = rest.split_once(": ").unwrap_or((rest, ""));
    let name = title
        .split_once(" [")
        .map_or(title, |(name, _keywords)| name);
    let mut reader = FieldReader { rest: fields, maps };
    let schema = Schema {
        provider: provider.guid,
        provider_name: Some(provider.name.into()),
        name: name.into(),
        message: None,
        source: Source::BuiltIn,
        fields: reader.fields()?,
    };
    Some(((id.parse().ok()?, version.parse().ok()?), schema))
}

/// Reader of the fields in an event's line.
struct FieldReader<'a> {
    rest: &'a str,
    maps: &'a Maps,
}

impl<'a> FieldReader<'a> {
    /// Reads fields up to the end of the line or struct. Stops early at a field whose layout is unknown.
    fn fields(&mut self) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with(['}', '?']) {
            fields.push(self.field()?);
            self.rest = self.rest.strip_prefix("; ").unwrap_or(self.rest);
        }
        Some(fields)
    }

    /// Reads a field: `Name Type`, or a struct `Name {Name Type; …}` with an optional count in
    /// `[]`.
    fn field(&mut self) -> Option<Field> {
        let text = self.until(&[';', '{', '}']);
        let Some(members) = self.rest.strip_prefix('{') else {
            // A name may contain spaces, but a type does not.
            let (name, field_type) = text.rsplit_once(' ')?;
            return self.typed(name, field_type);
        };
        self.rest = members;
        let members = self.fields()?;
        self.rest = self.rest.strip_prefix('}')?;
        let count = enclosed(self.until(&[';', '}']), '[', ']').map_or(Count::One, count);
        Some(Field {
            count,
            ..Field::new(text.trim_end(), InType::Struct(members))
        })
    }

    /// Reads the type of the field `name`. The form is `inType:outType(length)[count]<map>`. Only the in-type
    /// is required.
    fn typed(&self, name: &str, text: &str) -> Option<Field> {
        let types = text.split(['(', '[', '<']).next()?;
        let (in_name, out_name) = match types.split_once(':') {
            Some((in_name, out_name)) => (in_name, Some(out_name)),
            None => (types, None),
        };
        let (in_type, out_type) = tdh::by_name(in_name, out_name)?;
        let length = enclosed(text, '(', ')').map_or(Length::Natural, length);
        let count = enclosed(text, '[', ']').map_or(Count::One, count);
        let map = match enclosed(text, '<', '>') {
            Some(name) => Some(self.maps.get(name)?.clone()),
            None => None,
        };
        Some(Field {
            out_type,
            count,
            length,
            map,
            ..Field::new(name, in_type)
        })
    }

    fn until(&mut self, ends: &[char]) -> &'a str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text
    }
}

/// Returns the text between the first `open` and the next `close`.
fn enclosed(text: &str, open: char, close: char) -> Option<&str> {
    Some(text.split_once(open)?.1.split_once(close)?.0)
}

fn count(text: &str) -> Count {
    text.parse()
        .map_or_else(|_| Count::Field(text.into()), Count::Fixed)
}

fn length(text: &str) -> Length {
    text.parse()
        .map_or_else(|_| Length::Field(text.into()), Length::Fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str) -> Guid {
        *PROVIDERS
            .iter()
            .find(|(_, provider)| provider.name == name)
            .unwrap()
            .0
    }

    #[test]
    fn every_line_is_read() {
        let providers = providers().unwrap();
        let headings = TEXTS.iter().flat_map(|text| text.lines());
        let headings = headings
            .filter(|line| line.starts_with("provider "))
            .count();
        assert_eq!(
            providers.values().map(|p| p.texts.len()).sum::<usize>(),
            headings
        );
        for provider in providers.values() {
            assert_eq!(provider.read().err(), None);
        }
        let counts = |name: &str| providers[&provider(name)].events().len();
        assert_eq!(counts("Microsoft-Windows-Win32k"), 49);
        assert_eq!(counts("Microsoft-Windows-TCPIP"), 60);
        let described = TEXTS[0]
            .lines()
            .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()));
        assert_eq!(described.count(), 904);
    }

    #[test]
    fn lengths_and_counts_refer_to_earlier_fields() {
        fn check(fields: &[Field], event: &str) {
            for (index, field) in fields.iter().enumerate() {
                let earlier = |name: &str| fields[..index].iter().any(|f| &*f.name == name);
                if let Length::Field(name) = &field.length {
                    assert!(earlier(name), "{event}: no {name}");
                }
                if let Count::Field(name) = &field.count {
                    assert!(earlier(name), "{event}: no {name}");
                }
                if let InType::Struct(members) = &field.in_type {
                    check(members, event);
                }
            }
        }
        for schema in PROVIDERS
            .values()
            .flat_map(|provider| provider.events().values())
        {
            check(&schema.fields, &schema.name);
        }
    }

    #[test]
    fn versions_fall_back_to_earlier_ones() {
        let process = provider("Microsoft-Windows-Kernel-Process");
        // Version 1 of the event ProcessFreeze (id 11) appends the creation time.
        assert_eq!(schema(process, 11, 0).unwrap().fields.len(), 1);
        assert_eq!(schema(process, 11, 1).unwrap().fields.len(), 2);
        assert_eq!(schema(process, 11, 9), schema(process, 11, 1));
        assert_eq!(schema(process, 9999, 0), None);
        assert_eq!(schema(Guid::ZERO, 1, 0), None);
        // Event 26 reports a change of the keyboard focus. Public documentation gives its id and fields.
        let win32k = "8c416c79-d49b-4f01-a467-e56d3aa8234c".parse().unwrap();
        let names = schema(win32k, 26, 0).unwrap();
        let names: Vec<_> = names.fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["SessionId", "OldProcessId", "NewProcessId"]);
    }

    #[test]
    fn packets_and_addresses_have_their_lengths() {
        let ndis = "2ed6006e-4729-4609-b423-3ee7bcd678ef".parse().unwrap();
        let fragment = schema(ndis, 1001, 0).unwrap();
        let fragment = fragment
            .fields
            .iter()
            .find(|field| &*field.name == "Fragment")
            .unwrap();
        assert_eq!(fragment.length, Length::Field("FragmentSize".into()));
        let tcpip = "2f07e2ee-15db-40f1-90ef-9d7ba282188a".parse().unwrap();
        let connect = schema(tcpip, 1002, 0).unwrap();
        let address = connect
            .fields
            .iter()
            .find(|field| &*field.name == "LocalAddress")
            .unwrap();
        assert_eq!(address.length, Length::Field("LocalAddressLength".into()));
    }

    #[test]
    fn fields_end_at_an_unknown_layout() {
        // Event 16 of SMBServer ends with an array of LOCK structs. No source describes these structs. So the
        // last known field of the event is `LockCount`.
        let smb = provider("Microsoft-Windows-SMBServer");
        assert_eq!(
            &*schema(smb, 16, 2).unwrap().fields.last().unwrap().name,
            "LockCount"
        );
        assert_eq!(provider_name(smb), Some("Microsoft-Windows-SMBServer"));
    }
}
