//! Comparison of statistics about real traces with their independent ground truth.

use std::collections::BTreeMap;
use std::path::Path;

use events::Decoder;
use raw_events::Stats;
use serde_json::Value;
use tables::Options;

/// Returns the statistics of a trace as JSON.
fn read(path: &Path) -> Value {
    let trace = etl::open(&[path.to_owned()]).expect("the trace is readable");
    let stats = Stats::read(&trace, &mut Decoder::new(), Options::default());
    serde_json::to_value(stats.expect("nothing cancels it")).expect("counts are plain data")
}

fn count_of(entry: &Value, keys: [&str; 3]) -> (String, String, String) {
    let [a, b, c] = keys.map(|key| match &entry[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    (a, b, c)
}

/// Converts a list of counted kinds to a map. The key has the three fields `keys`, and the value has the
/// fields `values`.
fn by_kind(
    list: &Value,
    keys: [&str; 3],
    values: &[&str],
) -> BTreeMap<(String, String, String), Vec<u64>> {
    let list = list.as_array().expect("a list");
    let kinds: BTreeMap<_, _> = list
        .iter()
        .map(|e| {
            let values = values.iter().map(|v| e[v].as_u64().expect("a number"));
            (count_of(e, keys), values.collect())
        })
        .collect();
    assert_eq!(kinds.len(), list.len(), "each kind is listed once");
    kinds
}

fn counts(list: &Value, key: &str) -> BTreeMap<String, u64> {
    let list = list.as_array().expect("a list").iter();
    list.map(|e| {
        (
            e[key].as_str().expect("text").to_owned(),
            e["count"].as_u64().expect("a number"),
        )
    })
    .collect()
}

#[test]
fn everything_counted_equals_the_ground_truth() {
    for (name, truth) in testdata::traces() {
        let stats = read(&testdata::path(&name));
        assert_eq!(stats["total_events"], truth["total_events"], "{name}");
        assert_eq!(stats["header_kinds"], truth["header_types"], "{name}");
        assert_eq!(stats["extended_items"], truth["ext_items"], "{name}");
        let values = ["count", "payload_min", "payload_max"];
        assert_eq!(
            by_kind(
                &stats["kernel_events"],
                ["class", "opcode", "version"],
                &values
            ),
            by_kind(
                &truth["kernel_events"],
                ["cls", "opcode", "version"],
                &values
            ),
            "{name}: kernel events"
        );
        let keys = ["guid", "opcode", "version"];
        assert_eq!(
            by_kind(&stats["classic_events"], keys, &["count"]),
            by_kind(&truth["classic_events"], keys, &["count"]),
            "{name}: classic events"
        );
        assert_eq!(
            counts(&stats["providers"], "guid"),
            counts(&truth["providers"], "guid"),
            "{name}: providers"
        );
        for provider in stats["providers"].as_array().unwrap() {
            let events = provider["events"].as_array().unwrap().iter();
            let sum: u64 = events.map(|e| e["count"].as_u64().unwrap()).sum();
            assert_eq!(provider["count"], sum, "{name}: {}", provider["guid"]);
        }
        let lost = &truth["header"]["events_lost"];
        assert_eq!(&stats["damage"]["events_lost"], lost, "{name}");
        assert_eq!(stats["damage"]["faults"], serde_json::json!([]), "{name}");
    }
}
