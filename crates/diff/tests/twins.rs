//! Comparisons of simulated twins: pairs of scenarios that differ in only one cause.

use crate::recorded;

use diff::{Change, Conclusion, Kind, ReadOptions, Recording, Unit};
use recorded::{adds_up, diff, find, first_subjects, per_work, read, with_seed};
use simulated::Simulated;

/// Pairs of shipped scenarios that differ in only one cause. The first finding must name at least one of the
/// listed subjects. Subjects are in lower case.
const TWINS: [(&str, &str, &[&str]); 13] = [
    ("smb-signing-off", "smb-signing-on", &["cng.sys"]),
    (
        "usb-wdf01000",
        "usb-amdxhc31",
        &["usbxhci.sys", "wdf01000.sys", "amdxhc31.sys"],
    ),
    (
        "dpc-flood-teaming",
        "dpc-flood-no-teaming",
        &["iansw60e.sys"],
    ),
    (
        "dpc-flood-no-teaming",
        "dpc-flood-no-ids",
        &["idsvia64.sys"],
    ),
    // The traffic is spread over twelve CPUs instead of four.
    (
        "dpc-flood-no-ids",
        "dpc-flood-scaled-out",
        &[
            "cpu 0", "cpu 2", "cpu 4", "cpu 6", "cpu 8", "cpu 10", "cpu 12", "cpu 14", "cpu 16",
            "cpu 18", "cpu 20", "cpu 22",
        ],
    ),
    // The game has more traffic.
    ("rss-300kbps", "rss-1gbps", &["game.exe"]),
    // The quanta of all programs change, except the quantum of the program with the focus.
    (
        "foreground-boost",
        "foreground-boost-0x28",
        &["system", "audiodg.exe", "csrss.exe"],
    ),
    // Only the quantum of the focused program changes.
    ("foreground-boost", "foreground-boost-0x14", &["game.exe"]),
    (
        "foreground-boost-0x28",
        "foreground-boost-0x14",
        &["game.exe"],
    ),
    // After the change, there is a browser that requests a timer resolution.
    ("timer-own", "timer-foreign", &["chrome.exe"]),
    ("timer-own", "timer-occluded", &["measuresleep.exe"]),
    ("timer-foreign", "timer-global", &["measuresleep.exe"]),
    // The times are equal. The answer must name the changed marks of the packets.
    ("dscp-marked", "dscp-bleached", &[]),
];

/// Checks that the first finding names the cause that differs. Each pair is compared in both directions.
fn first_finding_names_the_cause(seeds: std::ops::RangeInclusive<u32>) {
    for (one, other, causes) in TWINS {
        for seed in seeds.clone() {
            let (one_side, other_side) = (with_seed(one, seed), with_seed(other, seed));
            for (before, after) in [(&one_side, &other_side), (&other_side, &one_side)] {
                let diff = diff(before, after);
                adds_up(&diff);
                let about = format!("{one} and {other}, seed {seed}: {}", diff.answer());
                if causes.is_empty() {
                    assert!(diff.findings.is_empty(), "{about}");
                    assert!(
                        diff.answer().contains("marks of sent packets (DSCP)"),
                        "{about}"
                    );
                } else {
                    let subjects = first_subjects(&diff);
                    let is_cause = |subject: &String| causes.contains(&subject.as_str());
                    assert!(subjects.iter().any(is_cause), "{about}: {subjects:?}");
                }
            }
        }
    }
}

#[test]
fn the_first_finding_names_the_cause_that_differs() {
    first_finding_names_the_cause(1..=if testdata::is_full() { 2 } else { 1 });
}

/// Checks 20 seeds. The test takes minutes.
#[test]
#[ignore = "run by hand: cargo test -p diff --test tests -- --ignored"]
fn the_first_finding_names_the_cause_with_20_seeds() {
    first_finding_names_the_cause(1..=20);
}

