//! Tests with supplied scenarios. The cause of each scenario must come first, and its numbers must match the
//! truth file of the simulation.

use std::collections::BTreeMap;

use explain::Scope;
use simulated::{Simulated, column, list, number, sum, text};

use super::explained::{Explained, during};

/// Checks the quantum units of the program with the focus, and of all other programs.
#[test]
fn quanta_are_those_of_the_setting() {
    for (scenario, with_focus, without, setting) in [
        ("foreground-boost", 18, 6, "0x2, 0x26"),
        ("foreground-boost-0x14", 12, 12, "0x14"),
        ("foreground-boost-0x28", 18, 18, "0x28, 0x29, 0x2A"),
    ] {
        let desktop = Simulated::new(scenario, &["duration=5s"]);
        let explained = Explained::new(&desktop.trace);
        let findings = explained.by_theory("quantum");
        let (names, units) = (column(&findings, "process"), column(&findings, "units"));
        // The first row of each process has the most frequent length of its turns.
        let mut seen = BTreeMap::new();
        for (name, units) in names.iter().zip(&units) {
            seen.entry(name.as_str().unwrap()).or_insert(units);
        }
        let mut compared = 0;
        for process in list(&desktop.truth["quantum"], "processes") {
            let (name, id) = (process["name"].as_str().unwrap(), &process["id"]);
            let truth = number(process, "units");
            assert_eq!(
                truth,
                if name == "game.exe" {
                    with_focus
                } else {
                    without
                }
            );
            if let Some(units) = seen.get(format!("{name} ({id})").as_str()) {
                assert_eq!(**units, truth, "{scenario}: {process}");
                compared += 1;
            }
        }
        assert!(compared >= 4, "{scenario}: {compared}");
        let sentence = findings[0]["sentence"].as_str().unwrap();
        assert!(sentence.contains(setting), "{sentence}");
    }
}

#[test]
fn saturation_names_processes_and_time() {
    let starved = Simulated::new("priority-starved", &[]);
    let explained = Explained::new(&starved.trace);
    let findings = explained.by_theory("saturation");
    assert_eq!(findings.len(), 1);
    // The scenario says: "A renderer keeps all eight processors busy at priority 8 from 1 s to 17 s."
    let during = &findings[0]["during"];
    let (start, end) = (number(during, "start"), number(during, "end"));
    assert!((start - 1_000_000_000).abs() < 200_000_000, "{start}");
    assert!((end - 17_000_000_000).abs() < 200_000_000, "{end}");
    assert!(
        column(&findings, "process")[0]
            .as_str()
            .unwrap()
            .starts_with("blender.exe")
    );
    assert_eq!(column(&findings, "priority")[0], 8);
}

#[test]
fn cpu_time_by_process_matches_the_truth() {
    let stall = Simulated::new("rank-stall", &[]);
    let explained = Explained::new(&stall.trace);
    let findings = explained.by_theory("cpu-use");
    let names = column(&findings, "process");
    let times = column(&findings, "cpu_ns");
    assert!(names.len() > 5);
    for (name, ns) in names.iter().zip(&times) {
        let name = name.as_str().unwrap();
        let of_truth = list(&stall.truth, "processes").iter().find(|process| {
            name == format!("{} ({})", process["name"].as_str().unwrap(), process["id"])
        });
        // The time of the explanation and the time of the truth file both exclude interrupts.
        let true_ns = number(of_truth.unwrap(), "cpu_ns");
        let off = (ns.as_i64().unwrap() - true_ns).abs();
        assert!(off <= true_ns / 1_000, "{name}: {ns}, not {true_ns}");
    }
    // In the scenario, the machine sleeps for about 16 s.
    let asleep = explained.by_theory("suspended");
    let silent = sum(&column(&asleep, "silent_ns"));
    assert!((silent - 15_550_000_000).abs() < 500_000_000, "{silent}");
}

