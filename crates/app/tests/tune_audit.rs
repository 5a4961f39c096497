//! Tests of `laglab tune audit`, `plan`, `apply` and `diff`: output, files and exit codes.

use crate::program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

/// Registry export of a machine. It has a setting under a misspelt key, a setting without effect, and a
/// setting with its default value.
const EXPORT: &str = "Windows Registry Editor Version 5.00\r\n\
    \r\n\
    [HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\WindowsNT\\CurrentVersion\\Multimedia\\SystemProfile]\r\n\
    \"NetworkThrottlingIndex\"=dword:ffffffff\r\n\
    \r\n\
    [HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Multimedia\\SystemProfile]\r\n\
    \"SystemResponsiveness\"=dword:00000000\r\n\
    \r\n\
    [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\PriorityControl]\r\n\
    \"Win32PrioritySeparation\"=dword:00000002\r\n";

/// Creates an empty folder for a test, and returns its path.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tune-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs an audit of a report. Returns its text, JSON and HTML.
fn audit_of(report: &str, name: &str) -> (String, Value, String) {
    let report = testdata::path(&format!("settings/{report}"));
    let page = folder(name).join("audit.html");
    let args = ["tune", "audit", report.to_str().unwrap()];
    let text = program::laglab(&args);
    assert_eq!(code(&text), Some(0), "{}", stderr(&text));
    let mut args = args.to_vec();
    args.extend(["--json", "--html", page.to_str().unwrap()]);
    let json = program::laglab(&args);
    let text = String::from_utf8(text.stdout).unwrap();
    // Columns depend on the widths of all rows.
    let text: Vec<&str> = text.split_whitespace().collect();
    let json = serde_json::from_slice(&json.stdout).unwrap();
    (text.join(" "), json, fs::read_to_string(page).unwrap())
}

