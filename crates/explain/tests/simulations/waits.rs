//! Tests with threads that were ready and got no CPU. The causes that kept them from running are compared
//! with the truth files of simulations.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use explain::Scope;
use serde_json::Value;
use simulated::{Simulated, list, number, text};
use tables::Options;

use super::explained::{Explained, open};

/// Explains a whole trace.
fn explained(simulated: &Simulated) -> Value {
    explained_in(simulated, Scope::default())
}

/// Explains a part of a trace.
fn explained_in(simulated: &Simulated, scope: Scope) -> Value {
    Explained::scoped(&simulated.trace, scope).explanation
}

/// Returns the scope of one thread in a time range.
fn of_thread(id: u32, during: Range<i64>) -> Scope {
    Scope {
        threads: vec![id],
        during: Some(during),
        ..Scope::default()
    }
}

/// Returns the findings about waits.
fn waits(explanation: &Value) -> Vec<&Value> {
    let findings = list(explanation, "findings").iter();
    findings
        .filter(|found| found["theory"] == "long-waits")
        .collect()
}

/// Returns the first finding about waits of a process's threads.
fn wait_of<'e>(explanation: &'e Value, process: &str) -> &'e Value {
    let waits = waits(explanation).into_iter();
    let mut of_process = waits.filter(|found| text(&found["sentence"]).contains(process));
    of_process.next().expect("a finding about the process")
}

/// Returns the rows of the first evidence whose title starts with `title`. Each row has its values by column.
fn rows(finding: &Value, title: &str) -> Vec<BTreeMap<String, Value>> {
    let mut evidence = list(finding, "evidence").iter();
    let evidence = evidence.find(|evidence| text(&evidence["title"]).starts_with(title));
    let evidence = evidence.unwrap_or_else(|| panic!("no “{title}” in {finding}"));
    let names: Vec<String> = list(evidence, "columns")
        .iter()
        .map(|c| text(&c["name"]))
        .collect();
    let cells = |row: &Value| row.as_array().unwrap().clone();
    let rows = list(evidence, "rows").iter();
    rows.map(|row| names.iter().cloned().zip(cells(row)).collect())
        .collect()
}

/// Returns the judgement of each theory about a wait.
fn judgements(finding: &Value) -> BTreeMap<String, String> {
    let weighed = list(finding, "weighed").iter();
    weighed
        .map(|verdict| (text(&verdict["theory"]), text(&verdict["judgement"])))
        .collect()
}

/// Returns the theories that explain a wait, in the order in which they were evaluated.
fn explaining(finding: &Value) -> Vec<String> {
    let weighed = list(finding, "weighed").iter();
    let explaining = weighed.filter(|verdict| verdict["judgement"] == "for");
    explaining.map(|verdict| text(&verdict["theory"])).collect()
}

/// Returns the data of a process's watched thread in the truth file.
fn watched<'s>(simulated: &'s Simulated, process: &str) -> &'s Value {
    let mut threads = list(&simulated.truth, "watched_threads").iter();
    threads
        .find(|thread| thread["process"]["name"] == process)
        .unwrap()
}

/// Tolerance in nanoseconds for the moment at which a CPU has woken up and starts a thread. The trace and the
/// model place this moment slightly differently.
const BETWEEN_NS: i64 = 10_000;

