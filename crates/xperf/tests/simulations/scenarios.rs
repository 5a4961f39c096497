//! Checks reports of complete scenarios. The expected results are the figures in published articles, and the truth
//! files of the simulations.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use simulated::{Simulated, list, number, sums, text};
use xperf::{CSwitch, DpcIsr, FocusChange, Profile, Recording, Stack};

use super::reported::{by_function, open, rows};

/// Time between clock ticks in nanoseconds. A quantum unit is a third of this time.
const TICK_NS: i64 = 15_625_000;

#[track_caller]
fn assert_near(found: f64, expected: f64, share: f64) {
    assert!(
        (found - expected).abs() <= share * expected,
        "{found}, not {expected} within {share}"
    );
}

/// Returns the number of rows for each value of a column.
fn frequencies<'r>(rows: impl Iterator<Item = &'r Value>, column: &str) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for row in rows {
        *found.entry(row[column].to_string()).or_default() += 1;
    }
    found
}

/// Checks figures of the article "A backup server flooded by DPCs" for the time from 20 to 30 s. The figures are the
/// number of NDIS DPCs, their CPU time in seconds, and "Duration (Fragmented) Avg" in µs. Other routines can
/// interrupt a DPC and so divide it into fragments. The last figure is the mean duration of a fragment.
#[test]
fn floods_are_the_published_ones() {
    for (scenario, dpcs, seconds, mean_us, is_locked) in [
        ("dpc-flood-teaming", 163_230, 36.8, 220.0, true),
        ("dpc-flood-no-teaming", 55_000, 37.7, 682.0, true),
        // The article says "11 seconds" here.
        ("dpc-flood-no-ids", 127_000, 127_000.0 * 90e-6, 90.0, false),
    ] {
        let flood = Simulated::new(scenario, &[]);
        let dpcisr = DpcIsr {
            summary: true,
            histogram: true,
            places: by_function(&flood),
            ..DpcIsr::default()
        };
        let trace = Recording {
            range: 20_000_000_000..30_000_000_000,
            ..open(&flood)
        };
        let rows = rows(&dpcisr, &trace);
        let (usage, histogram): (Vec<Value>, Vec<Value>) = rows
            .into_iter()
            .partition(|row| row["table"] == "dpcisr_usage");
        let routine = |row: &Value| (text(&row["kind"]), text(&row["module"]));
        let counts = sums(&histogram, "count", routine);
        let used = sums(&usage, "exclusive_ns", routine);

        let (mut told, mut fragments) = (BTreeMap::new(), 0);
        for routine in list(flood.window("flood"), "routines") {
            if !routine["cpu"].is_null() {
                continue;
            }
            let (kind, name) = (text(&routine["kind"]), text(&routine["routine"]));
            if name == "ndis.sys!ndisInterruptDpc" {
                fragments = number(routine, "fragments");
            }
            let sums = (number(routine, "count"), number(routine, "exclusive_ns"));
            told.insert((kind, name), sums);
        }
        let reported = counts
            .iter()
            .map(|(key, count)| (key.clone(), (*count, used[key])));
        assert_eq!(reported.collect::<BTreeMap<_, _>>(), told, "{scenario}");

        let ndis = ("dpc".to_owned(), "ndis.sys!ndisInterruptDpc".to_owned());
        assert_eq!(counts[&ndis], dpcs, "{scenario}");
        assert_near(used[&ndis] as f64 / 1e9, seconds, 0.005);
        // The report does not contain the number of fragments, so the number comes from the truth file.
        assert_near(used[&ndis] as f64 / 1e3 / fragments as f64, mean_us, 0.005);
        if scenario == "dpc-flood-teaming" {
            let name = "storport.sys!RaidpAdapterDpcRoutine".to_owned();
            let storport = ("dpc".to_owned(), name);
            assert_eq!(counts[&storport], 123_000);
            // The article says "About 1 CPU-s".
            assert_near(used[&storport] as f64 / 1e9, 1.0, 0.05);
        }

        for (cpu, ns) in sums(&usage, "exclusive_ns", |row| number(row, "cpu")) {
            let is_full = ns > 9_000_000_000;
            assert_eq!(is_full, is_locked && [0, 2, 4, 6].contains(&cpu), "{cpu}");
        }
    }
}

