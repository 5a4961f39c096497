//! Tests of findings about interrupts and softirqs of Linux. The recordings are texts, as the kernel prints them, of a
//! made-up machine with two CPUs, so that the device behind each softirq is known.

use std::fmt::Write;

use explain::{Explanation, Finding, Scope, Severity, Subject};
use tables::{Cache, Options};

use crate::texts::{is_about_linux, text};

/// Number of the disk's interrupt, and of the network device's.
const DISK: (u32, &str) = (36, "virtio1-req.0");
const NETWORK: (u32, &str) = (40, "eth0-rx-0");

/// Thread that runs on CPU 0 except where a test says otherwise.
const WORKER: u32 = 100;

/// Text of a recording that grows.
struct Text {
    lines: String,
    /// Time of the next event in microseconds.
    us: u64,
}

impl Text {
    fn new() -> Text {
        let mut text = Text {
            lines: "# tracer: nop\n#\n".to_owned(),
            us: 1_000_000,
        };
        text.switch(1, 0, 200);
        text.switch(0, 0, WORKER);
        text
    }

    fn event(&mut self, cpu: u32, flags: &str, event: &str) {
        let thread = if cpu == 0 { WORKER } else { 200 };
        let (seconds, us) = (self.us / 1_000_000, self.us % 1_000_000);
        writeln!(
            self.lines,
            "t{thread}-{thread} [{cpu:03}] {flags} {seconds}.{us:06}: {event}"
        )
        .unwrap();
    }

    fn switch(&mut self, cpu: u32, from: u32, to: u32) {
        let name = |id| match id {
            0 => "swapper".to_owned(),
            id => format!("t{id}"),
        };
        let (seconds, us) = (self.us / 1_000_000, self.us % 1_000_000);
        let state = if from == 0 { "R" } else { "S" };
        writeln!(
            self.lines,
            "{}-{from} [{cpu:03}] d..2. {seconds}.{us:06}: sched_switch: prev_comm={} prev_pid={from} prev_prio=120 \
             prev_state={state} ==> next_comm={} next_pid={to} next_prio=120",
            name(from),
            name(from),
            name(to)
        )
        .unwrap();
        self.us += 1;
    }

    fn interrupt(&mut self, cpu: u32, (number, name): (u32, &str), us: u64) {
        self.event(
            cpu,
            "d.h1.",
            &format!("irq_handler_entry: irq={number} name={name}"),
        );
        self.us += us;
        self.event(
            cpu,
            "d.h1.",
            &format!("irq_handler_exit: irq={number} ret=handled"),
        );
        self.us += 1;
    }

    /// Received packets: the softirq NET_RX for this time.
    fn packets(&mut self, cpu: u32, us: u64) {
        self.event(cpu, "..s1.", "softirq_entry: vec=3 [action=NET_RX]");
        self.us += us;
        self.event(cpu, "..s1.", "softirq_exit: vec=3 [action=NET_RX]");
        self.us += 1;
    }

    /// Packets that the network device announces, followed by a time without packets.
    fn packets_of_device(&mut self, cpu: u32, us: u64, pause_us: u64) {
        self.interrupt(cpu, NETWORK, 5);
        self.packets(cpu, us);
        self.us += pause_us;
    }

    fn explained(mut self) -> Explanation {
        self.switch(0, WORKER, 0);
        self.switch(1, 200, 0);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.txt");
        std::fs::write(&file, &self.lines).unwrap();
        let store = imports::open_store(&[file], Cache::Off).unwrap();
        let explanation =
            explain::explain(&store, Scope::default(), None, Options::default()).unwrap();
        is_about_linux(&explanation);
        explanation
    }
}

fn findings<'e>(explanation: &'e Explanation, theory: &str) -> Vec<&'e Finding> {
    let findings = explanation.findings.iter();
    findings
        .filter(|finding| finding.theory == theory)
        .collect()
}

/// Returns the only finding of a theory.
fn only<'e>(explanation: &'e Explanation, theory: &str) -> &'e Finding {
    let found = findings(explanation, theory);
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0]
}

fn names_routine(finding: &Finding, routine: &str) -> bool {
    let mut subjects = finding.subjects.iter();
    subjects.any(|subject| matches!(subject, Subject::Routine { name } if name == routine))
}

fn has_text(finding: &Finding, words: &str) {
    let text = text(finding);
    assert!(text.contains(words), "{words}: {text}");
}

#[test]
fn a_softirq_that_often_runs_long_is_a_warning_with_its_device() {
    let mut text = Text::new();
    for _ in 0..6 {
        text.packets_of_device(0, 15_000, 100_000);
    }
    for _ in 0..20 {
        text.packets_of_device(0, 50, 5_000);
    }
    let explanation = text.explained();
    let finding = only(&explanation, "long-interrupts");
    assert_eq!(finding.severity, Severity::Warning);
    let sentence = finding.sentence.to_string();
    assert!(
        sentence.starts_with("6 of 26 runs of “softirq NET_RX” (23.1 %) took longer than 2.0 ms; the longest, on CPU 0, took 15.0 ms"),
        "{sentence}"
    );
    assert!(
        names_routine(finding, "irq 40 eth0-rx-0"),
        "{:?}",
        finding.subjects
    );
    has_text(finding, "ran right before 26 of 26 such softirqs");
    has_text(finding, "/proc/irq/40/smp_affinity_list");
    has_text(finding, "steal");
}