/// Asserts that a wait matches the truth file: the causes that kept the thread from running, the start and
/// the end.
fn assert_users_match_the_truth(simulated: &Simulated, finding: &Value, told: &Value) {
    let wait = &rows(finding, "Waits of")[0];
    assert_eq!(wait["ready_from_ns"], told["readied_ns"]);
    assert_eq!(wait["start_ns"], told["ran_ns"]);
    assert_eq!(wait["ready_ns"], told["ready_ns"]);
    assert_eq!(wait["rank"], told["rank"]);
    assert_eq!(wait["priority"], told["priority"]);
    let found: BTreeMap<String, i64> = (rows(finding, "Use of").iter())
        .map(|row| (text(&row["held_by"]), row["cpu_ns"].as_i64().unwrap()))
        .collect();
    let told = told["held_by_cpu_ns"].as_object().unwrap();
    let all: i64 = told.values().map(|ns| ns.as_i64().unwrap()).sum();
    assert_eq!(found.values().sum::<i64>(), all, "{found:?} {told:?}");
    let told = |by: &str| told.get(by).map_or(0, |ns| ns.as_i64().unwrap());
    let found = |by: &str| found.get(by).copied().unwrap_or(0);
    // The kernel's own work in a clock interrupt is not logged. The truth file counts it as time of DPCs, and
    // the trace as time of the interrupted thread.
    let clock = told("dpc") - found("dpc");
    let processors = list(&simulated.truth, "processors").iter();
    let all_clock: i64 = processors.map(|cpu| number(cpu, "clock_ns")).sum();
    assert!((0..=all_clock).contains(&clock), "{clock} of {all_clock}");
    let is_near = |by: &str, ns: i64| (found(by) - told(by)).abs() <= ns;
    for by in ["rank", "priority", "equal_priority", "dispatcher", "idle"] {
        assert!(
            is_near(by, clock + BETWEEN_NS),
            "{by}: {} {}",
            found(by),
            told(by)
        );
    }
    for by in ["isr", "suspended"] {
        assert!(is_near(by, BETWEEN_NS), "{by}: {} {}", found(by), told(by));
    }
}

/// Checks the figures that "What Outranks Thread Priority?" publishes. Also checks that the causes which the
/// article excludes are excluded.
#[test]
fn a_thread_of_rank_2_waits_for_all_of_rank_0() {
    let stall = Simulated::new("rank-stall", &[]);
    let explanation = explained(&stall);
    let wait = wait_of(&explanation, "LockApp.exe");
    assert_eq!(wait["severity"], "problem");
    let sentence = text(&wait["sentence"]);
    assert!(sentence.contains("priority 14, was ready for 19.493 s (30.333 s to 49.827 s)"));
    assert!(sentence.contains("its rank was 2, and threads of rank 0 with priorities 4 to "));
    let told = &watched(&stall, "LockApp.exe")["longest_ready_waits"][0];
    assert_eq!(number(&wait["delay"], "ns"), number(told, "ready_ns"));
    assert_users_match_the_truth(&stall, wait, told);
    assert_eq!(explaining(wait), ["better-rank"]);
    let judgements = judgements(wait);
    for rejected in [
        "higher-priority",
        "equal-priority",
        "dispatcher",
        "interrupted-cpus",
        "affinity",
        "stack-paged-out",
        "machine-suspended",
        "lost-events",
        "late-waker",
    ] {
        assert_eq!(judgements[rejected], "against", "{rejected}");
    }
    // No process was frozen. But no event in the trace shows whether freezes were recorded.
    assert_eq!(judgements["process-frozen"], "not_recorded");
    // The article says "By the system process calling KeSetEvent". The calling thread is the notifier thread,
    // which a DPC had woken.
    let path = rows(wait, "What led to it");
    assert!(text(&path[0]["readied_by"]).starts_with("System"));
    assert_eq!(path[0]["was_ready_ns"], told["ready_ns"]);

    // The time range begins when the previous program got the focus, and ends when LockApp got it. The
    // longest wait in this range must be the same wait.
    let store = open(&stall.trace);
    let between = explain::between_focus(&store, "logonui", "LockApp", Options::default());
    let scope = Scope {
        during: between.unwrap(),
        ..Scope::default()
    };
    assert!(scope.during.is_some());
    let explanation = explained_in(&stall, scope);
    assert_users_match_the_truth(&stall, wait_of(&explanation, "LockApp.exe"), told);
    let moments = list(&stall.truth, "moments").iter();
    let focus: Vec<(i64, String)> = moments
        .filter(|moment| moment["what"] == "focus")
        .map(|moment| (number(moment, "at_ns"), text(&moment["process"]["name"])))
        .collect();
    let to = focus
        .iter()
        .position(|(_, name)| name == "LockApp.exe")
        .unwrap();
    let from = focus[..to]
        .iter()
        .rfind(|(_, name)| name == "LogonUI.exe")
        .unwrap();
    let path = waits(&explanation)
        .into_iter()
        .find(|found| text(&found["sentence"]).starts_with("Critical path"))
        .unwrap();
    assert_eq!(path["during"]["start"], from.0);
    assert_eq!(path["during"]["end"], focus[to].0);
}

