//! Differences of simulated twins: scenarios that differ in one cause.

use std::ops::Range;

use diff::{Change, Conclusion, Diff, Kind, Recording, Unit};
use simulated::Simulated;
use tables::{Cache, Options, Store};

/// Simulates a scenario with a seed and sums its trace.
fn recording(scenario: &str, seed: u32) -> Recording {
    let simulated = Simulated::new(scenario, &[&format!("seed={seed}")]);
    read(&simulated.trace, None)
}

fn read(trace: &str, during: Option<Range<i64>>) -> Recording {
    let store = Store::open(&[trace.into()], Cache::Off).unwrap();
    Recording::read(&store, during.as_ref(), Options::default()).unwrap()
}

/// Compares two recordings.
fn diff(before: &Recording, after: &Recording) -> Diff {
    use std::slice::from_ref;
    diff::diff(from_ref(before), from_ref(after))
}

fn find<'d>(changes: &'d [Change], kind: Kind, name: &str) -> &'d Change {
    let mut changes = changes.iter();
    let found = changes.find(|change| change.kind == kind && change.name == name);
    found.unwrap_or_else(|| panic!("no {kind:?} of {name}"))
}

/// Checks that the parts of every change add up to it.
fn adds_up(diff: &Diff) {
    let per_kib = diff.per_network_kib.iter().flatten();
    for change in diff.per_second.iter().chain(per_kib) {
        let sum = change.parts.count_ns + change.parts.mean_ns;
        let whole = change.ns();
        assert!(
            (sum - whole).abs() <= 1e-3 * whole.abs() + 1e-6,
            "{change:?}"
        );
    }
}

#[test]
fn the_cause_that_differs_is_first() {
    for seed in 1..=20 {
        let of = |scenario| recording(scenario, seed);
        let signing = diff(&of("smb-signing-off"), &of("smb-signing-on"));
        adds_up(&signing);
        let first = &signing.per_second[0];
        assert_eq!(
            (first.kind, &*first.name),
            (Kind::InterruptCode, "cng.sys"),
            "seed {seed}"
        );
        let per_kib = signing.per_network_kib.as_ref().unwrap();
        assert_eq!(
            (per_kib[0].kind, &*per_kib[0].name),
            (Kind::InterruptCode, "cng.sys")
        );
        // The scenarios' own truth: 3.750 and 102.379 µs per KiB, all of the difference in cng.sys.
        let cng = per_kib[0].ns();
        assert!(
            (cng - 98_630.0).abs() < 0.02 * 98_630.0,
            "seed {seed}: {cng} ns"
        );

        let usb = diff(&of("usb-wdf01000"), &of("usb-amdxhc31"));
        adds_up(&usb);
        // 19,901 DPCs of 17.9 and of 7.0 µs in 20 s.
        let old = find(&usb.per_second, Kind::Dpc, "Wdf01000.sys");
        let new = find(&usb.per_second, Kind::Dpc, "amdxhc31.sys");
        for (of, mean_us) in [(old.before, 17.9), (new.after, 7.0)] {
            let mean = of.mean_ns().unwrap();
            assert!((mean - mean_us * 1e3).abs() < 0.02 * mean, "{mean} ns");
        }
        let changed = [Conclusion::Differs; 2];
        assert_eq!([old.conclusion, new.conclusion], changed, "seed {seed}");
        let is_driver =
            |name: &str| ["USBXHCI.SYS", "Wdf01000.sys", "amdxhc31.sys"].contains(&name);
        assert!(
            is_driver(&usb.per_second[0].name),
            "{:?}",
            usb.per_second[0]
        );
        let drivers = &usb.besides.drivers;
        assert!(!drivers.is_empty() && drivers.iter().all(|driver| is_driver(&driver.name)));
    }
}

