//! Tests of `laglab prove`: from a measurement to a verdict.

#[cfg(feature = "sql")]
use crate::explained;
use crate::program;

use std::fs;

use serde_json::Value;
use simulated::Simulated;

/// Runs a command that must succeed. Returns its standard output.
fn printed(args: &[&str]) -> String {
    let output = program::laglab(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = program::laglab(args);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

/// Two methods of `laglab measure sleep` on this system.
fn sleep_methods() -> &'static str {
    if cfg!(windows) {
        "Sleep,waitable-timer"
    } else if cfg!(target_os = "linux") {
        "nanosleep,epoll_wait"
    } else {
        "nanosleep,poll"
    }
}

#[test]
fn two_sleeps_of_a_measurement_are_compared_by_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sleeps.parquet");
    let file = file.to_str().unwrap();
    let methods = sleep_methods();
    let (first, second) = methods.split_once(',').unwrap();
    let mut args = vec!["measure", "sleep", "--method", methods, "--request", "2ms"];
    args.extend(["--interval", "20ms", "--count", "40", "-o", file]);
    printed(&args);
    let compare = [
        "prove", "compare", file, "--before", first, "--after", second,
    ];
    let answer = printed(&[&compare[..], &["--json"]].concat());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["question"]["margin"], 0.02);
    let compared = &answer["compared"][0];
    assert_eq!(
        (&compared["design"], &compared["unit"]),
        (&"paired".into(), &"nanoseconds".into())
    );
    assert_eq!(compared["samples_before"], 40);
    assert_eq!(compared["samples_after"], 40);
    let lines = compared["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4);
    // 40 samples are too few for bounds of p99 and p99.9, whatever their values are.
    for line in &lines[2..] {
        assert!(line["verdict"].is_null(), "{line}");
        assert!(
            line["not_compared"]
                .as_str()
                .unwrap()
                .starts_with("too few"),
            "{line}"
        );
    }
    let text = printed(&compare);
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("After the change: "), "{text}");
    assert!(
        text.contains("of runs that were measured next to each other"),
        "{text}"
    );
    // The page also has heat maps, because the file has the starts of the samples.
    let page = folder.path().join("page.html");
    printed(&[&compare[..], &["-o", page.to_str().unwrap()]].concat());
    let html = fs::read_to_string(page).unwrap();
    let (text, _) = html.split_once("<script").unwrap();
    assert!(text.contains("Latency over time") && text.contains("before the change"));
    assert!(!text.contains("NaN"));
    let plan = ["prove", "plan", file, "--before", first, "--after", second];
    let text = printed(&plan);
    assert!(
        text.contains("To detect a change of 2 % in 90 % of cases")
            || text.contains("does not show"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&printed(&[&plan[..], &["--json"]].concat())).unwrap();
    // The file has 10 rounds with two methods. Each run has 40 sleeps, one every 20 ms.
    let pair_ns = json["pair_ns"].as_f64().unwrap();
    assert!((1e8..1e9).contains(&pair_ns), "{pair_ns}");
    assert_eq!(json["plan"]["lines"].as_array().unwrap().len(), 4);
    // Both sides are the same file, so their runs are equal. They are compared without pairs.
    let text = printed(&["prove", "compare", file, "--", file]);
    assert!(
        text.contains("Doubt: The runs of both sides did not alternate"),
        "{text}"
    );
}

