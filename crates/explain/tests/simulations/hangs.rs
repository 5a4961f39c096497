//! Tests with threads that waited for something other than a CPU. Lengths and culprits follow from the
//! construction of the scenarios.

use explain::Scope;
use serde_json::Value;
use simulated::{Simulated, list, number, text};

use super::explained::Explained;

/// Desktop on which no program has the focus, so that a test can give the focus to its own program.
const BASE: &str = r#"
extends = "healthy"
title = "test"
[process."winword.exe"]
focus = false
"#;

/// Change of the focus. A trace contains the focus only if it changes.
const FOCUS: &str = r#"
[[at]]
time = "9800ms"
focus = "winword.exe"
"#;

pub(super) fn simulated(name: &str, programs: &str) -> Simulated {
    Simulated::of_text(name, &format!("{BASE}{programs}{FOCUS}"), &[])
}

fn explained(name: &str, programs: &str) -> Explained {
    Explained::new(&simulated(name, programs).trace)
}

/// Returns all sentences of a finding: the sentence about what happened, and the sentences about the cause.
pub(super) fn told(finding: &Value) -> String {
    let why = finding["why"].as_array().into_iter().flatten();
    let why: Vec<String> = why.map(text).collect();
    format!("{} {}", text(&finding["sentence"]), why.join(" "))
}

/// Returns the cells of a column in the evidence whose title starts with `title`.
fn cells(finding: &Value, title: &str, column: &str) -> Vec<Value> {
    let mut evidence = list(finding, "evidence").iter();
    let evidence = evidence.find(|evidence| text(&evidence["title"]).starts_with(title));
    let evidence = evidence.unwrap_or_else(|| panic!("no {title} in {finding:#}"));
    let mut columns = list(evidence, "columns").iter();
    let place = columns.position(|c| c["name"] == column).unwrap();
    let rows = list(evidence, "rows").iter();
    rows.map(|row| row[place].clone()).collect()
}

/// Asserts that the first finding is a hang, and that the sum of its parts is the length of the wait. Returns
/// the finding and its sentences.
#[track_caller]
fn first_hang(explained: &Explained) -> (&Value, String) {
    let all: Vec<String> = explained.findings().iter().map(told).collect();
    let first = explained.findings().first().expect("a finding");
    assert_eq!(first["theory"], "hangs", "{all:#?}");
    let parts: i64 = ["waited_ns", "was_ready_ns", "ran_ns"]
        .iter()
        .flat_map(|column| cells(first, "Time of the wait by thread", column))
        .map(|ns| ns.as_i64().unwrap())
        .sum();
    let whole = number(&first["during"], "end") - number(&first["during"], "start");
    assert_eq!(parts, whole, "{first:#}");
    (first, told(first))
}

#[track_caller]
pub(super) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no “{part}” in {text}");
    }
}

#[track_caller]
fn assert_lasts(finding: &Value, expected_ms: i64, within_ms: i64) {
    let ms = number(&finding["delay"], "ns") / 1_000_000;
    assert!(
        (ms - expected_ms).abs() <= within_ms,
        "{ms} ms: {finding:#}"
    );
}

/// Returns a scenario with a window that calls a server. The server sleeps before it answers.
pub(super) fn call(server_sleeps: &str) -> String {
    format!(
        r#"
[[add.process]]
name = "viewer.exe"
focus = true
[[add.process.thread]]
name = "window"
program = [ {{ repeat = 5, steps = [ {{ message = true }}, {{ run = "300us" }} ] }}, {{ set = "ask" }}, {{ wait = "answer", reason = "WrLpcReply" }}, {{ forever = [ {{ message = true }}, {{ run = "300us" }} ] }} ]
[[add.process]]
name = "printer.exe"
session = 0
[[add.process.thread]]
name = "server"
program = [ {{ forever = [ {{ wait = "ask", reason = "WrLpcReceive" }}, {{ run = "1ms" }}, {{ sleep = "{server_sleeps}" }}, {{ run = "100us" }}, {{ set = "answer" }} ] }} ]
[[add.process]]
name = "input.exe"
[[add.process.thread]]
name = "poster"
program = [ {{ forever = [ {{ sleep = "200ms" }}, {{ post = "viewer.exe" }} ] }} ]
"#
    )
}

