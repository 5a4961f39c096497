//! Tests of findings about reads that a limit held back. The recordings are texts, as the kernel prints them, of a
//! made-up machine: the reader blocks, and a thread of the kernel or the reader itself makes the read.

use std::fmt::Write;

use explain::{Explanation, Finding, Scope, Severity};
use tables::{Cache, Options};

use crate::texts::{is_about_linux, text};

/// Program that reads, and a thread of the kernel that makes the reads that were held back.
const READER: u32 = 100;
const WORKER: u32 = 50;

/// Facts about both: the reader's parent is 1, the parent of threads of the kernel is 2.
const FACTS: &str = "/proc/100/task/100/stat:S 1 1\n/proc/50/task/50/stat:S 2 0\n";

/// Text of a recording that grows.
struct Text {
    lines: String,
    /// Time of the next event in microseconds.
    us: u64,
    reads: u64,
}

impl Text {
    fn new() -> Text {
        Text {
            lines: "# tracer: nop\n#\n".to_owned(),
            us: 1_000_000,
            reads: 0,
        }
    }

    fn event(&mut self, thread: u32, flags: &str, event: &str) {
        let (seconds, us) = (self.us / 1_000_000, self.us % 1_000_000);
        writeln!(
            self.lines,
            "t{thread}-{thread} [000] {flags} {seconds}.{us:06}: {event}"
        )
        .unwrap();
        self.us += 1;
    }

    fn switch(&mut self, from: u32, to: u32, state: &str) {
        let event = format!(
            "sched_switch: prev_comm=t{from} prev_pid={from} prev_prio=120 prev_state={state} ==> next_comm=t{to} \
             next_pid={to} next_prio=120"
        );
        self.event(from, "d..2.", &event);
    }

    /// The reader blocks. After `held_us`, the thread `by` makes a read, or the reader made it before. The disk needs
    /// `disk_us`, and the completion wakes the reader.
    fn read(&mut self, by: u32, kind: &str, held_us: u64, disk_us: u64) {
        let sector = 8 * self.reads;
        self.reads += 1;
        let made = |text: &mut Text, thread| {
            text.event(
                thread,
                ".....",
                &format!("block_bio_queue: 254,0 {kind} {sector} + 8 [t{thread}]"),
            );
            let issued =
                format!("block_rq_issue: 254,0 {kind} 4096 () {sector} + 8 none,0,0 [t{thread}]");
            text.event(thread, "d....", &issued);
        };
        self.switch(0, READER, "R");
        if by == READER {
            made(self, READER);
        }
        self.switch(READER, 0, "D");
        self.us += held_us;
        if by != READER {
            self.switch(0, by, "R");
            made(self, by);
            self.switch(by, 0, "I");
        }
        self.us += disk_us;
        self.event(
            0,
            "d.s3.",
            &format!("block_rq_complete: 254,0 {kind} () {sector} + 8 none,0,0 [0]"),
        );
        self.event(
            0,
            "d.s4.",
            &format!("sched_waking: comm=t{READER} pid={READER} prio=120 target_cpu=000"),
        );
        self.switch(0, READER, "R");
        self.switch(READER, 0, "S");
        self.us += 1000;
    }

    fn explained(&self) -> Explanation {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.txt");
        std::fs::write(&file, &self.lines).unwrap();
        std::fs::write(folder.path().join("trace.txt.proc"), FACTS).unwrap();
        let store = imports::open_store(&[file], Cache::Off).unwrap();
        explain::explain(&store, Scope::default(), None, Options::default()).unwrap()
    }
}

fn held(explanation: &Explanation) -> Vec<&Finding> {
    let findings = explanation.findings.iter();
    findings.filter(|it| it.theory == "io-limit").collect()
}

#[test]
fn reads_that_a_thread_of_the_kernel_makes_late_were_held_back() {
    let mut recording = Text::new();
    for _ in 0..12 {
        recording.read(WORKER, "RS", 90_000, 200);
    }
    let explanation = recording.explained();
    let findings = held(&explanation);
    let [finding] = &findings[..] else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.severity, Severity::Problem);
    // Each wait begins with the switch. The read follows 90 ms and two events of 1 µs later.
    assert_eq!(finding.delay_ns(), 12 * 90_002_000);
    assert!(
        text(finding)
            .contains("t100 (100) waited for 1.080 s in total (12 reads, 90.0 ms at most)")
    );
    assert!(text(finding).contains("disk 254:0"));
    is_about_linux(&explanation);
}

#[test]
fn reads_of_the_program_itself_and_writes_of_the_kernel_are_no_limit() {
    for (by, kind) in [(READER, "RS"), (WORKER, "WS"), (77, "RS")] {
        let mut text = Text::new();
        for _ in 0..5 {
            text.read(by, kind, 90_000, 200);
        }
        let explanation = text.explained();
        assert_eq!(held(&explanation).len(), 0, "{by} {kind}");
    }
}

#[test]
fn a_read_that_was_made_at_once_is_slow_and_not_held_back() {
    let mut text = Text::new();
    for _ in 0..5 {
        text.read(WORKER, "RS", 200, 90_000);
    }
    assert_eq!(held(&text.explained()).len(), 0);
}
