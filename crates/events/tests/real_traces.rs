//! Compares the event descriptions in real traces with the payloads that they describe. Also compares the
//! descriptions with the output of other programs that read traces.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use etl::ext_type::TRACELOGGING_SCHEMA;
use etl::{Event, Guid, Trace, le};
use events::event_info::{self, EventInfo};
use events::event_source::EventSourceManifests;
use events::schema::{Field, InType, Schema, ValueMap};
use events::{built_in, decode, tracelogging};

const WIN7: &str = "perfview__net.4.5.x86-win7.etl";

/// Calls `see` with each event of the trace `name`.
fn each_event(name: &str, mut see: impl FnMut(&Event<'_>)) {
    let bytes = testdata::bytes(&format!("etl/{name}"));
    let trace = Trace::from_sources(vec![(name.into(), Box::new(bytes))]).unwrap();
    let mut events = trace.events();
    while let Some(event) = events.next() {
        see(&event);
    }
}

/// Returns the provider, id and version of an event with an EVENT_HEADER.
fn key(event: &Event<'_>) -> Option<(Guid, u16, u8)> {
    let descriptor = event.descriptor()?;
    Some((event.guid()?, descriptor.id, descriptor.version))
}

fn item<'a>(event: &Event<'a>, ext_type: u16) -> Option<&'a [u8]> {
    event
        .extended_items()
        .find(|item| item.ext_type == ext_type)
        .map(|item| item.data)
}

/// Returns the lines of a dump that TraceEvent wrote for a trace.
fn golden(name: &str) -> Vec<String> {
    let text = String::from_utf8(testdata::bytes(&format!("etl/golden/{name}"))).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Returns the names `Provider/Event` and the number of events of each name, from the `COUNT` lines of a
/// dump.
fn counted(lines: &[String]) -> HashMap<&str, usize> {
    let counts = lines.iter().filter_map(|line| line.strip_prefix("COUNT "));
    counts
        .map(|count| count.rsplit_once(':').unwrap())
        .map(|(k, n)| (k, n.parse().unwrap()))
        .collect()
}

/// Returns the field names that the dump prints for the first event called `name`.
fn printed<'a>(lines: &'a [String], name: &str) -> Vec<&'a str> {
    let line = lines.iter().find(|line| {
        line.split_once(": ")
            .is_some_and(|(_, rest)| rest.split(' ').next() == Some(name))
    });
    let (_, fields) = line.unwrap().split_once("DataLen=").unwrap();
    let fields = fields.split("; ").skip(1);
    fields
        .filter_map(|field| field.split_once('='))
        .map(|(name, _)| name)
        .collect()
}

fn names(fields: &[Field]) -> Vec<&str> {
    fields.iter().map(|field| &*field.name).collect()
}

/// Checks that the fields cover every byte of the event's payload.
fn assert_exact(name: &str, fields: &[Field], event: &Event<'_>) {
    let read = decode(fields, event.payload(), event.pointer_size());
    assert!(
        read.tail.is_empty() && read.truncated.is_none(),
        "{name}: {read:?}"
    );
}

/// Returns the schema in a TraceLogging event. Checks that the schema covers every byte of the payload.
fn described(event: &Event<'_>) -> Option<Schema> {
    let schema = tracelogging::schema(event)?.unwrap();
    assert_exact(&schema.name, &schema.fields, event);
    Some(schema)
}

#[test]
fn tracelogging_accounts_for_every_byte() {
    // The expected numbers are from an independent program.
    for (file, expected) in [
        ("etwanalyzer__TraceLoggingTester.etl", 70),
        ("perfview__diaghub__diaghub.user_paged.1.etl", 256),
        ("perfview__primitive-types.etl", 5),
        ("s4__SIH.etl", 10),
        ("s4__WindowsUpdate.20251008.etl", 80),
    ] {
        let mut found = 0;
        each_event(file, |event| {
            found += usize::from(described(event).is_some())
        });
        assert_eq!(found, expected, "{file}");
    }
}