#[test]
fn a_call_to_a_sleeping_server_is_followed_to_the_server() {
    let explained = explained("call", &call("4s"));
    let (hang, told) = first_hang(&explained);
    assert_eq!(hang["severity"], "problem");
    assert_lasts(hang, 4_000, 40);
    assert_has(
        &told,
        &[
            "viewer.exe",
            "WrLpcReply",
            "printer.exe",
            "slept (DelayExecution)",
        ],
    );
    let subjects = hang["subjects"].to_string();
    assert!(
        subjects.contains("printer.exe") && subjects.contains("viewer.exe"),
        "{subjects}"
    );
}

#[test]
fn a_call_of_a_window_counts_from_a_tenth_of_a_second() {
    let long = explained("long", &call("130ms"));
    let (hang, _) = first_hang(&long);
    assert_eq!(hang["severity"], "warning");
    let short = explained("short", &call("60ms"));
    assert_eq!(short.complaints(), [""; 0]);
}

#[test]
fn a_question_about_the_process_is_answered_with_its_hang() {
    let simulated = simulated("asked", &call("4s"));
    for scope in [
        Scope {
            processes: vec!["viewer.exe".to_owned()],
            ..Scope::default()
        },
        Scope {
            during: Some(3_000_000_000..3_000_000_001),
            ..Scope::default()
        },
    ] {
        let explained = Explained::scoped(&simulated.trace, scope);
        let (hang, told) = first_hang(&explained);
        assert_lasts(hang, 4_000, 40);
        assert_has(&told, &["printer.exe"]);
    }
}

/// Tests two threads of a program that share a lock. The worker holds the lock while it sleeps.
#[test]
fn a_lock_of_two_threads_is_blamed_on_its_holder() {
    let explained = explained(
        "two-threads",
        r#"
[[add.process]]
name = "editor.exe"
focus = true
[[add.process.thread]]
name = "window"
program = [ { forever = [ { sleep = "16ms" }, { acquire = "document" }, { run = "300us" }, { release = "document" } ] } ]
[[add.process.thread]]
name = "saver"
program = [ { repeat = 3, steps = [ { sleep = "1s" }, { acquire = "document" }, { run = "2ms" }, { sleep = "1500ms" }, { run = "2ms" }, { release = "document" } ] }, { until = "1h" } ]
"#,
    );
    let (hang, told) = first_hang(&explained);
    assert_eq!(hang["severity"], "problem");
    assert_lasts(hang, 4_500, 120);
    assert_has(
        &told,
        &["saver", "slept", "3 such waits", "WrAlertByThreadId"],
    );
}

/// Tests three threads that share a lock. Two workers take the lock in turn and hold it for 150 ms each. The
/// painting thread waits for the lock.
#[test]
fn a_lock_of_three_threads_is_found() {
    let explained = explained(
        "three-threads",
        r#"
[[add.process]]
name = "paint.exe"
focus = true
[[add.process.thread]]
name = "painter"
program = [ { forever = [ { sleep = "16ms" }, { acquire = "canvas" }, { run = "300us" }, { release = "canvas" } ] } ]
[[add.process.thread]]
name = "worker"
count = 2
start = "1s"
program = [ { forever = [ { acquire = "canvas" }, { run = "150ms" }, { release = "canvas" } ] } ]
"#,
    );
    let (hang, told) = first_hang(&explained);
    assert_eq!(hang["severity"], "problem");
    assert_has(&told, &["painter", "worker", "ran"]);
}

/// Tests twelve programs that use one mutex in turn. Only one program has the focus.
#[test]
fn a_mutex_of_several_processes_is_found() {
    let mut programs = String::new();
    for number in 0..12 {
        programs += &format!(
            r#"
[[add.process]]
name = "client{number}.exe"
focus = {}
[[add.process.thread]]
name = "main"
program = [ {{ forever = [ {{ acquire = "mutex", reason = "UserRequest" }}, {{ run = "40ms" }}, {{ release = "mutex" }}, {{ run = "100us" }} ] }} ]
"#,
            number == 0
        );
    }
    let explained = explained("mutex", &programs);
    let first = &explained.findings()[0];
    assert_eq!(first["theory"], "lock-convoy");
    assert_eq!(first["severity"], "problem");
    assert_has(
        &told(first),
        &["12 threads of client0.exe", "9 more processes"],
    );
}