/// Checks that the page has the table and the numbers of the pictures, and escapes the names from the file.
#[test]
fn a_page_has_the_numbers_of_its_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let below = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, page) = (below("frames.csv"), below("page.html"));
    let mut text = String::from("driver,run,frame_ms\n");
    for run in 0..6 {
        for sample in 0..40 {
            let noise = f64::from((run * 7 + sample * 13) % 17) / 100.0;
            text += &format!(
                "old <b>,{run},{}\nnew,{run},{}\n",
                16.0 + noise,
                8.0 + noise
            );
        }
    }
    fs::write(&file, text).unwrap();
    let args = [
        "prove", "compare", &file, "--value", "frame_ms", "--run", "run", "--by", "driver",
    ];
    let args = [
        &args[..],
        &["--before", "old", "--after", "new", "-o", &page],
    ]
    .concat();
    let printed = printed(&args);
    assert!(printed.contains("lower"), "{printed}");
    let html = fs::read_to_string(&page).unwrap();
    let (text, data) = html.split_once(r#"<script id="data""#).unwrap();
    assert!(
        text.contains("old &lt;b&gt;") && !text.contains("<b>"),
        "{text}"
    );
    let data = &data[data.find('>').unwrap() + 1..data.find("</script>").unwrap()];
    let data: Value = serde_json::from_str(data).unwrap();
    let picture = &data["runs"][0];
    assert_eq!(picture["unit"], "nanoseconds");
    assert_eq!(picture["scale"], "ratio");
    // Nine quantiles need fewer than 40 samples in each run.
    let shifts = picture["shifts"].as_array().unwrap();
    assert_eq!(shifts.len(), 9);
    for shift in shifts {
        let at = |name: &str| shift[name].as_f64().unwrap();
        assert!((0.5..0.52).contains(&at("change")), "{shift}");
        assert!(at("low") <= at("change") && at("change") <= at("high"));
    }
    for (side, [least, most]) in [(0, [16e6, 16.2e6]), (1, [8e6, 8.2e6])] {
        let medians = picture["runs"][side].as_array().unwrap();
        assert_eq!(medians.len(), 6);
        let is_near = |median: &Value| (least..most).contains(&median.as_f64().unwrap());
        assert!(medians.iter().all(is_near), "{medians:?}");
    }
    assert_eq!(picture["histogram"]["low"], 8e6);
    let mut wrong = args.clone();
    *wrong.last_mut().unwrap() = "page.docx";
    assert!(refused(&wrong).contains("unknown format; use .html"));
}

#[test]
fn a_csv_file_of_another_program_has_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.csv");
    let mut rows = String::from("run,driver,frame_ms\n");
    for run in 0..12 {
        let old = 16.0 + f64::from(run % 3) * 0.1;
        rows += &format!("{run},old,{old}\n{run},new,{}\n", old * 0.5);
    }
    fs::write(&file, rows).unwrap();
    let file = file.to_str().unwrap();
    let columns = ["--value", "frame_ms", "--run", "run", "--by", "driver"];
    let compare = [&["prove", "compare", file][..], &columns].concat();
    let text = printed(&compare);
    let expected = "old → new\n  After the change: frame_ms lower.\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("0.500 to 0.500"), "{text}");
    assert!(text.contains("12 pairs of runs"), "{text}");
    // The ratio is that of typical pairs, not that of the two medians. The output must say this.
    assert!(text.contains("ratio of pairs"), "{text}");
    assert!(
        text.contains("(after / before) is that of typical pairs"),
        "{text}"
    );
    assert_eq!(
        text.lines().filter(|line| line.contains("lower")).count(),
        2
    );

    let error = refused(&["prove", "compare", file]);
    assert!(
        error.contains("name its columns with --value and --run"),
        "{error}"
    );
    for command in ["compare", "plan"] {
        let margin = ["--margin", "-3%"];
        let error = refused(&[&["prove", command, file][..], &columns, &margin].concat());
        assert!(
            error.contains("expected a percentage from 0.01 to 100"),
            "{error}"
        );
    }
    let nowhere = folder.path().join("none").join("page.html");
    let nowhere = nowhere.to_str().unwrap();
    let error = refused(&[&compare[..], &["-o", nowhere]].concat());
    assert!(
        error.contains(&format!("{nowhere}: its folder does not exist; create it")),
        "{error}"
    );
    let error = refused(&["prove", "compare", "missing.csv", "--value", "frame_ms"]);
    assert!(
        error.contains("cannot read missing.csv: no such file"),
        "{error}"
    );
    let three = ["prove", "compare", file, file, file, "--value", "frame_ms"];
    let error = refused(&three);
    assert!(error.contains("give these after --"), "{error}");
    let error = refused(&[
        "prove", "compare", file, "--value", "frame_ms", "--margin", "0",
    ]);
    assert!(
        error.contains("expected a percentage from 0.01 to 100"),
        "{error}"
    );
}

