//! One place that answers for any event: who logged it, what it is called, what it says.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, RwLock};

use etl::{Event, Guid, HeaderKind, ext_type};

use crate::decode::{Fields, decode, spans};
use crate::event_info::{
    EVENT_INFO_OPCODE, EVENT_METADATA, EventInfoError, MAP_INFO_OPCODE, parse_event_info,
    parse_map_info, resolve_maps,
};
use crate::event_source::{EventSourceManifests, MANIFEST_EVENT_ID, ManifestFault};
use crate::manifest::{ManifestError, ManifestProvider, field_count, parse_manifest};
use crate::schema::{Count, Field, InType, Schema, Source, ValueMap};
use crate::span::Spans;
use crate::text::Utf16;
use crate::wpp::{self, TmfError, TmfSet};
use crate::{built_in, kernel, tracelogging};

/// Bytes of TraceLogging schemas kept parsed, with their fields. A trace has some hundred schemas
/// of some ten fields; a hostile one may have a new one in every event, which are then parsed anew
/// each time.
const MAX_CACHED_BYTES: usize = 32 << 20;

/// Faults of metadata kept; further ones are of no more use.
const MAX_FAULTS: usize = 1000;

/// Header flag of events whose payload is one UTF-16 string.
const STRING_ONLY: u16 = 4;

/// Turns events into names and values, by everything it has been told and has learned.
///
/// Metadata can stand anywhere in a trace, so walk it once with [`Decoder::learn`] and end with
/// [`Decoder::finish_learning`] before decoding. A decoder is then only read and can be shared
/// between threads.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Events described in the trace by `TRACE_EVENT_INFO`, by provider, id and version.
    described: HashMap<(Guid, u16, u8), Arc<Schema>>,
    /// Classic events described the same way, by class, opcode and version.
    described_classic: HashMap<(Guid, u8, u8), Arc<Schema>>,
    /// Their value maps, by provider and name.
    maps: HashMap<(Guid, Arc<str>), Arc<ValueMap>>,
    chunks: EventSourceManifests,
    event_sources: Manifests,
    user_manifests: Manifests,
    tmf: TmfSet,
    self_described: RwLock<SelfDescribed>,
    faults: Vec<MetadataFault>,
}

/// Parsed TraceLogging schemas, by provider and the bytes they were parsed from.
#[derive(Debug, Default)]
struct SelfDescribed {
    schemas: HashMap<Guid, HashMap<Box<[u8]>, Arc<Schema>>>,
    bytes: usize,
}

/// Providers known from manifests.
#[derive(Debug, Default)]
struct Manifests {
    names: HashMap<Guid, Arc<str>>,
    events: HashMap<Guid, BTreeMap<(u16, u8), Arc<Schema>>>,
}

/// Metadata in the trace that could not be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// An event description or value map.
    #[error("event metadata in the trace: {0}")]
    EventInfo(#[from] EventInfoError),
    /// A manifest that an EventSource wrote.
    #[error(transparent)]
    EventSource(#[from] ManifestFault),
}

/// Who logged an event and what it is called, without looking at its payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Provider or event-class GUID; of kernel events their class's. `None` for the records that
    /// have none.
    pub guid: Option<Guid>,
    /// The provider's name: `Windows Kernel` for kernel classes.
    pub provider: Option<Arc<str>>,
    /// The event's name: `Process/DCStart`, `ProcessStart/Start`, a TraceLogging name.
    pub name: Option<Arc<str>>,
}

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Who logged it and what it is called.
    pub identity: Identity,
    /// Where the layout comes from; `None` if there is none, and then `fields.tail` is the
    /// payload.
    pub source: Option<Source>,
    /// The text of a WPP message or of a string-only event.
    pub message: Option<String>,
    /// Its fields.
    pub fields: Fields<'a>,
}