/// Tests a thread of priority 4 that holds a lock while programs of normal priority use all CPUs.
#[test]
fn a_starving_holder_is_a_priority_inversion() {
    let explained = explained(
        "inversion",
        r#"
[[add.process]]
name = "shop.exe"
focus = true
[[add.process.thread]]
name = "window"
priority = 10
program = [ { repeat = 9, steps = [ { message = true }, { run = "300us" } ] }, { until = "3s" }, { acquire = "stock" }, { run = "1ms" }, { release = "stock" }, { forever = [ { message = true }, { run = "300us" } ] } ]
[[add.process.thread]]
name = "indexer"
priority = 4
program = [ { until = "2s" }, { acquire = "stock" }, { run = "1s" }, { release = "stock" }, { until = "1h" } ]
[[add.process]]
name = "render.exe"
[[add.process.thread]]
name = "render"
count = 8
program = [ { until = "2500ms" }, { run = "3s" }, { until = "1h" } ]
[[add.process]]
name = "input.exe"
[[add.process.thread]]
name = "poster"
program = [ { forever = [ { sleep = "100ms" }, { post = "shop.exe" } ] } ]
"#,
    );
    let (hang, told) = first_hang(&explained);
    assert_eq!(hang["severity"], "problem");
    assert_has(
        &told,
        &[
            "indexer",
            "priority inversion",
            "render.exe",
            "Its priority was 4",
        ],
    );
}

/// Checks that a thread which has nothing to do is not reported as a hang.
#[test]
fn idle_threads_are_no_hangs() {
    let explained = explained(
        "idle",
        r#"
[[add.process]]
name = "mail.exe"
focus = true
[[add.process.thread]]
name = "window"
program = [ { forever = [ { message = true }, { run = "300us" } ] } ]
[[add.process.thread]]
name = "worker"
program = [ { forever = [ { wait = "job" }, { run = "3ms" }, { set = "done" } ] } ]
[[add.process.thread]]
name = "client"
program = [ { forever = [ { sleep = "1s" }, { set = "job" }, { wait = "done" } ] } ]
[[add.process.thread]]
name = "condition"
program = [ { forever = [ { wait = "work", reason = "WrAlertByThreadId" }, { run = "2ms" } ] } ]
[[add.process.thread]]
name = "heartbeat"
program = [ { forever = [ { sleep = "2s" }, { set = "work" } ] } ]
[[add.process.thread]]
name = "pool"
program = [ { forever = [ { wait = "task", reason = "WrQueue" }, { run = "1ms" } ] } ]
[[add.process.thread]]
name = "timer"
program = [ { forever = [ { sleep = "3s" }, { set = "task" } ] } ]
"#,
    );
    assert_eq!(explained.complaints(), [""; 0]);
}

/// Tests a disk that serves one request at a time. The writes of another program fill its queue.
#[test]
fn a_full_queue_of_a_disk_is_blamed_on_who_filled_it() {
    let explained = explained(
        "queue",
        r#"
[[add.disk]]
number = 1
queue_depth = 1
service = "20ms"
bytes_per_second = "1GB"
cpu = 5
isr = { in = ["storport.sys!RaidpAdapterInterruptRoutine"], cost = "3us" }
dpc = { in = ["storport.sys!RaidpAdapterDpcRoutine"], cost = "10us" }
[[add.process]]
name = "report.exe"
focus = true
[[add.process.thread]]
name = "window"
program = [ { repeat = 25, steps = [ { message = true }, { run = "300us" } ] }, { read = "64KiB", disk = 1, file = 'D:\report.db' }, { forever = [ { message = true }, { run = "300us" } ] } ]
[[add.process]]
name = "backup.exe"
session = 0
[[add.process.thread]]
name = "copy"
count = 100
program = [ { until = "2500ms" }, { write = "64KiB", disk = 1, file = 'D:\backup.zip' }, { until = "1h" } ]
[[add.process]]
name = "input.exe"
[[add.process.thread]]
name = "poster"
program = [ { forever = [ { sleep = "100ms" }, { post = "report.exe" } ] } ]
"#,
    );
    let (hang, told) = first_hang(&explained);
    // From 2.5 s on, a hundred requests of 20 ms are queued. The window's request follows at about 2.75 s.
    assert_lasts(hang, 1_750, 250);
    assert_has(&told, &["disk 1", "in the disk's queue", "backup.exe"]);
}