#[test]
fn threads_of_higher_priority_starve_one_until_it_is_boosted() {
    let starved = Simulated::new("priority-starved", &[]);
    let thread = watched(&starved, "archiver.exe");
    let id = number(thread, "thread_id") as u32;
    for told in &list(thread, "longest_ready_waits")[..3] {
        let middle = (number(told, "readied_ns") + number(told, "ran_ns")) / 2;
        let explanation = explained_in(&starved, of_thread(id, middle..middle + 1));
        let wait = wait_of(&explanation, "archiver.exe");
        assert_users_match_the_truth(&starved, wait, told);
        assert_eq!(explaining(wait), ["higher-priority"]);
    }
    let explanation = explained(&starved);
    let wait = wait_of(&explanation, "archiver.exe");
    assert_eq!(wait["severity"], "warning", "the idle class is not urgent");
}

#[test]
fn a_thread_that_is_ready_when_the_trace_ends_waits_still() {
    let starved = Simulated::new("priority-starved", &["duration=4s"]);
    let since = number(watched(&starved, "archiver.exe"), "still_ready_since_ns");
    let explanation = explained(&starved);
    let wait = wait_of(&explanation, "archiver.exe");
    assert!(text(&wait["sentence"]).contains("and still when the trace ended"));
    let waiting = rows(wait, "Threads that were still ready when the trace ended");
    assert!(
        waiting.iter().any(|row| row["since_ns"] == since),
        "{waiting:?}"
    );
    assert_eq!(explaining(wait), ["higher-priority"]);
}

/// Changes one switch, so that it starts the thread that is ready until the trace ends. The next switch of this CPU
/// stops another thread, so that the switches contradict each other: the thread probably ran.
#[test]
fn a_thread_that_a_later_switch_started_does_not_wait_to_the_end() {
    const SWITCH: u16 = 0x0524;
    let starved = Simulated::new("priority-starved", &["duration=4s"]);
    let thread = watched(&starved, "archiver.exe");
    let since = number(thread, "still_ready_since_ns");
    let id = number(thread, "thread_id") as u32;
    let trace = etl::open(&[PathBuf::from(&starved.trace)]).unwrap();
    let mut events = trace.events();
    let start_of_payload = loop {
        let event = events
            .next()
            .expect("a switch after the thread became ready");
        if event.hook() == Some(SWITCH) && event.time_ns() > since + 1_000_000 {
            let header = event.record().len() - event.payload().len();
            break event.place().buffer_offset as usize + event.place().offset as usize + header;
        }
    };
    let mut bytes = fs::read(&starved.trace).unwrap();
    bytes[start_of_payload..start_of_payload + 4].copy_from_slice(&id.to_le_bytes());
    fs::write(&starved.trace, bytes).unwrap();
    let explanation = explained(&starved);
    assert_ne!(explanation["survey"]["contradictions"], 0);
    for wait in waits(&explanation) {
        let waiting = list(wait, "evidence").iter();
        let mut cells = waiting.flat_map(|evidence| list(evidence, "rows").iter());
        let is_told = text(&wait["sentence"]).contains("still when the trace ended");
        assert!(
            !is_told || cells.all(|row| row[1] != since),
            "{}",
            wait["sentence"]
        );
    }
}

#[test]
fn a_pinned_thread_waits_for_its_cpu_despite_idle_ones() {
    let pinned = Simulated::new("affinity-pinned", &[]);
    let explanation = explained(&pinned);
    let wait = wait_of(&explanation, "game.exe");
    assert_users_match_the_truth(
        &pinned,
        wait,
        &watched(&pinned, "game.exe")["longest_ready_waits"][0],
    );
    assert_eq!(explaining(wait), ["higher-priority", "affinity"]);
    assert!(text(&wait["sentence"]).contains("it may run only on CPU 3"));
}

