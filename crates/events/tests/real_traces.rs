//! Descriptions of events in real traces, checked against the payloads they describe and against
//! what other readers print.

mod records;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use etl::ext_type::{PROVIDER_TRAITS, TRACELOGGING_SCHEMA};
use events::schema::{Field, InType, Schema, ValueMap};
use events::{built_in, event_info, manifest, tracelogging};
use records::{Record, data, measure, records};

const WIN7: &str = "perfview__net.4.5.x86-win7.etl";

/// Lines of another reader's dump of a trace.
fn golden(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(data("etl/golden").join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Event names that the dump counts, provider first.
fn counted(lines: &[String]) -> HashMap<&str, usize> {
    let counts = lines.iter().filter_map(|line| line.strip_prefix("COUNT "));
    counts
        .map(|count| count.rsplit_once(':').unwrap())
        .map(|(k, n)| (k, n.parse().unwrap()))
        .collect()
}

/// The field names that the dump prints for the first event called `name`.
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

/// The schema accounts for every byte of the record's payload.
fn assert_exact(schema: &Schema, record: &Record) {
    let measured = measure(&schema.fields, &record.payload, record.pointer_size);
    assert_eq!(
        measured,
        Some(record.payload.len()),
        "{}: {:02x?}",
        schema.name,
        record.payload
    );
}

/// The description that a TraceLogging record carries.
fn described(record: &Record) -> Option<(Arc<str>, Vec<Field>)> {
    let blob = record.item(TRACELOGGING_SCHEMA)?;
    let (name, fields) = tracelogging::parse_schema(blob).unwrap();
    let measured = measure(&fields, &record.payload, record.pointer_size);
    assert_eq!(
        measured,
        Some(record.payload.len()),
        "{name}: {:02x?}",
        record.payload
    );
    Some((name, fields))
}

#[test]
fn tracelogging_accounts_for_every_byte() {
    // Counts are those of an independent reader.
    for (file, expected) in [
        ("etwanalyzer__TraceLoggingTester.etl", 70),
        ("perfview__diaghub__diaghub.user_paged.1.etl", 256),
        ("perfview__primitive-types.etl", 5),
        ("s4__SIH.etl", 10),
        ("s4__WindowsUpdate.20251008.etl", 80),
    ] {
        assert_eq!(
            records(file).iter().filter_map(described).count(),
            expected,
            "{file}"
        );
    }
}

#[test]
fn tracelogging_names_are_those_other_readers_print() {
    let lines = golden("primitive-types.baseline.txt");
    let records = records("perfview__primitive-types.etl");
    let record = records
        .iter()
        .find(|record| record.item(TRACELOGGING_SCHEMA).is_some())
        .unwrap();
    let (name, fields) = described(record).unwrap();
    let traits = tracelogging::provider_traits(record.item(PROVIDER_TRAITS).unwrap()).unwrap();
    let full_name = format!("{}/{name}", traits.name);
    assert_eq!(counted(&lines)[&*full_name], 5);
    assert_eq!(names(&fields), printed(&lines, &full_name));
}

#[test]
fn tracelogging_of_net_is_as_expected() {
    let text = std::fs::read_to_string(data("etl/expected-tracelogging.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    let records = records("etwanalyzer__TraceLoggingTester.etl");
    let mut kinds: Vec<(Arc<str>, Vec<Field>)> = Vec::new();
    for record in records
        .iter()
        .filter(|record| record.item(TRACELOGGING_SCHEMA).is_some())
    {
        let traits = tracelogging::provider_traits(record.item(PROVIDER_TRAITS).unwrap()).unwrap();
        assert_eq!(traits.name, expected["provider"]);
        let kind = described(record).unwrap();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
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

/// The descriptions and maps that a merged trace carries.
fn metadata(records: &[Record]) -> (Vec<event_info::EventInfo>, Vec<ValueMap>) {
    let mut found = (Vec::new(), Vec::new());
    let of_metadata = |r: &&Record| !r.is_manifest && r.provider == event_info::EVENT_METADATA;
    for record in records.iter().filter(of_metadata) {
        match record.opcode {
            event_info::EVENT_INFO_OPCODE => {
                found
                    .0
                    .push(event_info::parse_event_info(&record.payload).unwrap());
            }
            event_info::MAP_INFO_OPCODE => {
                found
                    .1
                    .push(event_info::parse_map_info(&record.payload).unwrap().1);
            }
            other => panic!("opcode {other}"),
        }
    }
    found
}

#[test]
fn metadata_describes_the_trace_it_is_in() {
    for (files, infos, maps) in [
        (&[WIN7][..], 6, 1),
        (&["etwanalyzer__TraceLoggingTester.etl"], 10, 8),
        (
            &[
                "perfview__diaghub__diaghub.etl",
                "perfview__diaghub__diaghub.user_paged.1.etl",
            ],
            17,
            7,
        ),
    ] {
        let records: Vec<_> = files.iter().flat_map(|file| records(file)).collect();
        let (found, found_maps) = metadata(&records);
        assert_eq!((found.len(), found_maps.len()), (infos, maps), "{files:?}");
        let mut described = 0;
        for info in &found {
            let key = (
                info.schema.provider,
                info.descriptor.id,
                info.descriptor.version,
            );
            let of_info = |r: &&Record| r.is_manifest && (r.provider, r.id, r.version) == key;
            for record in records.iter().filter(of_info) {
                assert_exact(&info.schema, record);
                described += 1;
            }
            for map in info
                .schema
                .fields
                .iter()
                .filter_map(|field| field.map.as_ref())
            {
                assert!(
                    found_maps.iter().any(|known| known.name == map.name),
                    "{}",
                    map.name
                );
            }
        }
        assert!(described > 50, "{files:?}: {described}");
    }
}

#[test]
fn metadata_names_are_those_other_readers_print() {
    let lines = golden("net.4.5.x86-win7.baseline.txt");
    let counts = counted(&lines);
    let records = records(WIN7);
    let (infos, maps) = metadata(&records);
    for info in &infos {
        let schema = &info.schema;
        let full_name = format!(
            "{}/{}",
            schema.provider_name.as_deref().unwrap(),
            schema.name
        );
        let key = (schema.provider, info.descriptor.id);
        let count = records
            .iter()
            .filter(|r| r.is_manifest && (r.provider, r.id) == key)
            .count();
        // Reading is checked here, not counting: the dump leaves some events out.
        assert!(counts[&*full_name] <= count, "{full_name}");
        let printed: Vec<_> = printed(&lines, &full_name);
        let ours = names(&schema.fields);
        let ours: Vec<_> = ours
            .into_iter()
            .filter(|name| printed.contains(name))
            .collect();
        assert_eq!(ours, printed, "{full_name}");
    }
    let [map] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!(map.entries, [(0, "static".into()), (1, "dynamic".into())]);
}

#[test]
fn event_source_manifests_describe_their_events() {
    let lines = golden("net.4.5.x86-win7.baseline.txt");
    let counts = counted(&lines);
    let records = records(WIN7);
    let mut providers = HashMap::new();
    for chunk in records.iter().filter(|r| r.is_manifest && r.id == 0xFFFE) {
        // Both manifests fit into one chunk; its header has eight bytes.
        assert_eq!(chunk.payload[4..8], [1, 0, 0, 0]);
        let text = std::str::from_utf8(&chunk.payload[8..]).unwrap();
        let [provider] = &manifest::parse_manifest(text).unwrap()[..] else {
            panic!("{text}")
        };
        assert_eq!(provider.guid, chunk.provider);
        providers.insert(provider.guid, provider.clone());
    }
    let mut found: Vec<_> = providers.values().map(|provider| &*provider.name).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "PerfView",
            "System.Diagnostics.Eventing.FrameworkEventSource"
        ]
    );

    let mut events = 0;
    for record in records.iter().filter(|r| r.is_manifest && r.id != 0xFFFE) {
        let Some(provider) = providers.get(&record.provider) else {
            continue;
        };
        let schema = &provider.events[&(record.id, record.version)];
        // PerfView writes an enum of one event as 64 bits that its manifest calls 32.
        if &*schema.name != "ClrEnableParameters" {
            assert_exact(schema, record);
        }
        let full_name = format!("{}/{}", provider.name, schema.name);
        assert!(counts.contains_key(&*full_name), "{full_name}");
        assert_eq!(names(&schema.fields), printed(&lines, &full_name));
        events += 1;
    }
    let perfview = counts
        .iter()
        .filter(|(name, _)| name.starts_with("PerfView/"));
    let perfview = perfview.filter(|(name, _)| !name.ends_with("ManifestData"));
    assert_eq!(events, perfview.map(|(_, count)| count).sum::<usize>());
}

#[test]
fn built_in_events_account_for_every_byte() {
    // .NET's undescribed ones: a template without fields, and one whose padding is unknown.
    let undescribed = ["GC/PerHeapHistory", "GC/LOHCompact"];
    for (file, at_least) in [
        ("perfview__gcevents.etl", 69),
        (WIN7, 120_000),
        ("etwanalyzer__TraceLoggingTester.etl", 47_000),
        ("perfview__diaghub__diaghub.user_paged.1.etl", 21_000),
        ("gpuvis__wintracecmd.etl", 70_000),
        ("tx__Process.etl", 10_343),
    ] {
        let mut known = 0;
        for record in records(file).iter().filter(|record| record.is_manifest) {
            let schema = built_in::schema(record.provider, record.id, record.version);
            let Some(schema) = schema else { continue };
            known += 1;
            if !undescribed.contains(&&*schema.name) || schema.fields.len() > 2 {
                assert_exact(&schema, record);
            }
        }
        assert!(known >= at_least, "{file}: {known}");
    }
}

#[test]
fn built_in_names_are_those_other_readers_print() {
    for (file, dump) in [
        ("perfview__gcevents.etl", "gcevents.baseline.txt"),
        (WIN7, "net.4.5.x86-win7.baseline.txt"),
    ] {
        let lines = golden(dump);
        let mut ours = BTreeSet::new();
        for record in records(file).iter().filter(|record| record.is_manifest) {
            let name = built_in::provider_name(record.provider);
            let schema = built_in::schema(record.provider, record.id, record.version);
            if let Some((provider, schema)) = name.zip(schema) {
                ours.insert(format!("{provider}/{}", schema.name));
            }
        }
        let theirs = counted(&lines);
        let theirs = theirs
            .keys()
            .filter(|name| name.starts_with("Microsoft-Windows-DotNET"));
        let missing: Vec<_> = theirs.filter(|name| !ours.contains(**name)).collect();
        assert_eq!(missing, Vec::<&&str>::new(), "{file}");
    }
}

#[test]
fn built_in_values_have_the_names_other_readers_print() {
    let records = records("perfview__gcevents.etl");
    let segment = records
        .iter()
        .find(|record| record.is_manifest && record.id == 5)
        .unwrap();
    let schema = built_in::schema(segment.provider, segment.id, segment.version).unwrap();
    let kind = schema
        .fields
        .iter()
        .find(|field| &*field.name == "Type")
        .unwrap();
    assert_eq!(kind.in_type, InType::U32);
    let before = 16;
    let value = u64::from(etl::le::u32(&segment.payload, before).unwrap());
    let entries = &kind.map.as_ref().unwrap().entries;
    let (_, name) = entries.iter().find(|(number, _)| *number == value).unwrap();
    let lines = golden("gcevents.baseline.txt");
    let line = lines
        .iter()
        .find(|line| line.contains("GC/CreateSegment"))
        .unwrap();
    assert!(line.contains(&format!(" Type={name};")), "{name}: {line}");
}
