//! Rows that do not depend on the network traffic, on machines with changing traffic.

use crate::recorded;

use diff::{Diff, Kind, ReadOptions, Recording, Work};
use recorded::{diff, find, per_work, read};
use simulated::Simulated;

/// Records a healthy desktop with a packet every `every` on average, and the device `device`.
fn desktop(every: &str, device: &str, seed: u32) -> Recording {
    let text = format!(
        "extends = \"healthy\"\ntitle = \"A desktop with a device\"\nduration = \"12s\"\nseed = {seed}\n{device}"
    );
    let every = format!("flow.0.every=exp({every})");
    read(
        &Simulated::of_text("traffic", &text, &[&every]),
        &ReadOptions::default(),
    )
}

/// Device with irregular DPCs, whose rate and duration never change.
const NOISY: &str = r#"
[[add.device]]
name = "noisy"
every = "exp(80ms)"
cpus = [3]
isr = { in = ["noisy.sys!Isr"], cost = "uniform(4us, 9us)" }
dpc = { in = ["noisy.sys!Dpc"], cost = "exp(8ms)" }
"#;

/// Device whose DPCs fill CPU 5. The network does not use this CPU.
const HOG: &str = r#"
[[add.device]]
name = "hog"
every = "1ms"
cpus = [5]
isr = { in = ["hog.sys!Isr"], cost = "uniform(4us, 9us)" }
dpc = { in = ["hog.sys!Dpc"], cost = "uniform(970us, 1000us)" }
"#;

fn names(diff: &Diff) -> Vec<(Kind, &str)> {
    per_work(diff)
        .iter()
        .map(|it| (it.kind, &*it.name))
        .collect()
}

#[test]
fn a_device_with_constant_load_is_not_divided_by_the_traffic() {
    let of = |every: &str, seeds: [u32; 3]| seeds.map(|seed| desktop(every, NOISY, seed));
    let (little, much) = (of("25ms", [1, 2, 3]), of("2ms", [4, 5, 6]));
    for (before, after) in [
        (&little[..], &much[..]),
        (&much, &little),
        (&little[..1], &much[..1]),
        (&little[..1], &little[1..2]),
    ] {
        let diff = diff::diff(before, after, None);
        find(&diff.per_second, Kind::Dpc, "noisy.sys");
        let names = names(&diff);
        // The device runs on CPU 3. Each packet has a DPC of ndis.sys, which runs code of tcpip.sys.
        let of_device = |it: &&(Kind, &str)| ["noisy.sys", "CPU 3"].contains(&it.1);
        assert_eq!(names.iter().find(of_device), None);
        for of_network in [(Kind::Dpc, "ndis.sys"), (Kind::InterruptCode, "tcpip.sys")] {
            assert!(names.contains(&of_network), "{names:?}");
        }
        let is_wrong = |it: &&diff::Finding| {
            it.sentence.starts_with("noisy.sys") && it.sentence.contains("per KiB")
        };
        let wrong = diff.findings.iter().find(is_wrong);
        assert_eq!(wrong.map(|it| &*it.sentence), None);
    }
}

#[test]
fn a_full_cpu_without_packets_does_not_limit_the_traffic() {
    let (before, after) = (desktop("2ms", "", 1), desktop("25ms", HOG, 2));
    let diff = diff(&before, &after);
    let work = diff.per_work.as_ref().unwrap();
    assert!(work.after < 0.2 * work.before);
    let cpu = find(&diff.per_second, Kind::Cpu, "CPU 5");
    assert!(cpu.after.ns > 0.95e9, "{cpu:?}");
    let sentences: Vec<&str> = diff.findings.iter().map(|it| &*it.sentence).collect();
    assert!(
        sentences.iter().any(|it| it.starts_with("hog.sys")),
        "{sentences:?}"
    );
    let is_wrong = |it: &&&str| it.contains("limited") || it.contains("-0.0 %");
    assert_eq!(sentences.iter().find(is_wrong), None);
    assert!(!names(&diff).contains(&(Kind::Cpu, "CPU 5")));
}

/// Compares receives of 1,200 bytes with receives of 4,440 bytes. Each receive costs 100 µs after the change.
#[test]
fn transfers_of_other_sizes_are_a_doubt() {
    let per = Work::Transfers;
    let of = |settings: &[&str]| {
        let text = "extends = \"healthy\"\ntitle = \"A desktop\"\nduration = \"12s\"";
        let settings = [&["flow.0.every=exp(2ms)"][..], settings].concat();
        let read_options = ReadOptions {
            work: Some(per.clone()),
            ..ReadOptions::default()
        };
        [read(
            &Simulated::of_text("sizes", text, &settings),
            &read_options,
        )]
    };
    let small = of(&[]);
    let large = of(&["flow.0.bytes=\"4440\"", "nic.0.layer.1.per_packet=100us"]);
    let doubts = |before: &[Recording], after: &[Recording]| {
        let first = diff::diff(before, after, Some(&per))
            .findings
            .swap_remove(0);
        assert!(first.sentence.contains("per send or receive"), "{first:?}");
        first.doubts.join("\n")
    };
    let more = doubts(&small, &large);
    assert!(
        more.contains("3.7 times as many bytes after the change"),
        "{more}"
    );
    let fewer = doubts(&large, &small);
    assert!(
        fewer.contains("3.7 times as many bytes before the change"),
        "{fewer}"
    );
    let same = doubts(&small, &of(&["nic.0.layer.1.per_packet=100us"]));
    assert!(!same.contains("as many bytes"), "{same}");
}