#[test]
fn cpu_rate_control_is_named() {
    let explained = explained(
        "rate",
        r#"
[[group]]
name = "limited"
rate_cap = "5%"
[[add.process]]
name = "builder.exe"
focus = true
group = "limited"
[[add.process.thread]]
name = "compile"
count = 2
program = [ { forever = [ { run = "5ms" } ] } ]
"#,
    );
    let (first, all) = (&explained.findings()[0], told(&explained.findings()[0]));
    assert_eq!(first["theory"], "hangs", "{all}");
    assert_has(
        &all,
        &["CPU rate control stopped builder.exe", "WrCpuRateControl"],
    );
    assert!(number(&first["delay"], "ns") > 5_000_000_000, "{first:#}");
}

#[test]
fn a_healthy_desktop_of_any_size_has_no_hang() {
    for settings in [
        &[
            "machine.processors=1",
            "machine.threads_per_core=1",
            "disk.0.cpu=0",
            "device.audio.cpus=[0]",
            "device.display.cpus=[0]",
        ][..],
        &["machine.processors=16"],
        &["machine.processors=256", "duration=4s"],
    ] {
        let healthy = Simulated::new("healthy", settings);
        let explained = Explained::new(&healthy.trace);
        assert_eq!(explained.complaints(), [""; 0], "{settings:?}");
    }
}

/// Returns the first finding of the theory about short waits, and its sentences. The finding must be more
/// than information.
#[track_caller]
fn short_waits(explained: &Explained) -> (&Value, String) {
    let all: Vec<String> = explained.findings().iter().map(told).collect();
    let finding = explained.by_theory("short-waits").into_iter().next();
    let finding = finding.unwrap_or_else(|| panic!("{all:#?}"));
    assert_ne!(finding["severity"], "information", "{all:#?}");
    (finding, told(finding))
}

/// Returns a scenario in which a program of higher priority repeatedly takes the processor from the thread of
/// the focused program. The program runs for `run` and then sleeps for `sleep`.
fn preempted(run: &str, sleep: &str) -> String {
    format!(
        r#"
[[add.process]]
name = "game.exe"
focus = true
[[add.process.thread]]
name = "render"
affinity = [3]
program = [ {{ forever = [ {{ run = "10ms" }} ] }} ]
[[add.process]]
name = "codec.exe"
session = 0
class = "high"
[[add.process.thread]]
name = "encode"
affinity = [3]
program = [ {{ forever = [ {{ sleep = "{sleep}" }}, {{ run = "{run}" }} ] }} ]
"#
    )
}

#[test]
fn waits_just_below_the_noticed_length_are_summed() {
    let explained = explained("just-under", &preempted("90ms", "250ms"));
    let (found, told) = short_waits(&explained);
    assert_eq!(found["severity"], "problem");
    assert_has(&told, &["render", "game.exe", "codec.exe"]);
    // In the 9.8 s with the focus, the thread loses about 90 ms of every 343 ms.
    assert_lasts(found, 2_550, 400);
}

#[test]
fn many_waits_of_some_milliseconds_are_summed() {
    let explained = explained("many", &preempted("12ms", "18ms"));
    let (found, told) = short_waits(&explained);
    assert_has(&told, &["render", "codec.exe"]);
    assert!(number(&found["delay"], "ns") > 2_000_000_000, "{told}");
}

#[test]
fn a_tenth_of_the_time_in_short_waits_is_no_finding() {
    let explained = explained("few", &preempted("12ms", "110ms"));
    assert_eq!(explained.by_theory("short-waits").len(), 0);
}