#[test]
fn a_thread_without_its_kernel_stack_waits_for_the_disk() {
    let paged = Simulated::new("stack-paged-out", &[]);
    let explanation = explained(&paged);
    let wait = wait_of(&explanation, "mail.exe");
    let told = &watched(&paged, "mail.exe")["longest_ready_waits"][0];
    assert_eq!(explaining(wait), ["stack-paged-out"]);
    // The trace does not show when the stack has been read from disk. But the thread runs as soon as the stack is in
    // memory.
    let stack = told["held_by_cpu_ns"]["stack_paged_out"].as_i64().unwrap() / 8;
    let weighed = list(wait, "weighed").iter();
    let verdict = weighed
        .clone()
        .find(|v| v["theory"] == "stack-paged-out")
        .unwrap();
    let explains = number(verdict, "explains_ns");
    assert_eq!(explains, number(told, "ready_ns"));
    assert!(
        (0..1_000_000).contains(&(explains - stack)),
        "{explains} {stack}"
    );
}

/// Checks that suspension of the machine has a separate finding. The finding about a wait mentions the
/// suspension only if the scope is limited to this wait.
#[test]
fn time_that_the_machine_sleeps_is_not_lost() {
    let resume = Simulated::new("busy-wait-resume", &[]);
    let explanation = explained(&resume);
    for wait in waits(&explanation) {
        assert_eq!(wait["severity"], "information", "{}", wait["sentence"]);
        assert_ne!(explaining(wait), ["machine-suspended"]);
    }
    let findings = list(&explanation, "findings").iter();
    let asleep = findings
        .clone()
        .find(|found| found["theory"] == "suspended");
    let during = &asleep.expect("the machine slept")["during"];
    let middle = (number(during, "start") + number(during, "end")) / 2;
    let scope = Scope {
        processes: vec!["dwm".to_owned()],
        during: Some(middle..middle + 1),
        ..Scope::default()
    };
    let explanation = explained_in(&resume, scope);
    let wait = wait_of(&explanation, "dwm.exe");
    assert_eq!(wait["severity"], "information");
    assert_eq!(explaining(wait), ["machine-suspended"]);
}

/// Tests twenty-four threads at two priorities on eight CPUs. Many waits of background threads must not hide
/// the waits of programs in the foreground.
#[test]
fn a_program_that_waits_often_hides_no_other() {
    let busy = Simulated::of_text(
        "busy",
        r#"
        extends = "healthy"
        title = "More threads than CPUs, at two priorities"
        about = "Two programs that compute for ever."
        duration = "6s"
        [[add.process]]
        name = "batch.exe"
        class = "idle"
        [[add.process.thread]]
        name = "b"
        count = 24
        program = [ { forever = [ { run = "1s", in = ["batch.exe!Loop"] } ] } ]
        [[add.process]]
        name = "burn.exe"
        [[add.process.thread]]
        name = "burn"
        count = 24
        start = "1s"
        program = [ { forever = [ { run = "1s", in = ["burn.exe!Loop"] } ] } ]
        "#,
        &[],
    );
    let explanation = explained(&busy);
    let worst = waits(&explanation)[0];
    assert_eq!(worst["severity"], "problem");
    // All threads that wait for the same cause are in one finding.
    let of_all = rows(worst, "All waits of 100.0 ms or longer");
    let told: Vec<String> = of_all.iter().map(|row| text(&row["process"])).collect();
    for program in ["explorer.exe", "svchost.exe"] {
        let is_it = |told: &String| told.starts_with(program);
        assert!(told.iter().any(is_it), "{program}: {told:?}");
        assert!(text(&worst["sentence"]).contains(program));
    }
    // Threads of lower priority waited for the same program.
    let sentence = text(&worst["sentence"]);
    assert!(sentence.contains("for the same CPU time"), "{sentence}");
    assert!(sentence.contains("batch.exe"), "{sentence}");
}

