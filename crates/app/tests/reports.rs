//! Tests of the reports in the style of xperf. Reports of simulated traces are compared with the truth file,
//! reports of a real trace with its events. The formats that scripts read are checked, too.

use crate::program;

use std::collections::BTreeMap;

use serde_json::Value;

use program::rows;
use simulated::{Simulated, list, number, sums, text};

#[test]
fn routines_match_the_truth() {
    let flood = Simulated::new("dpc-flood-teaming", &["duration=3s"]);
    let routines = list(&flood.truth["windows"][0], "routines");
    // The truth file has names of functions, and three different kinds of DPCs. The report has modules and
    // two kinds of routines.
    let kind = |row: &Value| match text(&row["kind"]).as_str() {
        "isr" => "isr",
        _ => "dpc",
    };
    let module = |row: &Value| {
        let function = text(&row["routine"]);
        function.split_once('!').unwrap().0.to_owned()
    };

    let mut used: BTreeMap<(String, String, i64), i64> = BTreeMap::new();
    let mut classes: BTreeMap<(String, String, i64), i64> = BTreeMap::new();
    for routine in routines {
        let (kind, module) = (kind(routine).to_owned(), module(routine));
        if !routine["cpu"].is_null() {
            let key = (kind, module, number(routine, "cpu"));
            *used.entry(key).or_default() += number(routine, "exclusive_ns");
            continue;
        }
        for (power, count) in list(routine, "histogram_log2_us").iter().enumerate() {
            let key = (kind.clone(), module.clone(), 1000 << power);
            *classes.entry(key).or_default() += count.as_i64().unwrap();
        }
    }
    classes.retain(|_, count| *count > 0);
    assert!(
        used.len() > 8 && classes.len() > 8,
        "the flood is too small"
    );

    let module_of = |row: &Value| (text(&row["kind"]), text(&row["module"]));
    let mut reported = sums(
        &rows(&["dpcisr", "--summary"], &flood.trace),
        "exclusive_ns",
        |row| {
            let (kind, module) = module_of(row);
            (kind, module, number(row, "cpu"))
        },
    );
    reported.retain(|_, ns| *ns > 0);
    assert_eq!(reported, used);
    let histogram = rows(&["dpcisr", "--histogram"], &flood.trace);
    let reported = sums(&histogram, "count", |row| {
        let (kind, module) = module_of(row);
        (kind, module, number(row, "up_to_ns"))
    });
    assert_eq!(reported, classes);

    // The sum over all intervals is the same as the whole time. Rounding may cause an error of one nanosecond
    // per interval.
    let intervals = rows(&["dpcisr", "--interval", "70"], &flood.trace);
    let by_cpu = |row: &Value| (text(&row["kind"]), number(row, "cpu"));
    let over_time = sums(&intervals, "exclusive_ns", by_cpu);
    let mut whole: BTreeMap<(String, i64), i64> = BTreeMap::new();
    for ((kind, _, cpu), ns) in &used {
        *whole.entry((kind.clone(), *cpu)).or_default() += ns;
    }
    for (key, ns) in &whole {
        assert!((over_time[key] - ns).abs() < 100, "{key:?}: {ns}");
    }
    assert_eq!(intervals.len(), 2 * 24 * 43, "3 s on 24 CPUs");

    // The sum over all functions of a module is the time of the module.
    let functions = rows(
        &["dpcisr", "--summary", "--by", "function", "--dpc"],
        &flood.trace,
    );
    let of_module = sums(&functions, "exclusive_ns", |row| {
        text(&row["module"])
            .split(['+', '!'])
            .next()
            .unwrap()
            .to_owned()
    });
    let expected: i64 = whole
        .iter()
        .filter(|((k, _), _)| k == "dpc")
        .map(|(_, ns)| ns)
        .sum();
    assert_eq!(of_module.values().sum::<i64>(), expected);
    assert!(of_module["ndis.sys"] > 0);
}