#[test]
fn tracelogging_names_are_those_other_readers_print() {
    let lines = golden("primitive-types.baseline.txt");
    let mut found = 0;
    each_event("perfview__primitive-types.etl", |event| {
        let Some(schema) = described(event) else {
            return;
        };
        let full_name = format!("{}/{}", schema.provider_name.unwrap(), schema.name);
        assert_eq!(counted(&lines)[&*full_name], 5);
        assert_eq!(names(&schema.fields), printed(&lines, &full_name));
        found += 1;
    });
    assert_eq!(found, 5);
}

#[test]
fn tracelogging_of_net_is_as_expected() {
    let expected = testdata::json("etl/expected-tracelogging.json");
    let mut kinds: Vec<(Arc<str>, Vec<Field>)> = Vec::new();
    each_event("etwanalyzer__TraceLoggingTester.etl", |event| {
        let Some(schema) = described(event) else {
            return;
        };
        assert_eq!(
            schema.provider_name.as_deref(),
            expected["provider"].as_str()
        );
        let kind = (schema.name, schema.fields);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    });
    let found: Vec<BTreeSet<&str>> = kinds
        .iter()
        .map(|(_, fields)| names(fields).into_iter().collect())
        .collect();
    let first = expected["first_of_each_kind"].as_array().unwrap();
    let first: Vec<BTreeSet<&str>> = first
        .iter()
        .map(|kind| kind.as_object().unwrap().keys().map(|k| &**k).collect())
        .collect();
    assert_eq!(found, first);
}

/// Returns the descriptions of events and the value maps in a merged trace.
fn metadata(file: &str) -> (Vec<EventInfo>, Vec<(Guid, ValueMap)>) {
    let (mut infos, mut maps) = (Vec::new(), Vec::new());
    each_event(file, |event| {
        if event.guid() != Some(events::ids::class::EVENT_METADATA) {
            return;
        }
        match event.opcode().unwrap() {
            event_info::EVENT_INFO_OPCODE => {
                infos.push(event_info::parse_event_info(event.payload()).unwrap());
            }
            event_info::MAP_INFO_OPCODE => {
                maps.push(event_info::parse_map_info(event.payload()).unwrap());
            }
            other => panic!("{file}: opcode {other}"),
        }
    });
    (infos, maps)
}

#[test]
fn metadata_describes_the_trace_it_is_in() {
    // Each entry has a merged trace, its number of described events, its number of value maps, and the file
    // with the described events. The two numbers are from the dumps.
    for (file, infos, maps, events) in [
        (WIN7, 6, 1, WIN7),
        (
            "perfview__net.4.5.2.x64.etl",
            61,
            24,
            "perfview__net.4.5.2.x64.etl",
        ),
        (
            "etwanalyzer__TraceLoggingTester.etl",
            10,
            8,
            "etwanalyzer__TraceLoggingTester.etl",
        ),
        (
            "perfview__diaghub__diaghub.etl",
            17,
            7,
            "perfview__diaghub__diaghub.user_paged.1.etl",
        ),
    ] {
        let (found, found_maps) = metadata(file);
        assert_eq!((found.len(), found_maps.len()), (infos, maps), "{file}");
        let mut schemas = HashMap::new();
        for EventInfo {
            descriptor, schema, ..
        } in found
        {
            for map in schema.fields.iter().filter_map(|field| field.map.as_ref()) {
                let is_it = |(p, known): &(Guid, ValueMap)| {
                    (*p, &known.name) == (schema.provider, &map.name)
                };
                assert!(found_maps.iter().any(is_it), "{file}: {}", map.name);
            }
            schemas.insert((schema.provider, descriptor.id, descriptor.version), schema);
        }

        let mut described = 0;
        each_event(events, |event| {
            let schema = key(event).and_then(|key| schemas.get(&key));
            // TraceLogging events contain their own descriptions. Their ids can be the ids of other events, so
            // TraceLogging events are skipped here.
            let schema = schema.filter(|_| item(event, TRACELOGGING_SCHEMA).is_none());
            // The event CLRStackWalk is skipped. The manifest describes an array of two addresses, but the real
            // number of addresses is in the field FrameCount.
            if let Some(schema) = schema.filter(|schema| !schema.name.ends_with("CLRStackWalk")) {
                assert_exact(&schema.name, &schema.fields, event);
                described += 1;
            }
        });
        assert!(described > 50, "{file}: {described}");
    }
}

