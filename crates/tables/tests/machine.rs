//! Tests of the tables about sessions and machines. The tables are compared with ground truth (independently
//! determined values).

use std::collections::{BTreeMap, BTreeSet};

use etl::Trace;
use serde_json::Value;
use tables::{Cpus, Options, SystemConfig, Table, Tables};

fn read(relative: &str) -> (Trace, Tables) {
    let bytes = testdata::bytes(relative);
    let trace = Trace::from_sources(vec![(relative.into(), Box::new(bytes))]).unwrap();
    let wanted = [
        Table::Sessions,
        Table::Cpus,
        Table::SystemConfig,
        Table::Damages,
    ];
    let tables = import_windows::build(&trace, &wanted, Options::default()).unwrap();
    assert_eq!(tables.unreadable, [], "{relative}");
    (trace, tables)
}

#[test]
fn sessions_are_what_the_headers_say() {
    for (name, truth) in testdata::traces() {
        let header = &truth["header"];
        if header.is_null() {
            continue;
        }
        let (_, tables) = read(&name);
        let sessions = &tables.sessions;
        assert_eq!(sessions.file.get(0), name.rsplit('/').next());
        assert_eq!(sessions.start_ns[0], 0, "{name}");
        // The ground truth has microseconds that were computed in floating point. So the two values may
        // differ by 1 µs. The seconds start at byte 17 of the text.
        let utc = |text: Option<&str>, of: &str| {
            let Some(expected) = header[of].as_str() else {
                return;
            };
            let text = text.unwrap();
            let seconds = |text: &str| text[17..].trim_end_matches('Z').parse::<f64>().unwrap();
            let is_near = (seconds(text) - seconds(expected)).abs() < 1.5e-6;
            assert!(
                text[..17] == expected[..17] && is_near,
                "{name}: {of} {text} is not {expected}"
            );
        };
        utc(sessions.start_utc.get(0), "start");
        utc(sessions.end_utc.get(0), "end");
        utc(sessions.boot_utc.get(0), "boot");
        for (found, of) in [
            (sessions.os_build.get(0), "os_build"),
            (sessions.processors.get(0), "processors"),
            (sessions.cpu_mhz.get(0), "cpu_mhz"),
            (sessions.buffers_written.get(0), "buffers_written"),
            (sessions.events_lost.get(0), "events_lost"),
            (sessions.buffers_lost.get(0), "buffers_lost"),
        ] {
            assert_eq!(
                u64::from(found.unwrap_or(0)),
                header[of].as_u64().unwrap(),
                "{name}: {of}"
            );
        }
        assert_eq!(
            sessions.session.get(0).unwrap_or(""),
            header["session"],
            "{name}"
        );
        assert_eq!(
            sessions.os_version.get(0).unwrap_or(""),
            header["os_version"],
            "{name}"
        );
        if header["clock"] == 1 {
            assert_eq!(
                sessions.clock_hz.get(0),
                header["perf_freq"].as_u64(),
                "{name}"
            );
        }
    }
}

/// Returns the facts about one thing of the machine. Each key is the name of a property.
fn facts<'t>(table: &'t SystemConfig, item: &str, number: u32) -> BTreeMap<&'t str, &'t str> {
    (0..table.len())
        .filter(|row| table.item.get(*row) == Some(item) && table.number[*row] == number)
        .map(|row| (table.key.get(row).unwrap(), table.value.get(row).unwrap()))
        .collect()
}

#[test]
fn every_system_configuration_event_gives_facts() {
    let mut seen = 0;
    for (name, truth) in testdata::traces() {
        let of_kernel = |event: &&Value| {
            let class = event["cls"].as_str().or(event["name"].as_str());
            class == Some("SystemConfig")
        };
        let kinds = ["kernel_events", "classic_events"];
        let events = kinds
            .iter()
            .flat_map(|of| truth[of].as_array().into_iter().flatten());
        let expected: u64 = events
            .filter(of_kernel)
            .map(|e| e["count"].as_u64().unwrap())
            .sum();
        let (_, tables) = read(&name);
        let table = &tables.system_config;
        // These items come from other event classes than the kernel's SystemConfig.
        let merged = [
            "BuildInfo",
            "BuildLab",
            "KernelFlags",
            "SystemPaths",
            "UnknownVolume",
            "VolumeMapping",
            "NetworkInterface",
        ];
        let things: BTreeSet<(&str, u32)> = (0..table.len())
            .map(|row| (table.item.get(row).unwrap(), table.number[row]))
            .filter(|(item, _)| !merged.contains(item))
            .collect();
        // The item DeviceFamily comes from an event of the kernel's SystemConfig or from one of the other classes.
        let doubled = things
            .iter()
            .filter(|(item, _)| *item == "DeviceFamily")
            .count() as u64;
        let found = things.len() as u64;
        // The event with the numbers of preview builds may have only empty texts. It then has no rows. So one thing may
        // be missing.
        assert!(
            found + 1 >= expected && found <= expected + doubled,
            "{name}: {found} of {expected}"
        );
        seen += found;
    }
    assert!(seen > 1000);
}