/// Checks a program with some threads whose ideal CPU is locked. These threads wait for seconds, and the
/// other threads of the program do not.
#[test]
fn a_thread_waits_for_its_locked_ideal_processor() {
    let flood = Simulated::new("dpc-flood-teaming", &[]);
    let explanation = explained(&flood);
    let wait = wait_of(&explanation, "svchost.exe");
    let longest = &rows(wait, "Waits of")[0];
    assert!(longest["ready_ns"].as_i64().unwrap() > 1_000_000_000);
    let weighed = list(wait, "weighed").iter();
    let verdict = weighed
        .clone()
        .find(|v| v["theory"] == "interrupted-cpus")
        .unwrap();
    assert_eq!(verdict["judgement"], "for");
    // On a locked CPU, the interrupts must explain more than 80 % of the wait.
    let explains = number(verdict, "explains_ns");
    assert!(
        explains * 5 > longest["ready_ns"].as_i64().unwrap() * 4,
        "{verdict}"
    );
    let sentence = text(&wait["sentence"]);
    let is_locked = |cpu: &u16| sentence.contains(&format!("its ideal processor, CPU {cpu},"));
    assert!([0, 2, 4, 6].iter().any(is_locked), "{sentence}");
    let findings = list(&explanation, "findings");
    let locked = &findings[0];
    assert_eq!(locked["theory"], "locked-cpus");
    let victims = rows(locked, "Threads that were ready");
    let is_victim = |row: &BTreeMap<String, Value>| row["thread_id"] == longest["thread_id"];
    assert!(victims.iter().any(is_victim), "{victims:?}");
}

/// Tests a thread that waits in the queue of a locked CPU when the trace ends. The scenario locks CPUs 0, 2, 4 and 6
/// with DPCs. The trace of 24 s shows the same cause for this wait.
#[test]
fn an_unfinished_wait_in_the_queue_of_a_locked_cpu_has_this_cause() {
    let flood = Simulated::new("dpc-flood-teaming", &["duration=22500ms"]);
    let scope = Scope {
        threads: vec![232],
        ..Scope::default()
    };
    let explanation = explained_in(&flood, scope);
    let wait = wait_of(&explanation, "svchost.exe");
    let sentence = text(&wait["sentence"]);
    assert!(
        sentence.contains("and still when the trace ended"),
        "{sentence}"
    );
    assert!(
        sentence.contains("its ideal processor, CPU 0,"),
        "{sentence}"
    );
    let explaining = explaining(wait);
    assert!(
        explaining.contains(&"interrupted-cpus".to_owned()),
        "{explaining:?}"
    );
    let doubts = wait["doubts"].to_string();
    assert!(doubts.contains("the run before the wait"), "{doubts}");
}

/// Checks that the known part of a wait is reported if the events before this part are lost.
#[test]
fn a_wait_is_certain_after_lost_events() {
    let stall = Simulated::new("rank-stall", &["duration=50500ms"]);
    let told = &watched(&stall, "LockApp.exe")["longest_ready_waits"][0];
    let (readied, ran) = (number(told, "readied_ns"), number(told, "ran_ns"));
    let mut trace = std::fs::read(&stall.trace).unwrap();
    let size = u32::from_le_bytes(trace[..4].try_into().unwrap()) as usize;
    // Offset of buffers that were written near the start of the wait.
    let from = trace.len() * 2 / 5 / size * size;
    trace[from..from + 20 * size].fill(0);
    std::fs::write(&stall.trace, trace).unwrap();
    let explanation = explained(&stall);
    let wait = wait_of(&explanation, "LockApp.exe");
    assert_eq!(wait["severity"], "problem", "{wait:#}");
    let lost = number(&wait["delay"], "ns");
    assert!((1_000_000_000..=ran - readied).contains(&lost), "{lost}");
    let during = &wait["during"];
    assert_eq!(number(during, "end"), ran);
    assert_eq!(number(during, "end") - number(during, "start"), lost);
    assert_eq!(explaining(wait), ["better-rank"]);
}

