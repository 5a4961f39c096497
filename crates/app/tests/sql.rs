//! Tests of `laglab sql`: output, files and errors.
#![cfg(feature = "sql")]

use crate::program;

use std::collections::BTreeMap;
use std::io::Write;
#[cfg(unix)]
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::{json_lines, laglab, text};
use serde_json::json;
use simulated::Simulated;

const TRACE: &str = "filtrace__etw.etl";

/// Returns the number of context switches that an independent reader counted in the trace.
fn switches() -> u64 {
    let truth = testdata::traces()
        .into_iter()
        .find(|(name, _)| name.ends_with(TRACE))
        .expect("the trace has a truth")
        .1;
    let events = truth["kernel_events"].as_array().unwrap().iter();
    let of = events.filter(|e| e["cls"] == "Thread" && e["opcode"] == 36);
    of.map(|e| e["count"].as_u64().unwrap()).sum()
}

#[test]
fn answers_are_printed_in_every_format() {
    let query = "SELECT count(*) AS n, NULL AS nothing, [1, 2] AS list, 'a,b' AS text, \
                 18446744073709551615 AS big FROM context_switches";
    let n = switches();
    let values = |format: &str| text(&["sql", TRACE, query, "--format", format]);
    assert_eq!(
        values("csv"),
        format!("n,nothing,list,text,big\n{n},,\"[1,2]\",\"a,b\",18446744073709551615\n")
    );
    let row = json!({
        "n": n, "nothing": null, "list": [1, 2], "text": "a,b", "big": 18_446_744_073_709_551_615_u64
    });
    assert_eq!(json_lines(&["sql", "--json", TRACE, query]), [row]);
    let table = values("table");
    let mut lines = table.lines();
    let words = |line: Option<&str>| -> Vec<String> {
        let words = line.unwrap_or_default().split_whitespace();
        words.map(str::to_owned).collect()
    };
    assert_eq!(words(lines.next()), ["n", "nothing", "list", "text", "big"]);
    assert_eq!(
        words(lines.next()),
        [
            &n.to_string(),
            "NULL",
            "[1,2]",
            "a,b",
            "18446744073709551615"
        ]
    );
}

#[test]
fn files_contain_the_result() {
    let folder = tempfile::tempdir().unwrap();
    for (name, magic) in [("x.parquet", b"PAR1"), ("x.arrow", b"ARRO")] {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        text(&["sql", TRACE, "SELECT * FROM processes", "-o", path]);
        assert!(std::fs::read(path).unwrap().starts_with(magic), "{name}");
    }
    let path = folder.path().join("none.csv");
    let outcome = laglab(&[
        "sql",
        TRACE,
        "SELECT nothing at all",
        "-o",
        path.to_str().unwrap(),
    ]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(
        !path.exists(),
        "a question without an answer leaves no file"
    );
}

#[test]
fn long_results_are_truncated_with_a_note() {
    let query = "SELECT time_ns FROM context_switches ORDER BY time_ns";
    let short = text(&["sql", TRACE, query]);
    // The output has a line of headings, 200 rows, and a note about the rows that are not shown.
    assert_eq!(short.lines().count(), 202);
    let missing = switches() - 200;
    let said = short.lines().last().unwrap().replace(',', "");
    assert!(said.contains(&format!("{missing} more rows")), "{said}");
    let all = text(&["sql", TRACE, query, "--all"]);
    assert_eq!(all.lines().count() as u64, switches() + 1);
}

#[test]
fn statements_come_from_files_and_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("questions.sql");
    std::fs::write(&file, "SELECT 1 AS one;\n-- and\nSELECT 2 AS two;\n").unwrap();
    let from_file = text(&["sql", TRACE, "-f", file.to_str().unwrap()]);
    assert_eq!(from_file, "  one\n    1\n\n  two\n    2\n");

    let mut child = Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(["sql", TRACE])
        .current_dir(testdata::path("etl"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"SELECT 3 AS three").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "  three\n      3\n"
    );
}

#[test]
fn the_time_range_restricts_events() {
    let count = |more: &[&str]| -> u64 {
        let query = "SELECT count(*) AS n FROM context_switches";
        let arguments = [&["sql", "--json", TRACE, query], more].concat();
        json_lines(&arguments)[0]["n"].as_u64().unwrap()
    };
    let all = count(&[]);
    let (early, late) = (count(&["--to", "500ms"]), count(&["--from", "500ms"]));
    assert_eq!(all, switches());
    assert_eq!(early + late, all);
    assert!(early > 0 && late > 0);
}

#[test]
fn a_count_of_events_that_are_not_recorded_is_noted() {
    let trace = "perfview__net.4.5.2.x64.etl";
    let query = "SELECT count(*) AS n FROM interrupts; SELECT max(cpu) FROM interrupts";
    let output = laglab(&["sql", trace, query]);
    assert!(output.status.success());
    let note = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        note.matches("the trace has no DPCs and ISRs: ").count(),
        1,
        "{note}"
    );
    assert!(note.contains("xperf -on LOADER+DPC+INTERRUPT"), "{note}");
    let output = laglab(&["sql", trace, "SELECT count(*) FROM processes"]);
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_count_of_events_that_a_recording_of_linux_lacks_names_perf() {
    let file = testdata::path("linux/s06_switches_without_waking.data");
    let query = "SELECT count(*) AS n FROM interrupts";
    let output = laglab(&["sql", "--json", file.to_str().unwrap(), query]);
    assert!(output.status.success());
    let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(row, json!({ "n": 0 }));
    let note = String::from_utf8(output.stderr).unwrap();
    let advice = "the recording has no interrupts and softirqs: ";
    assert_eq!(note.matches(advice).count(), 1, "{note}");
    assert!(note.contains("perf record -a -e irq:"), "{note}");
    assert!(!note.contains("wpr") && !note.contains("xperf"), "{note}");
}

