//! Latency of a thread, divided by its critical path.

use diff::{Latency, LatencyInterval, LatencyPart, NoPath, PathTimes};
use simulated::Simulated;
use tables::{Cache, Options};

/// Scenario of a thread. Ten times a second, the thread works for 3.1 ms, reads from a disk, and lets another
/// thread work for 2 ms.
const WORK: &str = r#"
extends = "healthy"
title = "A healthy desktop with a program that works in steps"
[[add.process]]
name = "app.exe"
[[add.process.thread]]
name = "work"
program = [ { forever = [
  { sleep = "100ms" },
  { mark = "begin" },
  { run = "3ms" },
  { read = "64KiB", file = 'C:\data.bin' },
  { run = "100us" },
  { set = "request" },
  { wait = "answer" },
  { mark = "end" },
] } ]
[[add.process]]
name = "server.exe"
[[add.process.thread]]
name = "answers"
program = [ { forever = [ { wait = "request" }, { run = "2ms" }, { set = "answer" } ] } ]
"#;

fn divided(settings: &[&str], interval: &LatencyInterval) -> Result<PathTimes, NoPath> {
    let simulated = Simulated::of_text("work", WORK, settings);
    let store = imports::open_store(&[(&simulated.trace).into()], Cache::Off).unwrap();
    PathTimes::read(&store, interval, Options::default()).unwrap()
}

fn find<'l>(latency: &'l Latency, program: Option<&str>, state: &str) -> &'l LatencyPart {
    let mut parts = latency.parts.iter();
    let found = parts.find(|part| part.program.as_deref() == program && part.state == state);
    found.unwrap_or_else(|| panic!("no {program:?} {state} in {latency:?}"))
}

#[test]
fn a_slower_disk_is_the_part_that_changed() {
    let interval = LatencyInterval {
        thread: "work".to_owned(),
        marks: Some(["begin".to_owned(), "end".to_owned()]),
        during: None,
    };
    let service = |time: &str| divided(&[&format!("disk.0.service={time}")], &interval).unwrap();
    let latency = Latency::compare(&[service("5ms")], &[service("12ms")]);
    assert!(latency.intervals_before > 60 && latency.intervals_after > 60);
    let first = &latency.parts[0];
    assert_eq!(
        (&*first.state, &first.program),
        ("waited for a disk", &None)
    );
    let (disk, whole) = (
        first.after_ns - first.before_ns,
        latency.after_ns - latency.before_ns,
    );
    // The disk may serve other requests first, so a request can take longer than its service time.
    assert!((disk - 7e6).abs() < 1.4e6, "{latency:?}");
    assert!((whole - disk).abs() < 0.1 * disk, "{latency:?}");
    for (program, ms) in [(None, 3.1), (Some("server.exe"), 2.0)] {
        let ran = find(&latency, program, "ran");
        for ns in [ran.before_ns, ran.after_ns] {
            assert!((ns / 1e6 - ms).abs() < 0.05 * ms, "{latency:?}");
        }
    }
    // The sum of the parts and the residual is the whole change.
    let parts: f64 = (latency.parts.iter())
        .map(|part| part.after_ns - part.before_ns)
        .sum();
    assert!(
        (parts + latency.residual_ns - whole).abs() < 1.0,
        "{latency:?}"
    );
    assert!(latency.residual_ns.abs() < 0.01 * whole, "{latency:?}");
    assert_eq!(latency.doubt(), None);
}

#[test]
fn an_interval_that_does_not_exist_is_refused() {
    let interval = |thread: &str, end: &str| LatencyInterval {
        thread: thread.to_owned(),
        marks: Some(["begin".to_owned(), end.to_owned()]),
        during: None,
    };
    let settings = ["duration=1s"];
    let refused = |interval| divided(&settings, &interval).err();
    assert_eq!(refused(interval("none", "end")), Some(NoPath::NoThread));
    assert_eq!(refused(interval("app.exe", "none")), Some(NoPath::NoMarks));
    assert!(divided(&settings, &interval("App.exe", "end")).is_ok());
}

/// Divides the time of two threads that run in turn, for the time `run` each. Each run is a step of the path.
fn in_turn(run: &str) -> PathTimes {
    let text = format!(
        r#"
        extends = "healthy"
        title = "Two threads that let each other work"
        duration = "2s"
        [[add.process]]
        name = "app.exe"
        [[add.process.thread]]
        name = "work"
        program = [ {{ forever = [ {{ set = "request" }}, {{ wait = "answer" }}, {{ run = "{run}" }} ] }} ]
        [[add.process]]
        name = "server.exe"
        [[add.process.thread]]
        name = "answers"
        program = [ {{ forever = [ {{ wait = "request" }}, {{ run = "{run}" }}, {{ set = "answer" }} ] }} ]
        "#
    );
    let simulated = Simulated::of_text("turns", &text, &[]);
    let store = imports::open_store(&[(&simulated.trace).into()], Cache::Off).unwrap();
    let interval = LatencyInterval {
        thread: "work".to_owned(),
        ..LatencyInterval::default()
    };
    let divided = PathTimes::read(&store, &interval, Options::default()).unwrap();
    divided.unwrap()
}

/// Compares a path of 10,000 steps in 2 s with a path of 100,000 steps. The second path covers only a part of the time,
/// but each thread runs for half of the time on both sides.
#[test]
fn a_path_with_too_many_steps_is_scaled() {
    let latency = Latency::compare(&[in_turn("200us")], &[in_turn("20us")]);
    assert_eq!(latency.reached_before, 1.0);
    assert!((0.1..0.4).contains(&latency.reached_after), "{latency:?}");
    for program in [None, Some("server.exe")] {
        let ran = find(&latency, program, "ran");
        for ns in [ran.before_ns, ran.after_ns] {
            assert!((ns / 1e9 - 1.0).abs() < 0.08, "{latency:?}");
        }
    }
    let sum: f64 = latency.parts.iter().map(|part| part.after_ns).sum();
    assert!((sum - latency.after_ns).abs() < 0.01e9, "{latency:?}");
    assert!(latency.residual_ns.abs() < 0.01e9, "{latency:?}");
    let doubt = latency.doubt().unwrap();
    assert!(doubt.contains("% of the time after the change"), "{doubt}");
    assert!(!doubt.contains("before the change"), "{doubt}");
}