/// A median of 0 has a difference, but no ratio. The other quantile has a ratio.
#[test]
fn differences_and_ratios_of_one_table_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waits.csv");
    let mut rows = String::from("run,driver,wait_ms\n");
    for run in 0..12 {
        for sample in 0..100 {
            // 60 of 100 samples determine p50, the others p90.
            let (old, new) = if sample < 60 {
                (0.0, 2.0)
            } else {
                (10.0 + f64::from(run), 20.0 + 2.0 * f64::from(run))
            };
            rows += &format!("{run},old,{old}\n{run},new,{new}\n");
        }
    }
    fs::write(&file, rows).unwrap();
    let file = file.to_str().unwrap();
    let columns = ["--value", "wait_ms", "--run", "run", "--by", "driver"];
    let text = printed(&[&["prove", "compare", file][..], &columns].concat());
    let cells = |name: &str| -> Vec<&str> {
        let row = text.lines().find(|line| line.trim().starts_with(name));
        let cells = row.expect("a row of the quantile").split("  ");
        cells.map(str::trim).filter(|it| !it.is_empty()).collect()
    };
    let p50 = ["p50", "0 ns", "2.0 ms", "+ 2.0 ms", "+ 2.0 ms to + 2.0 ms"];
    assert_eq!(cells("p50 ")[..5], p50, "{text}");
    // The medians of 10 to 21 ms and of 20 to 42 ms.
    let p90 = ["p90", "15.5 ms", "31.0 ms", "× 2.000", "× 2.000 to × 2.000"];
    assert_eq!(cells("p90 ")[..5], p90, "{text}");
    assert!(text.contains("change of pairs"), "{text}");
    assert!(
        text.contains("The change is that of typical pairs"),
        "{text}"
    );
    for formula in ["(after - before)", "(after / before)"] {
        assert!(!text.contains(formula), "{text}");
    }
}

/// Each run after the change takes 90 % of the time of the run with the same name before it. The runs of a side take 10
/// to 120 ms, so that the sides overlap.
#[test]
fn options_choose_pairs_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let side = |driver: &str, step: u32| -> Vec<String> {
        let rows = (1..=12).map(|run| format!("{run},{driver},{}\n", run * step));
        rows.collect()
    };
    let (old, new) = (side("old", 10), side("new", 9));
    let head = "run,driver,frame_ms\n";
    let alternating = old.iter().zip(&new);
    let alternating: String = alternating
        .map(|(old, new)| format!("{old}{new}"))
        .collect();
    let one_file = [
        write("alternating.csv", &format!("{head}{alternating}")),
        write(
            "apart.csv",
            &format!("{head}{}{}", old.concat(), new.concat()),
        ),
    ];
    let two_files = [("old.csv", old), ("new.csv", new)]
        .map(|(name, rows)| write(name, &format!("{head}{}", rows.concat())));
    let columns = ["--value", "frame_ms", "--run", "run", "--by", "driver"];
    let [alternating, apart] = one_file
        .each_ref()
        .map(|file| [&["prove", "compare", file.as_str()][..], &columns].concat());
    let [old, new] = two_files.each_ref().map(String::as_str);
    let two = vec!["prove", "compare", old, new, "--value", "frame_ms"];
    for (args, option, is_paired) in [
        (&alternating, None, true),
        (&alternating, Some("--paired"), true),
        (&alternating, Some("--unpaired"), false),
        (&apart, None, false),
        (&apart, Some("--paired"), true),
        (&apart, Some("--unpaired"), false),
        (&two, None, false),
        (&two, Some("--paired"), true),
        (&two, Some("--unpaired"), false),
    ] {
        let args: Vec<&str> = args.iter().copied().chain(option).collect();
        let text = printed(&args);
        let (verdict, runs) = if is_paired {
            ("frame_ms lower.", "12 pairs of runs")
        } else {
            (
                "frame_ms unknown.",
                "12 runs before and 12 after the change",
            )
        };
        assert!(text.contains(verdict), "{args:?}: {text}");
        assert!(text.contains(runs), "{args:?}: {text}");
        assert_eq!(text.contains("0.900 to 0.900"), is_paired, "{text}");
        // The doubt advises both options, so it ends as soon as one of them is given.
        let is_advised = text.contains("--paired compares pairs");
        assert_eq!(is_advised, args == apart, "{args:?}: {text}");
        let is_doubted = text.contains("did not alternate");
        let did_alternate = is_paired || args.contains(&alternating[2]);
        assert_eq!(is_doubted, !did_alternate, "{args:?}: {text}");
    }
    let error = refused(&[&apart[..], &["--paired", "--unpaired"]].concat());
    assert!(error.contains("--unpaired"), "{error}");
    // Without the column of the runs, each row is a run with another name.
    let rows = [
        &apart[..3],
        &["--value", "frame_ms", "--by", "driver", "--paired"],
    ]
    .concat();
    let error = refused(&rows);
    assert!(
        error.contains("cannot pair the runs of old → new: no run before the change has the name"),
        "{error}"
    );
}

/// Checks that the command fails if the runs of one side have no values, with text output and with JSON output.
#[test]
fn a_side_without_values_fails() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.csv");
    let mut rows = String::from("run,driver,frame_ms\n");
    for run in 0..12 {
        rows += &format!("{run},old,16.{run}\n{run},new,\n");
    }
    fs::write(&file, rows).unwrap();
    let file = file.to_str().unwrap();
    let columns = ["--value", "frame_ms", "--run", "run", "--by", "driver"];
    let compare = [&["prove", "compare", file][..], &columns].concat();
    for args in [compare.clone(), [&compare[..], &["--json"]].concat()] {
        let error = refused(&args);
        assert!(
            error.contains("cannot compare old → new: no run after the change has a value; give"),
            "{error}"
        );
    }
}

