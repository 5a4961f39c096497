//! Tests of the commands that read recordings of Linux. Each test makes its recording with perf.
#![cfg(all(target_os = "linux", feature = "sql"))]

use crate::explained;
use crate::program;

use std::collections::BTreeMap;

use explained::Explained;
use program::{json, json_lines, laglab, text};
use serde_json::Value;
use testdata::perf;

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_process_exec,\
    sched:sched_process_exit,task:task_newtask,task:task_rename";

#[test]
fn sql_and_reports_read_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let work = "for i in 1 2 3; do sleep 0.01; /bin/true; done";
    let Some(file) = perf::record(folder.path(), EVENTS, &[], work) else {
        return;
    };
    let file = file.to_str().unwrap();
    let sql = |query: &str| json_lines(&["sql", file, query, "--no-cache", "--format", "jsonl"]);

    // A report warns on standard error if switches contradict each other, so standard error is not compared.
    let rows = |report: &str| {
        let output = laglab(&[report, file, "--json"]);
        assert!(output.status.success(), "{report}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };

    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let session = &sql("SELECT system, os_version, processors FROM trace")[0];
    assert_eq!(session["system"], "Linux");
    assert_eq!(session["os_version"], release.trim());

    // perf script reads the same recording, so it must find the same number of events of each kind.
    let printed = perf::run(&["script", "-F", "event", "-i", file], folder.path());
    let count = |name: &str| {
        printed
            .lines()
            .filter(|line| line.trim().trim_end_matches(':') == name)
            .count()
    };
    for kind in sql("SELECT provider, event, count FROM event_kinds") {
        let text = |key: &str| kind[key].as_str().unwrap().to_owned();
        let name = format!("{}:{}", text("provider"), text("event"));
        assert_eq!(kind["count"], count(&name), "{name}");
    }
    let switches = &sql("SELECT count(*) AS n FROM context_switches")[0]["n"];
    assert_eq!(*switches, count("sched:sched_switch"));
    assert_eq!(rows("cswitch").lines().count(), count("sched:sched_switch"));
    let readied = count("sched:sched_waking") + count("sched:sched_wakeup_new");
    assert_eq!(rows("readythread").lines().count(), readied);
    let processes = rows("process");
    // The recording has all processes of the machine. The three processes that this test starts have the same
    // parent.
    let mut children: BTreeMap<u64, usize> = BTreeMap::new();
    for row in processes.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        if row["process_name"] == "true" {
            *children
                .entry(row["parent_id"].as_u64().unwrap())
                .or_default() += 1;
        }
    }
    assert!(children.values().any(|count| *count == 3), "{processes}");

    let info = json(&["info", file, "--json"]);
    assert_eq!(info["system"]["linux"], release.trim());
    let online = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let online = online.lines().filter(|line| line.starts_with("processor"));
    assert_eq!(info["cpus"]["stated"], online.count());
    let bytes = std::fs::metadata(file).unwrap().len();
    assert_eq!(info["trace"]["size_bytes"], bytes);
    let shown = laglab(&["info", file]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.contains(&format!("Linux {}", release.trim())),
        "{shown}"
    );
    assert!(
        !shown.contains("Windows") && !shown.contains("wpr"),
        "{shown}"
    );

    let stats = json(&["stats", file, "--json"]);
    assert_eq!(stats["total_events"], printed.lines().count());
    for provider in stats["providers"].as_array().unwrap() {
        for event in provider["events"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let name = format!("{}:{}", text(&provider["name"]), text(&event["name"]));
            assert_eq!(event["count"], count(&name), "{name}");
        }
    }
}

/// Script for perf's interpreter of Python, which prints all fields of all tracepoints in time order.
const FIELDS: &str = r#"
import json
def value(value):
    if isinstance(value, (bytes, bytearray)): value = bytes(value).decode(errors="replace")
    # Bytes after the end of a text have no meaning.
    return value.split("\0")[0] if isinstance(value, str) else value
def trace_unhandled(name, context, fields, sample):
    own = {key: value(it) for key, it in fields.items() if not key.startswith("common_")}
    time = fields["common_s"] * 10**9 + fields["common_ns"]
    print(json.dumps([name.replace("__", ":", 1), time, fields["common_cpu"], fields["common_pid"], own]))
"#;