#[test]
fn dpcisr_has_the_format_that_scripts_expect() {
    let flood = Simulated::new("dpc-flood-teaming", &["duration=1s"]);
    let page = program::text(&["dpcisr", &flood.trace]);
    let routines = list(&flood.truth["windows"][0], "routines");
    let of = |routine: &str| {
        let all = routines
            .iter()
            .find(|r| r["routine"] == routine && r["cpu"].is_null());
        all.unwrap().clone()
    };
    let dpcs = of("ndis.sys!ndisInterruptDpc");
    let total = number(&dpcs, "count");
    assert!(
        page.contains(&format!("\nTotal = {total} for module ndis.sys\n")),
        "{page}"
    );
    let count = dpcs["histogram_log2_us"][8].as_i64().unwrap();
    let share = count as f64 * 100.0 / total as f64;
    let line = format!(
        "Elapsed Time, >      128 usecs AND <=      256 usecs, {count:>6}, or {share:>6.2}%"
    );
    assert!(page.contains(&line), "{line}");
    let (dpc, isr) = page.split_once("Interrupt Info").unwrap();
    assert!(dpc.contains("DPC Info") && dpc.contains("CPU Usage from 0 us to 1000000 us:"));
    assert!(dpc.contains("     CPU 0 Usage,     CPU 1 Usage,"));
    assert!(dpc.contains("Usage From 0 ms to 1000 ms, Summing In 1 second intervals. Intervals=1"));
    assert!(isr.contains("Distribution of number of 2000 ms intervals w.r.t. DPC/ISR usage:"));
}

#[test]
fn the_long_wait_of_a_ready_thread_is_one_line() {
    let stall = Simulated::new("rank-stall", &[]);
    let waits = list(&stall.truth, "watched_threads")
        .iter()
        .flat_map(|thread| {
            let waits = list(thread, "longest_ready_waits").iter();
            waits.map(move |wait| (number(thread, "thread_id"), wait))
        });
    let (thread, wait) = waits
        .filter(|(_, wait)| wait["rank"] == 2)
        .max_by_key(|(_, wait)| number(wait, "ready_ns"))
        .unwrap();
    assert_eq!(number(wait, "ready_ns") / 1_000_000, 19_493);

    let id = thread.to_string();
    let switches = rows(&["cswitch", "--thread", &id], &stall.trace);
    let row = switches
        .iter()
        .max_by_key(|row| row["ready_ns"].as_i64())
        .unwrap();
    for (reported, truth) in [
        ("readied_ns", "readied_ns"),
        ("start_ns", "ran_ns"),
        ("ready_ns", "ready_ns"),
        ("rank_out", "rank"),
        ("priority", "priority"),
    ] {
        assert_eq!(row[reported], wait[truth], "{reported}");
    }
    assert_eq!(row["process_name"], "LockApp.exe");
    assert!(!row["old_state"].is_null());

    // The thread became ready when another thread ended its previous wait. The report of wakes must contain this wake,
    // and the wake must show that other thread.
    let ready = rows(&["readythread", "--thread", &id], &stall.trace);
    let at = |row: &&Value| row["time_ns"] == wait["readied_ns"];
    let readied = ready.iter().find(at).expect("the event is reported");
    assert_eq!(readied["readying_process_id"], row["readying_process_id"]);
    let watched = list(&stall.truth, "watched_threads");
    let watched = watched
        .iter()
        .find(|t| number(t, "thread_id") == thread)
        .unwrap();
    let before = list(watched, "longest_waits").iter();
    let before = before.clone().find(|w| w["to_ns"] == wait["readied_ns"]);
    if let Some(before) = before {
        assert_eq!(readied["waited_ns"], before["waited_ns"]);
        assert_eq!(
            readied["readying_thread_id"],
            before["readied_by_thread_id"]
        );
    }

    let csv = program::text(&["cswitch", "--thread", &id, "--format", "csv", &stall.trace]);
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = columns.iter().position(|name| *name == "ready_ns").unwrap();
    let of_csv: Vec<String> = lines
        .map(|line| line.split(',').nth(column).unwrap().to_owned())
        .collect();
    let of_json: Vec<String> = switches
        .iter()
        .map(|row| {
            row["ready_ns"]
                .as_i64()
                .map_or(String::new(), |ns| ns.to_string())
        })
        .collect();
    assert_eq!(of_csv, of_json);

    let focus = rows(&["focuschange"], &stall.trace);
    assert!(focus.iter().any(|row| row["process_name"] == "LockApp.exe"));
    processes_use_what_they_used(&stall);
}