/// Whether an event can say what other events mean, so that [`Decoder::learn`] wants to see it.
#[inline]
pub fn is_metadata(event: &Event<'_>) -> bool {
    match event.kind() {
        HeaderKind::Full32 | HeaderKind::Full64 => event.guid() == Some(EVENT_METADATA),
        HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => event
            .descriptor()
            .is_some_and(|d| d.id == MANIFEST_EVENT_ID),
        _ => false,
    }
}

impl Decoder {
    /// A decoder that knows the kernel's classes and the built-in manifests.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Adds the messages of a TMF file; returns how many there were.
    ///
    /// # Errors
    /// If the text is not TMF; says at which line.
    pub fn add_tmf(&mut self, text: &str) -> Result<usize, TmfError> {
        self.tmf.add(text)
    }

    /// Adds the events of an instrumentation manifest; returns how many there were.
    ///
    /// # Errors
    /// If the text is no manifest; says at which line and column.
    pub fn add_manifest(&mut self, xml: &str) -> Result<usize, ManifestError> {
        let providers = parse_manifest(xml)?;
        let count = providers.iter().map(|p| p.events.len()).sum();
        for provider in providers {
            self.user_manifests.add(provider, Source::UserManifest);
        }
        Ok(count)
    }

    /// Takes in what an event says about the meaning of others. Most say nothing; [`is_metadata`]
    /// tells which may.
    #[inline]
    pub fn learn(&mut self, event: &Event<'_>) {
        if !is_metadata(event) {
            return;
        }
        if event.descriptor().is_some() {
            self.chunks.push(event);
        } else {
            self.learn_metadata(event);
        }
    }

    fn learn_metadata(&mut self, event: &Event<'_>) {
        let outcome = match event.opcode() {
            Some(EVENT_INFO_OPCODE) => parse_event_info(event.payload()).map(|info| {
                let (d, schema) = (info.descriptor, Arc::new(info.schema));
                match info.class {
                    Some(class) => {
                        self.described_classic
                            .insert((class, d.opcode, d.version), schema);
                    }
                    // TraceLogging events describe themselves, and have no id to find them by.
                    None if schema.source == Source::TraceLogging => {}
                    None => {
                        self.described
                            .insert((schema.provider, d.id, d.version), schema);
                    }
                }
            }),
            Some(MAP_INFO_OPCODE) => parse_map_info(event.payload()).map(|(provider, map)| {
                self.maps
                    .insert((provider, map.name.clone()), Arc::new(map));
            }),
            _ => Ok(()),
        };
        if let Err(fault) = outcome {
            self.fault(fault.into());
        }
    }

    /// Joins what was learned. Call it after the last [`Decoder::learn`].
    pub fn finish_learning(&mut self) {
        for schema in self
            .described
            .values_mut()
            .chain(self.described_classic.values_mut())
        {
            let provider = schema.provider;
            let find = |name: &str| self.maps.get(&(provider, Arc::from(name))).cloned();
            resolve_maps(&mut Arc::make_mut(schema).fields, &find);
        }
        for ((provider, id, version), schema) in &mut self.described {
            if let Some(known) = built_in::schema(*provider, *id, *version) {
                correct_counts(&mut Arc::make_mut(schema).fields, &known.fields);
            }
        }
        let collected = std::mem::take(&mut self.chunks).finish();
        for provider in collected.providers {
            self.event_sources.add(provider, Source::EventSource);
        }
        for fault in collected.faults {
            self.fault(fault.into());
        }
    }

    /// Metadata in the trace that could not be read: the events it describes stay undecoded.
    pub fn faults(&self) -> &[MetadataFault] {
        &self.faults
    }