#[test]
fn parts_have_the_sizes_of_the_truth() {
    for seed in 1..=5 {
        let of = |scenario| with_seed(scenario, seed);
        let signing = diff(&of("smb-signing-off"), &of("smb-signing-on"));
        let per_kib = per_work(&signing);
        assert_eq!(
            (per_kib[0].kind, &*per_kib[0].name),
            (Kind::InterruptCode, "cng.sys")
        );
        // True values of the scenarios: 3.750 and 102.379 µs per KiB. The whole difference is in cng.sys.
        let cng = per_kib[0].ns();
        assert!(
            (cng - 98_630.0).abs() < 0.02 * 98_630.0,
            "seed {seed}: {cng} ns"
        );
        // Mean durations of the DPCs: 28.0 µs before and 817.0 µs after the change.
        let dpcs = find(&signing.per_second, Kind::Dpc, "ndis.sys");
        for (sum, mean_us) in [(dpcs.before, 28.0), (dpcs.after, 817.0)] {
            let mean = sum.mean_ns().unwrap() / 1e3;
            assert!(
                (mean - mean_us).abs() < 0.02 * mean_us,
                "seed {seed}: {mean} µs"
            );
        }
        // CPU 0 runs DPCs during 9.974 of 10 s.
        let cpu = find(&signing.per_second, Kind::Cpu, "CPU 0");
        assert!((cpu.after.ns / 1e9 - 0.9974).abs() < 0.005, "{cpu:?}");
        let first = &signing.findings[0];
        assert!(
            first.sentence.contains("CPU 0 limited it after"),
            "{}",
            first.sentence
        );

        let usb = diff(&of("usb-wdf01000"), &of("usb-amdxhc31"));
        // On both sides, there are 19,901 DPCs in 20 s. Their mean durations are 17.9 and 7.0 µs, and their
        // sums are 356.0 and 138.5 ms.
        let old = find(&usb.per_second, Kind::Dpc, "Wdf01000.sys");
        let new = find(&usb.per_second, Kind::Dpc, "amdxhc31.sys");
        for (of, mean_us) in [(old.before, 17.9), (new.after, 7.0)] {
            let mean = of.mean_ns().unwrap();
            assert!((mean - mean_us * 1e3).abs() < 0.02 * mean, "{mean} ns");
            assert!((of.count * 20.0 - 19_901.0).abs() < 25.0, "{of:?}");
        }
        let changed = [Conclusion::Differs; 2];
        assert_eq!([old.conclusion, new.conclusion], changed, "seed {seed}");
        let is_driver =
            |name: &str| ["USBXHCI.SYS", "Wdf01000.sys", "amdxhc31.sys"].contains(&name);
        let drivers = &usb.besides.drivers;
        assert!(!drivers.is_empty() && drivers.iter().all(|driver| is_driver(&driver.name)));
    }
}

/// Checks a replaced driver of a USB controller. Both drivers have the same 19,901 DPCs in 20 s, of 17.9 and 7.0 µs: the
/// whole change is by mean.
#[test]
fn a_replaced_driver_is_one_finding() {
    for seed in 1..=2 {
        let (old, new) = (
            with_seed("usb-wdf01000", seed),
            with_seed("usb-amdxhc31", seed),
        );
        let diff = diff(&old, &new);
        let [finding] = diff.findings.as_slice() else {
            panic!("{:?}", diff.findings);
        };
        let text = format!("{} {}", finding.sentence, finding.why[0]);
        for part in [
            "Wdf01000.sys",
            "amdxhc31.sys",
            "all of it by mean, none by count",
        ] {
            assert!(text.contains(part), "{text}");
        }
        // The means of the seeds differ by 0.1 µs.
        let before = ["17.9 µs before", "18.0 µs before"];
        assert!(before.iter().any(|part| text.contains(part)), "{text}");
        assert!(text.contains("7.0 µs after"), "{text}");
        assert_eq!(finding.doubts, [""; 0]);
    }
}

