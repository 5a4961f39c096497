//! Tests with scenarios of DPC floods, file copies, USB, RSS and DSCP. The truth must have the published
//! figures, and the trace must agree with the truth.

use std::collections::{BTreeMap, BTreeSet};

use crate::read_back::{Run, run_with};
use crate::routines::is_near;
use tables::ImageTracker;

const NDIS: &str = "ndis.sys!ndisInterruptDpc";
const FLOODED: [u64; 4] = [0, 2, 4, 6];

/// Returns the share of a time range that each of the first `cpus` processors spends in service
/// routines and DPCs.
fn shares(run: &Run, window: &str, cpus: usize) -> Vec<f64> {
    let window = run.window(window);
    let number = |value: &serde_json::Value| value.as_u64().expect("a number") as f64;
    let length = number(&window["to_ns"]) - number(&window["from_ns"]);
    let mut shares = vec![0.0; cpus];
    for r in window["routines"].as_array().expect("routines") {
        if let Some(cpu) = r["cpu"].as_u64() {
            shares[cpu as usize] += number(&r["exclusive_ns"]) / length;
        }
    }
    shares
}

/// Checks the flood in the 10 s from 20 to 30 s: the number of NDIS's DPCs, their total time in seconds, and
/// the average length of their fragments in µs. "A backup server flooded by DPCs" publishes these values.
fn assert_flood(run: &Run, count: u64, seconds: f64, fragment_us: f64) {
    let (found, _, exclusive, fragments) = run.sums("flood", NDIS);
    assert_eq!(found, count);
    assert!(
        is_near(exclusive as f64 / 1e9, seconds, 0.005),
        "{exclusive} ns"
    );
    let average = exclusive as f64 / fragments as f64 / 1e3;
    assert!(is_near(average, fragment_us, 0.005), "{average} us");
}

fn assert_locked(run: &Run) {
    for (cpu, share) in shares(run, "flood", 24).into_iter().enumerate() {
        let is_flooded = FLOODED.contains(&(cpu as u64));
        assert_eq!(share > 0.9, is_flooded, "CPU {cpu}: {share}");
        assert!(is_flooded || share < 0.05, "CPU {cpu}: {share}");
    }
}

#[test]
fn a_team_floods_four_processors() {
    for seed in [None, Some(2)] {
        let run = run_with("dpc-flood-teaming", seed, &[]);
        assert_flood(&run, 163_230, 36.8, 220.0);
        assert_locked(&run);
        let (storage, _, time, _) = run.sums("flood", "storport.sys!RaidpAdapterDpcRoutine");
        assert_eq!(storage, 123_000);
        assert!(is_near(time as f64, 1e9, 0.05), "{time} ns");
        if seed.is_none() {
            run.assert_routines_agree();
        }
    }
}

#[test]
fn without_the_team_longer_dpcs_flood_them() {
    for seed in [None, Some(2)] {
        let run = run_with("dpc-flood-no-teaming", seed, &[]);
        assert_flood(&run, 55_000, 37.7, 682.0);
        assert_locked(&run);
        if seed.is_none() {
            run.assert_routines_agree();
        }
    }
}

#[test]
fn without_intrusion_detection_dpcs_are_short() {
    let run = run_with("dpc-flood-no-ids", Some(3), &[]);
    assert_flood(&run, 127_000, 127_000.0 * 90e-6, 90.0);
    let shares = shares(&run, "flood", 24);
    assert!(
        FLOODED.iter().all(|cpu| shares[*cpu as usize] < 0.35),
        "{shares:?}"
    );
    run.assert_routines_agree();
}

#[test]
fn six_adapters_lock_no_processor() {
    let run = run_with("dpc-flood-scaled-out", None, &[]);
    let (count, _, time, _) = run.sums("flood", NDIS);
    assert_eq!(count, 127_000);
    assert!(is_near(time as f64, 127_000.0 * 90e3, 0.005), "{time} ns");
    for (cpu, share) in shares(&run, "flood", 24).into_iter().enumerate() {
        assert!(share < 0.15, "CPU {cpu}: {share}");
        // Only the first logical processor of each of the twelve cores receives packets.
        assert!(share > 0.08 || cpu % 2 == 1, "CPU {cpu}: {share}");
    }
}