#[test]
fn metadata_names_are_those_other_readers_print() {
    for (file, dump) in [
        (WIN7, "net.4.5.x86-win7.baseline.txt"),
        ("perfview__net.4.5.2.x64.etl", "net.4.5.2.x64.baseline.txt"),
    ] {
        let lines = golden(dump);
        let counts = counted(&lines);
        let (infos, _) = metadata(file);
        let mut versions: HashMap<String, Vec<Vec<&str>>> = HashMap::new();
        for EventInfo { schema, .. } in &infos {
            let provider = schema.provider_name.as_deref().unwrap();
            // TraceEvent uses other names for the fields of these providers.
            let of_its_own = ["Microsoft-Windows-DotNET", "Microsoft-Windows-Kernel-File"];
            if !of_its_own.iter().any(|own| provider.starts_with(own)) {
                let full_name = format!("{provider}/{}", schema.name);
                versions
                    .entry(full_name)
                    .or_default()
                    .push(names(&schema.fields));
            }
        }
        assert!(versions.len() >= 6, "{file}: {versions:?}");
        for (full_name, versions) in versions {
            assert!(counts.contains_key(&*full_name), "{full_name}");
            let printed = printed(&lines, &full_name);
            let has_all = |fields: &Vec<&str>| printed.iter().all(|name| fields.contains(name));
            assert!(versions.iter().any(has_all), "{full_name}: {versions:?}");
        }
    }
}

#[test]
fn event_source_manifests_describe_their_events() {
    for (file, dump, expected) in [
        (
            WIN7,
            "net.4.5.x86-win7.baseline.txt",
            &[
                "PerfView",
                "System.Diagnostics.Eventing.FrameworkEventSource",
            ][..],
        ),
        (
            "perfview__net.4.5.2.x64.etl",
            "net.4.5.2.x64.baseline.txt",
            &[
                "PerfView",
                "System.Diagnostics.Eventing.FrameworkEventSource",
                "System.Threading.Tasks.TplEventSource",
            ],
        ),
    ] {
        let lines = golden(dump);
        let counts = counted(&lines);
        let mut manifests = EventSourceManifests::new();
        each_event(file, |event| {
            manifests.push(event);
        });
        let collected = manifests.finish();
        assert_eq!(collected.faults, [], "{file}");
        let mut found: Vec<_> = collected.providers.iter().map(|p| &*p.name).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{file}");

        let mut perfview = 0;
        each_event(file, |event| {
            let Some((guid, id, version)) = key(event) else {
                return;
            };
            let Some(provider) = collected.providers.iter().find(|p| p.guid == guid) else {
                return;
            };
            // Events that contain the chunks of the manifest are skipped. The manifest does not describe these events.
            if id == events::event_source::MANIFEST_EVENT_ID {
                return;
            }
            let schema = &provider.events[&(id, version)];
            // The event ClrEnableParameters is skipped. PerfView writes an enum of this event with 64 bits, but the
            // manifest states 32 bits.
            if &*schema.name != "ClrEnableParameters" {
                assert_exact(&schema.name, &schema.fields, event);
            }
            let full_name = format!("{}/{}", provider.name, schema.name);
            assert!(counts.contains_key(&*full_name), "{full_name}");
            assert_eq!(names(&schema.fields), printed(&lines, &full_name));
            perfview += usize::from(&*provider.name == "PerfView");
        });
        let theirs = counts
            .iter()
            .filter(|(name, _)| name.starts_with("PerfView/") && !name.ends_with("/ManifestData"));
        assert_eq!(
            perfview,
            theirs.map(|(_, count)| count).sum::<usize>(),
            "{file}"
        );
    }
}