/// Checks that time of DPCs is not counted as CPU time of the threads that they interrupt. Threads of the
/// process System have ten times more DPC time than CPU time.
#[test]
fn interrupts_are_not_counted_as_time_of_threads() {
    let signing = Simulated::new("smb-signing-on", &[]);
    let explained = Explained::new(&signing.trace);
    let findings = explained.by_theory("cpu-use");
    let mut processes = list(&signing.truth, "processes").iter();
    let system = processes
        .find(|process| process["name"] == "System")
        .unwrap();
    let true_ns = number(system, "cpu_ns");
    let (names, times) = (column(&findings, "process"), column(&findings, "cpu_ns"));
    let place = names.iter().position(|name| name == "System (4)").unwrap();
    let off = (times[place].as_i64().unwrap() - true_ns).abs();
    assert!(off <= true_ns / 1_000, "{}, not {true_ns}", times[place]);
    let interrupted = column(&findings, "interrupts_ns")[place].as_i64().unwrap();
    assert!(interrupted > 10 * true_ns, "{interrupted}");
    // The total is the time of threads, DPCs and ISRs. The kernel's own work in clock interrupts is included only
    // where it interrupted threads, so the total has no exact value in the truth file.
    let total = column(&findings, "busy_ns")[0].as_i64().unwrap();
    let of_cpus = |name| -> i64 {
        let cpus = list(&signing.truth, "processors").iter();
        cpus.map(|cpu| number(cpu, name)).sum()
    };
    let threads = of_cpus("thread_ns");
    let most = threads + of_cpus("dpc_ns") + of_cpus("isr_ns") + of_cpus("clock_ns");
    assert!(
        (threads..=most).contains(&total),
        "{threads} {total} {most}"
    );
    let sentence = findings[0]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("The CPUs were busy for "),
        "{sentence}"
    );
    assert!(
        sentence.contains(" of that with DPCs and ISRs. "),
        "{sentence}"
    );
}

/// Checks that a question about a time range is answered with figures of this range.
#[test]
fn time_ranges_have_their_own_figures() {
    let signing = Simulated::new("smb-signing-on", &[]);
    let moved = |scope: Scope| {
        let explained = Explained::scoped(&signing.trace, scope);
        let (of, used) = (
            explained.by_theory("smb-security"),
            explained.by_theory("cpu-use"),
        );
        let bytes = column(&of, "size_bytes")[0].as_i64().unwrap();
        (bytes, column(&used, "busy_ns")[0].as_i64().unwrap())
    };
    let (all, all_busy_ns) = moved(Scope::default());
    let (some, some_busy_ns) = moved(during(2_000, 4_000));
    // The file is copied at constant speed for ten seconds, so two seconds have a fifth of the data and a
    // fifth of the busy time.
    assert!((some * 5 - all).abs() < all / 20, "{some} of {all}");
    let off = (some_busy_ns * 5 - all_busy_ns).abs();
    assert!(off < all_busy_ns / 20, "{some_busy_ns} of {all_busy_ns}");
}

/// Checks that time in which the machine is suspended is neither counted as a wait for a lock nor as time of
/// a freeze.
#[test]
fn suspension_counts_neither_for_locks_nor_for_freezes() {
    for (scenario, at, theory) in [
        ("lock-convoy", "5.2s", "lock-convoy"),
        ("frozen", "5s", "frozen"),
    ] {
        let loss = |simulated: &Simulated| {
            let explained = Explained::new(&simulated.trace);
            number(&explained.by_theory(theory)[0]["delay"], "ns")
        };
        let asleep = format!(
            "extends = \"{scenario}\"\ntitle = \"Asleep\"\n[[at]]\ntime = \"{at}\"\nsuspend = \"2s\"\n"
        );
        let awake = loss(&Simulated::new(scenario, &[]));
        let asleep = loss(&Simulated::of_text(scenario, &asleep, &[]));
        // In `frozen`, the freeze has the same length with and without suspension. Two seconds of it are suspension,
        // which is no loss. In `lock-convoy`, the threads still have the same work after the suspension, so the loss is
        // the same.
        let expected = match scenario {
            "frozen" => awake - 2_000_000_000,
            _ => awake,
        };
        let off = (asleep - expected).abs();
        assert!(off < 50_000_000, "{scenario}: {asleep}, not {expected}");
    }
}