/// Checks traffic that RSS spreads over twelve CPUs instead of four (settings of the scenarios).
#[test]
fn dpcs_that_moved_to_other_cpus_are_one_finding() {
    let diff = diff(
        &with_seed("dpc-flood-no-ids", 1),
        &with_seed("dpc-flood-scaled-out", 1),
    );
    let [finding] = diff.findings.as_slice() else {
        panic!("{:?}", diff.findings);
    };
    let text = finding.sentence.to_string();
    let (from, to) = text.split_once(" to ").unwrap();
    assert!(from.contains("CPUs 0, 2, 4 and 6 ("), "{text}");
    assert!(
        to.contains("CPUs 8, 10, 12, 14, 16, 18, 20 and 22 ("),
        "{text}"
    );
    assert!(text.contains("sum is about the same"), "{text}");
    assert!(finding.why[0].contains("RSS"), "{:?}", finding.why);
}

/// Checks that no finding is about lost throughput if no CPU is saturated.
#[test]
fn an_idle_cpu_limits_nothing() {
    let diff = diff(&with_seed("rss-1gbps", 1), &with_seed("rss-300kbps", 1));
    assert!(diff.per_work.as_ref().unwrap().differs());
    assert!(
        diff.findings
            .iter()
            .all(|it| !it.sentence.contains("limited"))
    );
}

/// Compares the changes of the flood of a backup server with the true values of the scenarios, in µs of CPU
/// per KiB.
#[test]
fn a_change_that_looks_worse_by_dpc_is_better_by_work() {
    let of = |scenario| with_seed(scenario, 1);
    let (teaming, no_teaming, no_ids) = (
        of("dpc-flood-teaming"),
        of("dpc-flood-no-teaming"),
        of("dpc-flood-no-ids"),
    );
    let steps = [diff(&teaming, &no_teaming), diff(&no_teaming, &no_ids)];
    steps.iter().for_each(adds_up);
    let [first, second] = steps.map(|step| step.per_work.unwrap().changes);
    let dpcs = find(&first, Kind::Dpc, "ndis.sys");
    assert!(dpcs.after.mean_ns() > dpcs.before.mean_ns());
    let isrs = find(&first, Kind::Isr, "ndis.sys");
    for (changes, kind, name, truth_us) in [
        (&first, Kind::InterruptCode, "iansw60e.sys", -2.367),
        (&first, Kind::InterruptCode, "tcpip.sys", -1.100),
        (&first, Kind::InterruptCode, "ixn62x64.sys", -0.386),
        (&second, Kind::InterruptCode, "IDSvia64.sys", -11.305),
        (&second, Kind::InterruptCode, "ixn62x64.sys", 0.183),
    ] {
        let change = find(changes, kind, name);
        assert_eq!(change.conclusion, Conclusion::Differs, "{name}");
        // Samples are 1 ms apart, so the sampled times have a random error.
        let us = change.ns() / 1e3;
        assert!((us - truth_us).abs() < 0.1, "{name}: {us} µs");
    }
    let whole = (dpcs.ns() + isrs.ns()) / 1e3;
    assert!((whole + 3.848).abs() < 0.02 * 3.848, "{whole} µs");
}

#[test]
fn equal_machines_rarely_seem_to_differ() {
    let recordings: Vec<Recording> = (1..=21).map(|seed| with_seed("healthy", seed)).collect();
    let (mut pairs, mut wrong) = (0, 0);
    for (n, before) in recordings.iter().enumerate() {
        for after in &recordings[..n] {
            let diff = diff(before, after);
            adds_up(&diff);
            let mut all = diff.per_second.iter().chain(per_work(&diff));
            pairs += 1;
            wrong += u32::from(all.any(|it| it.conclusion == Conclusion::Differs));
        }
    }
    assert_eq!(pairs, 210);
    assert!(wrong <= 10, "{wrong} of {pairs}");
    let (mut pairs, mut wrong) = (0, 0);
    let groups: Vec<&[Recording]> = recordings.chunks(3).collect();
    for (n, before) in groups.iter().enumerate() {
        for after in &groups[..n] {
            let diff = diff::diff(before, after, None);
            adds_up(&diff);
            assert_eq!(diff.unit, Unit::Recording);
            pairs += 1;
            wrong += u32::from(diff.per_second[0].conclusion == Conclusion::Differs);
        }
    }
    assert_eq!(pairs, 21);
    assert!(wrong <= 2, "{wrong} of {pairs} groups");
}