/// Checks that a lock is not blamed for the time in which the thread that holds the lock gets no CPU.
#[test]
fn locks_are_not_blamed_for_a_busy_machine() {
    let busy = Simulated::of_text(
        "busy",
        r#"
        extends = "lock-convoy"
        title = "A convoy on a busy machine"
        about = "Sixteen threads compute at the same time."
        [[add.process]]
        name = "burn.exe"
        [[add.process.thread]]
        name = "burn"
        count = 16
        start = "4s"
        program = [ { forever = [ { run = "1s", in = ["burn.exe!Loop"] } ] } ]
        "#,
        &[],
    );
    let explanation = explained(&busy);
    let mut findings = list(&explanation, "findings").iter();
    let convoy = findings
        .find(|found| found["theory"] == "lock-convoy")
        .unwrap();
    let waited = &rows(convoy, "Waits by thread")[0];
    let parts = &rows(convoy, "Time of the threads that it waited for")[0];
    let starved = parts["no_cpu_ns"].as_i64().unwrap();
    assert!(starved > 0);
    let lost = number(&convoy["delay"], "ns");
    assert_eq!(lost + starved, waited["waited_ns"].as_i64().unwrap());
    assert!(text(&convoy["sentence"]).contains("burn.exe"));
    // The same scenario without other threads must have about the same loss.
    let alone = Simulated::new("lock-convoy", &[]);
    let explanation = explained(&alone);
    let mut findings = list(&explanation, "findings").iter();
    let convoy = findings
        .find(|found| found["theory"] == "lock-convoy")
        .unwrap();
    let of_lock = number(&convoy["delay"], "ns");
    assert!((lost - of_lock).abs() < of_lock / 5, "{lost} {of_lock}");
}

/// Checks that the thread of the window waits for a lock that other threads hand on, not for a CPU.
#[test]
fn the_critical_path_follows_a_lock_from_thread_to_thread() {
    let convoy = Simulated::new("lock-convoy", &[]);
    let window = watched(&convoy, "catalogue.exe");
    let told = list(window, "longest_waits")
        .iter()
        .find(|wait| !wait["readied_by_thread_id"].is_null())
        .unwrap();
    let (from, to) = (number(told, "from_ns"), number(told, "to_ns"));
    let id = number(window, "thread_id") as u32;
    let explanation = explained_in(&convoy, of_thread(id, from..to));
    let path = waits(&explanation)
        .into_iter()
        .find(|found| text(&found["sentence"]).starts_with("Critical path"))
        .unwrap();
    let steps = rows(path, "The path");
    let at = |row: &BTreeMap<String, Value>, column: &str| row[column].as_i64().unwrap();
    assert_eq!(at(&steps[0], "to_ns"), to);
    assert_eq!(steps[0]["thread_id"], told["readied_by_thread_id"]);
    for pair in steps.windows(2) {
        assert_eq!(at(&pair[0], "from_ns"), at(&pair[1], "to_ns"));
    }
    let totals = rows(path, "Time by thread");
    let parts = ["waited_ns", "was_ready_ns", "ran_ns"];
    let sum: i64 = totals
        .iter()
        .flat_map(|row| parts.map(|part| at(row, part)))
        .sum();
    assert_eq!(sum, to - from, "the path has no gaps");
    // Twenty threads get the lock before the thread of the window gets it.
    assert!(totals.len() >= 10, "{totals:?}");
}

/// Tests a wait that ends after the time range of the scope. The path must still follow the thread that ends
/// this wait.
#[test]
fn the_critical_path_follows_a_wait_that_is_not_over() {
    let convoy = Simulated::new("lock-convoy", &[]);
    let window = watched(&convoy, "catalogue.exe");
    let told = list(window, "longest_waits")
        .iter()
        .find(|wait| !wait["readied_by_thread_id"].is_null())
        .unwrap();
    let (from, to) = (number(told, "from_ns"), number(told, "to_ns"));
    let id = number(window, "thread_id") as u32;
    let before = to - 1_000;
    let explanation = explained_in(&convoy, of_thread(id, from..before));
    let path = waits(&explanation)
        .into_iter()
        .find(|found| text(&found["sentence"]).starts_with("Critical path"))
        .unwrap();
    let sentence = text(&path["sentence"]);
    let whose = format!("Critical path of thread {id} of catalogue.exe");
    assert!(sentence.starts_with(&whose), "{sentence}");
    let steps = rows(path, "The path");
    assert_eq!(steps[0]["to_ns"], before);
    assert_eq!(steps[0]["thread_id"], told["readied_by_thread_id"]);
}