/// Returns a scenario with an audio engine that has a period of 10 ms. The engine shares a processor with a driver's
/// thread of priority 31.
fn audio(run: &str) -> String {
    format!(
        r#"
[process."audiodg.exe".thread.engine]
affinity = [4]
[[add.process]]
name = "sensor.exe"
session = 0
class = "realtime"
[[add.process.thread]]
name = "poll"
priority = 31
affinity = [4]
program = [ {{ forever = [ {{ sleep = "300ms" }}, {{ run = "{run}" }} ] }} ]
"#
    )
}

#[test]
fn missed_periods_of_a_real_time_thread_are_found() {
    let explained = explained("glitch", &audio("35ms"));
    let (found, told) = short_waits(&explained);
    assert_has(
        &told,
        &["engine", "audiodg.exe", "runs every 10.0 ms", "sensor.exe"],
    );
    let subjects = found["subjects"].to_string();
    assert!(subjects.contains("audiodg.exe"), "{subjects}");
    let harmless = self::explained("harmless", &audio("2ms"));
    assert_eq!(harmless.complaints(), [""; 0]);
}

/// Returns a scenario in which DPCs of 90 microseconds use a part of processor 3. The thread of the focused
/// program must run on this processor.
fn dpcs(every: &str, cpus: &str) -> String {
    format!(
        r#"
[[add.device]]
name = "capture card"
every = "{every}"
cpus = {cpus}
isr = {{ in = ["capture.sys!Isr"], cost = "2us" }}
dpc = {{ in = ["capture.sys!FrameDpc"], cost = "90us" }}
[[add.process]]
name = "viewer.exe"
focus = true
[[add.process.thread]]
name = "decode"
affinity = [3]
program = [ {{ forever = [ {{ run = "20ms" }}, {{ sleep = "5ms" }} ] }} ]
"#
    )
}

#[test]
fn many_short_dpcs_are_named_with_their_victim() {
    let explained = explained("short-dpcs", &dpcs("120us", "[3]"));
    let (found, told) = short_waits(&explained);
    assert_eq!(found["severity"], "problem");
    assert_has(&told, &["decode", "viewer.exe", "capture.sys", "CPU 3"]);
    let light = self::explained("light-dpcs", &dpcs("2ms", "[3]"));
    assert_eq!(light.by_theory("short-waits").len(), 0);
}

/// Tests two causes at the same time: the window hangs in a call, and another thread loses time to
/// a busy program.
#[test]
fn two_causes_at_once_are_two_findings() {
    let both = call("4s").replace(
        "[[add.process]]\nname = \"printer.exe\"",
        r#"[[add.process.thread]]
name = "render"
affinity = [3]
program = [ { forever = [ { run = "10ms" } ] } ]
[[add.process]]
name = "codec.exe"
class = "high"
[[add.process.thread]]
name = "encode"
affinity = [3]
program = [ { forever = [ { sleep = "250ms" }, { run = "90ms" } ] } ]
[[add.process]]
name = "printer.exe""#,
    );
    let explained = explained("both", &both);
    let (hang, hang_told) = first_hang(&explained);
    assert_lasts(hang, 4_000, 40);
    assert_has(&hang_told, &["printer.exe"]);
    let (_, told) = short_waits(&explained);
    assert_has(&told, &["render", "codec.exe"]);
}

/// Checks that four disk requests of 2 s each are reported, although there are only a few requests. Four
/// requests of 900 ms each are not reported.
#[test]
fn few_requests_of_a_dying_disk_are_found() {
    let disk = |service: &str| {
        format!(
            r#"
[[add.disk]]
number = 1
service = "{service}"
bytes_per_second = "1GB"
cpu = 5
isr = {{ in = ["storport.sys!RaidpAdapterInterruptRoutine"], cost = "3us" }}
dpc = {{ in = ["storport.sys!RaidpAdapterDpcRoutine"], cost = "10us" }}
[[add.process]]
name = "copy.exe"
session = 0
[[add.process.thread]]
name = "reader"
program = [ {{ repeat = 4, steps = [ {{ read = "64KiB", disk = 1, file = 'D:\photo.jpg' }}, {{ run = "1ms" }} ] }}, {{ until = "1h" }} ]
"#
        )
    };
    let dying = explained("dying", &disk("2s"));
    let finding = dying.by_theory("disks")[0];
    assert_eq!(finding["severity"], "warning");
    assert_has(
        &told(finding),
        &["4 of ", "requests to disk 1", "The disk itself worked on 4"],
    );
    let slow = explained("slow", &disk("900ms"));
    assert_eq!(slow.by_theory("disks").len(), 0);
}