#[test]
fn one_long_softirq_is_information_because_a_host_may_have_taken_the_cpu() {
    let mut text = Text::new();
    text.packets_of_device(0, 30_000, 100_000);
    for _ in 0..20 {
        text.packets_of_device(0, 50, 5_000);
    }
    let explanation = text.explained();
    let finding = only(&explanation, "long-interrupts");
    assert_eq!(finding.severity, Severity::Information);
}

#[test]
fn interrupts_and_softirqs_within_their_limits_are_no_finding() {
    let mut text = Text::new();
    for _ in 0..200 {
        text.interrupt(0, DISK, 60);
        text.packets_of_device(1, 1_500, 20_000);
    }
    let explanation = text.explained();
    for theory in ["long-interrupts", "locked-cpus", "receive-spread"] {
        assert_eq!(findings(&explanation, theory), Vec::<&Finding>::new());
        let mut verdicts = explanation.theories.iter();
        let verdict = verdicts.find(|verdict| verdict.theory == theory).unwrap();
        assert_eq!(verdict.judgement, explain::Judgement::Against, "{theory}");
    }
}

#[test]
fn a_handler_that_often_takes_more_than_a_millisecond_is_a_warning() {
    let mut text = Text::new();
    for _ in 0..12 {
        text.interrupt(1, DISK, 1_500);
        text.us += 40_000;
    }
    let explanation = text.explained();
    let finding = only(&explanation, "long-interrupts");
    assert_eq!(finding.severity, Severity::Warning);
    let sentence = finding.sentence.to_string();
    assert!(
        sentence.starts_with(
            "12 of 12 runs of “irq 36 virtio1-req.0” (100.0 %) took longer than 100.0 µs"
        ),
        "{sentence}"
    );
    has_text(finding, "echo CPU > /proc/irq/36/smp_affinity_list");
}

#[test]
fn a_flood_of_softirqs_locks_a_cpu_and_is_named_by_its_device() {
    let mut text = Text::new();
    text.us += 200_000;
    for _ in 0..1_500 {
        text.packets_of_device(0, 900, 93);
        // Now and then a disk also interrupts the CPU, between the packets.
        if text.us.is_multiple_of(10) {
            text.interrupt(0, DISK, 3);
        }
    }
    let explanation = text.explained();
    let finding = only(&explanation, "locked-cpus");
    // No thread is known to have waited.
    assert_eq!(finding.severity, Severity::Warning);
    let sentence = finding.sentence.to_string();
    assert!(
        sentence.starts_with("CPU 0 ran almost only interrupts and softirqs from"),
        "{sentence}"
    );
    assert!(
        names_routine(finding, "irq 40 eth0-rx-0"),
        "{:?}",
        finding.subjects
    );
    assert!(!names_routine(finding, "irq 36 virtio1-req.0"));
    // The CPU is locked, so that finding has the remedy.
    let spread = only(&explanation, "receive-spread");
    assert_eq!(spread.severity, Severity::Warning);
}

#[test]
fn packets_of_programs_of_the_same_machine_have_no_device() {
    let mut text = Text::new();
    for round in 0..1_000 {
        for _ in 0..4 {
            text.packets(0, 150);
            text.us += 40;
        }
        if round % 10 == 0 {
            // A softirq runs right behind the interrupt of the disk, by chance.
            text.interrupt(0, DISK, 5);
        }
    }
    let explanation = text.explained();
    let spread = only(&explanation, "receive-spread");
    assert_eq!(spread.severity, Severity::Information);
    has_text(spread, "programs of this machine probably sent the packets");
    assert!(
        !names_routine(spread, "irq 36 virtio1-req.0"),
        "{:?}",
        spread.subjects
    );
}

#[test]
fn one_cpu_that_handles_all_packets_is_a_warning() {
    let mut text = Text::new();
    for _ in 0..2_000 {
        text.packets_of_device(0, 600, 380);
    }
    let explanation = text.explained();
    let spread = only(&explanation, "receive-spread");
    assert_eq!(spread.severity, Severity::Warning);
    let sentence = spread.sentence.to_string();
    assert!(
        sentence.starts_with("CPU 0 had 100.0 % of the time of all softirqs NET_RX"),
        "{sentence}"
    );
    has_text(spread, "ethtool -L");
    assert!(names_routine(spread, "irq 40 eth0-rx-0"));
    assert_eq!(
        findings(&explanation, "locked-cpus"),
        Vec::<&Finding>::new()
    );
}

#[test]
fn packets_that_two_cpus_share_are_no_finding() {
    let mut text = Text::new();
    for _ in 0..2_000 {
        text.packets_of_device(0, 600, 0);
        text.packets_of_device(1, 300, 0);
    }
    let explanation = text.explained();
    assert_eq!(
        findings(&explanation, "receive-spread"),
        Vec::<&Finding>::new()
    );
}