/// Checks that `prove compare` prints the interval that the measurement printed. The measurement ended early, when its
/// result was certain, so both intervals must take the repeated tests into account.
#[test]
fn the_interval_of_a_measurement_that_ended_when_it_was_sure_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sure.parquet");
    let file = file.to_str().unwrap();
    let methods = sleep_methods();
    let mut args = vec!["measure", "sleep", "--method", methods, "--request", "1ms"];
    args.extend([
        "--interval",
        "2ms",
        "--until-sure=10",
        "--for",
        "20s",
        "--json",
        "-o",
        file,
    ]);
    let measured: Value = serde_json::from_str(&printed(&args)).unwrap();
    let measured = &measured["results"][1]["compared"];
    let compared = printed(&["prove", "compare", file, "--json"]);
    let compared: Value = serde_json::from_str(&compared).unwrap();
    let compared = &compared["compared"][0];
    assert_eq!(compared["has_looks"], true);
    let comparison = &compared["lines"][0]["comparison"];
    assert_eq!(
        comparison["runs"], measured["pairs"],
        "{measured} {comparison}"
    );
    let ratio = |bound: &str| {
        let of = |it: &Value| it[bound].as_f64().unwrap();
        of(&comparison["change"]) / of(&measured["ratio"])
    };
    for bound in ["low", "centre", "high"] {
        let ratio = ratio(bound);
        assert!((ratio - 1.0).abs() < 0.01, "{measured} {comparison}");
    }
    let text = printed(&["prove", "compare", file]);
    assert!(text.contains("(--until-sure)"), "{text}");
}

#[test]
fn metrics_of_traces_are_compared() {
    let (slow, fast) = (
        Simulated::new("usb-wdf01000", &[]),
        Simulated::new("usb-amdxhc31", &[]),
    );
    let side = |trace: &str| vec![trace.to_owned(); 6];
    let compare = |options: &[&str]| -> Vec<String> {
        let options = options.iter().map(|option| (*option).to_owned());
        let command = ["prove", "compare"].map(str::to_owned).into_iter();
        let command = command.chain(options).chain(side(&slow.trace));
        command
            .chain(["--".to_owned()])
            .chain(side(&fast.trace))
            .collect()
    };
    let run = |options: &[&str]| {
        let args = compare(options);
        printed(&args.iter().map(String::as_str).collect::<Vec<&str>>())
    };
    let refuse = |options: &[&str]| {
        let args = compare(options);
        let output = program::laglab(&args.iter().map(String::as_str).collect::<Vec<&str>>());
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = run(&["--metric", "dpc"]);
    assert!(text.starts_with("DPCs\n  After the change: p50"), "{text}");
    assert!(
        text.contains("lower") && text.contains("6 runs before and 6 after"),
        "{text}"
    );
    let error = refuse(&["--metric", "dpc:wdf0100.sys"]);
    assert!(
        error.contains("no trace has samples of it; the traces have `Wdf01000.sys`"),
        "{error}"
    );
    let error = refuse(&["--metric", "input-to-focus"]);
    assert!(error.contains("the trace has no input events"), "{error}");
    // The recorded metric has an answer. The metric that is not recorded is reported as a doubt.
    for metrics in [["dpc", "input-to-focus"], ["input-to-focus", "dpc"]] {
        let text = run(&["--metric", metrics[0], "--metric", metrics[1]]);
        assert!(text.starts_with("DPCs\n  After the change: p50"), "{text}");
        assert!(
            text.contains("Doubt: Cannot compare input to focus: "),
            "{text}"
        );
    }
    let error = refuse(&["--metric", "dpc:none.sys", "--metric", "input-to-focus"]);
    assert!(
        error.contains("cannot compare DPCs of none.sys: no trace"),
        "{error}"
    );
    let error = refuse(&["--metric", "latency"]);
    assert!(error.contains("known are ready"), "{error}");
    if cfg!(feature = "sql") {
        let query = "sql:SELECT count(*) AS dpcs FROM interrupts WHERE kind = 'dpc'";
        let text = run(&["--metric", query]);
        assert!(text.contains("dpcs the same within 2 %"), "{text}");
        let error = refuse(&["--metric", "sql:SELECT 1, 2"]);
        assert!(
            error.contains("the result has 2 columns; write a query with one number"),
            "{error}"
        );
        let error = refuse(&["--metric", "sql:SELECT kind FROM interrupts LIMIT 1"]);
        assert!(error.contains("the result has the type"), "{error}");
        for query in ["sql:SELECT 1/0", "sql:DROP TABLE x"] {
            let error = refuse(&["--metric", query]);
            let start = format!("cannot compare `{query}`: {}: ", slow.trace);
            assert!(error.contains(&start), "{error}");
            assert!(error.contains("; write a query with one number"), "{error}");
        }
    }
}

/// Checks that the example in the help has the minimum number of traces for an answer. If n runs before and n runs
/// after the change are sorted, the two most extreme orders together have the probability 2 / C(2n, n). Four quantiles
/// are tested, so this probability is multiplied by 4. The result is 0.114 for n = 4 and 0.032 for n = 5. Only the
/// second value is below 0.05.
#[test]
fn the_example_for_traces_can_answer() {
    let help = printed(&["prove", "compare", "--help"]);
    let mut lines = help.lines();
    let example = lines
        .find(|line| line.contains("--metric dpc:ndis.sys"))
        .unwrap();
    let before = example.split(" -- ").next().unwrap();
    let traces = before
        .split_whitespace()
        .filter(|word| word.ends_with(".etl"))
        .count();
    assert_eq!(traces, 5, "{example}");
}

#[test]
fn a_history_shows_when_it_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("builds.csv");
    let mut rows = String::from("build,frame_ms\n");
    for build in 0..24 {
        let frame = if build < 12 { 16.0 } else { 18.0 };
        rows += &format!("b{build},{}\n", frame + f64::from(build % 5) * 0.1);
    }
    fs::write(&file, rows).unwrap();
    let file = file.to_str().unwrap();
    let history = [
        "prove", "history", file, "--value", "frame_ms", "--run", "build",
    ];
    let text = printed(&history);
    // The first 12 builds have a median of 16.15 ms, the last 12 builds a median of 18.2 ms.
    assert!(
        text.contains("In 24 points, frame_ms changed once."),
        "{text}"
    );
    assert!(text.contains("b12") && text.contains("× 1.127"), "{text}");
    let json: Value =
        serde_json::from_str(&printed(&[&history[..], &["--json"]].concat())).unwrap();
    let segments = &json["histories"][0]["lines"][0]["segments"];
    assert_eq!(segments[1]["first"], 12);
    assert!(refused(&["prove", "history", "missing.csv", "--value", "x"]).contains("no such file"));
}

