//! Comparisons in which only one recording has a kind of events.

use crate::recorded;

use diff::{Conclusion, Diff, Kind, Recording};
use recorded::{diff, per_work, recording};

/// Keywords of the kernel, each with the kinds of rows that need it. These kinds can be compared only if both sides
/// were recorded with the keyword.
const KEYWORDS: [(&str, &[Kind]); 15] = [
    (
        "PROC_THREAD",
        &[
            Kind::Program,
            Kind::Thread,
            Kind::Ready,
            Kind::Wait,
            Kind::WaitCode,
        ],
    ),
    (
        "LOADER",
        &[
            Kind::Dpc,
            Kind::Isr,
            Kind::WaitCode,
            Kind::InterruptCode,
            Kind::InterruptFunction,
            Kind::ThreadCode,
            Kind::ThreadFunction,
        ],
    ),
    (
        "CSWITCH",
        &[
            Kind::Program,
            Kind::Thread,
            Kind::Ready,
            Kind::Wait,
            Kind::WaitCode,
        ],
    ),
    ("DISPATCHER", &[Kind::Ready, Kind::Wait, Kind::WaitCode]),
    ("PRIORITY", &[]),
    ("ANTI_STARVATION", &[]),
    // Without DPC events, the time of DPCs is part of the CPU time of threads.
    ("DPC", &[Kind::Dpc, Kind::Program, Kind::Thread]),
    ("INTERRUPT", &[Kind::Isr, Kind::Program, Kind::Thread]),
    (
        "PROFILE",
        &[
            Kind::InterruptCode,
            Kind::InterruptFunction,
            Kind::ThreadCode,
            Kind::ThreadFunction,
        ],
    ),
    ("DISK_IO", &[Kind::Disk, Kind::File]),
    ("DISK_IO_INIT", &[]),
    ("FILENAME", &[Kind::File]),
    ("HARD_FAULTS", &[]),
    ("NETWORKTRACE", &[]),
    ("POWER", &[]),
];

/// Records a scenario with all keywords except one.
fn without(scenario: &str, keyword: &str) -> Recording {
    let others = KEYWORDS.iter().map(|(name, _)| *name);
    let others: Vec<String> = others
        .filter(|name| *name != keyword)
        .map(|name| format!("\"{name}\""))
        .collect();
    recording(
        scenario,
        &[&format!("record.kernel=[{}]", others.join(", "))],
    )
}

fn differing(diff: &Diff) -> Vec<String> {
    let all = diff.per_second.iter().chain(per_work(diff));
    let differing = all.filter(|change| {
        [Conclusion::Differs, Conclusion::MeanDiffers].contains(&change.conclusion)
    });
    differing
        .map(|change| format!("{:?} {}", change.kind, change.name))
        .collect()
}

/// Compares a machine with itself, while one recording lacks a kind of events. Only the missing events could cause a
/// finding.
#[test]
fn a_missing_kind_of_event_is_no_difference() {
    for scenario in testdata::cases([
        "smb-signing-on",
        "usb-wdf01000",
        "foreground-boost",
        "healthy",
    ]) {
        let all = recording(scenario, &[]);
        for (keyword, _) in KEYWORDS {
            let less = without(scenario, keyword);
            for (before, after) in [(&all, &less), (&less, &all)] {
                let diff = diff(before, after);
                let found = differing(&diff);
                assert!(found.is_empty(), "{scenario} without {keyword}: {found:?}");
                assert!(diff.findings.is_empty(), "{scenario} without {keyword}");
            }
        }
    }
}

/// Compares two different machines. One of the recordings lacks a kind of events. Kinds of rows that need
/// these events must not be compared.
#[test]
fn no_claim_rests_on_a_missing_kind_of_event() {
    for (one, other) in testdata::cases([
        ("smb-signing-off", "smb-signing-on"),
        ("usb-wdf01000", "usb-amdxhc31"),
        ("rss-300kbps", "rss-1gbps"),
    ]) {
        let (before, after) = (recording(one, &[]), recording(other, &[]));
        let full = diff(&before, &after);
        assert!(!full.findings.is_empty(), "{one}");
        for (keyword, kinds) in KEYWORDS {
            let fewer = [
                diff(&without(one, keyword), &after),
                diff(&before, &without(other, keyword)),
            ];
            for diff in fewer {
                let about = format!("{one} and {other} without {keyword}");
                let all = diff.per_second.iter().chain(per_work(&diff));
                let mut needing = all.filter(|change| kinds.contains(&change.kind));
                assert_eq!(needing.next().map(|it| &it.name), None, "{about}");
                if keyword == "NETWORKTRACE" {
                    assert!(diff.per_work.is_none(), "{about}");
                }
                // The kinds that both sides have must be compared as usual.
                if kinds.is_empty() {
                    assert_eq!(diff.per_second.len(), full.per_second.len(), "{about}");
                }
            }
        }
    }
}