#[test]
fn events_have_the_fields_that_perf_prints() {
    let folder = tempfile::tempdir().unwrap();
    let events = format!(
        "{EVENTS},irq:irq_handler_entry,irq:softirq_entry,power:cpu_idle,exceptions:page_fault_user,\
         block:block_bio_queue,timer:hrtimer_expire_entry,signal:signal_generate,syscalls:sys_enter_openat"
    );
    let work = "for i in 1 2 3; do sleep 0.01; /bin/true; done; dd if=/dev/zero of=file bs=64k count=4 conv=fsync";
    let Some(file) = perf::record(folder.path(), &events, &[], work) else {
        return;
    };
    let file = file.to_str().unwrap();
    std::fs::write(folder.path().join("fields.py"), FIELDS).unwrap();
    let printed = perf::run(&["script", "-s", "fields.py", "-i", file], folder.path());
    let printed = printed.lines().filter(|line| line.starts_with('['));
    let mut expected: Vec<(u64, u64, Value)> = printed
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let number = |at: usize| line[at].as_u64().unwrap();
            (number(1), number(2), line.clone())
        })
        .collect();
    let found = json_lines(&["events", file, "--json"]);
    assert_eq!(found.len(), expected.len());
    let key = |event: &Value| {
        (
            event["time_ns"].as_u64().unwrap(),
            event["cpu"].as_u64().unwrap(),
        )
    };
    assert!(found.windows(2).all(|two| key(&two[0]).0 <= key(&two[1]).0));
    let mut found: Vec<&Value> = found.iter().collect();
    found.sort_by_key(|event| key(event));
    expected.sort_by_key(|(time_ns, cpu, _)| (*time_ns, *cpu));
    // Times of laglab count from the first record, which may be earlier than the first event. `origin` is the time of
    // this record.
    let origin = expected[0].0 - key(found[0]).0;
    let mut names = BTreeMap::<String, usize>::new();
    for (event, (time_ns, cpu, line)) in found.into_iter().zip(&expected) {
        let text = |key: &str| event[key].as_str().unwrap();
        let name = format!("{}:{}", text("provider"), text("event"));
        assert_eq!(line[0], name, "{event}");
        assert_eq!(key(event), (time_ns - origin, *cpu), "{event}");
        assert_eq!(event["tid"], line[3], "{event}");
        let fields = event["fields"].as_object().unwrap();
        let of_perf = line[4].as_object().unwrap();
        assert_eq!(fields.len(), of_perf.len(), "{event} {line}");
        for (field, value) in of_perf {
            let ours = match fields[field].as_str() {
                Some(text) if value.is_number() => {
                    let digits = text.strip_prefix("0x").expect("a hexadecimal number");
                    Value::from(u64::from_str_radix(digits, 16).unwrap())
                }
                _ => fields[field].clone(),
            };
            assert_eq!(&ours, value, "{field} of {event}");
        }
        *names.entry(name).or_default() += 1;
    }
    for name in [
        "sched:sched_switch",
        "exceptions:page_fault_user",
        "syscalls:sys_enter_openat",
    ] {
        assert!(names[name] > 10, "{names:?}");
    }
    check_conditions_and_formats(file, names["sched:sched_process_exec"]);
}

/// Checks the events that conditions select, and the formats other than JSON. The recording has `execs` events
/// `sched_process_exec`.
fn check_conditions_and_formats(file: &str, execs: usize) {
    for pattern in ["sched_process_exec", "sched:sched_process_*", "*_exec"] {
        let lines = json_lines(&["events", file, "--event", pattern, "--json"]);
        let execs_found = lines
            .iter()
            .filter(|event| event["event"] == "sched_process_exec");
        assert_eq!(execs_found.count(), execs, "{pattern}");
    }
    let of_true = json_lines(&[
        "events",
        file,
        "--process",
        "true",
        "--event",
        "page_fault_user",
        "--json",
    ]);
    assert!(!of_true.is_empty() && of_true.iter().all(|event| event["process"] == "true"));
    let shown = text(&[
        "events",
        file,
        "--event",
        "sched_process_exec",
        "--limit",
        "1",
    ]);
    assert!(
        shown.contains(" sched:sched_process_exec filename="),
        "{shown}"
    );
    let rows = text(&[
        "events",
        file,
        "--event",
        "sched_process_exec",
        "--format",
        "csv",
    ]);
    assert_eq!(rows.lines().count(), execs + 1);
}