/// Checks that the samples of DPCs contain the drivers that the published case found, and no others.
#[test]
fn samples_show_the_drivers_that_are_there() {
    const ALWAYS: [&str; 5] = [
        "netio.sys",
        "tcpip.sys",
        "ndis.sys",
        "ixn62x64.sys",
        "ntoskrnl.exe",
    ];
    for (name, more) in [
        ("dpc-flood-teaming", vec!["iansw60e.sys", "idsvia64.sys"]),
        ("dpc-flood-no-teaming", vec!["idsvia64.sys"]),
        ("dpc-flood-no-ids", vec![]),
    ] {
        let samples = dpc_samples(&run_with(name, None, &["duration=22s"]));
        let drivers: BTreeSet<&str> = samples.keys().map(String::as_str).collect();
        let expected = ALWAYS.into_iter().chain(more).chain(["storport.sys"]);
        assert_eq!(drivers, expected.collect(), "{name}");
    }
}

/// Checks that work on a flooded processor is delayed. In the published case, "things would appear to freeze"
/// for the logged-in user.
#[test]
fn what_shares_a_flooded_processor_freezes() {
    let slowest = |name: &str| {
        let run = run_with(name, None, &[]);
        let measured = run.truth["measured"].as_array().expect("measures");
        let moves = measured
            .iter()
            .find(|m| m["name"] == "mouse move")
            .expect("moves");
        moves["max_ns"].as_u64().expect("a number")
    };
    // A mouse move needs less than half a millisecond of processor time.
    assert!(slowest("dpc-flood-teaming") > 50_000_000);
    assert!(slowest("dpc-flood-scaled-out") < 5_000_000);
}

/// Returns the number of samples of DPCs in the trace, by module.
fn dpc_samples(run: &Run) -> BTreeMap<String, u64> {
    let tables = &run.tables;
    let images = ImageTracker::new(&tables.images);
    let mut by_module = BTreeMap::new();
    for samples in &tables.samples {
        for row in 0..samples.time_ns.len() {
            if samples.in_dpc.get(row) == Some(true) {
                let image = images.lookup(0, samples.address[row], samples.time_ns[row]);
                let path = image.and_then(|image| tables.images.nt_path.get(image));
                let file = path.and_then(|path| path.rsplit('\\').next());
                let module = file.expect("a module").to_lowercase();
                *by_module.entry(module).or_default() += 1;
            }
        }
    }
    by_module
}

/// Returns the speed of the copy in Mbit/s, and the share of cng.sys in the samples of DPCs.
fn copy(name: &str, seed: Option<u64>) -> (f64, f64) {
    let run = run_with(name, seed, &[]);
    let number = |value: &serde_json::Value| value.as_u64().expect("a number") as f64;
    let flow = &run.truth["flows"][0];
    let speed = number(&flow["received_bytes"]) * 1e9 / number(&run.truth["duration_ns"]);
    let samples = dpc_samples(&run);
    let cng = samples.get("cng.sys").copied().unwrap_or_default();
    run.assert_routines_agree();
    let share = cng as f64 / samples.values().sum::<u64>() as f64;
    (speed * 8.0 / 1e6, share)
}

#[test]
fn signing_makes_a_copy_five_times_slower() {
    for seed in [None, Some(2)] {
        let (speed, share) = copy("smb-signing-off", seed);
        assert!(is_near(speed, 400.0, 0.02), "{speed} Mb/s");
        assert_eq!(share, 0.0);
        let (speed, share) = copy("smb-signing-on", seed);
        assert!(is_near(speed, 80.0, 0.02), "{speed} Mb/s");
        assert!(share > 0.9, "{share}");
    }
}