#[test]
fn an_audit_shows_the_timer_requests_of_an_energy_report() {
    let (text, json, page) = audit_of("english_19041_stack_entries.html", "energy");
    let observed = json["observed"].as_array().unwrap();
    let expected = [
        (9_900, None),
        (156_250, None),
        (10_000, Some(("kernel", None))),
        (10_000, Some(("process", Some(100)))),
        (10_000, Some(("process", Some(104)))),
        (9_900, Some(("process", Some(200)))),
    ];
    assert_eq!(observed.len(), expected.len(), "{json}");
    for (observed, (value, subject)) in observed.iter().zip(expected) {
        assert_eq!(observed["value"], value, "{observed}");
        assert_eq!(observed["unit"], "100 ns");
        match subject {
            None => assert!(observed["subject"].is_null(), "{observed}"),
            Some((kind, id)) => {
                assert_eq!(observed["subject"]["kind"], kind);
                assert_eq!(observed["subject"]["id"].as_u64(), id);
            }
        }
    }
    assert_eq!(json["others"], 0);
    for shown in [
        "9,900 × 100 ns (0.99 ms)",
        "156,250 × 100 ns (15.625 ms)",
        "10,000 × 100 ns (1 ms)",
        r"\Device\HarddiskVolume4\Apps\browser.exe (process 104)",
        r"\Device\HarddiskVolume4\Apps\mouse.exe (process 200)",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[test]
fn an_audit_shows_the_delays_of_latencymon_with_their_drivers() {
    let (text, json, page) = audit_of("latencymon_decimal_comma.txt", "latencymon");
    assert_eq!(json["machine"]["name"], "LAPTOP-1");
    assert_eq!(json["machine"]["build"], 26_100);
    let named = |name: &str| {
        let mut observed = json["observed"].as_array().unwrap().iter();
        observed.find(|observed| observed["name"] == name).unwrap()
    };
    let process = named("Highest measured interrupt to process latency");
    assert_eq!(
        (&process["value"], &process["unit"]),
        (&8433.7.into(), &"us".into())
    );
    let dpc = named("Highest DPC routine execution time");
    assert_eq!(dpc["value"], 8012.74);
    assert_eq!(dpc["subject"]["file"], "ACPI.sys");
    assert_eq!(
        named("Highest ISR routine execution time")["value"],
        178.263021
    );
    assert!(text.contains("8,433.70 µs"), "{text}");
    assert!(text.contains("8,012.740 µs ACPI.sys Total"), "{text}");
    assert!(text.contains("178.263021 µs HDAudBus.sys Total"), "{text}");
    assert!(page.contains("8,012.740 µs"), "{page}");
}

#[test]
fn an_audit_fails_the_machine_only_for_wrong_settings() {
    let folder = folder("audit");
    let export = file(&folder, "export.reg", EXPORT);
    let page = folder.join("audit.html");
    let machine = ["--build", "22631", "--edition", "pro"];
    let mut args = vec![
        "tune",
        "audit",
        &export,
        "--json",
        "--html",
        page.to_str().unwrap(),
    ];
    args.extend(machine);
    let output = program::laglab(&args);
    assert_eq!(code(&output), Some(1), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failing"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings[0]["name"], "NetworkThrottlingIndex");
    assert_eq!(findings[0]["remarks"][0]["kind"], "misspelt");
    assert!(
        findings[0]["origin"]
            .as_str()
            .unwrap()
            .ends_with("export.reg:4")
    );
    let of = |name: &str| {
        findings
            .iter()
            .find(|finding| finding["name"] == name)
            .unwrap()
    };
    assert_eq!(
        of("SystemResponsiveness")["remarks"][0]["kind"],
        "no-effect"
    );
    assert_eq!(of("Win32PrioritySeparation")["differs"], false);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("NetworkThrottlingIndex") && !page.contains("<script"));

    let right = file(
        &folder,
        "right.reg",
        &EXPORT.replace("WindowsNT", "Windows NT"),
    );
    let mut args = vec!["tune", "audit", &right];
    args.extend(machine);
    let text = program::text(&args);
    assert!(text.contains("no effect here"), "{text}");
}

#[test]
fn a_wrong_input_is_an_error_with_its_format() {
    let folder = folder("refusals");
    let wrong = file(&folder, "export.reg", "Dear diary");
    let output = program::laglab(&["tune", "audit", &wrong]);
    assert_eq!(code(&output), Some(2));
    let error = stderr(&output);
    assert!(
        error.contains("the content does not match the file name: expected a .reg export"),
        "{error}"
    );
    let no_trace = file(&folder, "no-trace.etl", "Dear diary");
    let error = stderr(&program::laglab(&["tune", "audit", &no_trace]));
    assert_eq!(error.matches("no-trace.etl").count(), 1, "{error}");
    let bomb = file(
        &folder,
        "a.PolicyRules",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><PolicyRules>&b;</PolicyRules>",
    );
    assert_eq!(code(&program::laglab(&["tune", "audit", &bomb])), Some(2));
    if !cfg!(windows) {
        let output = program::laglab(&["tune", "audit", "--live"]);
        assert_eq!(code(&output), Some(2));
    }
}

#[test]
fn a_plan_has_its_undo_and_refuses_to_lower_protection_silently() {
    let folder = folder("plan");
    let export = file(&folder, "export.reg", EXPORT);
    let plan = folder.join("plan");
    let plan = plan.to_str().unwrap();
    let change = "SystemResponsiveness=10";
    let args = ["tune", "plan", change, "--from", &export, "-o", plan];
    program::text(&args);
    let undo = fs::read(Path::new(plan).join("undo.reg")).unwrap();
    let units: Vec<u16> = (undo.as_chunks::<2>().0.iter())
        .map(|unit| u16::from_le_bytes(*unit))
        .collect();
    let undo = String::from_utf16(&units).unwrap();
    assert!(
        undo.contains("\"SystemResponsiveness\"=dword:00000000"),
        "{undo}"
    );
    assert_eq!(
        code(&program::laglab(&args)),
        Some(2),
        "a plan is never overwritten"
    );

    let outside = "SystemResponsiveness=999";
    let output = program::laglab(&["tune", "plan", outside, "--from", &export, "-o", plan]);
    let error = stderr(&output);
    assert!(error.trim_end().ends_with("is outside 0 to 100"), "{error}");

    let bfe = "Windows Registry Editor Version 5.00\r\n\
        [HKLM\\SYSTEM\\CurrentControlSet\\Services\\BFE]\r\n\"Start\"=dword:2\r\n";
    let bfe = file(&folder, "bfe.reg", bfe);
    let other = folder.join("other");
    let args = [
        "tune",
        "plan",
        "bfe=4",
        "--from",
        &bfe,
        "-o",
        other.to_str().unwrap(),
    ];
    let output = program::laglab(&args);
    assert_eq!(code(&output), Some(2));
    assert!(
        stderr(&output).contains("--accept-risk bfe"),
        "{}",
        stderr(&output)
    );
    assert!(!other.exists());
    program::text(&[&args[..], &["--accept-risk", "bfe"]].concat());

    let again = folder.join("again");
    let again = again.to_str().unwrap();
    let same = program::text(&["tune", "plan", "bfe=2", "--from", &bfe, "-o", again]);
    assert!(same.contains("already 0x2: nothing changes"), "{same}");
    let described = fs::read_to_string(Path::new(again).join("plan.md")).unwrap();
    assert!(described.contains("already has this value"), "{described}");
}

#[test]
fn a_diff_compares_effective_values() {
    let folder = folder("diff");
    let a = file(&folder, "a.reg", EXPORT);
    let same = EXPORT.replace("Separation\"=dword:00000002", "Separation\"=dword:00000026");
    let b = file(&folder, "b.reg", &same);
    let c = file(&folder, "c.reg", &same.replace("00000026", "00000018"));
    let machine = ["--build", "22631", "--edition", "pro"];
    let diff = |b: &str| {
        let args = [&["tune", "diff", &a, b, "--json"][..], &machine].concat();
        program::laglab(&args)
    };
    let output = diff(&c);
    assert_eq!(code(&output), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["settings"][0]["name"], "Win32PrioritySeparation");
    assert_eq!(report["settings"][0]["differs"], true);
    assert_eq!(code(&diff(&a)), Some(0));
    // On a client, the numbers in both files have the same effect.
    assert_eq!(code(&diff(&b)), Some(0));
    // The table shows a number once in each base: 2 and 0x18.
    let table = program::laglab(&[&["tune", "diff", &a, &c][..], &machine].concat());
    let table = String::from_utf8(table.stdout).unwrap();
    let cells = "Win32PrioritySeparation  2  24 (0x18)  HKLM";
    assert!(table.contains(cells), "{table}");
}

/// Applies a change and undoes it. This test also runs under Wine.
#[test]
#[cfg(windows)]
fn a_plan_is_applied_with_a_backup_and_undone() {
    let folder = folder("apply");
    let plan = folder.join("plan");
    let plan = plan.to_str().unwrap();
    // The plan changes a setting of the user, so that the settings of the machine stay the same.
    program::text(&[
        "tune",
        "plan",
        "RawMouseThrottleDuration=10",
        "--live",
        "-o",
        plan,
    ]);
    let now = || {
        let output = std::process::Command::new("reg")
            .args([
                "query",
                "HKCU\\Control Panel\\Mouse",
                "/v",
                "RawMouseThrottleDuration",
            ])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).contains("0xa")
    };
    assert!(program::text(&["tune", "apply", plan]).contains("Nothing was written"));
    assert!(!now());
    program::text(&["tune", "apply", plan, "--apply"]);
    assert!(now());
    assert!(Path::new(plan).join("backup-1.reg").exists());
    program::text(&["tune", "apply", plan, "--undo", "--apply"]);
    assert!(!now());
}
