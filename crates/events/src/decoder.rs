//! Decoder of any event. It uses all available sources of metadata.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, RwLock};

use etl::{Event, Guid, HeaderKind, ext_type};

use crate::decode::{Fields, decode, spans};
use crate::event_info::{
    EVENT_INFO_OPCODE, EventInfoError, MAP_INFO_OPCODE, parse_event_info, parse_map_info,
    resolve_maps,
};
use crate::event_source::{EventSourceManifests, MANIFEST_EVENT_ID, ManifestFault};
use crate::ids::class::EVENT_METADATA;
use crate::manifest::{ManifestError, ManifestProvider, field_count, parse_manifest};
use crate::schema::{Count, Field, InType, Schema, Source, ValueMap};
use crate::span::Spans;
use crate::text::Utf16;
use crate::wpp::{self, TmfError, TmfSet};
use crate::{built_in, kernel, tracelogging};

/// Maximum size of the cached TraceLogging schemas in bytes. A real trace has some hundred schemas with about
/// ten fields each. A hostile trace may have a new schema in every event. If the cache is full, a schema is
/// not cached but parsed for each event.
const MAX_CACHED_BYTES: usize = 32 << 20;

/// Maximum number of metadata faults that are kept.
const MAX_FAULTS: usize = 1000;

/// Header flag of string-only events, whose payload is one UTF-16 string.
const STRING_ONLY: u16 = 4;

/// Converts events into names and values. It uses built-in descriptions, files from the user, and
/// descriptions in the trace.
///
/// Metadata can be anywhere in a trace. So call [`Decoder::learn`] for all events first. Then call
/// [`Decoder::finish_learning`]. After that, decode the events. Decoding needs only a shared reference, so
/// threads can share a decoder.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Schemas of the manifest events that a `TRACE_EVENT_INFO` in the trace describes, by
    /// provider, id and version.
    described: HashMap<(Guid, u16, u8), Arc<Schema>>,
    /// Schemas of the classic events that a `TRACE_EVENT_INFO` in the trace describes, by class,
    /// opcode and version.
    described_classic: HashMap<(Guid, u8, u8), Arc<Schema>>,
    /// Value maps of the described events, by provider and name.
    maps: HashMap<(Guid, Arc<str>), Arc<ValueMap>>,
    chunks: EventSourceManifests,
    event_sources: Manifests,
    user_manifests: Manifests,
    tmf: TmfSet,
    self_described: RwLock<SelfDescribed>,
    faults: Vec<MetadataFault>,
}

/// Cache of parsed TraceLogging schemas. The key is the provider and the bytes of the schema in the event.
#[derive(Debug, Default)]
struct SelfDescribed {
    schemas: HashMap<Guid, HashMap<Box<[u8]>, Arc<Schema>>>,
    bytes: usize,
}

/// Providers that manifests describe.
#[derive(Debug, Default)]
struct Manifests {
    names: HashMap<Guid, Arc<str>>,
    events: HashMap<Guid, BTreeMap<(u16, u8), Arc<Schema>>>,
}

/// Fault in metadata of the trace. The metadata could not be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// The metadata is an event description or a value map.
    #[error("event metadata in the trace: {0}")]
    EventInfo(#[from] EventInfoError),
    /// The metadata is a manifest that an EventSource wrote.
    #[error(transparent)]
    EventSource(#[from] ManifestFault),
}

/// Provider and name of an event. They are found without decoding the event's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// GUID of the provider or of the event class. For kernel events, this is the GUID of the kernel class.
    /// The field is `None` for records without a GUID.
    pub guid: Option<Guid>,
    /// Name of the provider. For kernel classes, the name is `Windows Kernel`.
    pub provider: Option<Arc<str>>,
    /// Name of the event, such as `Process/DCStart`, `ProcessStart/Start` or a TraceLogging name.
    pub name: Option<Arc<str>>,
}

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Provider and name of the event.
    pub identity: Identity,
    /// Source of the layout. If no layout is known, the source is `None`, and `fields.tail` is the whole
    /// payload.
    pub source: Option<Source>,
    /// Text of a WPP message or of a string-only event.
    pub message: Option<String>,
    /// Decoded fields of the payload.
    pub fields: Fields<'a>,
}