#[test]
fn separate_traces_have_a_column() {
    let other = "perfview__net.4.5.x86-win7.etl";
    let query = "SELECT trace, count(*) AS n FROM processes GROUP BY trace ORDER BY trace";
    let rows = json_lines(&["sql", "--json", "--separate", TRACE, other, query]);
    let traces: Vec<_> = rows.iter().map(|row| row["trace"].clone()).collect();
    assert_eq!(traces, [TRACE, other]);
}

#[test]
fn errors_are_printed_only_on_stderr() {
    for (arguments, said) in [
        (
            &["SELECT thread_idd FROM cpu_runs"][..],
            "did you mean `thread_id`?",
        ),
        (&["SELECT * FROM procesess"], "did you mean `processes`?"),
        (&["SELECT 1 FROM ("], "invalid SQL"),
        (
            &["SELECT 1", "--from", "3", "--to", "2"],
            "--from and --to: the start is not before the end",
        ),
        (&["SELECT 1", "--from", "100"], "outside the trace"),
        (&["SELECT 1", "--format", "csv", "--json"], "--json"),
        // A CSV file can have only one line of headings, so it cannot hold two results.
        (
            &["SELECT 1; SELECT 2", "--format", "csv"],
            "cannot write 2 results",
        ),
        (&["SELECT CAST('x' AS BIGINT) FROM processes"], "x"),
        (&["-f", "no-such-file.sql"], "no-such-file.sql"),
        // Only the last argument can be a query, and it is one only after a trace.
        (
            &["SELECT 1", "SELECT 2"],
            "the whole query as the last argument",
        ),
        (&[""], "the whole query as the last argument"),
    ] {
        let output = laglab(&[&["sql", TRACE], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// Returns the number of bytes of all files below a folder.
#[cfg(unix)]
fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| {
        if entry.file_type().unwrap().is_dir() {
            bytes_below(&entry.path())
        } else {
            entry.metadata().unwrap().len()
        }
    });
    sizes.sum()
}

/// Kills a query that sorts 5 million numbers with 32 MiB of memory. Its first row follows only when all rows are
/// sorted, and it cannot end while its output is not read.
#[cfg(unix)]
#[test]
fn temporary_files_of_a_killed_query_are_deleted() {
    let temporary = tempfile::tempdir().unwrap();
    let folders = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(temporary.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let query = "WITH n AS (SELECT row_number() OVER (ORDER BY start_ns, cpu) AS i FROM cpu_runs LIMIT 2300) \
                 SELECT a.i * 2300 + b.i AS value FROM n AS a, n AS b ORDER BY value DESC";
    let mut killed = Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(["sql", TRACE, query, "--memory", "32", "--format", "csv"])
        .arg("--all")
        .current_dir(testdata::path("etl"))
        .env(
            "LAGLAB_CACHE",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
        )
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let mut next = || lines.next().expect("a row").unwrap();
    assert_eq!(
        (next(), next()),
        ("value".to_owned(), (2300 * 2300 + 2300).to_string())
    );
    let used = folders();
    let [left] = &used[..] else {
        panic!("one folder of temporary files, not {used:?}");
    };
    // Rows that have no space in memory are in files.
    let least = 2300 * 2300 * 8 - (32 << 20);
    let bytes = bytes_below(left);
    assert!(bytes >= least, "{bytes} bytes in {}", left.display());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left.is_dir());

    let temporary = temporary.path().to_str().unwrap();
    let next = program::laglab_with(&[("TMPDIR", temporary)], &["sql", TRACE, "SELECT 1"]);
    assert!(next.status.success());
    assert_eq!(folders(), Vec::<PathBuf>::new());
}

/// Groups DPCs and service routines by function. Checks that the number of runs of each function is the
/// number in the truth file.
#[test]
fn functions_have_the_names_of_their_pdbs() {
    let usb = Simulated::new("usb-wdf01000", &["duration=200ms"]);
    let trace = usb.trace.as_str();
    let mut expected = BTreeMap::new();
    for routine in usb.truth["windows"][0]["routines"].as_array().unwrap() {
        if routine["cpu"].is_null() {
            let name = routine["routine"].as_str().unwrap().to_owned();
            *expected.entry(name).or_default() += routine["count"].as_u64().unwrap();
        }
    }
    let query = "SELECT symbol(image_row, routine) AS function, count(*) AS n FROM interrupts \
                 GROUP BY function";
    let rows = json_lines(&["sql", "--json", trace, query, "--symbols", &usb.symbols]);
    let found: BTreeMap<String, u64> = rows
        .iter()
        .map(|row| {
            let routine = row["function"].as_str().unwrap().to_owned();
            (routine, row["n"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(found, expected);

    let empty = tempfile::tempdir().unwrap();
    let outcome = laglab(&[
        "sql",
        trace,
        query,
        "--symbols",
        empty.path().to_str().unwrap(),
    ]);
    let error = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(error.starts_with("laglab: no symbols of "), "{error}");
    let outcome = laglab(&["sql", trace, query, "--symbols", "srv*"]);
    let error = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(error.starts_with("laglab: --symbols: "), "{error}");
}