/// Compares the CPU time in cng.sys with a figure of the article "Low throughput when copying files".
#[test]
fn signing_moves_the_dpcs_into_cng() {
    for scenario in ["smb-signing-off", "smb-signing-on"] {
        let copy = Simulated::new(scenario, &[]);
        let recording = open(&copy);
        let trace = copy.window("trace");
        let routines = list(trace, "routines").iter();
        let told: i64 = routines
            .filter(|routine| routine["kind"] != "isr" && !routine["cpu"].is_null())
            .map(|routine| number(routine, "exclusive_ns"))
            .sum();
        let dpcisr = DpcIsr {
            dpc: true,
            summary: true,
            ..DpcIsr::default()
        };
        let usage = rows(&dpcisr, &recording);
        let reported: i64 = usage.iter().map(|row| number(row, "exclusive_ns")).sum();
        assert_eq!(reported, told, "{scenario}");

        let functions = list(trace, "functions").iter();
        let in_dpcs = functions.filter(|function| function["kind"] == "dpc");
        let in_dpcs = sums(in_dpcs, "cpu_ns", |row| module(row, "function"));
        let cng = in_dpcs.get("cng.sys").copied().unwrap_or(0);
        let profile = Profile {
            detail: true,
            ..Profile::default()
        };
        let samples = rows(&profile, &recording);
        let weight = sums(&samples, "weight_ns", |row| module(row, "module"));
        let stack = Stack {
            places: by_function(&copy),
            ..Stack::default()
        };
        let stacks = rows(&stack, &recording);
        let hits = |function: &str, column: &str| {
            let row = stacks.iter().find(|row| row["module"] == function);
            row.map_or(0, |row| number(row, column))
        };
        let signing = hits("cng.sys!SymCryptSha256AppendBlocks", "exclusive");
        if cng == 0 {
            assert_eq!(weight.get("cng.sys"), None, "{scenario}");
            assert_eq!(signing, 0, "{scenario}");
            continue;
        }
        let share = cng as f64 / in_dpcs.values().sum::<i64>() as f64;
        assert!(share > 0.96, "{share}");
        // There are about 10,000 samples, one per millisecond. The tolerance of 1 % is five standard
        // deviations for this number of samples.
        assert_near(weight["cng.sys"] as f64 / reported as f64, share, 0.01);
        let of_ndis = hits("ndis.sys!ndisInterruptDpc", "inclusive");
        assert_near(signing as f64 / of_ndis as f64, share, 0.01);
    }
}

/// Returns the module in a column with values such as `module!function` or `module`.
fn module(row: &Value, column: &str) -> String {
    let place = text(&row[column]);
    place.split('!').next().unwrap().to_owned()
}