/// Tests a window that waits for a lock when the trace ends. In the scenario, it asks for the lock at 5 s.
#[test]
fn an_unfinished_wait_of_a_thread_in_scope_is_reported() {
    let convoy = Simulated::new("lock-convoy", &["duration=5400ms"]);
    let mut threads = list(&convoy.truth, "watched_threads").iter();
    let window = threads.find(|thread| thread["process"]["name"] == "catalogue.exe");
    let id = number(window.unwrap(), "thread_id") as u32;
    let of_thread = |during| Scope {
        threads: vec![id],
        during,
        ..Scope::default()
    };
    let explained = Explained::scoped(&convoy.trace, of_thread(None));
    let hangs = explained.by_theory("hangs");
    let hang = hangs
        .first()
        .unwrap_or_else(|| panic!("no hang: {:#?}", explained.findings()));
    let sentences = told(hang);
    assert_has(
        &sentences,
        &[
            "at least",
            "still at the trace's end",
            "probably for a lock",
        ],
    );
    let since = number(&hang["during"], "start");
    assert!((since - 5_000_000_000).abs() < 1_000_000, "{sentences}");
    // The wait is not in this time range.
    let before = of_thread(Some(1_000_000_000..2_000_000_000));
    let explained = Explained::scoped(&convoy.trace, before);
    assert_eq!(explained.by_theory("hangs").len(), 0);
}

/// Program whose window waits for a lock that is never released, from about 1.2 s on.
const DEADLOCK: &str = r#"
[[at]]
time = "500ms"
focus = "winword.exe"
[[at]]
time = "501ms"
focus = "dead.exe"
[[add.process]]
name = "dead.exe"
[[add.process.thread]]
name = "window"
program = [ { repeat = 20, steps = [ { message = true }, { run = "300us" } ] }, { acquire = "L" }, { run = "1ms" }, { release = "L" }, { forever = [ { message = true }, { run = "300us" } ] } ]
[[add.process.thread]]
name = "holder"
program = [ { acquire = "L" }, { until = "1h" }, { release = "L" } ]
[[add.process]]
name = "input.exe"
[[add.process.thread]]
name = "poster"
program = [ { forever = [ { sleep = "60ms" }, { post = "dead.exe" } ] } ]
"#;

#[test]
fn a_wait_until_the_end_does_not_include_time_in_which_the_machine_was_suspended() {
    let suspend = "[[at]]\ntime = \"3s\"\nsuspend = \"6s\"\n";
    let text = format!("{BASE}{DEADLOCK}{suspend}");
    let explained = Explained::new(&Simulated::of_text("asleep", &text, &["duration=10s"]).trace);
    let hang = explained.by_theory("hangs")[0];
    let ms = (number(&hang["delay"], "ns") + 500_000) / 1_000_000;
    let expected = format!(
        "did not respond for at least {}.{:03} s",
        ms / 1_000,
        ms % 1_000
    );
    assert_has(
        &told(hang),
        &[
            &expected,
            "without 6.000 s for which the machine was suspended",
        ],
    );
    assert!((2_700..2_900).contains(&ms), "{ms} ms");
}

#[test]
fn time_without_events_is_no_suspension_if_events_were_lost() {
    let lost = r#"trouble.lose=[{from="3s",to="5s"}]"#;
    let text = format!("{BASE}{DEADLOCK}");
    let explained =
        Explained::new(&Simulated::of_text("gap", &text, &["duration=10s", lost]).trace);
    let sentences: Vec<String> = explained
        .by_theory("hangs")
        .iter()
        .map(|hang| told(hang))
        .collect();
    assert_has(&sentences[0], &["2.000 s for which nothing was recorded"]);
    assert!(!sentences.concat().contains("suspended"), "{sentences:#?}");
}