/// Checks that rows have the probability of their change also without the correction for the number of rows. The
/// correction can only increase a probability.
fn check_probabilities(rows: &Value) {
    for (raw, adjusted) in [("p", "adjusted_p"), ("mean_p", "adjusted_mean_p")] {
        let mut increased = 0;
        for row in rows.as_array().unwrap() {
            let (raw, adjusted) = (&row[raw], &row[adjusted]);
            assert_eq!(raw.is_null(), adjusted.is_null(), "{row}");
            if let (Some(raw), Some(adjusted)) = (raw.as_f64(), adjusted.as_f64()) {
                // The last digit may be rounded.
                assert!(raw <= adjusted * (1.0 + 1e-12), "{row}");
                increased += usize::from(raw < adjusted);
            }
        }
        assert!(increased > 0, "{raw}: {rows}");
    }
}

#[test]
fn two_traces_are_compared() {
    let (off, on) = (
        Simulated::new("smb-signing-off", &[]),
        Simulated::new("smb-signing-on", &[]),
    );
    let text = printed(&["prove", "diff", &off.trace, "--", &on.trace]);
    let answer = text.lines().next().unwrap();
    assert!(answer.starts_with("The network traffic fell"), "{answer}");
    assert!(answer.contains("100 % of this is in cng.sys"), "{answer}");
    assert!(
        text.contains("  Also: cng.sys within DPCs and ISRs: "),
        "{text}"
    );
    assert!(text.contains("(new)."), "{text}");
    assert!(text.contains("Doubt: One trace on each side"), "{text}");
    assert!(!text.contains("SELECT"), "{text}");
    let json = printed(&["prove", "diff", "--json", &off.trace, "--", &on.trace]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["per_second"][0]["name"], "cng.sys");
    assert_eq!(json["per_work"]["work"], "network-kib");
    assert_eq!(json["per_work"]["changes"][0]["conclusion"], "differs");
    check_probabilities(&json["per_second"]);
    let equal = printed(&["prove", "diff", &on.trace, "--", &on.trace]);
    assert!(equal.starts_with("No difference that matters"), "{equal}");

    let parts = ["--before-between", "0", "4", "--after-between", "4s", "8s"];
    let parts = printed(
        &[
            &["prove", "diff"],
            &parts[..],
            &[&on.trace, "--", &on.trace],
        ]
        .concat(),
    );
    assert!(parts.starts_with("Unknown: 8 blocks"), "{parts}");
    let outside = [
        "prove",
        "diff",
        "--before-between",
        "500",
        "600",
        &on.trace,
        "--",
        &on.trace,
    ];
    assert!(refused(&outside).contains("--before-between"));
    let mut negative = outside;
    negative[3..5].copy_from_slice(&["-5", "3"]);
    let error = refused(&negative);
    assert!(
        error.contains("is before the start of the trace"),
        "{error}"
    );

    let missing = refused(&["prove", "diff", &on.trace, "--", "none.etl"]);
    assert!(missing.contains("none.etl"), "{missing}");
    // The answer fits on one screen. Options may stand anywhere, and two traces need no `--`.
    assert!(text.lines().count() <= 24, "{text}");
    let two = printed(&["prove", "diff", &off.trace, &on.trace]);
    assert_eq!(two, text);
    let all = printed(&["prove", "diff", &off.trace, "--", &on.trace, "--all"]);
    assert!(all.contains("DPCs by module"), "{all}");
    assert!(text.contains("More: --all ("), "{text}");
    let few = printed(&["prove", "diff", &on.trace, &on.trace, "--", &off.trace]);
    assert!(
        few.starts_with("Unknown: 1 trace cannot distinguish"),
        "{few}"
    );
}

