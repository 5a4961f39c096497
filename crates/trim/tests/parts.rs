//! Tests that a part of a trace is a valid trace and contains the right events of the original.

use crate::logs;

use std::path::Path;
use std::slice;

use etl::Trace;
use raw_events::{Filter, ProviderPattern};

use logs::{PROVIDER, Read, Redact, cut, events, faults, two_processes};

#[test]
fn a_range_has_all_events_of_the_range_and_times_stay_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    for (name, from, to) in [
        ("filtrace__etw.etl", 500, 1_000),
        ("gpuvis__wintracecmd.etl", 1_000, 1_100),
        ("perfview__net.4.5.2.x64.etl", 700, 1_900),
        ("perfview__net.4.5.x86-win7.etl", 0, 500),
        ("s4__WindowsUpdate.20251008.etl", 0, 3_600_000),
        ("findneedle__wppemitter-nonselfdesc.etl", 0, 10_000),
    ] {
        let filter = Filter {
            from_ns: Some(from * 1_000_000),
            to_ns: Some(to * 1_000_000),
            ..Filter::default()
        };
        let out = cut(
            &[testdata::path("etl").join(name)],
            &folder,
            &filter,
            Redact::No,
        );
        let original = events(&[&testdata::path("etl").join(name)]);
        let part = events(&[&out]);
        let inside = |(time, _, _): &&Read| (from * 1_000_000..=to * 1_000_000).contains(time);
        let expected: Vec<_> = original.iter().filter(inside).collect();
        let found: Vec<_> = part.iter().filter(inside).collect();
        assert!(!expected.is_empty(), "{name}");
        assert!(
            expected == found,
            "{name}: {} events, {}",
            expected.len(),
            found.len()
        );
        // The other events in the part must also be in the original, in the same order.
        let mut rest = original.iter();
        for event in &part {
            assert!(rest.any(|e| e == event), "{name}: {} ns", event.0);
        }
        assert_eq!(faults(&out), 0, "{name}");
    }
}

#[test]
fn several_files_of_one_system_become_one() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "perfview__diaghub__diaghub.kernel.1.etl",
        "perfview__diaghub__diaghub.user_injected.1.etl",
    ];
    let paths = names.map(|name| testdata::path("etl").join(name));
    let out = cut(&paths, &folder, &Filter::default(), Redact::No);
    let [a, b] = &paths;
    let mut expected = events(&[a, b]);
    let mut found = events(&[&out]);
    // In the original files, events with the same time are ordered by CPU. In the combined file, they are
    // ordered by file.
    expected.sort();
    found.sort();
    assert!(
        expected == found,
        "{} events, {}",
        expected.len(),
        found.len()
    );
}

fn raw_times(path: &Path) -> Vec<i64> {
    let source = std::fs::read(path).unwrap();
    let trace = Trace::from_sources(vec![("part".into(), Box::new(source))]).unwrap();
    let mut walk = trace.events();
    let mut times = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() != Some(0) {
            times.push(event.raw_time());
        }
    }
    times
}

#[test]
fn a_process_keeps_what_it_did_and_what_was_done_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("two.etl");
    two_processes(&log);
    let lives = [1, 1, 1, 1];
    let all = Filter::default();
    for (filter, expected) in [
        // A part for `a.exe` has its context switches, its sample with the stack, the event in which it readied
        // `b.exe`, and the DPC.
        (
            Filter {
                process_names: vec!["a.exe".to_owned()],
                ..all.clone()
            },
            &[100, 120, 121, 150, 170, 200][..],
        ),
        // A part for process 80 (`b.exe`) has the event that readied it, its own events, and the DPC, because a DPC
        // can delay every thread.
        (
            Filter {
                process_ids: vec![80],
                ..all.clone()
            },
            &[150, 170, 200, 220, 221, 300, 310],
        ),
        // A part with only samples also has the stack of each sample.
        (
            Filter {
                events: vec!["SampledProfile".parse().unwrap()],
                ..all.clone()
            },
            &[120, 121, 220, 221],
        ),
        (
            Filter {
                providers: vec![ProviderPattern::Guid(PROVIDER)],
                ..all.clone()
            },
            &[310],
        ),
    ] {
        let out = cut(slice::from_ref(&log), &folder, &filter, Redact::No);
        assert_eq!(raw_times(&out), [&lives, expected].concat(), "{filter:?}");
    }
    // A stack is kept with an event in the time range, even if the stack is logged after the end of
    // the range.
    let filter = Filter {
        from_ns: Some(11_000),
        to_ns: Some(12_000),
        ..all
    };
    let out = cut(slice::from_ref(&log), &folder, &filter, Redact::No);
    assert_eq!(raw_times(&out), [1, 1, 1, 1, 120, 121]);
}
