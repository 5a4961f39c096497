//! Tests with damaged copies of simulated traces. The explanation of a copy must not panic, must
//! not contain a time beyond the trace's length, and must not report a kind of problem that the
//! undamaged trace does not have.
//!
//! `LAGLAB_DAMAGED` sets the number of damaged copies of all traces together. A failure names the scenario
//! and the number of its copy.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use simulated::Simulated;

use super::explained::Explained;

/// Number of damaged copies without `LAGLAB_DAMAGED`.
const COPIES: u64 = 152;

/// Scenarios with their settings, and their lengths in nanoseconds. They are short, because each is explained
/// many times.
const SCENARIOS: [(&str, &[&str], i64); 4] = [
    ("healthy", &["duration=2s"], 2_000_000_000),
    ("lock-convoy", &["duration=3s"], 3_000_000_000),
    ("smb-signing-on", &["duration=2s"], 2_000_000_000),
    ("affinity-pinned", &["duration=3s"], 3_000_000_000),
];

/// Tolerance in nanoseconds. The time of a damaged event may be this long before the start or after the end of the
/// range in the header.
const ROOM_NS: i64 = 10_000_000_000;

/// Offset of the first event's payload, which is the log-file header.
const PAYLOAD: usize = 72 + 32;

/// Offset of the number of processors, in the log-file header.
const PROCESSORS: usize = PAYLOAD + 0xC;
/// Offset of the end time, in the log-file header.
const END: usize = PAYLOAD + 0x10;
/// Offset of the clock's frequency, in the log-file header.
const FREQUENCY: usize = PAYLOAD + 0x100;
/// Offset of the kind of clock, in the log-file header.
const CLOCK_KIND: usize = PAYLOAD + 0x110;

/// Offsets of numbers in the header. Each has values that no session writes, or that do not belong to this session.
const HEADER_NUMBERS: [(usize, &[u64]); 4] = [
    (PROCESSORS, &[0, 1, 3, 65_535]),
    (END, &[0, 1, 134_129_520_000_000_001, u64::MAX]),
    (FREQUENCY, &[0, 3, 1 << 40, u64::MAX]),
    (CLOCK_KIND, &[0, 2, 3, 77]),
];

/// Random number generator with the same numbers in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

/// Returns the ranges of all buffers after the buffer with the header.
fn buffers(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(size) = bytes.get(at..at + 4) {
        let size = u32::from_le_bytes(size.try_into().unwrap()) as usize;
        if size == 0 {
            break;
        }
        found.push(at..(at + size).min(bytes.len()));
        at += size;
    }
    found.split_off(1)
}

/// Damages a copy. The number `copy` determines the kind of damage and the damaged offsets.
fn damage(whole: &[u8], copy: u64) -> (Vec<u8>, &'static str) {
    let mut bytes = whole.to_vec();
    let buffers = buffers(whole);
    let mut numbers = Numbers(copy);
    numbers.below(1);
    let kind = match copy % 7 {
        0 => {
            for _ in 0..1 + numbers.below(200) {
                let at = PAYLOAD + 0x180 + numbers.below(bytes.len() - PAYLOAD - 0x180);
                bytes[at] ^= 1 << numbers.below(8);
            }
            "flipped bits"
        }
        1 => {
            for _ in 0..1 + numbers.below(5) {
                bytes[buffers[numbers.below(buffers.len())].clone()].fill(0);
            }
            "zeroed buffers"
        }
        2 => {
            let cpu = |at: usize| u16::from_le_bytes([whole[at + 0x28], whole[at + 0x29]]);
            let gone = cpu(buffers[numbers.below(buffers.len())].start);
            for buffer in buffers.iter().filter(|buffer| cpu(buffer.start) == gone) {
                bytes[buffer.clone()].fill(0);
            }
            "a whole CPU zeroed"
        }
        3 => {
            // Flip bits in the upper halves of 8-byte words. If such a word is the time of an event, the time becomes
            // far from the true time.
            for _ in 0..1 + numbers.below(40) {
                let buffer = buffers[numbers.below(buffers.len())].clone();
                let at = buffer.start + 72 + 8 * numbers.below((buffer.len() - 80) / 8);
                bytes[at + 4 + numbers.below(4)] ^= 1 << numbers.below(8);
            }
            "changed words"
        }
        4 => {
            let buffer = buffers[numbers.below(buffers.len())].start;
            bytes[buffer + 0x18 + numbers.below(8)] ^= 1 << numbers.below(8);
            "a changed sequence number"
        }
        5 => {
            let (at, values) = HEADER_NUMBERS[numbers.below(HEADER_NUMBERS.len())];
            let value = values[numbers.below(values.len())];
            let kept = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            // These two numbers have 32 bits; the other numbers have 64 bits.
            let value = if at == CLOCK_KIND || at == PROCESSORS {
                kept & !u64::from(u32::MAX) | value
            } else {
                value
            };
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            "a changed header"
        }
        _ => {
            bytes.truncate(bytes.len() / 2 + numbers.below(bytes.len() / 2));
            "a truncated file"
        }
    };
    (bytes, kind)
}