/// Name of each built-in scenario, and the theory that must come first; `None` if all findings must be
/// information.
const CAUSES: &[(&str, Option<&str>)] = &[
    ("affinity-pinned", Some("long-waits")),
    ("busy-wait-resume", Some("busy-waiting")),
    ("clock-trouble", Some("clocks")),
    ("dpc-flood-no-teaming", Some("locked-cpus")),
    ("dpc-flood-teaming", Some("locked-cpus")),
    ("dscp-marked", None),
    ("frozen", Some("frozen")),
    ("healthy", None),
    ("lock-convoy", Some("lock-convoy")),
    ("lost-events", Some("capture")),
    ("priority-starved", Some("long-waits")),
    ("rank-stall", Some("long-waits")),
    ("rank-walk", None),
    ("rss-300kbps", None),
    ("smb-signing-off", None),
    ("smb-signing-on", Some("smb-security")),
    ("stack-paged-out", Some("long-waits")),
    ("timer-global", None),
    ("timer-occluded", Some("timers")),
    ("timer-own", None),
    ("usb-amdxhc31", None),
    ("usb-wdf01000", None),
];

#[test]
fn causes_come_first() {
    for (n, (scenario, cause)) in (7..).zip(CAUSES) {
        let simulated = Simulated::new(scenario, &[&format!("seed={n}")]);
        let explained = Explained::with_symbols(&simulated, Scope::default());
        let first = &explained.findings()[0];
        match cause {
            Some(cause) => {
                assert_eq!(first["theory"], *cause, "{scenario}: {first:#}");
                assert_ne!(first["severity"], "information", "{scenario}: {first:#}");
            }
            None => assert_eq!(explained.complaints(), [""; 0], "{scenario}"),
        }
    }
}

/// Checks that the thread of the window lost more time to the lock than other threads. The lost time must be
/// the time in the truth file.
#[test]
fn a_lock_that_is_handed_from_thread_to_thread_is_found() {
    let convoy = Simulated::new("lock-convoy", &[]);
    let explained = Explained::new(&convoy.trace);
    let findings = explained.by_theory("lock-convoy");
    assert_eq!(findings.len(), 1);
    let window = list(&convoy.truth, "watched_threads").iter();
    let window = window
        .clone()
        .find(|thread| thread["process"]["name"] == "catalogue.exe")
        .unwrap();
    let waits = list(window, "longest_waits").iter();
    let for_lock = waits.filter(|wait| wait["reason"] == "WrAlertByThreadId");
    // The theory counts only waits of 20 ms or longer, because shorter waits for a lock are ordinary.
    let long = for_lock.map(|wait| number(wait, "waited_ns"));
    let true_ns: i64 = long.filter(|ns| *ns >= 20_000_000).sum();
    assert!(true_ns > 900_000_000, "{true_ns}");
    let (threads, waited) = (
        column(&findings, "thread_id"),
        column(&findings, "waited_ns"),
    );
    assert_eq!(threads[0], window["thread_id"]);
    assert_eq!(waited[0], true_ns);
    assert_eq!(number(&findings[0]["delay"], "ns"), true_ns);
    // The thread of the window shares the lock with twenty other threads.
    assert_eq!(column(&findings, "threads")[0], 21);
}

