//! Tests of late answers of programs. The recordings are texts, as the kernel prints them, of exchanges between made-up
//! programs, so that each delay is known.

use std::fmt::Write;

use explain::{Explanation, Finding, Scope, Severity};
use tables::{Cache, Options};

/// Ids of the programs: one asks, one asks another one for its answer, and one computes.
const CLIENT: u32 = 100;
const FRONT: u32 = 200;
const BACK: u32 = 300;

/// Text of a recording that grows, on a machine with one CPU for each program.
#[derive(Clone)]
struct Text {
    lines: String,
    /// Time of the next event in microseconds.
    us: u64,
    /// True if softirqs deliver the requests and answers, in the context of the threads that send them.
    has_packets: bool,
}

fn name(thread: u32) -> &'static str {
    match thread {
        CLIENT => "client",
        FRONT => "front",
        BACK => "back",
        _ => "swapper",
    }
}

/// Returns the CPU of a program.
fn cpu(thread: u32) -> u32 {
    thread / 100 - 1
}

impl Text {
    fn new() -> Text {
        let lines = "# tracer: nop\n#\n".to_owned();
        Text {
            lines,
            us: 1_000_000,
            has_packets: false,
        }
    }

    fn event(&mut self, thread: u32, cpu: u32, flags: &str, event: &str) {
        let (seconds, us) = (self.us / 1_000_000, self.us % 1_000_000);
        let name = name(thread);
        writeln!(
            self.lines,
            "{name}-{thread} [{cpu:03}] {flags} {seconds}.{us:06}: {event}"
        )
        .unwrap();
        self.us += 10;
    }

    fn switch(&mut self, from: u32, to: u32, state: &str) {
        let cpu = cpu(from.max(to));
        let event = format!(
            "sched_switch: prev_comm={} prev_pid={from} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={to} \
             next_prio=120",
            name(from),
            name(to)
        );
        self.event(from, cpu, "d..2.", &event);
    }

    /// Wakes a thread. If `by` is 0, an interrupt wakes it.
    fn wake(&mut self, by: u32, thread: u32) {
        let (by_cpu, flags) = match by {
            0 => (cpu(thread), "d.h3."),
            by if self.has_packets => (cpu(by), "d.s3."),
            by => (cpu(by), "d..3."),
        };
        let event = format!(
            "sched_waking: comm={} pid={thread} prio=120 target_cpu={:03}",
            name(thread),
            cpu(thread)
        );
        self.event(by, by_cpu, flags, &event);
    }

    /// The program `by` wakes `thread`, which runs at once.
    fn start(&mut self, by: u32, thread: u32) {
        self.wake(by, thread);
        self.switch(0, thread, "R");
    }

    fn sleep(&mut self, thread: u32) {
        self.switch(thread, 0, "S");
    }

    /// The client asks, and the answer takes `back_us` of computing. Then the client sleeps for a while.
    fn exchange(&mut self, back_us: u64) {
        self.start(0, CLIENT);
        self.start(CLIENT, FRONT);
        self.sleep(CLIENT);
        self.start(FRONT, BACK);
        self.sleep(FRONT);
        self.us += back_us;
        self.start(BACK, FRONT);
        self.sleep(BACK);
        self.start(FRONT, CLIENT);
        self.sleep(FRONT);
        self.sleep(CLIENT);
        self.us += 5000;
    }

    /// The client asks the last program, which wakes it once when it takes the request, and once with the answer.
    fn exchange_over_socket(&mut self, back_us: u64) {
        self.start(0, CLIENT);
        self.start(CLIENT, BACK);
        self.sleep(CLIENT);
        self.start(BACK, CLIENT);
        self.sleep(CLIENT);
        self.us += back_us;
        self.start(BACK, CLIENT);
        self.sleep(BACK);
        self.sleep(CLIENT);
        self.us += 5000;
    }