#[test]
fn facts_of_a_real_machine() {
    // This file describes 20 processors on one NUMA node in one group.
    let (_, tables) = read("etl/etwanalyzer__TraceLoggingTester.etl");
    let cpus: &Cpus = &tables.cpus;
    assert_eq!(cpus.cpu, (0..20).collect::<Vec<u16>>());
    for row in 0..20 {
        assert_eq!(cpus.processor_group.get(row), Some(0));
        assert_eq!(cpus.number.get(row), Some(row as u8));
        assert_eq!(cpus.numa_node.get(row), Some(0));
        assert_eq!(cpus.vendor.get(row), Some("GenuineIntel"));
        assert_eq!(cpus.model.get(row), cpus.model.get(0));
    }
    let cpu = facts(&tables.system_config, "CPU", 0);
    assert_eq!(cpu["NumberOfProcessors"], "20");
    // The same value is also in the log-file header.
    assert_eq!(cpu["MHz"], "3494");
    assert_eq!(facts(&tables.system_config, "Boot", 0)["FirmwareType"], "2");
}

#[test]
fn numbers_are_values_too() {
    let (_, tables) = read("etl/etwanalyzer__TraceLoggingTester.etl");
    let table = &tables.system_config;
    let value = |key: &str| {
        let row = (0..table.len()).find(|row| table.key.get(*row) == Some(key))?;
        Some((table.value.get(row)?, table.value_number.get(row)))
    };
    assert_eq!(value("NumberOfProcessors"), Some(("20", Some(20))));
    let (name, number) = value("ComputerName").unwrap();
    assert!(!name.is_empty() && number.is_none());
}

/// The trace has samples and starts of disk requests. A session logs such events only if they are enabled. So
/// the table must list their names.
#[test]
fn enabled_kernel_events_are_listed() {
    let (_, tables) = read("etl/perfview__net.4.5.2.x64.etl");
    let table = &tables.system_config;
    let rows: Vec<usize> = (0..table.len())
        .filter(|row| table.item.get(*row) == Some(SystemConfig::KERNEL_FLAGS))
        .collect();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| table.value.get(*row).unwrap())
        .collect();
    for name in ["process", "thread", "image", "profile", "disk I/O init"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let numbers: Vec<u32> = rows.iter().map(|row| table.number[*row]).collect();
    assert_eq!(numbers, (0..names.len() as u32).collect::<Vec<u32>>());
}

#[test]
fn losses_are_told_with_their_place() {
    let mut lost = 0;
    for (name, truth) in testdata::traces() {
        let expected = truth["header"]["events_lost"].as_u64().unwrap_or(0);
        let (_, tables) = read(&name);
        let damages = &tables.damages;
        let rows = (0..damages.len()).filter(|row| damages.kind.get(*row) == Some("events_lost"));
        let found: u64 = rows.map(|row| damages.count.get(row).unwrap()).sum();
        assert_eq!(found, expected, "{name}");
        lost += found;
    }
    assert!(lost > 0);
    // The fourth byte of the first record in the third buffer, a marker, is overwritten.
    let name = "etl/gpuvis__wintracecmd.etl";
    let mut bytes = testdata::bytes(name);
    let size = 65_536;
    let at = 2 * size + 72 + 3;
    bytes[at] = 0x11;
    let trace = Trace::from_sources(vec![(name.into(), Box::new(bytes))]).unwrap();
    let tables = import_windows::build(&trace, &[Table::Damages], Options::default()).unwrap();
    let damages = &tables.damages;
    let row = (0..damages.len())
        .find(|row| damages.kind.get(*row) == Some("unknown_record"))
        .unwrap();
    assert_eq!(damages.buffer_offset_bytes.get(row), Some(2 * size as u64));
    assert_eq!(damages.record_offset_bytes.get(row), Some(72));
    assert_eq!(damages.file.get(row), name.rsplit('/').next());
    assert!(damages.cpu.get(row).is_some());
    assert!(damages.start_ns[row] > 0 && damages.end_ns.get(row) > Some(damages.start_ns[row]));
}