/// Checks a program that uses 16 ms per second more, which matters. The lengths of its runs vary so much that two
/// traces can show a much smaller change.
#[test]
fn a_change_that_scatter_hides_is_unknown() {
    let of = |run: &str, seed: u32| {
        let text = format!(
            r#"
            extends = "healthy"
            title = "A desktop with a program that runs in bursts"
            duration = "12s"
            [[add.process]]
            name = "burst.exe"
            [[add.process.thread]]
            name = "work"
            program = [ {{ forever = [ {{ sleep = "exp(80ms)" }}, {{ run = "exp({run})" }} ] }} ]
            "#
        );
        let seed = format!("seed={seed}");
        read(
            &Simulated::of_text("burst", &text, &[&seed]),
            &ReadOptions::default(),
        )
    };
    let after = of("9600us", 4);
    for seed in 1..=3 {
        let diff = diff(&of("8ms", seed), &after);
        let burst = find(&diff.per_second, Kind::Program, "burst.exe");
        let possible = [Conclusion::Chance, Conclusion::MayMatter];
        assert!(possible.contains(&burst.conclusion), "{burst:?}");
        assert!(burst.may_matter(), "{burst:?}");
        let answer = diff.answer();
        assert!(answer.starts_with("Unknown: "), "{answer}");
    }
}

/// Compares two parts of one trace: the flood of a backup server, and the quiet time before the flood.
#[test]
fn parts_of_a_trace_are_compared() {
    let simulated = Simulated::new("dpc-flood-teaming", &[]);
    let flood = simulated.window("flood");
    let at = |name: &str| flood[name].as_i64().unwrap();
    let (start, end) = (at("from_ns"), at("to_ns"));
    let part = |during| {
        let read_options = ReadOptions {
            during: Some(during),
            ..ReadOptions::default()
        };
        read(&simulated, &read_options)
    };
    let (quiet, flooded) = (part(0..start), part(start..end));
    assert!((flooded.seconds - (end - start) as f64 / 1e9).abs() < 0.01);
    let diff = diff(&quiet, &flooded);
    adds_up(&diff);
    let dpcs = find(&diff.per_second, Kind::Dpc, "ndis.sys");
    // The scenario states 36.8 s of DPCs in the 10 s of the flood.
    assert!((dpcs.after.ns / 1e9 - 3.68).abs() < 0.04, "{dpcs:?}");
    assert_eq!(dpcs.conclusion, Conclusion::Differs);
}

/// Returns a recording of a scenario for each seed.
fn of(scenario: &str, seeds: std::ops::RangeInclusive<u32>) -> Vec<Recording> {
    seeds.map(|seed| with_seed(scenario, seed)).collect()
}

#[test]
fn several_recordings_of_a_side_are_the_unit() {
    let (off, on) = (of("smb-signing-off", 1..=3), of("smb-signing-on", 4..=6));
    let diff = diff::diff(&off, &on, None);
    adds_up(&diff);
    assert_eq!((diff.unit, diff.before.units), (Unit::Recording, 3));
    let first = &diff.per_second[0];
    assert_eq!(
        (&*first.name, first.conclusion),
        ("cng.sys", Conclusion::Differs)
    );
    // If one side has a single trace, blocks of this trace must not take the place of missing traces.
    for few in [&off[..2], &off[..1]] {
        let few = diff::diff(few, &on, None);
        assert_eq!(few.unit, Unit::Recording);
        for row in &few.per_second {
            assert_eq!(row.conclusion, Conclusion::TooFew);
            assert!(row.change.is_none() && row.adjusted_p.is_none());
        }
    }
}

