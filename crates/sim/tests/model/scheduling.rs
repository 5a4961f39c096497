//! Tests with scenarios about scheduling. The model must behave as the scenarios describe, and the trace must
//! show this behaviour.

use std::collections::BTreeMap;

use crate::read_back::{
    QUANTUM_END, READY, Run, Stay, WAITING, assert_trace_tells_the_truth, list, number, run,
};

const SECOND: f64 = 1e9;

fn seconds(value: &serde_json::Value) -> f64 {
    number(value) as f64 / SECOND
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected} ± {tolerance}"
    );
}

/// Returns the longest time in seconds for which a watched thread was ready without a processor, and the
/// share of each cause in this time.
fn longest_wait(run: &Run, process: &str) -> (f64, BTreeMap<String, f64>) {
    let wait = &run.watched(process)["longest_ready_waits"][0];
    let held: BTreeMap<String, f64> = (wait["held_by_cpu_ns"].as_object().unwrap().iter())
        .map(|(by, ns)| (by.clone(), seconds(ns)))
        .collect();
    let sum: f64 = held.values().sum();
    let shares = held.into_iter().map(|(by, s)| (by, s / sum)).collect();
    (seconds(&wait["ready_ns"]), shares)
}

/// Returns two runs: with the scenario's seed, and with another seed. Checks that the two traces have
/// different bytes, and that each trace agrees with its truth.
fn two_seeds(name: &str) -> [Run; 2] {
    let runs = [run(name, None), run(name, Some(77))];
    assert_ne!(runs[0].bytes, runs[1].bytes);
    for run in &runs {
        assert_trace_tells_the_truth(run);
    }
    runs
}

/// Compares the scenario `rank-stall` with the published figures of "What Outranks Thread Priority?".
#[test]
fn rank_stall() {
    for (run, spread) in two_seeds("rank-stall").iter().zip([1.0, 3.0]) {
        let worker = run.watched("LockApp.exe");
        let wait = &worker["longest_ready_waits"][0];
        near(seconds(&wait["readied_ns"]), 30.333, 0.001);
        near(seconds(&wait["ran_ns"]), 49.827, 0.001);
        near(seconds(&wait["ready_ns"]), 19.493, 0.0005);
        assert_eq!(number(&wait["rank"]), 2);
        assert_eq!(number(&wait["priority"]), 14);
        let (_, held) = longest_wait(run, "LockApp.exe");
        assert!(held["rank"] > 0.98, "{held:?}");
        assert!(!held.contains_key("idle"));

        // Two times from the trace: the time since the thread last ran, and the time since any thread of its
        // process last ran.
        let stays = run.stays();
        let thread = number(&worker["thread_id"]) as u32;
        let ran = number(&wait["ran_ns"]);
        let before = stays
            .iter()
            .rfind(|stay| stay.thread == thread && stay.to < ran);
        near((ran - before.unwrap().to) as f64 / SECOND, 38.2, 0.005);
        let lock_app = run.processes("LockApp.exe")[0];
        let of = run.process_of_threads();
        let last = stays
            .iter()
            .rfind(|stay| of[&stay.thread] == lock_app && stay.to < ran);
        near(last.unwrap().to as f64 / SECOND, 35.158, 0.001);

        let cpu = |window, process| run.window_cpu(window, process) as f64 / SECOND;
        near(cpu("going to sleep", None), 17.0, 0.2 * spread);
        near(cpu("going to sleep", Some("LockApp.exe")), 0.0793, 0.0005);
        near(cpu("after resume", None), 172.0, 0.5);
        near(cpu("after resume", Some("wpa.exe")), 31.6, 0.5 * spread);
        assert!(cpu("first 20 s after resume", Some("LockApp.exe")) < 0.001);

        // During the wait, almost all processor time went to threads of rank 0 at priorities 4 to
        // 10, and little to threads above priority 12.
        let (mut low, mut high) = (0.0, 0.0);
        for part in list(&run.window("waiting")["cpu_by_rank_and_priority"]) {
            match number(&part["priority"]) {
                4..=10 if number(&part["rank"]) == 0 => low += seconds(&part["cpu_ns"]),
                13.. => high += seconds(&part["cpu_ns"]),
                _ => {}
            }
        }
        assert!(
            low > 0.98 * 19.49 * 8.0 && high < 0.15 * 19.49,
            "{low} and {high} s"
        );

        let suspended = run.moments("suspend")[0].0;
        near(run.moments("resume")[0].0 - suspended, 16.0, 0.5);
        assert_eq!(run.moments("key").len(), 17);
        assert!(run.moments("freeze").is_empty());
        let focus: Vec<&str> = run.moments("focus").iter().map(|(_, name)| *name).collect();
        let expected = [
            "Idle",
            "csrss.exe",
            "Idle",
            "LogonUI.exe",
            "Idle",
            "LockApp.exe",
            "LogonUI.exe",
            "explorer.exe",
            "UIforETW.exe",
        ];
        assert_eq!(focus, expected);

        // The thread's first run after the wait still ends at rank 2. Afterwards its rank is 0.
        let runs = stays
            .iter()
            .filter(|stay| stay.thread == thread && stay.from >= ran);
        let ranks: Vec<_> = runs.filter_map(|stay| stay.end?.rank).collect();
        assert!(
            ranks.len() > 10 && ranks[0] == 2 && ranks[1..].iter().all(|rank| *rank == 0),
            "{ranks:?}"
        );
    }
}

