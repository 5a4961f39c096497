//! Tests of the dispatcher's rules. Each test isolates one rule in a small scenario.

use crate::read_back::{READY, Run, Stay, assert_trace_tells_the_truth, run_text};

const MS: i64 = 1_000_000;
const PREEMPTED: u8 = 32;

/// Period of the clock interrupt in nanoseconds.
const TICK: i64 = 15_625_000;

fn run(text: &str) -> Run {
    let run = run_text("rule", text, None, &[]);
    assert_trace_tells_the_truth(&run);
    run
}

/// Returns the runs of threads on a processor. Each run has the thread's name, and the start and end in
/// milliseconds. Runs shorter than 0.1 ms are left out.
fn course(run: &Run, cpu: u16, names: &[&str]) -> Vec<(String, i64, i64)> {
    let stays: Vec<Stay> = run.stays();
    let name = |id| names.iter().find(|name| run.thread(name) == id).copied();
    (stays.iter())
        .filter(|stay| stay.cpu == cpu && stay.to - stay.from > MS / 10)
        .map(|stay| {
            let name = name(stay.thread).unwrap_or("idle");
            (name.to_owned(), stay.from / MS, stay.to / MS)
        })
        .collect()
}

fn owned(course: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    let own = |(name, from, to): &(&str, i64, i64)| ((*name).to_owned(), *from, *to);
    course.iter().map(own).collect()
}

