//! Tests of decoded events of real traces. The events are compared with ground truth (independently
//! determined values). The number of events by provider and the values of fields are compared.

use std::collections::BTreeMap;

use etl::Trace;
use serde_json::Value;
use tables::{Events, Options, Table};

fn events_of(relative: &str) -> Vec<Events> {
    let bytes = testdata::bytes(relative);
    let trace = Trace::from_sources(vec![(relative.into(), Box::new(bytes))]).unwrap();
    let tables = import_windows::build(&trace, &[Table::Events], Options::default()).unwrap();
    tables.events
}

#[test]
fn every_event_of_a_provider_is_a_row() {
    let mut seen = 0;
    for (name, truth) in testdata::traces() {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for events in events_of(&name) {
            for guid in events.provider_guid.iter().flatten() {
                *found.entry(guid.to_owned()).or_default() += 1;
            }
        }
        for provider in truth["providers"].as_array().into_iter().flatten() {
            let of = provider["name"].as_str().unwrap_or_default();
            // The other names are event classes of the kernel and of the merge step. The events of these
            // classes belong to other tables.
            if of.starts_with("Microsoft-Windows-") {
                let guid = provider["guid"].as_str().unwrap();
                let count = provider["count"].as_u64().unwrap();
                assert_eq!(found.get(guid), Some(&count), "{name}: {of}");
                seen += count;
            }
        }
    }
    assert!(seen > 100_000);
}

#[test]
fn fields_are_those_that_were_logged() {
    let expected = testdata::json("etl/expected-tracelogging.json");
    let provider = expected["provider"].as_str().unwrap();
    let mut firsts: Vec<Value> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut count = 0;
    let tables = events_of("etl/etwanalyzer__TraceLoggingTester.etl");
    let mut rows: Vec<(i64, &str, &str)> = Vec::new();
    for events in &tables {
        for row in 0..events.len() {
            let fields = events.fields.get(row);
            if let (Some(of), Some(fields)) = (events.provider.get(row), fields)
                && of == provider
            {
                let name = events.event.get(row).unwrap_or_default();
                rows.push((events.time_ns[row], name, fields));
            }
        }
    }
    rows.sort_unstable();
    for (_, name, fields) in rows {
        count += 1;
        if !names.iter().any(|met| met == name) {
            names.push(name.to_owned());
            firsts.push(serde_json::from_str(fields).unwrap());
        }
    }
    assert!(count as u64 >= expected["events"].as_u64().unwrap());
    for kind in expected["first_of_each_kind"].as_array().unwrap() {
        assert!(firsts.contains(kind), "{kind} is not among {firsts:?}");
    }
}
