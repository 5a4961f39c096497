//! Coverage: the number of decoded events in a trace. Also checks that these events are decoded completely.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use etl::{Guid, ext_type};
use events::event_info::{EVENT_INFO_OPCODE, parse_event_info};
use events::event_source::MANIFEST_EVENT_ID;
use events::ids::class::EVENT_METADATA;
use events::schema::Source;

use crate::golden::trace::Decodable;

/// Events whose description does not cover the whole payload. Each entry also has the reason.
const INCOMPLETE: &[(&str, &str)] = &[
    (
        "Microsoft-Windows-DotNETRuntime/GC/LOHCompact",
        "the padding is known only for 64-bit payloads",
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Method/MethodILToNativeMap",
        "the built-in layout lacks the fields that version 1 added",
    ),
    (
        "Microsoft-Windows-DotNETRuntimePrivate/GC/PerHeapHistory",
        "no public description",
    ),
    (
        "PerfView/ClrEnableParameters",
        "an enumeration is described with 32 bits but written with 64 bits",
    ),
];

/// Files with wrong headers. A 32-bit program wrote these files and built the headers itself. The headers state
/// a pointer size of 4 bytes, but the payloads have pointers of 8 bytes.
const WRONG_WIDTH: &[&str] = &[
    "sawbuck__image_data_64_v0.etl",
    "sawbuck__image_data_64_v2.etl",
    "sawbuck__process_data_64_v3.etl",
];

/// Coverage of one file.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) events: usize,
    /// Number of decoded events. The key is the source of the events' layout.
    pub(crate) sources: BTreeMap<Source, usize>,
    /// Number of events without a layout, by provider.
    pub(crate) undecoded: BTreeMap<String, usize>,
}

/// Decodes all events of a file. If the file describes an event, the event must have a name and must be
/// decoded completely. Panics if this is not true.
pub(crate) fn coverage(file: &str) -> Coverage {
    let trace = Decodable::open(&[file]);
    let mut described = HashSet::<(Guid, u16, u8)>::new();
    let mut event_sources = HashSet::<Guid>::new();
    trace.for_each(|event, _| match event.descriptor() {
        Some(d) if d.id == MANIFEST_EVENT_ID => drop(event_sources.insert(event.guid().unwrap())),
        None if event.guid() == Some(EVENT_METADATA)
            && event.opcode() == Some(EVENT_INFO_OPCODE) =>
        {
            let info = parse_event_info(event.payload()).unwrap();
            let d = info.descriptor;
            described.insert((info.schema.provider, d.id, d.version));
        }
        _ => {}
    });

    let mut coverage = Coverage::default();
    let mut faults = BTreeSet::new();
    trace.for_each(|event, decoded| {
        coverage.events += 1;
        let identity = &decoded.identity;
        let guid = || identity.guid.map_or("none".into(), |guid| guid.to_string());
        let provider = identity
            .provider
            .as_deref()
            .map_or_else(guid, str::to_owned);
        let name = identity.name.as_deref().unwrap_or("?");
        let kind = format!("{provider}/{name}");
        match decoded.source {
            Some(source) => *coverage.sources.entry(source).or_default() += 1,
            None => *coverage.undecoded.entry(provider).or_default() += 1,
        }
        let is_self_described = event
            .extended_items()
            .any(|item| item.ext_type == ext_type::TRACELOGGING_SCHEMA);
        let expected = event.descriptor().and_then(|d| {
            let provider = event.guid().unwrap();
            if is_self_described {
                Some(Source::TraceLogging)
            } else if described.contains(&(provider, d.id, d.version)) {
                Some(Source::TraceMetadata)
            } else {
                event_sources
                    .contains(&provider)
                    .then_some(Source::EventSource)
            }
        });
        if expected.is_some() && (decoded.source != expected || identity.name.is_none()) {
            faults.insert(format!("{kind} by {:?}, not {expected:?}", decoded.source));
        }
        let is_incomplete = !decoded.fields.tail.is_empty() || decoded.fields.truncated.is_some();
        let is_explained = INCOMPLETE.iter().any(|(name, _)| *name == kind)
            || WRONG_WIDTH.contains(&file) && decoded.source == Some(Source::Kernel);
        if decoded.source.is_some() && is_incomplete && !is_explained {
            faults.insert(format!("{kind}: {:?}", decoded.fields));
        }
    });
    assert_eq!(faults, BTreeSet::new(), "{file}");
    coverage
}