#[test]
fn times_are_related_to_other_work() {
    let (wdf, amd) = (
        Simulated::new("usb-wdf01000", &[]),
        Simulated::new("usb-amdxhc31", &[]),
    );
    let traces = [wdf.trace.as_str(), "--", amd.trace.as_str()];
    for (work, unit, count) in [
        ("dpcs", "DPC", None),
        // The trace is 20 s long. The mouse reports 1,000 times a second, beginning at 100 ms.
        ("waits=raw input", "wait of raw input", Some(995.0)),
    ] {
        let per = [&["prove", "diff", "--per", work][..], &traces].concat();
        assert!(printed(&per).contains(&format!("Per {unit}")), "{work}");
        let json = printed(&[&["prove", "diff", "--json"][..], &per[2..]].concat());
        let json: Value = serde_json::from_str(&json).unwrap();
        let per_work = &json["per_work"];
        assert_eq!(per_work["work"], work);
        if let Some(count) = count {
            let before = per_work["before"].as_f64().unwrap();
            assert!((before - count).abs() < 2.0, "{before}");
        }
        let programs = per_work["changes"].as_array().unwrap().iter();
        assert!(programs.clone().any(|it| it["kind"] == "program"), "{work}");
    }
    let none = refused(&[&["prove", "diff", "--per", "marks"][..], &traces].concat());
    assert!(none.contains("no mark was recorded"), "{none}");
    let wrong = refused(&[&["prove", "diff", "--per", "apples"][..], &traces].concat());
    assert!(wrong.contains("expected network-kib"), "{wrong}");
}