#[test]
fn priority_goes_first_and_who_lowers_its_own_makes_room() {
    let run = run(r#"
        title = "t"
        duration = "30ms"
        machine.processors = 1
        machine.threads_per_core = 1
        [[process]]
        name = "a.exe"
        thread = [
          { name = "low", priority = 8, program = [ { run = "5ms" }, { until = "1s" } ] },
          { name = "high", priority = 10, program = [ { run = "5ms" }, { priority = 4 }, { run = "5ms" }, { until = "1s" } ] },
        ]
    "#);
    let expected = [
        ("high", 0, 5),
        ("low", 5, 10),
        ("high", 10, 15),
        ("idle", 15, 30),
    ];
    assert_eq!(course(&run, 0, &["low", "high"]), owned(&expected));
}

#[test]
fn an_equal_waits_for_the_end_of_the_quantum_and_a_better_one_does_not() {
    let run = run(r#"
        title = "t"
        duration = "200ms"
        machine.processors = 1
        machine.threads_per_core = 1
        [[process]]
        name = "a.exe"
        thread = [
          { name = "first", program = [ { run = "1s" } ] },
          { name = "second", start = "1ms", program = [ { run = "1s" } ] },
          { name = "better", priority = 9, start = "50ms", program = [ { run = "3ms" }, { until = "1s" } ] },
        ]
    "#);
    // The quantum is six units, which are two clock ticks (31.25 ms). A preempted thread continues
    // with the rest of its quantum. A thread runs until the first tick after its quantum is used
    // up.
    let expected = [
        ("first", 0, 31),
        ("second", 31, 50),
        ("better", 50, 53),
        ("second", 53, 78),
        ("first", 78, 109),
        ("second", 109, 140),
        ("first", 140, 171),
        ("second", 171, 200),
    ];
    assert_eq!(
        course(&run, 0, &["first", "second", "better"]),
        owned(&expected)
    );
}

/// Checks boosts. When a wait ends, the priority rises by the waker's boost (1). In the foreground,
/// PsPrioritySeparation is added, even if quanta are fixed. When a quantum ends, the priority falls by one
/// level.
#[test]
fn boosts_come_with_wakes_and_go_with_quanta() {
    let text = r#"
        title = "t"
        duration = "600ms"
        machine.processors = 1
        machine.threads_per_core = 1
        [[process]]
        name = "game.exe"
        focus = true
        thread = [ { name = "main", program = [ { wait = "go" }, { run = "1s" } ] } ]
        [[at]]
        time = "20ms"
        set = "go"
    "#;
    for (value, highest) in [("0x28", 9), ("0x29", 10), ("0x2A", 11)] {
        let setting = format!("machine.win32_priority_separation={value}");
        let run = run_text("rule", text, None, &[&setting]);
        let main = run.thread("main");
        let mut levels: Vec<(u8, i64)> = Vec::new();
        for samples in &run.tables.samples {
            for row in (0..samples.len()).filter(|row| samples.thread_id[*row] == main) {
                let priority = samples.priority.get(row).expect("known");
                if levels.last().is_none_or(|(last, _)| *last != priority) {
                    levels.push((priority, samples.time_ns[row]));
                }
            }
        }
        let priorities: Vec<u8> = levels.iter().map(|(priority, _)| *priority).collect();
        let expected: Vec<u8> = (8..=highest).rev().collect();
        assert_eq!(priorities, expected, "{value}");
        // The first quantum starts between two ticks, so its length is not checked. All other quanta last six
        // ticks. Samples are 1 ms apart, which limits the accuracy.
        for pair in levels[1..].windows(2) {
            let length = pair[1].1 - pair[0].1;
            assert!((length - 6 * TICK).abs() <= MS, "{value}: {length} ns");
        }
    }
}

#[test]
fn rank_goes_before_priority_and_every_processor_sees_it_change() {
    let run = run(r#"
        title = "t"
        duration = "100ms"
        machine.processors = 2
        machine.threads_per_core = 1
        scheduler.generation = "1s"
        scheduler.ungrouped_weight = 99
        group = [ { name = "app", weight = 1 } ]
        [[process]]
        name = "app.exe"
        group = "app"
        thread = [
          { name = "app 0", affinity = [0], priority = 15, program = [ { run = "1s" } ] },
          { name = "app 1", affinity = [1], priority = 15, program = [ { run = "1s" } ] },
        ]
        [[process]]
        name = "idle.exe"
        class = "idle"
        thread = [
          { name = "low 0", affinity = [0], program = [ { run = "1s" } ] },
          { name = "low 1", affinity = [1], program = [ { run = "1s" } ] },
        ]
    "#);
    // The group's share is a hundredth of a generation of 1 s on two processors: 20 ms, which are
    // 10 ms on each processor.
    for cpu in [0, 1] {
        let (app, low) = (format!("app {cpu}"), format!("low {cpu}"));
        let expected = [(app.as_str(), 0, 10), (low.as_str(), 10, 100)];
        let found = course(&run, cpu, &[&app, &low]);
        assert_eq!(found, owned(&expected), "processor {cpu}");
    }
}

#[test]
fn a_capped_group_waits_for_the_next_generation() {
    let run = run(r#"
        title = "t"
        duration = "250ms"
        machine.processors = 2
        machine.threads_per_core = 1
        scheduler.generation = "100ms"
        group = [ { name = "job", rate_cap = "25%" } ]
        [[process]]
        name = "job.exe"
        group = "job"
        thread = [
          { name = "job 0", affinity = [0], program = [ { run = "1s" } ] },
          { name = "job 1", affinity = [1], program = [ { run = "1s" } ] },
        ]
    "#);
    // The cap is a quarter of the 200 ms of processor time in a generation: 50 ms. Two threads use this time
    // in parallel, so each runs for 25 ms.
    for cpu in [0, 1] {
        let name = format!("job {cpu}");
        let expected = [
            (name.as_str(), 0, 25),
            ("idle", 25, 100),
            (name.as_str(), 100, 125),
            ("idle", 125, 200),
            (name.as_str(), 200, 225),
            ("idle", 225, 250),
        ];
        let found = course(&run, cpu, &[&name]);
        assert_eq!(found, owned(&expected), "processor {cpu}");
    }
}

#[test]
fn processors_are_idle_while_the_machine_is_suspended() {
    let run = run(r#"
        title = "t"
        duration = "300ms"
        machine.processors = 2
        machine.threads_per_core = 1
        [[process]]
        name = "a.exe"
        thread = [ { name = "busy", priority = 8, program = [ { run = "1s" } ] } ]
        [[at]]
        time = "100ms"
        suspend = "100ms"
    "#);
    let busy: Vec<Stay> = (run.stays().into_iter())
        .filter(|stay| stay.thread == run.thread("busy"))
        .collect();
    let times: Vec<(i64, i64)> = busy
        .iter()
        .map(|stay| (stay.from / MS, stay.to / MS))
        .collect();
    assert_eq!(times, [(0, 100), (200, 300)]);
    let end = busy[0].end.expect("preempted");
    assert_eq!((end.state, end.reason), (READY, PREEMPTED));
}

/// Returns the processor time in ms of each process in a scenario with one processor.
fn cpu_ms(processes: &str) -> Vec<(String, u64)> {
    let text = format!(
        "title = 't'\nduration = '5s'\n[machine]\nprocessors = 1\nthreads_per_core = 1\n{processes}"
    );
    let run = run_text("rule", &text, None, &[]);
    let of = |process: &serde_json::Value| {
        let name = process["name"].as_str().expect("a name").to_owned();
        (
            name,
            process["cpu_ns"].as_u64().expect("a time") / 1_000_000,
        )
    };
    run.truth["processes"].as_array().expect("a list")[2..]
        .iter()
        .map(of)
        .collect()
}

#[test]
fn a_loops_stop_ends_that_loop_and_nothing_else() {
    let thread = |program: &str| {
        cpu_ms(&format!(
            "[[process]]\nname = 'a.exe'\n[[process.thread]]\nprogram = [{program}]"
        ))
    };
    // The loop ends before its `stop`, so `stop` has no effect on later steps.
    let early =
        thread("{ repeat = 2, stop = '50ms', steps = [{ run = '1ms' }] }, { run = '80ms' }");
    assert_eq!(early, [("a.exe".into(), 82)]);
    // The outer loop has 4 rounds. In the first round, `stop` ends the inner loop after 10 ms, in the middle
    // of a step. In later rounds, the inner loop is skipped. In each round, the thread then runs for 1 s.
    let inside = thread(
        "{ repeat = 4, steps = [{ forever = [{ run = '20ms' }], stop = '10ms' }, { run = '1s' }] }",
    );
    assert_eq!(inside, [("a.exe".into(), 4_010)]);
}