/// Checks that both causes of one wait are found, and that their shares of the wait are the shares in the
/// truth file.
#[test]
fn two_causes_at_once_are_both_found_and_apportioned() {
    let scenario = r#"
        extends = "rank-stall"
        title = "A flood of DPCs on a machine with a rank stall"
        [[add.device]]
        name = "flood"
        every = "250us"
        cpus = [1]
        isr = { in = ["ndis.sys!ndisMiniportMessageIsr"], cost = "2us" }
        dpc = { in = ["IDSvia64.sys!ProcessPacket", "ndis.sys!ndisInterruptDpc"], cost = "230us" }
    "#;
    let both = Simulated::of_text("both", scenario, &[]);
    let explained = Explained::new(&both.trace);

    let locked = explained.by_theory("locked-cpus");
    assert_eq!(locked[0]["severity"], "problem");
    let sentence = locked[0]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("CPU 1 "), "{sentence}");

    let stalled = explained.by_theory("long-waits").into_iter().find(|found| {
        let sentence = found["sentence"].as_str().unwrap();
        sentence.contains("LockApp.exe")
    });
    let stalled = stalled.expect("the stall is found too");
    let watched = list(&both.truth, "watched_threads").iter();
    let waits = watched.flat_map(|thread| list(thread, "longest_ready_waits"));
    let told = waits.max_by_key(|wait| number(wait, "ready_ns")).unwrap();
    let held = &told["held_by_cpu_ns"];
    let all: i64 = held
        .as_object()
        .unwrap()
        .values()
        .map(|ns| ns.as_i64().unwrap())
        .sum();
    let share = |ns: i64, of: i64| ns as f64 / of as f64;
    for (theory, held_by) in [("better-rank", "rank"), ("interrupted-cpus", "dpc")] {
        let verdict = list(stalled, "weighed").iter();
        let verdict = verdict.clone().find(|verdict| verdict["theory"] == theory);
        let verdict = verdict.unwrap();
        assert_eq!(verdict["judgement"], "for", "{verdict}");
        let found = share(number(verdict, "explains_ns"), number(told, "ready_ns"));
        let of_truth = share(number(held, held_by), all);
        assert!(
            (found - of_truth).abs() < 0.01,
            "{theory}: {found}, not {of_truth}"
        );
    }
}

/// Checks the verdict if the decisive events are missing: it must be *not recorded*, and it must say what to
/// record.
#[test]
fn missing_events_are_not_judged() {
    let sampled = r#"record.kernel=["PROC_THREAD","LOADER","PROFILE"]"#;
    for (scenario, theories) in [
        ("rank-stall", ["long-waits", "outranked", "saturation"]),
        (
            "dpc-flood-teaming",
            ["long-interrupts", "receive-spread", "short-waits"],
        ),
        (
            "lock-convoy",
            ["lock-convoy", "disks", "network-throughput"],
        ),
    ] {
        let less = Simulated::new(scenario, &[sampled]);
        let explained = Explained::new(&less.trace);
        for theory in theories {
            assert_eq!(
                explained.judgement(theory),
                "not_recorded",
                "{scenario}: {theory}"
            );
            assert!(
                explained.by_theory(theory).is_empty(),
                "{scenario}: {theory}"
            );
        }
        let verdicts = list(&explained.explanation, "theories").iter();
        for verdict in verdicts.filter(|verdict| verdict["judgement"] == "not_recorded") {
            assert!(
                verdict["record"]
                    .as_str()
                    .is_some_and(|record| !record.is_empty())
            );
        }
    }
}

/// Checks that findings within the scope come first, and that all others are marked as out of scope.
#[test]
fn findings_in_scope_come_first() {
    let stall = Simulated::new("rank-stall", &[]);
    let whole = Explained::new(&stall.trace);
    for theory in ["suspended", "outranked", "cpu-use"] {
        assert_eq!(whole.judgement(theory), "for", "{theory}");
    }
    assert!(
        whole
            .findings()
            .iter()
            .all(|found| found["off_topic"].is_null())
    );

    let (from, to) = (11_000_000_000, 26_000_000_000);
    let part = Explained::scoped(&stall.trace, during(11_000, 26_000));
    let is_off_topic: Vec<bool> = part
        .findings()
        .iter()
        .map(|f| f["off_topic"] == true)
        .collect();
    assert!(is_off_topic.is_sorted(), "{is_off_topic:?}");
    for found in part
        .findings()
        .iter()
        .filter(|found| found["off_topic"] != true)
    {
        let during = &found["during"];
        let meets = number(during, "start") < to && from < number(during, "end");
        assert!(meets, "{found}");
    }
}