    /// Explains the recording, which ends long after the last exchange.
    fn explained(&self, scope: Scope) -> Explanation {
        let mut text = self.clone();
        text.us += 100_000;
        text.wake(0, CLIENT);
        text.explained_at_once(scope)
    }

    fn explained_at_once(&self, scope: Scope) -> Explanation {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.txt");
        std::fs::write(&file, &self.lines).unwrap();
        let store = imports::open_store(&[file], Cache::Off).unwrap();
        explain::explain(&store, scope, None, Options::default()).unwrap()
    }
}

/// Returns the findings about late answers.
fn late(explanation: &Explanation) -> Vec<&Finding> {
    let findings = explanation.findings.iter();
    findings
        .filter(|finding| finding.theory == "late-answers")
        .collect()
}

#[test]
fn the_program_that_computes_is_the_cause_of_a_late_answer_over_two_others() {
    check_chain(Text::new());
}

#[test]
fn packets_to_the_same_machine_are_followed() {
    check_chain(Text {
        has_packets: true,
        ..Text::new()
    });
}

fn check_chain(mut text: Text) {
    for _ in 0..8 {
        text.exchange(1000);
    }
    text.exchange(400_000);
    text.exchange(1000);
    let explanation = text.explained(Scope::default());
    let late = late(&explanation);
    // The client and the program between both waited.
    assert_eq!(late.len(), 2, "{late:#?}");
    for (finding, client) in late.iter().zip(["client (100)", "front (200)"]) {
        assert_eq!(finding.severity, Severity::Warning);
        let sentence = finding.sentence.to_string();
        let (start, cause) = sentence.split_once(". ").unwrap();
        assert!(
            start.starts_with(&format!("{client} waited 400.")),
            "{sentence}"
        );
        assert!(
            cause.starts_with("Thread 300 of back (300) ran for 400."),
            "{sentence}"
        );
        // Six events of 10 µs each surround the computing.
        assert!(
            finding.delay_ns().abs_diff(400_000_000) < 100_000,
            "{sentence}"
        );
    }
    let programs = late[0].why.iter().map(ToString::to_string);
    assert!(
        programs
            .clone()
            .any(|why| why.contains("front (200) and back (300)")),
        "{:?}",
        programs.collect::<Vec<_>>()
    );
    assert_eq!(explanation.findings[0].theory, "late-answers");
}

#[test]
fn a_wake_before_the_answer_is_no_answer() {
    let mut text = Text::new();
    for _ in 0..8 {
        text.exchange_over_socket(30_000);
    }
    // Less than five times the usual time.
    text.exchange_over_socket(140_000);
    let explanation = text.explained(Scope::default());
    let severities = late(&explanation).into_iter().map(|it| it.severity);
    assert_eq!(severities.collect::<Vec<_>>(), [Severity::Information]);
    text.exchange_over_socket(300_000);
    let explanation = text.explained(Scope::default());
    let late = late(&explanation);
    assert_eq!(late.len(), 1, "{late:#?}");
    assert!(late[0].delay_ns().abs_diff(300_000_000) < 100_000);
    let usual = late[0].why.iter().map(ToString::to_string).next().unwrap();
    assert!(usual.contains("took less than 30.1 ms"), "{usual}");
}

#[test]
fn a_program_that_computes_when_it_is_asked_needs_no_wake() {
    let mut text = Text::new();
    for _ in 0..6 {
        text.exchange(500);
    }
    // The program computes for itself when the client asks it, so it is not woken.
    text.start(0, FRONT);
    text.us += 20_000;
    text.start(0, CLIENT);
    text.sleep(CLIENT);
    text.us += 300_000;
    text.start(FRONT, CLIENT);
    text.sleep(FRONT);
    text.sleep(CLIENT);
    let explanation = text.explained(Scope::default());
    let late = late(&explanation);
    assert_eq!(late.len(), 1, "{late:#?}");
    let sentence = late[0].sentence.to_string();
    assert!(
        sentence.starts_with("client (100) waited 300.0 ms for an answer of front (200)"),
        "{sentence}"
    );
    assert!(
        sentence.contains("Thread 200 of front (200) ran for 300.0 ms"),
        "{sentence}"
    );
    assert_eq!(late[0].severity, Severity::Warning);
}