/// Returns true if the event may describe other events. [`Decoder::learn`] ignores all other events.
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
    /// Creates a decoder with the kernel's classes and the built-in manifests.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Adds the messages of a TMF file and returns their number.
    ///
    /// # Errors
    /// Returns an error with the line number if the text is not TMF.
    pub fn add_tmf(&mut self, text: &str) -> Result<usize, TmfError> {
        self.tmf.add(text)
    }

    /// Adds the events of an instrumentation manifest and returns their number.
    ///
    /// # Errors
    /// Returns an error with line and column if the text is not a manifest.
    pub fn add_manifest(&mut self, xml: &str) -> Result<usize, ManifestError> {
        let providers = parse_manifest(xml)?;
        let count = providers.iter().map(|p| p.events.len()).sum();
        for provider in providers {
            self.user_manifests.add(provider, Source::UserManifest);
        }
        Ok(count)
    }

    /// Learns descriptions of other events from this event. Most events contain no descriptions.
    /// [`is_metadata`] selects the events that may contain descriptions.
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
                    // A TraceLogging event describes itself. The event has no id by which another description could be
                    // found.
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

    /// Combines the learned metadata. The caller must call this after the last [`Decoder::learn`] and before
    /// the first decoding.
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

    /// Returns the faults of the metadata that could not be read. Events that only this metadata describes are not
    /// decoded.
    pub fn faults(&self) -> &[MetadataFault] {
        &self.faults
    }

    fn fault(&mut self, fault: MetadataFault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    /// Returns the name of a provider or event class. Returns `None` if no source of metadata has the name.
    pub fn provider_name(&self, guid: Guid) -> Option<Arc<str>> {
        let learned = [&self.event_sources, &self.user_manifests];
        learned
            .iter()
            .find_map(|manifests| manifests.names.get(&guid).cloned())
            .or_else(|| built_in::provider_name(guid).map(Arc::from))
    }

    /// Returns the event's provider and name.
    pub fn identify(&self, event: &Event<'_>) -> Identity {
        if let Some((class, opcode)) = kernel::Class::of_event(event) {
            return kernel_identity(class, opcode);
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

    /// Returns the identity of an event that has the schema `schema`.
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

    /// Decodes the event.
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
            Some((class, opcode)) => kernel_identity(class, opcode),
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

    /// Returns the byte ranges of the values in an event's payload. Returns `None` if the event has no
    /// schema. WPP messages have no schema, because their arguments have no fixed offsets.
    pub fn spans(&self, event: &Event<'_>) -> Option<Spans> {
        let payload = event.payload();
        if is_string_only(event) {
            let text = Field::new("Message", InType::Utf16Rest);
            return Some(spans(&[text], payload, event.pointer_size()));
        }
        let schema = self.layout(event)?;
        Some(spans(&schema.fields, payload, event.pointer_size()))
    }

    /// Returns the schema of any event, including kernel events.
    fn layout(&self, event: &Event<'_>) -> Option<Arc<Schema>> {
        kernel::schema(event)
            .cloned()
            .or_else(|| self.schema(event))
    }

    /// Returns the schema of an event that is not a kernel event. If several sources have a schema, the
    /// source with the highest authority decides.
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

    /// Returns the schema inside a TraceLogging event.
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

/// Returns the identity of a kernel event.
fn kernel_identity(class: &kernel::Class, opcode: u8) -> Identity {
    static PROVIDER: LazyLock<Arc<str>> = LazyLock::new(|| "Windows Kernel".into());
    Identity {
        guid: Some(class.guid),
        provider: Some(PROVIDER.clone()),
        name: Some(class.full_name(opcode).clone()),
    }
}

fn is_string_only(event: &Event<'_>) -> bool {
    event
        .header_flags()
        .is_some_and(|flags| flags & STRING_ONLY != 0)
}

/// Corrects the array counts in a description. If the description has a fixed count, but the built-in layout
/// states that another field contains the count, the count of the built-in layout is used. For example, .NET's
/// manifest describes a stack of any depth as an array of two addresses. Does nothing if the two layouts have
/// different field names.
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

    /// Returns the schema of `version`. If there is none, returns the schema of the nearest earlier version,
    /// because new versions only append fields.
    fn get(&self, provider: Guid, id: u16, version: u8) -> Option<&Arc<Schema>> {
        let events = self.events.get(&provider)?;
        events
            .range((id, 0)..=(id, version))
            .next_back()
            .map(|(_, schema)| schema)
    }
}

/// Schema of the manifest chunks that EventSources log.
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
    fn kernel_names_are_shared_between_events() {
        let (class, opcode) = kernel::Class::of_hook(crate::ids::hook::CONTEXT_SWITCH).unwrap();
        let [one, other] = [(); 2].map(|()| kernel_identity(class, opcode));
        assert_eq!(one.provider.as_deref(), Some("Windows Kernel"));
        assert_eq!(one.name.as_deref(), Some("Thread/CSwitch"));
        assert!(Arc::ptr_eq(&one.name.unwrap(), &other.name.unwrap()));
        assert!(Arc::ptr_eq(
            &one.provider.unwrap(),
            &other.provider.unwrap()
        ));
        let unnamed = kernel_identity(class, 0xEE);
        assert_eq!(unnamed.name.as_deref(), Some("Thread/238"));
    }

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