#[test]
fn freezes_are_found_with_their_cost() {
    let frozen = Simulated::new("frozen", &[]);
    let moments = list(&frozen.truth, "moments").iter();
    let at = |what: &str| {
        let mut of = moments.clone().filter(|moment| moment["what"] == what);
        number(of.next().unwrap(), "at_ns")
    };
    let (froze, thawed) = (at("freeze"), at("thaw"));
    let thread = &list(&frozen.truth, "watched_threads");
    let watched = thread
        .iter()
        .find(|thread| thread["process"].to_string().contains("Calculator.exe"));
    let suspended = list(watched.unwrap(), "longest_waits").iter();
    let suspended = suspended.filter(|wait| wait["reason"].to_string().contains("Suspended"));
    let lost = suspended
        .map(|wait| number(wait, "waited_ns"))
        .max()
        .unwrap();

    let explained = Explained::new(&frozen.trace);
    let first = &explained.findings()[0];
    assert_eq!(first["theory"], "frozen");
    assert_eq!(first["severity"], "problem");
    let evidence = &list(first, "evidence")[0]["rows"][0];
    // The service that freezes the program logs an event right before the freeze and right after the thaw.
    for (cell, truth) in [(1, froze), (2, thawed)] {
        let off = evidence[cell].as_i64().unwrap() - truth;
        assert!(off.abs() < 10_000, "{evidence} is {off} ns off");
    }
    let cost = number(&first["delay"], "ns");
    assert!((cost - lost).abs() < 100_000, "{cost}, not {lost}");
}

#[test]
fn lost_events_and_skewed_clocks_are_reported() {
    let lost = Simulated::new("lost-events", &[]);
    let explained = Explained::new(&lost.trace);
    let findings = explained.by_theory("capture");
    let (kinds, counts) = (column(&findings, "kind"), column(&findings, "lost"));
    let place = kinds.iter().position(|kind| kind == "events_lost").unwrap();
    assert_eq!(counts[place], lost.truth["events_lost"]);
    // The CPU time of a run that seems to include the lost second is not counted. So the reported time is at most the
    // true time.
    let truth = list(&lost.truth, "processes").iter();
    let truth: BTreeMap<String, i64> = truth
        .map(|process| {
            let name = format!("{} ({})", text(&process["name"]), number(process, "id"));
            (name, number(process, "cpu_ns"))
        })
        .collect();
    let used = explained.by_theory("cpu-use");
    for (process, ns) in column(&used, "process").iter().zip(column(&used, "cpu_ns")) {
        let (truth, ns) = (truth[process.as_str().unwrap()], ns.as_i64().unwrap());
        // The tolerance is 2 %, because context switches do not separate the time of a thread from the time
        // of interrupts.
        assert!(
            ns as f64 <= truth as f64 * 1.02,
            "{process}: {ns}, not {truth}"
        );
    }

    let clocks = Simulated::new("clock-trouble", &[]);
    let explained = Explained::new(&clocks.trace);
    let findings = explained.by_theory("clocks");
    assert_eq!(findings.len(), 1);
    // In this scenario, the clock of processor 5 is 20 ms ahead of most others.
    let ahead = column(&findings, "ahead_ns");
    let most = (0..ahead.len()).max_by_key(|row| ahead[*row].as_i64());
    assert_eq!(column(&findings, "readying_cpu")[most.unwrap()], 5);
    for ns in ahead {
        assert!(ns.as_i64().unwrap() <= 20_000_000);
    }
}
