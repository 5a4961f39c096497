//! Tests of `laglab prove verdict`: from a plan of settings to its verdict.

use crate::program;

use std::fs;
use std::path::Path;

use serde_json::Value;

const KEY: &str = r"[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Session Manager\kernel]";

/// Method that the test measures, because `Sleep` exists only on Windows.
const METHOD: &str = if cfg!(windows) { "Sleep" } else { "nanosleep" };

fn reg(folder: &Path, name: &str, value: &str) -> String {
    let path = folder.join(name);
    let text = format!("Windows Registry Editor Version 5.00\r\n\r\n{KEY}\r\n{value}\r\n");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Plans a change in the folder `plan`, and makes the measurement short.
fn plan(folder: &Path) -> String {
    let now = reg(folder, "now.reg", "\"Other\"=dword:00000001");
    let plan = folder.join("plan");
    let path = plan.to_str().unwrap().to_owned();
    let args = ["tune", "plan", "GlobalTimerResolutionRequests=1"];
    let told = program::json(&[&args[..], &["--from", &now, "-o", &path, "--json"]].concat());
    let asked = &told["measure"]["measurement"][0];
    assert_eq!(asked["method"], "Sleep");
    let file = plan.join("measure.toml");
    let text = fs::read_to_string(&file).unwrap();
    let mut plan: toml::Table = text.parse().unwrap();
    let toml::Value::Array(all) = &mut plan["measurement"] else {
        panic!("{text}");
    };
    for (field, value) in [
        ("method", toml::Value::from(METHOD)),
        ("runs", toml::Value::from(4)),
        ("samples_per_run", toml::Value::from(20)),
    ] {
        all[0]
            .as_table_mut()
            .unwrap()
            .insert(field.to_owned(), value);
    }
    fs::write(&file, plan.to_string()).unwrap();
    path
}

fn measure(plan: &str, side: &str, count: &str) {
    let file = format!("{plan}/{side}/sleep.parquet");
    let args = [
        "measure",
        "sleep",
        "--method",
        METHOD,
        "--request",
        "1ms",
        "--runs",
        "4",
    ];
    let output = program::laglab(&[&args[..], &["--count", count, "-o", &file]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

fn verdict(plan: &str) -> (Value, Option<i32>) {
    let output = program::laglab(&["prove", "verdict", plan, "--json"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = serde_json::from_slice(&output.stdout);
    (
        told.unwrap_or_else(|_| panic!("{error}")),
        output.status.code(),
    )
}

#[test]
fn a_plan_of_settings_ends_with_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let output = program::laglab(&["prove", "verdict", &plan]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with("Unknown: p50 of sleep: "), "{text}");
    assert!(
        text.contains("Nothing was measured before the change."),
        "{text}"
    );
    assert!(
        text.contains("Run laglab measure sleep --method Sleep"),
        "{text}"
    );

    measure(&plan, "before", "80");
    measure(&plan, "after", "40");
    let (told, code) = verdict(&plan);
    assert_eq!((told["answer"].as_str(), code), (Some("unknown"), Some(1)));
    let result = told["checks"][0]["result"].as_str().unwrap();
    assert!(
        result.starts_with("Too few runs after the change: 0, and 4 with"),
        "{result}"
    );

    measure(&plan, "after", "80");
    let (told, code) = verdict(&plan);
    let answer = told["answer"].as_str().unwrap();
    let check = &told["checks"][0];
    assert_eq!(check["answer"].as_str(), Some(answer));
    assert_eq!(code, Some(i32::from(answer != "helped")));
    let result = check["result"].as_str().unwrap();
    assert!(result.ends_with("4 runs before, 4 runs after"), "{result}");
    // Both files state the machine, so there is no doubt about it.
    let doubts = check["doubts"].to_string();
    assert!(!doubts.contains("machine it was measured"), "{doubts}");

    let side = Path::new(&plan).join("after");
    reg(&side, "kernel.reg", "\"Other\"=dword:00000001");
    let (told, _) = verdict(&plan);
    let why = told["why"].as_str().unwrap();
    assert!(
        why.contains("GlobalTimerResolutionRequests does not have"),
        "{why}"
    );
    reg(
        &side,
        "kernel.reg",
        "\"GlobalTimerResolutionRequests\"=dword:00000001",
    );
    assert_eq!(verdict(&plan).0["answer"], answer);
}

#[test]
fn damaged_plans_and_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let refused = |args: &[&str]| {
        let output = program::laglab(&[&["prove", "verdict"], args].concat());
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let broken = Path::new(&plan).join("before").join("sleep.parquet");
    fs::write(&broken, b"PAR1, but not more").unwrap();
    assert!(refused(&[&plan]).contains("damaged Parquet file"));
    let file = Path::new(&plan).join("measure.toml");
    for (content, why) in [
        (
            &b"version = 1\nmargin = 7.0\n"[..],
            "invalid margin 7: give a share",
        ),
        (
            b"version = 1\nmargin = 0.02\nmore = 1\n",
            "not a plan of measurements",
        ),
        (b"\xff\xfe", "not UTF-8 text"),
    ] {
        fs::write(&file, content).unwrap();
        let error = refused(&[&plan]);
        assert!(error.contains(why), "{error}");
        assert!(error.contains("`laglab tune plan` wrote"), "{error}");
    }
    let nowhere = folder.path().join("nowhere");
    assert!(refused(&[nowhere.to_str().unwrap()]).contains("nowhere"));
}