#[test]
fn built_in_events_account_for_every_byte() {
    // The descriptions of these two .NET events are incomplete. One event has a template without fields. The
    // other event has unknown padding.
    let undescribed = ["GC/PerHeapHistory", "GC/LOHCompact"];
    for (file, at_least) in [
        ("perfview__gcevents.etl", 60),
        (WIN7, 120_000),
        ("perfview__net.4.5.2.x64.etl", 20_000),
        ("etwanalyzer__TraceLoggingTester.etl", 47_000),
        ("perfview__diaghub__diaghub.user_paged.1.etl", 21_000),
        ("gpuvis__wintracecmd.etl", 70_000),
        ("tx__Process.etl", 10_343),
    ] {
        let mut known = 0;
        each_event(file, |event| {
            let schema = key(event).and_then(|(p, id, version)| built_in::schema(p, id, version));
            let Some(schema) = schema else { return };
            known += 1;
            if !undescribed.contains(&&*schema.name) || schema.fields.len() > 2 {
                assert_exact(&schema.name, &schema.fields, event);
            }
        });
        assert!(known >= at_least, "{file}: {known}");
    }
}

#[test]
fn built_in_names_are_those_other_readers_print() {
    for (file, dump) in [
        ("perfview__gcevents.etl", "gcevents.baseline.txt"),
        (WIN7, "net.4.5.x86-win7.baseline.txt"),
        ("perfview__net.4.5.2.x64.etl", "net.4.5.2.x64.baseline.txt"),
    ] {
        let lines = golden(dump);
        let mut ours = BTreeSet::new();
        each_event(file, |event| {
            let Some((provider, id, version)) = key(event) else {
                return;
            };
            let name = built_in::provider_name(provider);
            let schema = built_in::schema(provider, id, version);
            ours.extend(
                name.zip(schema)
                    .map(|(name, schema)| format!("{name}/{}", schema.name)),
            );
        });
        let theirs = counted(&lines);
        let theirs = theirs
            .keys()
            .filter(|name| name.starts_with("Microsoft-Windows-DotNET"));
        // For this event, TraceEvent uses the task name GarbageCollection. For all other events of the same
        // task, it uses GC.
        let theirs = theirs.filter(|name| !name.ends_with("/IncreaseMemoryPressure"));
        let missing: BTreeSet<_> = theirs.filter(|name| !ours.contains(**name)).collect();
        assert_eq!(missing, BTreeSet::<&&str>::new(), "{file}");
    }
}

#[test]
fn built_in_values_have_the_names_other_readers_print() {
    let lines = golden("gcevents.baseline.txt");
    let theirs = lines
        .iter()
        .filter(|line| line.contains("GC/CreateSegment PID"));
    let theirs: Vec<_> = theirs
        .map(|line| line.split("Type=").nth(1).unwrap())
        .collect();
    let mut ours = Vec::new();
    each_event("perfview__gcevents.etl", |event| {
        let Some((provider, 5, version)) = key(event) else {
            return;
        };
        let schema = built_in::schema(provider, 5, version).unwrap();
        let kind = schema
            .fields
            .iter()
            .find(|field| &*field.name == "Type")
            .unwrap();
        assert_eq!(kind.in_type, InType::U32);
        let value = u64::from(le::u32(event.payload(), 16).unwrap());
        let entries = &kind.map.as_ref().unwrap().entries;
        let (_, name) = entries.iter().find(|(number, _)| *number == value).unwrap();
        ours.push(name.clone());
    });
    assert_eq!(ours.len(), 7);
    for (line, name) in theirs.iter().zip(ours) {
        assert!(line.starts_with(&format!("{name};")), "{name}: {line}");
    }
}