    fn fault(&mut self, fault: MetadataFault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    /// The name of a provider or event class, if anything gives it one.
    pub fn provider_name(&self, guid: Guid) -> Option<Arc<str>> {
        let learned = [&self.event_sources, &self.user_manifests];
        learned
            .iter()
            .find_map(|manifests| manifests.names.get(&guid).cloned())
            .or_else(|| built_in::provider_name(guid).map(Arc::from))
    }

    /// Who logged the event and what it is called.
    pub fn identify(&self, event: &Event<'_>) -> Identity {
        if let Some((class, opcode)) = kernel::Class::of_event(event) {
            let name = class
                .event_name(opcode)
                .map_or_else(|| opcode.to_string(), str::to_owned);
            return Identity {
                guid: Some(class.guid),
                provider: Some("Windows Kernel".into()),
                name: Some(format!("{}/{name}", class.name).into()),
            };
        }
        if let (HeaderKind::Message, Some(guid)) = (event.kind(), event.guid()) {
            let message = event
                .message_number()
                .and_then(|n| self.tmf.message(guid, n));
            return Identity {
                guid: Some(guid),
                provider: message.map(|m| m.module.clone()),
                name: message.map(|m| m.name.clone()),
            };
        }
        self.named(event, self.schema(event).as_deref())
    }

    /// The identity of an event of this schema.
    fn named(&self, event: &Event<'_>, schema: Option<&Schema>) -> Identity {
        let guid = event.guid();
        let traits = || {
            let mut items = event.extended_items();
            let item = items.find(|i| i.ext_type == ext_type::PROVIDER_TRAITS)?;
            Some(tracelogging::provider_traits(item.data)?.name.into())
        };
        Identity {
            guid,
            provider: schema
                .and_then(|s| s.provider_name.clone())
                .or_else(traits)
                .or_else(|| self.provider_name(guid?)),
            name: schema.map(|s| s.name.clone()),
        }
    }

    /// Everything the event says.
    pub fn decode<'a>(&self, event: &Event<'a>) -> Decoded<'a> {
        let payload = event.payload();
        if let Some(message) = wpp::decode(&self.tmf, event) {
            return Decoded {
                identity: Identity {
                    guid: event.guid(),
                    provider: Some(message.module),
                    name: Some(message.name),
                },
                source: Some(Source::Tmf),
                message: Some(message.text),
                fields: Fields {
                    values: message.arguments,
                    tail: message.tail,
                    truncated: None,
                },
            };
        }
        let schema = self.layout(event);
        let identity = match kernel::Class::of_event(event) {
            Some(_) => self.identify(event),
            None => self.named(event, schema.as_deref()),
        };
        Decoded {
            identity,
            source: schema.as_ref().map(|s| s.source),
            message: is_string_only(event).then(|| Utf16(payload).to_string()),
            fields: match schema {
                Some(schema) => decode(&schema.fields, payload, event.pointer_size()),
                None => Fields {
                    values: Vec::new(),
                    tail: payload,
                    truncated: None,
                },
            },
        }
    }

    /// Where the values of an event's payload stand; `None` if nothing describes it, as for WPP
    /// messages, whose arguments have no places in a description.
    pub fn spans(&self, event: &Event<'_>) -> Option<Spans> {
        let payload = event.payload();
        if is_string_only(event) {
            let text = Field::new("Message", InType::Utf16Rest);
            return Some(spans(&[text], payload, event.pointer_size()));
        }
        let schema = self.layout(event)?;
        Some(spans(&schema.fields, payload, event.pointer_size()))
    }

    /// The schema of an event, the kernel's or not.
    fn layout(&self, event: &Event<'_>) -> Option<Arc<Schema>> {
        kernel::schema(event)
            .cloned()
            .or_else(|| self.schema(event))
    }

    /// The schema of an event that is not the kernel's, from the source of most authority that has
    /// one.
    fn schema(&self, event: &Event<'_>) -> Option<Arc<Schema>> {
        let provider = event.guid()?;
        let Some(d) = event.descriptor() else {
            let key = (provider, event.opcode()?, event.version()?);
            return self.described_classic.get(&key).cloned();
        };
        if let Some(schema) = self.self_described(event, provider) {
            return Some(schema);
        }
        if d.id == MANIFEST_EVENT_ID && d.opcode == 0xFE {
            return Some(MANIFEST_CHUNK.clone());
        }
        self.described
            .get(&(provider, d.id, d.version))
            .or_else(|| self.event_sources.get(provider, d.id, d.version))
            .or_else(|| self.user_manifests.get(provider, d.id, d.version))
            .cloned()
            .or_else(|| built_in::schema(provider, d.id, d.version))
    }

    /// The schema that a TraceLogging event carries.
    fn self_described(&self, event: &Event<'_>, provider: Guid) -> Option<Arc<Schema>> {
        let mut items = event.extended_items();
        let blob = items
            .find(|i| i.ext_type == ext_type::TRACELOGGING_SCHEMA)?
            .data;
        let known = |cache: &SelfDescribed| cache.schemas.get(&provider)?.get(blob).cloned();
        if let Some(schema) = self
            .self_described
            .read()
            .ok()
            .and_then(|cache| known(&cache))
        {
            return Some(schema);
        }
        let schema = Arc::new(tracelogging::schema(event)?.ok()?);
        if let Ok(mut cache) = self.self_described.write()
            && cache.bytes < MAX_CACHED_BYTES
        {
            cache.bytes += blob.len() + field_count(&schema.fields) * size_of::<Field>();
            cache
                .schemas
                .entry(provider)
                .or_default()
                .insert(blob.into(), schema.clone());
        }
        Some(schema)
    }
}

