//! Tests of `laglab tune bisect`.

use crate::program;

use std::fs;

use program::laglab;
use serde_json::Value;
use tempfile::TempDir;

/// Creates a list of 234 settings in a temporary folder. Returns the folder and the path.
fn baseline() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("baseline.txt");
    let lines: String = (1..=234).map(|n| format!("setting {n}\n")).collect();
    fs::write(&path, format!("# of a server\n\n{lines}")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Runs one step of a manual search. Returns its JSON output and exit code.
fn manual(baseline: &str, more: &[&str]) -> (Value, Option<i32>) {
    let output = laglab(&[&["--json", "tune", "bisect", baseline, "--manual"], more].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (report, output.status.code())
}

#[test]
fn a_manual_search_finds_two_guilty_together() {
    let (_folder, baseline) = baseline();
    let mut asked = manual(&baseline, &[]);
    for _ in 0..100 {
        let Some(settings) = asked.0["settings"].as_array() else {
            break;
        };
        let has = |name: &str| settings.iter().any(|setting| setting == name);
        let word = if has("setting 20") && has("setting 200") {
            "bad"
        } else {
            "good"
        };
        asked = manual(&baseline, &["--said", word]);
    }
    let (told, code) = asked;
    assert_eq!((told["outcome"].as_str(), code), (Some("found"), Some(0)));
    assert_eq!(
        told["causes"],
        serde_json::json!([["setting 20", "setting 200"]])
    );
}

/// Simulates a machine on which setting 17 lowers the measured number. The measurements have no noise.
#[test]
fn measurements_are_entered_one_by_one_and_logged() {
    let (_folder, baseline) = baseline();
    let few = ["--references", "7"];
    let mut asked = manual(&baseline, &few);
    let mut calls = 0;
    while let Some(settings) = asked.0["settings"].as_array() {
        let slow = settings.iter().any(|setting| setting == "setting 17");
        let number = if slow { "80" } else { "400" };
        asked = manual(&baseline, &["--measured", number]);
        calls += 1;
        assert!(calls < 100);
    }
    assert_eq!(asked.0["causes"], serde_json::json!([["setting 17"]]));
    assert!(asked.0["rounds"].as_u64() < Some(20), "{}", asked.0);
    let again = laglab(&["tune", "bisect", &baseline, "--manual", "--measured", "1"]);
    assert_eq!(again.status.code(), Some(2));
    let other = laglab(&["tune", "bisect", &baseline, "--manual", "--effect", "20"]);
    let error = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2));
    assert!(error.contains("started with other options"), "{error}");
}

/// Checks lists with a repeated name. Windows ignores upper and lower case in names of values, and the last
/// value of a name counts.
#[test]
fn a_policy_or_export_is_a_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("smb.reg");
    let key = r"[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters]";
    let values = "\"RequireSecuritySignature\"=dword:00000000\n\"EnableSecuritySignature\"=dword:00000001\n\
                  \"requiresecuritysignature\"=dword:00000001\n";
    let text = format!("Windows Registry Editor Version 5.00\n\n{key}\n{values}");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let (asked, _) = manual(path, &["--said", "good"]);
    let place = r"HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters";
    let expected = [
        format!("{place}\\requiresecuritysignature = 0x1"),
        format!("{place}\\EnableSecuritySignature = 0x1"),
    ];
    assert_eq!(asked["settings"], serde_json::json!(expected));
}

#[cfg(unix)]
mod with_a_command {
    use super::*;

    fn measure(baseline: &str, command: &str, more: &[&str]) -> (Value, String, Option<i32>) {
        let args = ["--json", "tune", "bisect", baseline, "--measure", command];
        let output = laglab(&[&args, more].concat());
        (
            serde_json::from_slice(&output.stdout).unwrap_or_default(),
            String::from_utf8(output.stderr).unwrap(),
            output.status.code(),
        )
    }

    const COPY: &str = "echo copying; if grep -qx 'setting 234' $LAGLAB_SETTINGS; then echo 80 Mb/s; else echo 400 Mb/s; fi";

    #[test]
    fn the_command_runs_until_a_setting_is_guilty() {
        let (_folder, baseline) = baseline();
        let (told, said, code) = measure(&baseline, COPY, &["--references", "7"]);
        assert_eq!(
            (told["outcome"].as_str(), code),
            (Some("found"), Some(0)),
            "{said}"
        );
        assert_eq!(told["causes"], serde_json::json!([["setting 234"]]));
        assert_eq!(told["references"]["fast"], 400.0);
        assert!(said.contains("round 1: no settings are active"), "{said}");
    }

    #[test]
    fn no_difference_is_an_outcome() {
        let (_folder, baseline) = baseline();
        let (told, _, code) = measure(&baseline, "echo 400", &["--references", "7"]);
        assert_eq!(
            (told["outcome"].as_str(), code),
            (Some("no_difference"), Some(1))
        );
    }

    #[test]
    fn a_search_resumes_after_a_failed_command() {
        let (folder, baseline) = baseline();
        let count = folder.path().join("count");
        let count = count.display();
        // This command fails after 8 measurements.
        let fails =
            format!("echo x >> {count}; if [ $(wc -l < {count}) -gt 8 ]; then exit 3; fi; {COPY}");
        let few = ["--references", "7"];
        let (_, error, code) = measure(&baseline, &fails, &few);
        assert_eq!(code, Some(2));
        assert!(error.contains("failed (exit status: 3)"), "{error}");
        let (_, error, code) = measure(&baseline, "sleep 60 & sleep 60", &["--timeout", "100ms"]);
        assert_eq!(code, Some(2));
        assert!(error.contains("took longer than 0.1 s"), "{error}");
        let (_, error, code) = measure(&baseline, "echo nothing", &[]);
        assert_eq!(code, Some(2));
        assert!(error.contains("printed no number"), "{error}");
        // The log has the 8 measurements, so the search continues in the second round.
        let (told, said, code) = measure(&baseline, COPY, &[]);
        assert!(said.starts_with("laglab: round 2: "), "{said}");
        assert_eq!((told["outcome"].as_str(), code), (Some("found"), Some(0)));
    }
}

#[test]
fn wrong_usage_is_refused() {
    let (folder, baseline) = baseline();
    let twice = folder.path().join("twice.txt");
    fs::write(&twice, "a\nb\na\n").unwrap();
    let one = folder.path().join("one.txt");
    fs::write(&one, "a\n").unwrap();
    let log = folder.path().join("odd.toml");
    fs::write(&log, "version = 1\n").unwrap();
    let (twice, one, log) = (
        twice.to_str().unwrap(),
        one.to_str().unwrap(),
        log.to_str().unwrap(),
    );
    for (args, what) in [
        (vec![twice, "--manual"], "line 3: duplicate setting `a`"),
        (vec![one, "--manual"], "invalid number of settings 1"),
        (
            vec![&baseline, "--manual", "--log", log],
            "not a log of a bisection",
        ),
        (
            vec![&baseline, "--manual", "--miss", "60"],
            "invalid rate of misses 0.6",
        ),
        (vec![&baseline], "--measure"),
        (vec!["nowhere.txt", "--manual"], "nowhere.txt"),
    ] {
        let output = laglab(&[&["tune", "bisect"][..], &args].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(what), "{args:?}: {error}");
    }
}