/// Script for perf's interpreter of Python, which prints the call chain of each sample that has one.
const CHAINS: &str = r#"
import json
def process_event(event):
    chain = event.get("callchain")
    if chain: print(json.dumps([hex(frame["ip"]) for frame in chain]))
"#;

#[test]
fn call_chains_are_those_that_perf_prints() {
    let folder = tempfile::tempdir().unwrap();
    let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let options = ["-g", "-F", "499"];
    let Some(file) = perf::record(folder.path(), "cpu-clock", &options, work) else {
        return;
    };
    let file = file.to_str().unwrap();
    std::fs::write(folder.path().join("chains.py"), CHAINS).unwrap();
    let printed = perf::run(&["script", "-s", "chains.py", "-i", file], folder.path());
    let printed = printed.lines().filter(|line| line.starts_with('['));
    let mut expected: Vec<Vec<String>> = printed
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events = json_lines(&["events", file, "--stacks", "--json"]);
    let stack = |event: &Value| -> Option<Vec<String>> {
        let stack = event["stack"].as_array()?;
        Some(
            stack
                .iter()
                .map(|it| it.as_str().unwrap().to_owned())
                .collect(),
        )
    };
    let mut found: Vec<Vec<String>> = events.iter().filter_map(stack).collect();
    let longest = |chains: &[Vec<String>]| chains.iter().map(Vec::len).max();
    assert!(
        found.len() > 20 && longest(&found) > Some(3),
        "{}",
        found.len()
    );
    // perf leaves out the few samples that it cannot assign to a mapped file of a thread.
    expected.retain(|chain| match found.iter().position(|it| it == chain) {
        Some(at) => {
            found.swap_remove(at);
            false
        }
        None => true,
    });
    assert_eq!(expected, Vec::<Vec<String>>::new());
    assert!(found.len() <= 5, "{found:?}");

    // Each sample is a row of the table, with its stack and module.
    let clock = |event: &&Value| event["event"].as_str().unwrap().starts_with("cpu-clock");
    let samples = events.iter().filter(clock).count();
    let sql = |query: &str| json_lines(&["sql", file, query, "--no-cache", "--format", "jsonl"]);
    let sums =
        &sql("SELECT count(*) AS n, count(stack_id) AS stacks, sum(weight_ns) AS ns FROM samples")
            [0];
    assert_eq!(sums["n"], samples);
    assert!(
        sums["stacks"].as_u64().unwrap() * 10 > samples as u64 * 9,
        "{sums}"
    );
    // perf records 499 samples per second.
    let mean_ns = sums["ns"].as_u64().unwrap() / samples as u64;
    assert!(
        mean_ns.abs_diff(1_000_000_000 / 499) < 10_000,
        "{mean_ns} ns"
    );
    let modules = sql(
        "SELECT DISTINCT module(image_row) AS module FROM samples WHERE process(process_row) LIKE 'sh (%'",
    );
    let mut modules = modules.iter().filter_map(|row| row["module"].as_str());
    assert!(modules.any(|module| module.ends_with("sh")));
    let profile = json_lines(&["profile", file, "--json"]);
    assert!(profile.iter().any(|row| row["process_name"] == "sh"));
    for to in ["profile.json", "trace.pftrace"] {
        let to = folder.path().join(to);
        text(&["export", file, "-o", to.to_str().unwrap()]);
        assert!(std::fs::metadata(to).unwrap().len() > 1000);
    }
}

#[test]
fn samples_of_one_program_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let options = ["-g", "-F", "499"];
    let Some(file) = perf::record_program(folder.path(), "cpu-clock", &options, work) else {
        return;
    };
    let file = file.to_str().unwrap();
    // perf prints one line per sample if the fields are on one line.
    let printed = perf::run(&["script", "-F", "tid,time", "-i", file], folder.path());
    let lines = printed.lines().filter(|line| line.contains(':')).count();
    let sql = |query: &str| json_lines(&["sql", file, query, "--no-cache", "--format", "jsonl"]);
    let counts = &sql("SELECT count(*) AS n, count(cpu) AS cpus FROM samples")[0];
    assert_eq!((&counts["n"], &counts["cpus"]), (&lines.into(), &0.into()));
    assert!(lines > 20, "{lines}");
    let profile = json_lines(&["profile", file, "--json"]);
    assert!(profile.iter().any(|row| row["process_name"] == "sh"));
    let stack = text(&["stack", file]);
    assert!(stack.contains("sh"), "{stack}");
    let info = json(&["info", file, "--json"]);
    let times = ["first_event_ns", "last_event_ns"].map(|key| info["trace"][key].as_i64().unwrap());
    assert!(times[1] - times[0] > 10_000_000, "{times:?}");
    let to = folder.path().join("profile.json");
    text(&["export", file, "-o", to.to_str().unwrap()]);
    assert!(std::fs::metadata(to).unwrap().len() > 1000);
}