/// Checks the turns of busy threads. A turn lasts for the quantum that Win32PrioritySeparation defines, extended to
/// the next clock tick. `game` and `others` are quantum units: of the program with the focus and of the other
/// programs.
#[test]
fn turns_take_the_quantum_of_the_setting() {
    for (scenario, game, others) in [
        ("foreground-boost", 18, 6),
        ("foreground-boost-0x14", 12, 12),
        ("foreground-boost-0x28", 18, 18),
    ] {
        let desktop = Simulated::new(scenario, &[]);
        let quantum = &desktop.truth["quantum"];
        let switches = rows(&CSwitch::default(), &open(&desktop));
        let mut busy = 0;
        for process in list(quantum, "processes") {
            let (id, name) = (number(process, "id"), text(&process["name"]));
            let units = number(process, "units");
            assert_eq!(units, if name == "game.exe" { game } else { others });
            let ended: Vec<&Value> = switches
                .iter()
                .filter(|row| number(row, "previous_process_id") == id)
                .filter(|row| row["old_wait_reason"] == "WrQuantumEnd")
                .collect();
            if ended.is_empty() {
                continue;
            }
            busy += 1;
            let ns = units * TICK_NS / 3;
            // The remaining quantum is logged in units of 1024 cycles of a 3 GHz CPU.
            let cycles = ns * 3 / 1024;
            let mut whole = 0;
            for row in &ended {
                assert_eq!(row["old_state"], "Ready", "{row}");
                let left = number(row, "old_remaining_quantum");
                assert!((left - cycles).abs() <= 1, "{name}: {left} of {cycles}");
                // Threads of higher priority may have interrupted the turn. So a single run of the thread may be
                // shorter than the quantum.
                let ran = number(row, "old_cpu_ns");
                assert!(ran <= ns + TICK_NS + 10_000, "{row}");
                whole += usize::from(ran >= ns);
            }
            assert!(ended.len() > 100 && whole > 60, "{name}: {whole}");
        }
        assert_eq!(busy, 4, "{scenario}");

        // A new thread of the program with the focus starts above its base priority of 8. The difference is the
        // priority separation. The switch logs this difference as the priority decrement.
        let separation = number(quantum, "separation");
        for (name, boost) in [("game.exe", separation), ("audiodg.exe", 0)] {
            let of = |row: &&Value| row["process_name"] == name && row["since_last_ns"].is_null();
            let first: Vec<&Value> = switches.iter().filter(of).collect();
            let first: Vec<&Value> = first
                .into_iter()
                .filter(|row| number(row, "priority") < 16)
                .collect();
            assert_eq!(first.len(), 2, "{scenario}: {name}'s two busy threads");
            for row in first {
                assert_eq!(number(row, "priority"), 8 + boost, "{row}");
                assert_eq!(number(row, "priority_decrement"), boost, "{row}");
            }
        }

        for thread in list(&desktop.truth, "watched_threads") {
            let id = number(thread, "thread_id");
            let of = |column: &'static str| switches.iter().filter(move |row| row[column] == id);
            let stopped = frequencies(of("previous_thread_id"), "old_priority");
            assert_eq!(json!(stopped), thread["priorities_at_switch_out"], "{id}");
            let mut ranks = frequencies(of("thread_id"), "rank_out");
            // If a thread was running when the trace ended, its last run has no rank.
            ranks.remove("null");
            assert_eq!(json!(ranks), thread["ranks_at_switch_out"], "{id}");
        }
    }
}

#[test]
fn focus_matches_the_truth() {
    for scenario in ["rank-stall", "stack-paged-out"] {
        let desktop = Simulated::new(scenario, &[]);
        let all = list(&desktop.truth, "moments").iter();
        let given: Vec<&Value> = all.filter(|moment| moment["what"] == "focus").collect();
        assert!(!given.is_empty(), "{scenario}");
        let trace_end = json!(desktop.truth["duration_ns"]);
        let mut told = Vec::new();
        for (n, moment) in given.iter().enumerate() {
            let end = given.get(n + 1).map(|next| next["at_ns"].clone());
            let id = &moment["process"]["id"];
            // Process id 0 means that no process had the focus.
            if *id == 0 {
                continue;
            }
            told.push(json!({
                "start_ns": moment["at_ns"],
                "end_ns": end.as_ref().unwrap_or(&trace_end),
                "process_id": id,
                "process_name": moment["process"]["name"],
                "starts_at_event": true,
                "ends_at_event": end.is_some(),
            }));
        }
        let columns = told[0].as_object().unwrap().keys().cloned();
        let columns: Vec<String> = columns.collect();
        let reported = rows(&FocusChange, &open(&desktop));
        let mut reported = reported.into_iter().map(|row| {
            let cells = columns.iter().map(|key| (key.clone(), row[key].clone()));
            Value::Object(cells.collect())
        });
        // The first row is the process that had the focus before the trace started.
        let first = reported.next().unwrap();
        assert_eq!(first["starts_at_event"], false, "{first}");
        assert_eq!(first["start_ns"], 0);
        assert_eq!(first["end_ns"], given[0]["at_ns"]);
        assert_eq!(reported.collect::<Vec<_>>(), told, "{scenario}");
    }
}
