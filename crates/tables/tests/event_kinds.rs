//! Tests of the table `event_kinds` and of the activity of CPUs. The expected values are independent counts
//! of real traces.

use std::collections::BTreeMap;

use etl::Trace;
use events::kernel::Class;
use serde_json::Value;
use tables::{EventFormat, EventKinds, Options, Table, Tables};

fn read(relative: &str, wanted: &[Table]) -> (Trace, Tables) {
    let bytes = testdata::bytes(relative);
    let trace = Trace::from_sources(vec![(relative.into(), Box::new(bytes))]).unwrap();
    let tables = import_windows::build(&trace, wanted, Options::default()).unwrap();
    (trace, tables)
}

/// Returns the sum of `value` over all rows with the same key, for each key.
fn sums<K: Ord>(
    kinds: &EventKinds,
    key: impl Fn(usize) -> Option<K>,
    value: impl Fn(usize) -> u64,
) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for row in 0..kinds.len() {
        if let Some(key) = key(row) {
            *sums.entry(key).or_default() += value(row);
        }
    }
    sums
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn counts_equal_the_ground_truth() {
    for (name, truth) in testdata::traces() {
        let (_, tables) = read(&name, &[Table::EventKinds]);
        let kinds = &tables.event_kinds;
        let count = |row: usize| kinds.count[row];
        let total: u64 = kinds.count.iter().sum();
        assert_eq!(total, number(&truth["total_events"]), "{name}");

        let headers = sums(kinds, |row| kinds.header.get(row).map(str::to_owned), count);
        let expected = truth["header_types"].as_object().unwrap().iter();
        let expected: BTreeMap<String, u64> =
            expected.map(|(k, v)| (k.clone(), number(v))).collect();
        assert_eq!(headers, expected, "{name}");

        let is_kernel = |row: &usize| kinds.format.0[*row] == EventFormat::Kernel;
        let kernel = sums(
            kinds,
            |row| {
                let hook = kinds.hook.get(row).filter(|_| is_kernel(&row))?;
                let [group, opcode] = hook.to_be_bytes();
                let class = Class::of_group(group).map(|class| class.name.to_owned());
                Some((class.unwrap_or_default(), u64::from(opcode)))
            },
            count,
        );
        let mut expected = BTreeMap::new();
        for event in truth["kernel_events"].as_array().unwrap() {
            let key = (text(&event["cls"]), number(&event["opcode"]));
            *expected.entry(key).or_default() += number(&event["count"]);
        }
        assert_eq!(kernel, expected, "{name}");

        let has_provider = |row: usize| {
            let guid = kinds.provider_guid.get(row)?;
            (kinds.format.0[row] != EventFormat::Wpp).then(|| guid.to_owned())
        };
        let providers = sums(kinds, has_provider, count);
        let expected = truth["providers"].as_array().unwrap().iter();
        let expected: BTreeMap<String, u64> = expected
            .map(|provider| (text(&provider["guid"]), number(&provider["count"])))
            .collect();
        assert_eq!(providers, expected, "{name}");

        let items = &truth["ext_items"];
        let kinds_of_stacks = [
            "STACK_TRACE32",
            "STACK_TRACE64",
            "STACK_KEY32",
            "STACK_KEY64",
        ];
        let expected: u64 = kinds_of_stacks
            .iter()
            .map(|kind| items[kind].as_u64().unwrap_or(0))
            .sum();
        assert_eq!(kinds.stacks.iter().sum::<u64>(), expected, "{name}");
    }
}