#[test]
fn no_processor_is_idle_while_a_thread_of_rank_2_waits() {
    let run = run("rank-stall", None);
    let wait = &run.watched("LockApp.exe")["longest_ready_waits"][0];
    let (readied, ran) = (number(&wait["readied_ns"]), number(&wait["ran_ns"]));
    let idle = |stay: &&Stay| stay.thread == 0 && stay.to > readied && stay.from < ran;
    assert_eq!(run.stays().iter().filter(idle).count(), 0);
}

#[test]
fn rank_walk() {
    for run in two_seeds("rank-walk") {
        let photos = run.processes("Microsoft.Photos.exe")[0];
        let of = run.process_of_threads();
        let mut ranks: BTreeMap<u8, u64> = BTreeMap::new();
        for stay in run.stays().iter().filter(|stay| stay.thread != 0) {
            let rank = stay.end.and_then(|end| end.rank).unwrap_or(0);
            if of[&stay.thread] == photos {
                *ranks.entry(rank).or_default() += 1;
            } else {
                assert_eq!(rank, 0, "{stay:?}");
            }
        }
        // A run that continues at the trace's end has no rank, so the code above counted it as rank 0.
        ranks.remove(&0);
        assert!(ranks.keys().copied().eq(2..=19), "{ranks:?}");
    }
}

/// Compares the median duration of `Sleep(1)` with the expected milliseconds, in the truth and in the trace.
/// In the trace, a sleep begins when the measuring thread is switched out to wait, and ends when it is
/// switched in again.
#[test]
fn timers() {
    for (name, milliseconds) in [
        ("timer-own", "1.496"),
        ("timer-foreign", "15.5"),
        ("timer-global", "1.496"),
        ("timer-occluded", "15.62"),
    ] {
        for run in two_seeds(name) {
            let measured = &run.truth["measured"][0];
            assert_eq!(measured["name"], "Sleep(1)");
            let digits = milliseconds.split('.').nth(1).unwrap().len();
            let median = number(&measured["median_ns"]) as f64 / 1e6;
            assert_eq!(format!("{median:.digits$}"), milliseconds, "{name}");

            let thread = number(&run.watched("MeasureSleep.exe")["thread_id"]) as u32;
            let stays = run.stays();
            let own: Vec<_> = stays.iter().filter(|stay| stay.thread == thread).collect();
            let mut sleeps: Vec<i64> = (own.windows(2).skip(2))
                .filter(|pair| pair[0].end.is_some_and(|end| end.state == WAITING))
                .map(|pair| pair[1].from - pair[0].to)
                .collect();
            sleeps.sort_unstable();
            let median = sleeps[sleeps.len() / 2] as f64 / 1e6;
            assert_eq!(format!("{median:.digits$}"), milliseconds, "{name}");

            let power = run.manifest_events("331c3b3a-2005-44c2-ac5e-77220c37d6b4");
            assert!(!power.is_empty(), "{name}: no timer requests");
        }
    }
}

/// Compares quanta for values of `Win32PrioritySeparation` with the turns that ended because the quantum
/// ended. PC-Tuning's table has 93.75 and 31.25 ms for 0x26 (which has the same meaning as 2), 93.75 ms for
/// 0x28 and 62.5 ms for 0x14. A unit is a third of 15.625 ms.
#[test]
fn foreground_boost() {
    for (name, game, others) in [
        ("foreground-boost", 18, 6),
        ("foreground-boost-0x28", 18, 18),
        ("foreground-boost-0x14", 12, 12),
    ] {
        for run in two_seeds(name) {
            let expected = |process: &str| if process == "game.exe" { game } else { others };
            for process in list(&run.truth["quantum"]["processes"]) {
                let name = process["name"].as_str().unwrap();
                assert_eq!(number(&process["units"]), expected(name), "{name}");
            }
            let stays = run.stays();
            for name in ["game.exe", "csrss.exe", "System", "audiodg.exe"] {
                assert_turns(&run, &stays, name, expected(name));
            }
        }
    }
}