#[test]
fn one_slow_answer_without_others_is_only_information() {
    let mut text = Text::new();
    text.exchange(400_000);
    let explanation = text.explained(Scope::default());
    let findings = late(&explanation);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    for finding in findings {
        assert_eq!(finding.severity, Severity::Information);
        assert_eq!(finding.doubts.len(), 1, "{:?}", finding.doubts);
    }
    // The program may have ended with the recording. The one that started it, such as perf, waited for its end.
    assert!(late(&text.explained_at_once(Scope::default())).is_empty());
}

#[test]
fn the_end_of_a_program_is_no_answer() {
    let mut text = Text::new();
    for compute_us in [1000, 1000, 1000, 1000, 1000, 1000, 300_000] {
        text.start(0, CLIENT);
        text.start(CLIENT, BACK);
        text.sleep(CLIENT);
        text.us += compute_us;
        // The kernel logs the end before it wakes the program that waits for it.
        if compute_us == 300_000 {
            let event = format!("sched_process_exit: comm=back pid={BACK} prio=120");
            text.event(BACK, cpu(BACK), ".....", &event);
        }
        text.start(BACK, CLIENT);
        text.sleep(BACK);
        text.sleep(CLIENT);
        text.us += 5000;
    }
    let explanation = text.explained(Scope::default());
    assert!(late(&explanation).is_empty(), "{:#?}", late(&explanation));
}

#[test]
fn a_program_that_only_reports_answers_nobody() {
    let mut text = Text::new();
    // As with a compiler and its build tool: the client waits, and the other program wakes it now and then.
    text.start(0, CLIENT);
    text.sleep(CLIENT);
    text.start(0, FRONT);
    for _ in 0..8 {
        text.us += 2000;
        text.start(FRONT, CLIENT);
        text.sleep(CLIENT);
    }
    text.us += 500_000;
    text.start(FRONT, CLIENT);
    text.sleep(CLIENT);
    text.sleep(FRONT);
    let explanation = text.explained(Scope::default());
    assert_eq!(late(&explanation), Vec::<&Finding>::new());
}

#[test]
fn a_wait_for_a_timer_is_only_information() {
    let mut text = Text::new();
    for _ in 0..8 {
        text.exchange(1000);
    }
    text.start(0, CLIENT);
    text.start(CLIENT, FRONT);
    text.sleep(CLIENT);
    text.sleep(FRONT);
    text.us += 200_000;
    text.start(0, FRONT);
    text.start(FRONT, CLIENT);
    text.sleep(FRONT);
    text.sleep(CLIENT);
    let explanation = text.explained(Scope::default());
    let late = late(&explanation);
    assert_eq!(late.len(), 1, "{late:#?}");
    assert_eq!(late[0].severity, Severity::Information);
    let sentence = late[0].sentence.to_string();
    assert!(
        sentence.contains("Thread 200 of front (200) waited for 200.0 ms"),
        "{sentence}"
    );
}

#[test]
fn a_softirq_that_interrupts_a_thread_makes_it_no_program_that_answers() {
    let mut text = Text::new();
    // Packets from elsewhere wake the client on a CPU on which another program computes.
    text.start(0, FRONT);
    for _ in 0..8 {
        for wait_us in [2000, 300_000] {
            text.us += wait_us;
            text.has_packets = true;
            text.start(FRONT, CLIENT);
            text.sleep(CLIENT);
        }
    }
    text.sleep(FRONT);
    let explanation = text.explained(Scope::default());
    assert_eq!(late(&explanation), Vec::<&Finding>::new());
}