#[test]
fn payload_sizes_equal_the_ground_truth() {
    let mut compared = 0;
    for (name, truth) in testdata::traces() {
        let (_, tables) = read(&name, &[Table::EventKinds]);
        let kinds = &tables.event_kinds;
        for event in truth["kernel_events"].as_array().unwrap() {
            let rows = (0..kinds.len()).filter(|row| {
                let hook = kinds.hook.get(*row).unwrap_or(0);
                let class = Class::of_group(hook.to_be_bytes()[0]).map(|class| class.name);
                kinds.format.0[*row] == EventFormat::Kernel
                    && class == event["cls"].as_str()
                    && kinds.opcode.get(*row).map(u64::from) == event["opcode"].as_u64()
                    && kinds.version.get(*row).map(u64::from) == event["version"].as_u64()
            });
            let rows: Vec<usize> = rows.collect();
            let least = rows.iter().map(|row| kinds.least_payload_bytes[*row]).min();
            let greatest = rows.iter().map(|row| kinds.greatest_payload_bytes[*row]);
            let greatest = greatest.max();
            let sizes = (least.map(u64::from), greatest.map(u64::from));
            let expected = (event["payload_min"].as_u64(), event["payload_max"].as_u64());
            assert_eq!(sizes, expected, "{name}: {event}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}

/// Computes the expected values by reading the trace event by event.
#[test]
fn times_and_places_are_those_of_the_first_and_last_events() {
    for name in [
        "etl/filtrace__etw.etl",
        "etl/perfview__net.4.5.2.x64.etl",
        "etl/findneedle__wppemitter-nonselfdesc.etl",
    ] {
        let (trace, tables) = read(name, &[Table::EventKinds, Table::Cpus]);
        let kinds = &tables.event_kinds;
        let (mut bytes, mut cpus) = (0, BTreeMap::new());
        let mut all: Vec<(i64, u64, u32)> = Vec::new();
        let mut events = trace.events();
        while let Some(event) = events.next() {
            bytes += event.record().len() as u64;
            let place = event.place();
            all.push((event.time_ns(), place.buffer_offset, place.offset));
            let times: &mut Vec<i64> = cpus.entry(event.cpu()).or_default();
            times.push(event.time_ns());
        }
        assert_eq!(kinds.size_bytes.iter().sum::<u64>(), bytes, "{name}");
        all.sort_unstable();
        for row in 0..kinds.len() {
            assert!(kinds.first_ns[row] <= kinds.last_ns[row], "{name}");
            assert_eq!(kinds.file.get(row), name.rsplit('/').next());
            let place = (
                kinds.buffer_offset_bytes[row],
                kinds.record_offset_bytes[row],
            );
            let is_at_place = |event: &&(i64, u64, u32)| (event.1, event.2) == place;
            assert!(
                all.iter().any(|event| is_at_place(&event)),
                "{name}: {place:?}"
            );
        }
        let first = kinds.first_ns.iter().min();
        assert_eq!(first, all.first().map(|event| &event.0), "{name}");
        let last = kinds.last_ns.iter().max();
        assert_eq!(last, all.last().map(|event| &event.0), "{name}");
        check_activity(name, &tables, cpus);
    }
}

/// Compares the activity in the table `cpus` with the times of all events of each CPU.
fn check_activity(name: &str, tables: &Tables, cpus: BTreeMap<u16, Vec<i64>>) {
    let table = &tables.cpus;
    for row in 0..table.len() {
        let Some(times) = cpus.get(&table.cpu[row]) else {
            assert_eq!(
                (table.events[row], table.longest_gap_ns.get(row)),
                (0, None)
            );
            continue;
        };
        let mut times = times.clone();
        times.sort_unstable();
        assert_eq!(table.events[row], times.len() as u64, "{name}");
        assert_eq!(
            table.first_event_ns.get(row),
            times.first().copied(),
            "{name}"
        );
        assert_eq!(
            table.last_event_ns.get(row),
            times.last().copied(),
            "{name}"
        );
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert_eq!(table.longest_gap_ns.get(row), longest.or(Some(0)), "{name}");
        let start = table.longest_gap_start_ns.get(row).unwrap();
        let gap = longest.unwrap_or(0);
        assert!(
            times.contains(&start) && times.contains(&(start + gap)),
            "{name}"
        );
    }
}

#[test]
fn kinds_have_names() {
    let (_, tables) = read("etl/perfview__net.4.5.2.x64.etl", &[Table::EventKinds]);
    let kinds = &tables.event_kinds;
    let names: Vec<(Option<&str>, Option<&str>)> = (0..kinds.len())
        .map(|row| (kinds.provider.get(row), kinds.event.get(row)))
        .collect();
    let has = |provider: &str| names.iter().any(|(p, _)| *p == Some(provider));
    assert!(has("Microsoft-Windows-DotNETRuntime"), "{names:?}");
    let unnamed = names.iter().filter(|(_, event)| event.is_none()).count();
    assert!(unnamed * 20 < names.len(), "{unnamed} of {}", names.len());
}