/// Returns the kinds of problems.
fn problems(explained: &Explained) -> BTreeSet<String> {
    let all = explained.findings().iter();
    let problems = all.filter(|finding| finding["severity"] == "problem");
    problems
        .map(|finding| finding["theory"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns true if a finding is a warning or a problem.
fn is_grave(finding: &Value) -> bool {
    finding["severity"] != "information"
}

/// Returns the faults of findings that wrong bits may have made. All threads of the undamaged traces have a known
/// process. Findings that depend on exact times must say first that the trace is damaged.
fn inventions(damaged: &Explained) -> Vec<String> {
    let graves = || {
        damaged
            .findings()
            .iter()
            .filter(|finding| is_grave(finding))
    };
    let is_incomplete = graves().any(|finding| finding["theory"] == "capture");
    let is_invented = |finding: &&Value| {
        let sentence = finding["sentence"].as_str().unwrap();
        let is_exact = ["clocks", "short-waits"].contains(&finding["theory"].as_str().unwrap());
        let first = finding["why"][0].as_str().unwrap_or_default();
        sentence.contains("unknown process")
            || is_exact && is_incomplete && !first.contains("may be an effect of that")
    };
    let invented = graves().filter(is_invented);
    invented
        .map(|finding| format!("invented: {}", finding["sentence"]))
        .collect()
}

/// Returns the faults in the explanation of a damaged trace of this length.
fn faults(damaged: &Explained, known: &BTreeSet<String>, length_ns: i64) -> Vec<String> {
    let mut faults = Vec::new();
    for theory in problems(damaged).difference(known) {
        faults.push(format!(
            "new problem: {theory}: {}",
            damaged.by_theory(theory)[0]["sentence"]
        ));
    }
    let longest_ns = length_ns + 2 * ROOM_NS;
    for finding in damaged.findings() {
        let delay_ns = finding["delay"]["ns"].as_i64().unwrap_or(0);
        let during = &finding["during"];
        let (start, end) = (during["start"].as_i64(), during["end"].as_i64());
        let is_outside = start.is_some_and(|start| start < -ROOM_NS)
            || end.is_some_and(|end| end > length_ns + ROOM_NS);
        let sentence = finding["sentence"].as_str().unwrap();
        // Durations of a minute or more are printed in minutes or hours. All traces here are shorter.
        let is_absurd = [" h ", "-2562047", " min "]
            .iter()
            .any(|part| sentence.contains(part));
        if !(0..=longest_ns).contains(&delay_ns) || is_outside || is_absurd {
            faults.push(format!(
                "beyond the trace: {delay_ns} ns, {during}: {sentence}"
            ));
        }
    }
    faults
}

#[test]
fn damage_makes_no_absurd_times_and_no_new_problems() {
    let copies = std::env::var("LAGLAB_DAMAGED").ok();
    let copies: u64 = copies.map_or(COPIES, |number| number.parse().unwrap());
    let each = copies / SCENARIOS.len() as u64;
    let mut failed = Vec::new();
    let mut refused = 0;
    for (scenario, settings, length_ns) in SCENARIOS {
        let simulated = Simulated::new(scenario, settings);
        let known = problems(&Explained::new(&simulated.trace));
        let whole = fs::read(&simulated.trace).unwrap();
        for copy in 0..each {
            let (bytes, kind) = damage(&whole, copy);
            fs::write(&simulated.trace, bytes).unwrap();
            let Some(damaged) = Explained::of_damaged(&simulated.trace) else {
                refused += 1;
                continue;
            };
            let mut faults = faults(&damaged, &known, length_ns);
            if ["flipped bits", "changed words"].contains(&kind) {
                faults.extend(inventions(&damaged));
            }
            for fault in faults {
                failed.push(format!("{scenario} {copy} ({kind}): {fault}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(refused * 20 < copies, "{refused} of {copies} refused");
}