/// Checks that a turn of a busy thread lasts for its quantum, and then until the end of the clock tick.
fn assert_turns(run: &Run, stays: &[Stay], process: &str, units: i64) {
    const TICK: i64 = 15_625_000;
    let ids: Vec<u32> = run.processes(process);
    let of = run.process_of_threads();
    let busy: Vec<_> = (stays.iter())
        .filter(|stay| ids.contains(&of[&stay.thread]))
        .filter_map(|stay| Some((stay, stay.end?)))
        .filter(|(_, end)| end.reason == QUANTUM_END && end.state == READY)
        .collect();
    assert!(busy.len() > 40, "{process}: {} quantum ends", busy.len());
    // The remaining quantum is logged in units of 1024 cycles. The processors run at 3 GHz, and a
    // clock tick (1/64 s) has 3 quantum units.
    let fresh = units * (3_000_000_000 / 64 / 3) / 1024;
    let quantum = units * TICK / 3;
    let mut turns = 0;
    for (stay, end) in busy {
        let left = i64::from(end.remaining_quantum.unwrap());
        assert!((left - fresh).abs() <= 1, "{process}: {left} of {fresh}");
        // A turn may be shorter than the quantum, because threads of higher priority may have run in between.
        turns += i32::from((quantum..=quantum + TICK + 10_000).contains(&(stay.to - stay.from)));
        assert!(
            stay.to - stay.from <= quantum + TICK + 10_000,
            "{process}: {stay:?}"
        );
        assert!(
            stay.to % TICK <= 50_000,
            "{process}: {stay:?} does not end at a clock tick"
        );
    }
    assert!(turns > 30, "{process}: {turns} whole turns");
}

#[test]
fn busy_wait_resume() {
    for run in two_seeds("busy-wait-resume") {
        let mut functions: BTreeMap<u64, u64> = BTreeMap::new();
        for samples in &run.tables.samples {
            for row in 0..samples.len() {
                if samples.thread_id[row] != 0 {
                    *functions.entry(samples.address[row]).or_default() += 1;
                }
            }
        }
        let top = functions.iter().max_by_key(|(_, count)| **count).unwrap();
        let name = run.kernel_function(*top.0);
        assert_eq!(
            name.as_deref(),
            Some("ntoskrnl.exe!KeStallExecutionProcessor")
        );
        let thread = run.thread("power up i8042prt.sys");
        let busy: i64 = (run.stays().iter())
            .filter(|stay| stay.thread == thread)
            .map(|stay| stay.to - stay.from)
            .sum();
        near(busy as f64 / SECOND, 0.7, 0.002);
        assert_eq!(run.moments("resume").len(), 1);
    }
}

#[test]
fn stack_paged_out() {
    for run in two_seeds("stack-paged-out") {
        let (ready, held) = longest_wait(&run, "mail.exe");
        near(ready, 0.31, 0.08);
        assert!(held["stack_paged_out"] > 0.99, "{held:?}");

        let thread = number(&run.watched("mail.exe")["thread_id"]) as u32;
        let mut flagged = Vec::new();
        for rows in &run.tables.ready_threads {
            let rows_of = 0..rows.len();
            flagged.extend(
                rows_of
                    .filter(|row| rows.kernel_stack_not_resident.get(*row).unwrap())
                    .map(|row| (rows.thread_id[row], rows.time_ns[row])),
            );
        }
        let wait = &run.watched("mail.exe")["longest_ready_waits"][0];
        assert_eq!(flagged, [(thread, number(&wait["readied_ns"]))]);
        // The disk read for which the thread waits ends just before the thread runs.
        let ran = number(&wait["ran_ns"]);
        let ends = run.tables.disk_io.iter().flat_map(|io| &io.time_ns);
        assert!(ends.clone().any(|end| (ran - 100_000..ran).contains(end)));
    }
}