/// Compares sums by process in the reports with the truth file.
fn processes_use_what_they_used(simulated: &Simulated) {
    let truth = list(&simulated.truth, "processes");
    let processors = list(&simulated.truth, "processors").iter();
    let interrupts: i64 = processors
        .map(|cpu| number(cpu, "dpc_ns") + number(cpu, "isr_ns") + number(cpu, "clock_ns"))
        .sum();
    let by_id = |rows: &[Value], column: &str| sums(rows, column, |row| number(row, "process_id"));
    let switches = rows(&["cswitch", "--by", "process"], &simulated.trace);
    let (used, runs) = (by_id(&switches, "cpu_ns"), by_id(&switches, "runs"));
    let samples = rows(&["profile"], &simulated.trace);
    let samples = by_id(&samples, "samples");
    let listed = rows(&["process"], &simulated.trace);
    let mut checked = 0;
    for process in truth.iter().filter(|p| number(p, "cpu_ns") > 0) {
        let (id, cpu_ns) = (number(process, "id"), number(process, "cpu_ns"));
        // The report counts the time of interrupts as time of the thread that they interrupt. The truth file does
        // not.
        let ran = used[&id];
        assert!(
            cpu_ns <= ran && ran <= cpu_ns + interrupts,
            "{process} {ran}"
        );
        assert_eq!(runs[&id], number(process, "switches_in"), "{process}");
        assert_eq!(
            samples.get(&id).copied().unwrap_or(0),
            number(process, "samples"),
            "{process}"
        );
        let row = listed.iter().find(|row| number(row, "process_id") == id);
        assert_eq!(row.unwrap()["process_name"], process["name"]);
        checked += 1;
    }
    assert!(checked > 5);
    assert_eq!(samples[&0], number(&simulated.truth, "idle_samples"));

    let disks = list(&simulated.truth, "disks");
    let total = |key: &str| disks.iter().map(|disk| number(disk, key)).sum::<i64>();
    let requests = rows(&["diskio"], &simulated.trace);
    let of = |column: &str| sums(&requests, column, |row| text(&row["kind"]));
    assert_eq!(of("count")["read"], total("reads"));
    assert_eq!(of("count")["write"], total("writes"));
    assert_eq!(of("size_bytes")["read"], total("read_bytes"));
    assert_eq!(of("size_bytes")["write"], total("written_bytes"));
    let over_time = rows(&["cpudisk", "--interval", "1s"], &simulated.trace);
    let sum = |column: &str| over_time.iter().map(|row| number(row, column)).sum::<i64>();
    assert_eq!(sum("read_bytes"), total("read_bytes"));
    assert_eq!(sum("writes"), total("writes"));
    let cpu = by_id(&over_time, "cpu_ns");
    assert_eq!(cpu, used, "intervals hold the same time as the whole");
}

#[test]
fn options_change_rows() {
    let healthy = Simulated::new("healthy", &["duration=1s"]);
    let stack = ["stack", "--event", "cswitch", "--by", "function"];
    let rest = ["--butterfly", "0", "--symbols", &healthy.symbols];
    let stack = [&stack[..], &rest, &["--json", &healthy.trace]].concat();
    let output = program::laglab(&stack);
    assert!(output.status.success());
    let rows_of_stack = String::from_utf8(output.stdout).unwrap();
    for part in ["ntoskrnl.exe!", "\"caller\"", "\"callee\""] {
        assert!(rows_of_stack.contains(part), "{part}: {rows_of_stack}");
    }
    let profile = rows(&["profile", "--detail"], &healthy.trace);
    assert!(profile.iter().any(|row| row["module"].is_string()));
}