#[test]
fn the_critical_path_of_a_thread_is_divided() {
    let (stall, healthy) = (
        Simulated::new("rank-stall", &[]),
        Simulated::new("healthy", &[]),
    );
    let traces = [stall.trace.as_str(), "--", stall.trace.as_str()];
    let lock_app = ["prove", "diff", "--thread", "LockApp.exe"];
    let between = [
        "--before-between",
        "2",
        "4",
        "--after-between",
        "30.4",
        "49.8",
    ];
    let json = printed(&[&lock_app[..], &between, &["--json"], &traces].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let latency = &json["latency"];
    assert_eq!(latency["after_ns"], 19_400_000_000.0);
    // The sum of the changes of all parts and the residual must be the change of the total.
    let ns = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let parts = latency["parts"].as_array().unwrap().iter();
    let parts: f64 = parts
        .map(|part| ns(part, "after_ns") - ns(part, "before_ns"))
        .sum();
    let whole = ns(latency, "after_ns") - ns(latency, "before_ns");
    let rest = whole - parts - ns(latency, "residual_ns");
    assert!(rest.abs() < 1.0, "{latency}");
    let text = printed(&[&lock_app[..], &between, &traces].concat());
    assert!(text.contains("Critical path of LockApp.exe"), "{text}");
    // The argument is the name of a program, not of a thread.
    let per_program = ["prove", "diff", "--per", "waits=LockApp.exe"];
    let error = refused(&[&per_program[..], &traces].concat());
    assert!(error.contains("name of a thread that waited"), "{error}");

    let none = refused(&[
        "prove",
        "diff",
        "--thread",
        "x",
        &healthy.trace,
        "--",
        &healthy.trace,
    ]);
    assert!(
        none.contains("no thread and no program named x ran"),
        "{none}"
    );
}

/// Runs the queries of all findings on both traces, and compares their answers with the findings.
#[cfg(feature = "sql")]
#[test]
fn queries_return_the_numbers_of_the_findings() {
    let compared = [
        ("smb-signing-off", "smb-signing-on", &[][..]),
        (
            "usb-wdf01000",
            "usb-amdxhc31",
            &["--per", "waits=raw input"],
        ),
        ("dpc-flood-teaming", "dpc-flood-no-teaming", &[]),
        (
            "dpc-flood-no-teaming",
            "dpc-flood-no-ids",
            &["--before-between", "20", "30"],
        ),
        ("rss-300kbps", "rss-1gbps", &["--per", "transfers"]),
        ("foreground-boost", "foreground-boost-0x28", &[]),
        (
            "foreground-boost",
            "foreground-boost-0x14",
            &["--after-between", "1", "8.3"],
        ),
        (
            "timer-own",
            "timer-occluded",
            &["--before-between", "0.5", "9"],
        ),
        ("healthy", "lock-convoy", &[]),
        ("healthy", "affinity-pinned", &[]),
    ];
    testdata::for_each_in_parallel(testdata::cases(compared), |(before, after, options)| {
        check_queries([before, after], &[], options);
    });
    // Without samples, the finding names functions of DPCs and ISRs as the cause.
    let no_samples =
        r#"record.kernel=["PROC_THREAD", "LOADER", "CSWITCH", "DISPATCHER", "DPC", "INTERRUPT"]"#;
    let findings = check_queries(["usb-wdf01000", "usb-amdxhc31"], &[no_samples], &[]);
    assert!(
        findings.contains("% of the change is in Wdf01000.sys!"),
        "{findings}"
    );
}

/// Compares two scenarios, and runs the queries of all findings on both traces. Returns the findings in JSON.
#[cfg(feature = "sql")]
fn check_queries([before, after]: [&str; 2], settings: &[&str], options: &[&str]) -> String {
    let [old, new] = [before, after].map(|name| Simulated::new(name, settings));
    // Symbol path with the symbol stores of both simulated machines.
    let symbols = format!("{};{}", old.symbols, new.symbols);
    let traces = [old.trace.as_str(), "--", new.trace.as_str()];
    let command = ["prove", "diff", "--json", "--symbols", &symbols];
    let json = printed(&[&command[..], options, &traces].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let findings = json["findings"].as_array().unwrap();
    assert!(!findings.is_empty(), "{before} and {after}");
    for (side, trace) in [("before", &old.trace), ("after", &new.trace)] {
        let of_side: Vec<(&str, &Value)> = findings
            .iter()
            .flat_map(|finding| {
                let sentence = finding["sentence"].as_str().unwrap();
                let evidence = finding["evidence"].as_array().unwrap().iter();
                evidence.map(move |evidence| (sentence, evidence))
            })
            .filter(|(_, evidence)| evidence["side"] == side)
            .collect();
        assert!(of_side.len() >= findings.len(), "{before} and {after}");
        explained::check_evidence(trace, &of_side, &["--symbols", &symbols]);
        // Time per second in a row must be the total time in the row's evidence, divided by the length of
        // the trace.
        let seconds = json[side]["seconds"].as_f64().unwrap();
        let changes = json["per_second"].as_array().unwrap();
        for change in changes.iter().filter(|it| it["conclusion"] == "differs") {
            let sentence = format!("{}: ", change["name"].as_str().unwrap());
            let evidence = of_side.iter().find(|(of, evidence)| {
                of.starts_with(&sentence) && evidence["title"] == change["name"]
            });
            if let (Some((_, evidence)), "program") = (evidence, change["kind"].as_str().unwrap()) {
                let total = evidence["rows"][0][1].as_f64().unwrap_or(0.0);
                let rate = change[side]["ns"].as_f64().unwrap();
                assert!((total / seconds - rate).abs() <= 1.0, "{change} {evidence}");
            }
        }
    }
    json["findings"].to_string()
}

/// Checks that kinds of events that only one trace recorded are not compared.
#[test]
fn what_one_trace_lacks_is_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let below = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kit, full) = (below("kit"), below("full.etl"));
    printed(&["record", "--for", "dpc", "-o", &kit]);
    printed(&["simulate", "healthy", "-o", &full]);
    for profile in ["laglab-dpc.wprp", "laglab-dpc.wprp!laglab-dpc.light"] {
        let less = below("less.etl");
        let profile = format!("{kit}/{profile}");
        printed(&["simulate", "healthy", "-o", &less, "--profile", &profile]);
        for (before, after, only) in [
            (&full, &less, "recorded_before_only"),
            (&less, &full, "recorded_after_only"),
        ] {
            let json = printed(&["prove", "diff", "--json", "--no-cache", before, "--", after]);
            let json: Value = serde_json::from_str(&json).unwrap();
            let missing = json["besides"][only].as_array().unwrap();
            assert!(missing.contains(&"disk".into()), "{missing:?}");
            for change in json["per_second"].as_array().unwrap() {
                assert!(!missing.contains(&change["kind"]), "{change}");
                assert_ne!(change["conclusion"], "differs", "{change}");
            }
        }
    }
}