#[test]
fn frozen() {
    for run in two_seeds("frozen") {
        let calculator = run.watched("Calculator.exe");
        let wait = &calculator["longest_waits"][0];
        assert_eq!(wait["reason"], "Suspended");
        near(seconds(&wait["waited_ns"]), 4.0, 0.001);
        let (ready, _) = longest_wait(&run, "Calculator.exe");
        assert!(ready < 0.001);
        for what in ["freeze", "thaw"] {
            assert_eq!(run.moments(what)[0].1, "Calculator.exe");
        }
        // In the trace, the frozen thread has a run of duration 0. This run ends with wait reason 5 (suspended).
        let thread = number(&calculator["thread_id"]) as u32;
        let stays = run.stays();
        let suspended = stays
            .iter()
            .filter(|stay| stay.thread == thread && stay.end.is_some_and(|end| end.reason == 5));
        let times: Vec<(i64, i64)> = suspended.map(|stay| (stay.from, stay.to)).collect();
        assert_eq!(times.len(), 1);
        assert_eq!(times[0].1, number(&wait["from_ns"]));
        assert_eq!(times[0].0, times[0].1);
        let events = run.manifest_events("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
        assert_eq!(
            events,
            BTreeMap::from([(11, 1), (12, 1)]),
            "freeze and thaw"
        );
    }
}

#[test]
fn affinity_pinned() {
    for run in two_seeds("affinity-pinned") {
        let (ready, held) = longest_wait(&run, "game.exe");
        near(ready, 0.6, 0.005);
        assert!(held["priority"] > 0.99, "{held:?}");
        let wait = &run.watched("game.exe")["longest_ready_waits"][0];
        let (from, to) = (number(&wait["readied_ns"]), number(&wait["ran_ns"]));
        let idle: i64 = (run.stays().iter())
            .filter(|stay| stay.thread == 0)
            .map(|stay| (stay.to.min(to) - stay.from.max(from)).max(0))
            .sum();
        assert!(idle > (to - from) * 6, "the others were idle");
    }
}

#[test]
fn priority_starved() {
    for run in two_seeds("priority-starved") {
        let waits = list(&run.watched("archiver.exe")["longest_ready_waits"]);
        for wait in &waits[..3] {
            near(seconds(&wait["ready_ns"]), 4.5, 0.5);
        }
        let (_, held) = longest_wait(&run, "archiver.exe");
        assert!(held["priority"] > 0.99, "{held:?}");
        // The thread's first turn follows from the starvation boost: after a scan, it runs at
        // priority 15 for four clock ticks.
        let thread = number(&run.watched("archiver.exe")["thread_id"]) as u32;
        let stays = run.stays();
        let boosted: Vec<_> = (stays.iter())
            .filter(|stay| stay.thread == thread && stay.priority == 15 && stay.to < 9_000_000_000)
            .collect();
        near(boosted[0].from as f64 / SECOND, 6.0, 0.002);
        let ran: i64 = boosted.iter().map(|stay| stay.to - stay.from).sum();
        near(ran as f64 / SECOND, 4.5 / 64.0, 0.6 / 64.0);
        assert!(number(&run.truth["events_by_kind"]["AntiStarvationBoost"]) >= 2);
    }
}

#[test]
fn lock_convoy() {
    for run in two_seeds("lock-convoy") {
        let wait = &run.watched("catalogue.exe")["longest_waits"][0];
        assert_eq!(wait["reason"], "WrAlertByThreadId");
        near(seconds(&wait["waited_ns"]), 0.52, 0.06);
        let (ready, _) = longest_wait(&run, "catalogue.exe");
        assert!(ready < 0.001);
        let owner = number(&wait["readied_by_thread_id"]) as u32;
        let catalogue = run.processes("catalogue.exe")[0];
        assert_eq!(run.process_of_threads()[&owner], catalogue);
    }
}

#[test]
fn healthy() {
    for run in two_seeds("healthy") {
        for watched in list(&run.truth["watched_threads"]) {
            let longest = &watched["longest_ready_waits"][0];
            assert!(seconds(&longest["ready_ns"]) < 0.01, "{longest}");
            let ranks = watched["ranks_at_switch_out"].as_object().unwrap();
            assert!(ranks.keys().eq(["0"]));
        }
        for routine in list(&run.window("trace")["routines"]) {
            let limit = if routine["kind"] == "isr" {
                25e-6
            } else {
                100e-6
            };
            assert!(seconds(&routine["max_ns"]) < limit, "{routine}");
        }
        assert_eq!(run.trace.damage().events_lost, 0);
    }
}

#[test]
fn clock_trouble() {
    let trouble = run("clock-trouble", None);
    // Returns the number of waits in which a thread ran before it became ready.
    let early = |run: &Run| {
        let stays = run.stays();
        let watched = list(&run.truth["watched_threads"]).iter();
        watched
            .flat_map(|w| run.ready_waits(number(&w["thread_id"]) as u32, &stays))
            .filter(|wait| wait.length() < 0)
            .count()
    };
    assert!(early(&trouble) > 10);
    assert_eq!(early(&run("healthy", None)), 0);
}

#[test]
fn lost_events() {
    let run = run("lost-events", None);
    let lost = number(&run.truth["events_lost"]);
    assert!(lost > 1_000);
    assert_eq!(run.trace.damage().events_lost as i64, lost);
    for rows in &run.tables.context_switches {
        let cpu = rows.cpu[0];
        let inside = rows
            .time_ns
            .iter()
            .filter(|t| (4_000_000_000..5_000_000_000).contains(*t));
        assert_eq!(
            inside.count() == 0,
            [2, 5].contains(&cpu),
            "processor {cpu}"
        );
    }
}