/// Checks the flood of a backup server against the truth of the scenarios, in µs of CPU per KiB.
#[test]
fn a_change_that_looks_worse_by_dpc_is_better_by_work() {
    let of = |scenario| recording(scenario, 1);
    let (teaming, no_teaming, no_ids) = (
        of("dpc-flood-teaming"),
        of("dpc-flood-no-teaming"),
        of("dpc-flood-no-ids"),
    );
    let steps = [diff(&teaming, &no_teaming), diff(&no_teaming, &no_ids)];
    steps.iter().for_each(adds_up);
    let [first, second] = steps.map(|step| step.per_network_kib.unwrap());
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
        // Samples are 1 ms apart, so they have an error of chance.
        let us = change.ns() / 1e3;
        assert!((us - truth_us).abs() < 0.1, "{name}: {us} µs");
    }
    let whole = (dpcs.ns() + isrs.ns()) / 1e3;
    assert!((whole + 3.848).abs() < 0.02 * 3.848, "{whole} µs");
}

#[test]
fn equal_machines_rarely_seem_to_differ() {
    let recordings: Vec<Recording> = (1..=21).map(|seed| recording("healthy", seed)).collect();
    let (mut pairs, mut wrong) = (0, 0);
    for (n, before) in recordings.iter().enumerate() {
        for after in &recordings[..n] {
            let diff = diff(before, after);
            adds_up(&diff);
            let per_kib = diff.per_network_kib.iter().flatten();
            let mut all = diff.per_second.iter().chain(per_kib);
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
            let diff = diff::diff(before, after);
            adds_up(&diff);
            assert_eq!(diff.unit, Unit::Recording);
            pairs += 1;
            wrong += u32::from(diff.per_second[0].conclusion == Conclusion::Differs);
        }
    }
    assert_eq!(pairs, 21);
    assert!(wrong <= 2, "{wrong} of {pairs} groups");
}

/// Compares the flood of a backup server with the quiet time before it, in one trace.
#[test]
fn parts_of_a_trace_are_compared() {
    let simulated = Simulated::new("dpc-flood-teaming", &[]);
    let flood = simulated.window("flood");
    let at = |name: &str| flood[name].as_i64().unwrap();
    let (start, end) = (at("from_ns"), at("to_ns"));
    let quiet = read(&simulated.trace, Some(0..start));
    let flooded = read(&simulated.trace, Some(start..end));
    assert!((flooded.seconds - (end - start) as f64 / 1e9).abs() < 0.01);
    let diff = diff(&quiet, &flooded);
    adds_up(&diff);
    let dpcs = find(&diff.per_second, Kind::Dpc, "ndis.sys");
    // 36.8 s of DPCs in the 10 s of the flood, in the scenario's own words.
    assert!((dpcs.after.ns / 1e9 - 3.68).abs() < 0.04, "{dpcs:?}");
    assert_eq!(dpcs.conclusion, Conclusion::Differs);
}

#[test]
fn several_recordings_of_a_side_are_the_unit() {
    let of = |scenario, seeds: std::ops::RangeInclusive<u32>| -> Vec<Recording> {
        seeds.map(|seed| recording(scenario, seed)).collect()
    };
    let (off, on) = (of("smb-signing-off", 1..=3), of("smb-signing-on", 4..=6));
    let diff = diff::diff(&off, &on);
    adds_up(&diff);
    assert_eq!((diff.unit, diff.before.units), (Unit::Recording, 3));
    let first = &diff.per_second[0];
    assert_eq!(
        (&*first.name, first.conclusion),
        ("cng.sys", Conclusion::Differs)
    );
    let few = diff::diff(&off[..2], &on);
    assert!(
        few.per_second
            .iter()
            .all(|it| it.conclusion == Conclusion::TooFew)
    );
    assert!(
        few.per_second
            .iter()
            .all(|it| it.change.is_none() && it.adjusted_p.is_none())
    );
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let one = recording("smb-signing-on", 1);
    let diff = diff(&one, &one);
    assert_eq!(diff.besides, diff::Besides::default());
    assert!(diff.per_second.len() > 10);
    let is_equal = |it: &Change| it.ns() == 0.0 && it.conclusion == Conclusion::TooSmall;
    assert!(diff.per_second.iter().all(is_equal));
}