#[test]
fn other_reasons_are_named_without_the_drivers_of_the_findings() {
    let others = |before: &str, after: &str| -> (String, Vec<String>) {
        let diff = diff::diff(&of(before, 1..=3), &of(after, 4..=6), None);
        let doubts = diff.doubts().iter().map(ToString::to_string).collect();
        (diff.answer().to_string(), doubts)
    };
    // If there is no finding, the answer names the other differences.
    let (answer, doubts) = others("dscp-marked", "dscp-bleached");
    assert!(
        answer.ends_with("Other differences: marks of sent packets (DSCP)."),
        "{answer}"
    );
    assert_eq!(doubts, [""; 0]);
    // Drivers that are subjects of findings are not listed. USBXHCI.SYS is gone after the change, and is no subject of
    // a finding.
    assert_eq!(
        others("usb-wdf01000", "usb-amdxhc31").1,
        ["Other things differ, too, and may be the reason: USBXHCI.SYS"]
    );
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let one = with_seed("smb-signing-on", 1);
    let diff = diff(&one, &one);
    assert_eq!(diff.besides, diff::OtherDifferences::default());
    assert!(diff.per_second.len() > 10);
    let is_equal = |it: &Change| it.ns() == 0.0 && it.conclusion == Conclusion::TooSmall;
    assert!(diff.per_second.iter().all(is_equal));
}

/// Checks the 10 s of the flood against the published counts, the published sums, and the parts of the
/// changes.
#[test]
fn the_flood_has_the_published_parts() {
    let window = |scenario| {
        let simulated = Simulated::new(scenario, &[]);
        let flood = simulated.window("flood");
        let at = |name: &str| flood[name].as_i64().unwrap();
        let read_options = ReadOptions {
            during: Some(at("from_ns")..at("to_ns")),
            ..ReadOptions::default()
        };
        read(&simulated, &read_options)
    };
    let teaming = window("dpc-flood-teaming");
    let no_teaming = window("dpc-flood-no-teaming");
    let no_ids = window("dpc-flood-no-ids");
    // Numbers of DPCs, then the parts of the change in seconds. The last flood has 127,000 DPCs of 90 µs:
    // 11.43 s.
    for (before, after, counts, parts) in [
        (
            &teaming,
            &no_teaming,
            (163_230.0, 55_000.0),
            (-49.29, 50.19),
        ),
        (&teaming, &no_ids, (163_230.0, 127_000.0), (-5.71, -19.66)),
        (&no_teaming, &no_ids, (55_000.0, 127_000.0), (27.92, -54.19)),
    ] {
        let diff = diff(before, after);
        let dpcs = find(&diff.per_second, Kind::Dpc, "ndis.sys");
        let count = |count: f64| (count * 10.0).round();
        assert_eq!((count(dpcs.before.count), count(dpcs.after.count)), counts);
        let seconds = |ns: f64| ns * 10.0 / 1e9;
        // The published sums have only three digits.
        let is_near = |ns: f64, published: f64| (seconds(ns) - published).abs() < 0.25;
        assert!(is_near(dpcs.parts.count_ns, parts.0), "{dpcs:?}");
        assert!(is_near(dpcs.parts.mean_ns, parts.1), "{dpcs:?}");
        adds_up(&diff);
    }
    // The CPUs of the network spend less than 95 % of their time in DPCs, so no finding says that a CPU limits the
    // traffic. The traffic differs, so the findings per KiB come first.
    let diff = diff(&teaming, &no_teaming);
    assert!(
        diff.findings
            .iter()
            .all(|it| !it.sentence.contains("limited"))
    );
    let first = &diff.findings[0];
    assert!(
        first.sentence.contains("less CPU time per KiB"),
        "{}",
        first.sentence
    );
    assert!(
        first.why[0].contains("code of iansw60e.sys"),
        "{}",
        first.why[0]
    );
}