#[test]
fn lost_events_make_no_lost_time() {
    let lost = Simulated::new("lost-events", &[]);
    for wait in waits(&explained(&lost)) {
        assert_eq!(wait["severity"], "information", "{}", wait["sentence"]);
    }
}

#[test]
fn without_waits_nothing_is_found() {
    for scenario in ["healthy", "frozen", "rank-walk", "clock-trouble"] {
        let calm = Simulated::new(scenario, &[]);
        let explanation = explained(&calm);
        for wait in waits(&explanation) {
            assert_eq!(
                wait["severity"], "information",
                "{scenario}: {}",
                wait["sentence"]
            );
        }
    }
}

/// Checks the wait of a starved thread. Windows raises the thread's priority at the end of the wait. The
/// raised priority must not be reported as the priority during the wait, even if no event records the earlier
/// priority.
#[test]
fn a_starved_thread_without_recorded_priority_is_starved() {
    for kernel in [
        r#"["LOADER","CSWITCH","DISPATCHER","PRIORITY","ANTI_STARVATION","DPC","INTERRUPT"]"#,
        r#"["LOADER","CSWITCH","DISPATCHER","DPC","INTERRUPT"]"#,
    ] {
        let kernel = format!("record.kernel={kernel}");
        let starved = Simulated::new("priority-starved", &["duration=7s", &kernel]);
        let explanation = explained(&starved);
        for wait in waits(&explanation) {
            assert!(
                !explaining(wait).contains(&"dispatcher".to_owned()),
                "{wait:#}"
            );
        }
        let worst = waits(&explanation)[0];
        assert_eq!(explaining(worst), ["higher-priority"], "{worst:#}");
    }
}

/// Tests a thread that never ran. No event records the priority of such a thread.
#[test]
fn a_wait_of_unknown_priority_blames_no_priority() {
    let busy = Simulated::of_text(
        "unknown",
        r#"
        extends = "healthy"
        title = "A thread that never runs"
        about = "Two programs that compute for ever."
        duration = "4s"
        [[add.process]]
        name = "late.exe"
        class = "idle"
        [[add.process.thread]]
        name = "late"
        start = "2s"
        program = [ { forever = [ { run = "1s", in = ["late.exe!Loop"] } ] } ]
        [[add.process]]
        name = "burn.exe"
        [[add.process.thread]]
        name = "burn"
        count = 24
        program = [ { forever = [ { run = "1s", in = ["burn.exe!Loop"] } ] } ]
        "#,
        &[],
    );
    let explanation = explained(&busy);
    let wait = wait_of(&explanation, "late.exe");
    let weighed = list(wait, "weighed").iter();
    for theory in ["higher-priority", "equal-priority"] {
        let mut weighed = weighed.clone();
        let verdict = weighed.find(|v| v["theory"] == theory).unwrap();
        assert_eq!(verdict["judgement"], "not_recorded", "{verdict:#}");
    }
    assert!(explaining(wait).is_empty(), "{wait:#}");
}