fn is_string_only(event: &Event<'_>) -> bool {
    event
        .header_flags()
        .is_some_and(|flags| flags & STRING_ONLY != 0)
}

/// Counts arrays by the field that counts them in real events, where the built-in facts know it
/// and the description has a fixed number: .NET's manifest gives stacks of any depth two addresses.
fn correct_counts(described: &mut [Field], known: &[Field]) {
    let names = known.iter().map(|field| &field.name);
    if !described.iter().map(|field| &field.name).eq(names) {
        return;
    }
    for (field, known) in described.iter_mut().zip(known) {
        if matches!(
            (&field.count, &known.count),
            (Count::Fixed(_), Count::Field(_))
        ) {
            field.count = known.count.clone();
        }
    }
}

impl Manifests {
    fn add(&mut self, provider: ManifestProvider, source: Source) {
        self.names.insert(provider.guid, provider.name);
        let events = self.events.entry(provider.guid).or_default();
        for (key, schema) in provider.events {
            events.insert(key, Arc::new(Schema { source, ..schema }));
        }
    }

    /// The schema of that version, else of the nearest earlier one: versions append fields.
    fn get(&self, provider: Guid, id: u16, version: u8) -> Option<&Arc<Schema>> {
        let events = self.events.get(&provider)?;
        events
            .range((id, 0)..=(id, version))
            .next_back()
            .map(|(_, schema)| schema)
    }
}

/// The chunks of manifests that EventSources log.
static MANIFEST_CHUNK: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let byte = |name: &str| Field::new(name, InType::U8);
    let manifest = Field {
        count: Count::Rest,
        ..Field::new("Manifest", InType::AnsiChar)
    };
    Arc::new(Schema {
        provider: Guid::ZERO,
        provider_name: None,
        name: "ManifestData".into(),
        message: None,
        source: Source::EventSource,
        fields: vec![
            byte("Format"),
            byte("MajorVersion"),
            byte("MinorVersion"),
            byte("Magic"),
            Field::new("TotalChunks", InType::U16),
            Field::new("ChunkNumber", InType::U16),
            Field {
                count: Count::One,
                in_type: InType::AnsiRest,
                ..manifest
            },
        ],
    })
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_counted_by_the_field_that_real_events_count_it_with() {
        let dotnet = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
        let stack_walk = built_in::schema(dotnet, 82, 0).unwrap();
        let mut described = stack_walk.fields.clone();
        described.last_mut().unwrap().count = Count::Fixed(2);
        let mut other = described.clone();
        other[0].name = "Other".into();

        correct_counts(&mut described, &stack_walk.fields);
        assert_eq!(described, stack_walk.fields);
        correct_counts(&mut other, &stack_walk.fields);
        assert_eq!(other.last().unwrap().count, Count::Fixed(2));
    }
}
