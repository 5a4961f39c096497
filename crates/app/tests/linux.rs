//! Commands that read recordings of Linux, which perf makes now.
#![cfg(all(target_os = "linux", feature = "sql"))]

mod program;

use program::{json_lines, laglab};
use testdata::perf;

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_process_exec,\
    sched:sched_process_exit,task:task_newtask,task:task_rename";

#[test]
fn sql_and_reports_read_a_recording_and_other_commands_refuse_it() {
    let folder = tempfile::tempdir().unwrap();
    let work = "for i in 1 2 3; do sleep 0.01; /bin/true; done";
    let Some(file) = perf::record(folder.path(), EVENTS, &[], work) else {
        return;
    };
    let file = file.to_str().unwrap();
    let sql = |query: &str| json_lines(&["sql", file, query, "--no-cache", "--format", "jsonl"]);

    // A report prints a warning if switches contradict each other, so standard error is not compared.
    let rows = |report: &str| {
        let output = laglab(&[report, file, "--json"]);
        assert!(output.status.success(), "{report}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };

    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let session = &sql("SELECT system, os_version, processors FROM trace")[0];
    assert_eq!(session["system"], "Linux");
    assert_eq!(session["os_version"], release.trim());

    // The kernel's own words of the recording: perf script counts the same events.
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
    let is_true = |row: &&str| row.contains("\"true\"");
    assert_eq!(processes.lines().filter(is_true).count(), 3, "{processes}");

    for command in ["info", "stats", "explain", "open", "dpcisr", "events"] {
        let output = laglab(&[command, file]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {error}");
        assert!(
            error.contains("recording of Linux") && error.contains("laglab sql"),
            "{error}"
        );
    }
}

#[test]
fn a_recording_is_opened_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, [&b"PERFILE2"[..], &[16], &[0; 7]].concat()).unwrap();
    let file = path.to_str().unwrap();
    for (files, expected) in [
        (&[file, file][..], "opened alone"),
        (&[file], "describes no event"),
    ] {
        let output = laglab(&[&["sql"], files, &["SELECT 1"]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