#[test]
fn ranges_limit_reports() {
    let flood = Simulated::new("dpc-flood-teaming", &["duration=2s"]);
    let parts = [["0", "700ms"], ["700ms", "1.2s"], ["1.2", "2s"]];
    let count = |rows: &[Value]| rows.iter().map(|row| number(row, "count")).sum::<i64>();
    let all = count(&rows(&["dpcisr", "--histogram"], &flood.trace));
    let of_parts: i64 = parts
        .iter()
        .map(|[from, to]| {
            count(&rows(
                &["dpcisr", "--histogram", "--from", from, "--to", to],
                &flood.trace,
            ))
        })
        .sum();
    assert_eq!(of_parts, all);
    let middle = rows(
        &["cswitch", "--from", "700ms", "--to", "1.2s"],
        &flood.trace,
    );
    assert!(!middle.is_empty());
    let inside = |row: &Value| (700_000_000..1_200_000_000).contains(&number(row, "start_ns"));
    assert!(middle.iter().all(inside));
}

#[test]
fn missing_events_are_reported() {
    let trace = "perfview__net.4.5.2.x64.etl";
    let outcome = |args: &[&str]| {
        let output = program::laglab(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), error)
    };
    let (code, error) = outcome(&["dpcisr", trace]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("+DPC+INTERRUPT") && error.contains("DPC and Interrupt"),
        "{error}"
    );
    assert_eq!(
        outcome(&["profile", trace, "--from", "2s", "--to", "1s"]).0,
        Some(2)
    );
    assert_eq!(outcome(&["profile", trace, "--from", "soon"]).0, Some(2));
}

/// Compares reports with the output of the generic decoder, which reads fields by their layouts. Reports use
/// other code: typed readers, trackers and joins.
#[test]
fn sums_match_the_events_of_a_real_trace() {
    let trace = "perfview__net.4.5.2.x64.etl";
    let events = |event: &str| rows(&["events", "--event", event], trace);
    let field = |event: &Value, name: &str| number(&event["fields"], name);

    let mut bytes = BTreeMap::new();
    for kind in ["Read", "Write"] {
        let events = events(&format!("DiskIo/{kind}"));
        let sum: i64 = events.iter().map(|e| field(e, "TransferSize")).sum();
        bytes.insert(kind.to_lowercase(), sum);
    }
    let requests = rows(&["diskio"], trace);
    let mut reported = sums(&requests, "size_bytes", |row| text(&row["kind"]));
    reported.remove("flush");
    assert_eq!(reported, bytes);
    let files = rows(&["diskio", "--summary"], trace);
    assert_eq!(
        files
            .iter()
            .map(|row| number(row, "size_bytes"))
            .sum::<i64>(),
        bytes.values().sum::<i64>()
    );
    let faults = events("PageFault/HardFault");
    let reported = rows(&["hardfault"], trace);
    assert_eq!(
        reported
            .iter()
            .map(|row| number(row, "size_bytes"))
            .sum::<i64>(),
        faults.iter().map(|e| field(e, "ByteCount")).sum::<i64>()
    );

    let samples = events("PerfInfo/SampledProfile");
    let profile = rows(&["profile"], trace);
    let of = |name: &str| {
        let row = profile
            .iter()
            .find(|row| row["process_name"] == name)
            .unwrap();
        (number(row, "process_id"), number(row, "samples"))
    };
    let idle = samples.iter().filter(|e| field(e, "ThreadId") == 0).count();
    assert_eq!(of("Idle"), (0, idle as i64));
    let (id, counted) = of("Test.x64.exe");
    let threads: Vec<i64> = [
        "Thread/Start",
        "Thread/DCStart",
        "Thread/DCEnd",
        "Thread/End",
    ]
    .iter()
    .flat_map(|event| events(event))
    .filter(|thread| field(thread, "ProcessId") == id)
    .map(|thread| field(&thread, "TThreadId"))
    .collect();
    let expected = samples
        .iter()
        .filter(|e| threads.contains(&field(e, "ThreadId")))
        .count();
    assert_eq!(counted, expected as i64);
}