/// The thread that waited 19.5 s because of its rank would run at once without ranks. Errors name what is wrong.
#[test]
fn a_change_is_predicted_from_a_trace() {
    let simulated = Simulated::new("rank-stall", &[]);
    let trace = simulated.trace.as_str();
    let predict = |rest: &[&str]| printed(&[&["prove", "what-if", trace], rest].concat());
    let text = predict(&["--change", "rank:off", "--process", "LockApp.exe"]);
    let sentence = text.lines().next().unwrap();
    assert!(
        sentence.contains("`rank:off`") && sentence.contains("LockApp.exe"),
        "{sentence}"
    );
    for part in [
        "Replay of the record",
        "Before and after",
        "Held fixed",
        "with change",
        "Parts of the error bar",
        "chance ",
        "effect ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = predict(&["--change", "rank:off", "--process", "LockApp.exe", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let metrics = json["rows"][0]["metrics"].as_array().unwrap();
    let total = metrics
        .iter()
        .find(|of| of["metric"] == "ready_total")
        .unwrap();
    assert!(total["recorded_ns"].as_f64().unwrap() > 19e9, "{total}");
    assert!(total["predicted_ns"].as_f64().unwrap() < 1e9, "{total}");
    assert_eq!(json["sentence"].as_str().unwrap(), sentence);
    let error = &json["rows"][0]["replay_error"];
    assert!(
        error["share"].is_f64() && error["metric"].is_string(),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("work.jsonl");
    let written = predict(&["-o", file.to_str().unwrap(), "--json"]);
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["bytes"], fs::metadata(&file).unwrap().len());
    let of_file = ["prove", "what-if", file.to_str().unwrap()];
    let asked = ["--change", "rank:off", "--process", "LockApp.exe"];
    let text = printed(&[&of_file[..], &asked].concat());
    assert_eq!(text.lines().next().unwrap(), sentence);
    let found = printed(&[&of_file[..], &["--search", "--process", "LockApp.exe"]].concat());
    let mut lines = found.lines();
    assert!(lines.next().unwrap().contains("`rank:off`"), "{found}");
    assert!(found.contains("changes tried"), "{found}");

    for (change, expected) in [
        ("timer:0.5ms", "clock tick"),
        ("priority:absent.exe=high", "no process named absent.exe"),
        ("remove:nothing.sys", "no DPC or interrupt of nothing.sys"),
        ("disk:fast", "expected a factor"),
    ] {
        let error = refused(&["prove", "what-if", trace, "--change", change]);
        assert!(error.contains(expected), "{change}: {error}");
    }
    let error = refused(&["prove", "what-if", trace, "--search"]);
    assert!(error.contains("--process"), "{error}");
    let healthy = Simulated::new(
        "healthy",
        &[
            "duration=1s",
            "record.kernel=[\"PROC_THREAD\", \"CSWITCH\"]",
        ],
    );
    let output = program::laglab(&["prove", "what-if", &healthy.trace, "--change", "disk:0.5x"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("record DISPATCHER") || error.contains("record DPC"),
        "{error}"
    );
}

/// The exit code shows that the trace lacks what the change needs: the focus.
#[test]
fn a_change_that_needs_other_events_is_refused() {
    let fixed = "machine.win32_priority_separation=0x28";
    let simulated = Simulated::new("foreground-boost", &["duration=2s", fixed]);
    let change = "priority-separation=0x14";
    let output = program::laglab(&["prove", "what-if", &simulated.trace, "--change", change]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("Microsoft-Windows-Win32k"), "{error}");
}