#[test]
fn usb_drivers_differ_in_their_dpcs_alone() {
    for seed in [None, Some(2)] {
        let of = |name: &str, module: &str| {
            let routines = run_with(name, seed, &[]).assert_routines_agree();
            let durations = |kind: &str| -> Vec<i64> {
                (routines.iter())
                    .filter(|r| r.kind == kind && r.module == module)
                    .map(|r| r.end - r.start)
                    .collect()
            };
            (durations("isr"), durations("dpc"))
        };
        let (isrs, dpcs) = of("usb-wdf01000", "Wdf01000.sys");
        let (vendor_isrs, vendor_dpcs) = of("usb-amdxhc31", "amdxhc31.sys");
        assert!(isrs.len() > 19_000);
        assert_eq!(isrs, vendor_isrs);
        assert_eq!(dpcs.len(), vendor_dpcs.len());
        let ratio = dpcs.iter().sum::<i64>() as f64 / vendor_dpcs.iter().sum::<i64>() as f64;
        assert!(is_near(ratio, 18.0 / 7.0, 0.02), "{ratio}");
    }
}

#[test]
fn rss_queues_are_used_as_traffic_has_conversations() {
    let by_cpu = |name: &str| {
        let run = run_with(name, Some(2), &[]);
        let flow = &run.truth["flows"][0];
        let number = |value: &serde_json::Value| value.as_u64().expect("a number") as f64;
        let seconds = number(&run.truth["duration_ns"]) / 1e9;
        let bits = number(&flow["received_bytes"]) * 8.0 / seconds;
        let mut by_cpu = [0; 6];
        for r in run.assert_routines_agree() {
            by_cpu[usize::from(r.cpu)] += u64::from(r.kind == "dpc" && r.module == "ndis.sys");
        }
        (bits, by_cpu)
    };
    let (bits, [zero, one, rest @ ..]) = by_cpu("rss-300kbps");
    assert!(is_near(bits, 300e3, 0.01), "{bits} b/s");
    assert!(zero == 0 && one > 2_000 && rest == [0; 4]);
    let (bits, [zero, one, rest @ ..]) = by_cpu("rss-1gbps");
    assert!(is_near(bits, 1e9, 0.02), "{bits} b/s");
    assert!(zero > 10_000 && one > 10_000 && rest == [0; 4]);
}

/// Returns the DSCP marks of the packets in a trace: first the marks of sent packets, then the marks of
/// received packets.
fn marks(run: &Run) -> [Vec<u8>; 2] {
    let source = Box::new(run.bytes.clone());
    let trace = etl::Trace::from_sources(vec![("memory".into(), source)]).expect("a trace");
    let mut marks = [Vec::new(), Vec::new()];
    let mut events = trace.events();
    while let Some(event) = events.next() {
        if event.descriptor().is_none_or(|d| d.id != 1001) {
            continue;
        }
        // The payload starts with two interface numbers and a length (12 bytes). An Ethernet header
        // of 14 bytes precedes the IPv4 header.
        let packet = &event.payload()[12 + 14..];
        assert_eq!(packet[0], 0x45);
        let is_sent = packet[12..16] == [192, 168, 1, 20];
        marks[usize::from(!is_sent)].push(packet[1] >> 2);
    }
    marks
}

#[test]
fn a_bleached_mark_is_missing_from_the_packets() {
    for (name, mark) in [("dscp-marked", 46), ("dscp-bleached", 0)] {
        let run = run_with(name, None, &[]);
        let flow = &run.truth["flows"][0];
        let number = |field: &str| flow[field].as_u64().expect("a number") as usize;
        let [sent, received] = marks(&run);
        assert_eq!(sent, vec![mark; number("sent_packets")]);
        assert_eq!(received, vec![0; number("received_packets")]);
        assert!(sent.len() > 2_000 && received.len() > 2_000);
        // Each direction loses 0.5 % of the packets. If a packet or its answer is lost, this counts as one
        // loss.
        let lost = number("lost_packets") as f64 / sent.len() as f64;
        assert!((0.004..0.018).contains(&lost), "{lost}");
    }
}

#[test]
fn a_load_has_as_many_events_as_asked_for() {
    let events = |run: &Run| run.truth["events"].as_u64().expect("a number");
    let first = run_with("load", None, &["events=200000"]);
    assert!(
        (200_000..201_000).contains(&events(&first)),
        "{}",
        events(&first)
    );
    first.assert_routines_agree();
    let same = run_with("load", None, &["events=200000"]);
    assert!(first.bytes == same.bytes);
    let other = run_with("load", Some(2), &["events=200000"]);
    assert!(first.bytes != other.bytes);
}