/// Tests a wait that mostly consists of a suspend gap. The gap is no delay, so the cause of the remaining part of the
/// wait must be reported.
#[test]
fn a_wait_that_sleep_made_long_has_the_cause_of_its_rest() {
    let slept = Simulated::of_text(
        "slept",
        r#"
        extends = "healthy"
        title = "A machine that sleeps while a program waits"
        about = "A program above normal has all CPUs."
        duration = "14s"
        [[add.process]]
        name = "victim.exe"
        [[add.process.thread]]
        name = "victim"
        program = [ { forever = [ { run = "1s", in = ["victim.exe!Loop"] } ] } ]
        [[add.process]]
        name = "burn.exe"
        class = "above-normal"
        [[add.process.thread]]
        name = "burn"
        count = 24
        start = "2s"
        program = [ { run = "1s", in = ["burn.exe!Loop"] }, { sleep = "60s" } ]
        [[at]]
        time = "3s"
        suspend = "6s"
        "#,
        &[],
    );
    let explanation = explained(&slept);
    let wait = waits(&explanation)[0];
    assert_ne!(wait["severity"], "information", "{wait:#}");
    let explains = explaining(wait);
    assert!(explains.contains(&"higher-priority".to_owned()), "{wait:#}");
    let sentence = text(&wait["sentence"]);
    assert!(
        sentence.contains("threads of higher priority used 9") && sentence.contains("burn.exe"),
        "{sentence}"
    );
    assert!(
        sentence.contains("for which the machine was suspended"),
        "{sentence}"
    );
    // The program of priority class above-normal needs 24 s of CPU time, which is 3 s on eight CPUs. The
    // other programs make this time less than 10 % longer.
    let lost_ns = number(&wait["delay"], "ns");
    assert!(
        (2_000_000_000..=3_300_000_000).contains(&lost_ns),
        "{wait:#}"
    );
}

/// Tests a program whose threads wait for different causes. Each cause has its own finding and its own cost.
#[test]
fn waits_with_different_causes_have_different_findings() {
    let mixed = Simulated::of_text(
        "mixed",
        r#"
        extends = "healthy"
        title = "Two causes at two times"
        about = "First, a pinned thread waits for its CPU. Then all threads wait for all CPUs."
        duration = "9s"
        [[add.process]]
        name = "mixed.exe"
        [[add.process.thread]]
        name = "pinned"
        affinity = [1]
        program = [ { forever = [ { run = "1s", in = ["mixed.exe!Loop"] } ] } ]
        [[add.process.thread]]
        name = "wide"
        start = "4s"
        program = [ { forever = [ { run = "1s", in = ["mixed.exe!Loop"] } ] } ]
        [[add.process]]
        name = "hog.exe"
        class = "high"
        [[add.process.thread]]
        name = "hog"
        affinity = [1]
        start = "1s"
        program = [ { run = "2s", in = ["hog.exe!Loop"] }, { sleep = "60s" } ]
        [[add.process]]
        name = "burn.exe"
        class = "high"
        [[add.process.thread]]
        name = "burn"
        count = 24
        start = "5s"
        program = [ { run = "900ms", in = ["burn.exe!Loop"] }, { sleep = "60s" } ]
        "#,
        &[],
    );
    let explanation = explained(&mixed);
    let of_it: Vec<&Value> = waits(&explanation)
        .into_iter()
        .filter(|wait| text(&wait["sentence"]).contains(" of mixed.exe"))
        .collect();
    let with = |theory: &str| {
        let mut of_it = of_it.iter();
        let wait = of_it.find(|wait| explaining(wait).contains(&theory.to_owned()));
        wait.unwrap_or_else(|| panic!("no {theory}: {of_it:#?}"))
    };
    let pinned = number(&with("affinity")["delay"], "ns");
    assert!(
        (1_900_000_000..=2_300_000_000).contains(&pinned),
        "{pinned}"
    );
    assert!(text(&with("affinity")["sentence"]).contains("hog.exe"));
    // A window that waited about as long is named first.
    let outranked = waits(&explanation)
        .into_iter()
        .find(|wait| text(&wait["sentence"]).contains("burn.exe"))
        .unwrap_or_else(|| panic!("no burn.exe"));
    assert!(text(&outranked["sentence"]).contains("mixed.exe"));
    assert!(!explaining(outranked).contains(&"affinity".to_owned()));
    // 24 threads need 900 ms each. On eight CPUs, this takes 2.7 s.
    let lost = number(&outranked["delay"], "ns");
    assert!((1_500_000_000..=3_300_000_000).contains(&lost), "{lost}");
}