#[test]
fn every_command_reads_a_recording_or_refuses_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = perf::record(folder.path(), EVENTS, &[], "sleep 0.01") else {
        return;
    };
    let file = file.to_str().unwrap();
    let output = |arguments: &[&str]| {
        let output = laglab(arguments);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    for (arguments, code, expected) in [
        (&["cswitch", file][..], 0, ""),
        (&["cpudisk", file], 0, "block:block_rq_issue"),
        (&["dpcisr", file], 1, "perf record -a -e irq:"),
        (&["diskio", file], 1, "block:block_rq_issue"),
        (&["hardfault", file], 1, "major-faults"),
        (&["profile", file], 1, "cpu-clock"),
        (&["focuschange", file], 1, "such recordings have no"),
        (&["marks", file], 1, "such recordings have no"),
        (
            &["events", file, "--process", "chrmoe"],
            0,
            "the trace contains no process chrmoe; ",
        ),
        (
            &["trim", file, "-o", "x.data", "--from", "1000"],
            2,
            "which lasts from 0 s to ",
        ),
        (
            &["trim", file, "-o", "x.data", "--cpu", "0"],
            2,
            "give --from and --to",
        ),
        (&["prove", "diff", file, "--", file], 2, "laglab sql"),
    ] {
        let (status, error) = output(arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(
            !error.contains("wpr") && !error.contains("xperf"),
            "{error}"
        );
    }
    let page = folder.path().join("report.html");
    text(&["report", file, "-o", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(page.contains(&format!("Linux {}", release.trim())));
    let (_, body) = page.rsplit_once("</style>").unwrap();
    for word in ["wpr -start", "xperf -on", "WPR keyword", "Windows"] {
        assert!(!body.contains(word), "{word}");
    }
}

#[test]
fn advice_about_missing_events_names_perf() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = perf::record(folder.path(), "sched:sched_process_exec", &[], "/bin/true")
    else {
        return;
    };
    let output = laglab(&["cswitch", file.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("perf record -a -e sched:sched_switch"),
        "{error}"
    );
    assert!(
        !error.contains("wpr") && !error.contains("xperf"),
        "{error}"
    );
}

#[test]
fn a_recording_is_opened_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, [&b"PERFILE2"[..], &[16], &[0; 7]].concat()).unwrap();
    let file = path.to_str().unwrap();
    for (files, expected) in [
        (
            &[file, file][..],
            "cannot be opened together with other files",
        ),
        (&[file], "describes no event"),
    ] {
        let output = laglab(&[&["sql"], files, &["SELECT 1"]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

/// Shell commands that stop a process, and then start a real-time thread that keeps other threads off a CPU.
const FAULTS: &str = "nice -n -20 sh -c 'while :; do :; done' & sleep 0.3; kill -STOP $!; sleep 0.3; kill -CONT $!; \
    sleep 0.3; kill $!; timeout 0.6 chrt -f 50 taskset -c 0 sh -c 'while :; do :; done'; \
    grep -sH Cpus_allowed_list: /proc/[0-9]*/task/[0-9]*/status > perf.data.proc; \
    grep -E ' (sched_cfs_period_timer|sched_rt_period_timer|dl_task_timer)$' /proc/kallsyms >> perf.data.proc";

#[test]
fn the_queries_of_an_explanation_return_the_shown_rows() {
    let folder = tempfile::tempdir().unwrap();
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,irq:softirq_entry,irq:softirq_exit,\
        irq:irq_handler_entry,irq:irq_handler_exit,timer:hrtimer_expire_entry";
    let Some(file) = perf::record(folder.path(), events, &[], FAULTS) else {
        return;
    };
    let explained = Explained::new(file.to_str().unwrap(), &[]);
    assert!(
        !explained.by_theory("stopped").is_empty(),
        "{:#}",
        explained.report
    );
    explained.check_queries(&[]);
}
