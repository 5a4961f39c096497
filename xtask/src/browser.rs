//! Chromium. Checks reports of `laglab report`, which contain their own tests, and takes pictures.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::command::{self, installed, program, root, target};
use crate::steps::left_out;
use crate::{apt, built};

/// Scenarios whose reports are checked, with their durations. Their reports show ranks and focus, a flood of
/// DPCs, and frozen processes.
const SCENARIOS: [(&str, &str); 3] = [
    ("rank-stall", "60s"),
    ("dpc-flood-no-teaming", "2s"),
    ("frozen", "9s"),
];

/// Traces of real machines. The first trace has context switches. The second trace has no data for a chart.
const REAL: [&str; 2] = [
    "filtrace__etw.etl",
    "perfview__SelfDescribingSingleEvent.etl",
];

/// Widths in pixels and themes of the windows: a desktop screen and a small phone.
const WINDOWS: [(u32, &str); 2] = [(1280, "light"), (360, "dark")];

/// Name of the browser on Debian.
const CHROMIUM: &str = "chromium";

/// Options that isolate the browser, so that it cannot connect to other machines.
pub(crate) const ISOLATED: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
];

/// Writes reports, opens them in the browser, and checks the results of the tests in the pages.
///
/// # Errors
///
/// Returns an error if a report cannot be written, or a page has errors, lacks a chart or is too
/// wide. In CI, also if there is no Chromium.
pub(crate) fn shows_reports() -> Result<(), String> {
    if let Err(why) = find() {
        return left_out("reports in a browser", &why);
    }
    let folder = target().join("reports");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for (scenario, duration) in SCENARIOS {
        let trace = folder.join(scenario).with_extension("etl");
        let simulate = ["simulate", scenario, "--duration", duration, "--output"];
        command::read(built::run_laglab(&simulate).arg(&trace))?;
        check(&folder, &trace)?;
    }
    for name in REAL {
        check(&folder, &root().join("../shared/data/etl").join(name))?;
    }
    Ok(())
}

/// Returns the path of the browser. Installs the browser if it is missing.
///
/// # Errors
///
/// Returns an error if the browser is missing and cannot be installed. The message gives advice.
pub(crate) fn find() -> Result<PathBuf, String> {
    apt::provide(&[apt::CHROMIUM])?;
    installed(CHROMIUM).ok_or_else(|| format!("{CHROMIUM} is not on the search path"))
}

/// Writes the report of a trace, and checks it in windows of all widths and themes.
fn check(folder: &Path, trace: &Path) -> Result<(), String> {
    let name = trace.file_stem().unwrap_or_default().to_string_lossy();
    let report = folder.join(format!("{name}.html"));
    let mut laglab = built::run_laglab(&["report", "--no-cache"]);
    command::read(laglab.arg(trace).arg("--output").arg(&report))?;
    let verdicts = verdicts(folder, &name)?;
    for (verdict, (width, _)) in verdicts.iter().zip(WINDOWS) {
        if !(verdict.starts_with("fine: ") && verdict.ends_with(&format!(" in {width} px"))) {
            return Err(format!("{}: {verdict}", report.display()));
        }
        println!("{name}: {verdict}");
    }
    if verdicts.len() == WINDOWS.len() {
        Ok(())
    } else {
        Err(format!("{}: the page reports no verdict", report.display()))
    }
}

/// Opens the report `name` in each window, and returns the result of each test of the page. The windows are
/// frames, because the browser's own window cannot be as narrow as a phone.
fn verdicts(folder: &Path, name: &str) -> Result<Vec<String>, String> {
    let mut frames = String::from("<!doctype html><title>Reports</title>");
    for (width, theme) in WINDOWS {
        let _ = write!(
            frames,
            "<iframe style='border:0;width:{width}px;height:2000px' \
             src='{name}.html#check,{theme}'></iframe>"
        );
    }
    frames.push_str(
        "<script>const frames = [...document.querySelectorAll('iframe')];\
         addEventListener('message', (event) => {\
         const frame = frames.find((frame) => frame.contentWindow === event.source);\
         frame.dataset.verdict = event.data;});</script>",
    );
    let path = folder.join(format!("{name}.frames.html"));
    std::fs::write(&path, frames).map_err(|error| failed(&path, &error))?;
    let profile = folder.join("profile");
    let mut browser = program(CHROMIUM);
    browser
        .args(ISOLATED)
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--window-size=1800,2100", "--virtual-time-budget=30000"])
        .arg("--dump-dom")
        .arg(url(&path)?)
        // The browser prints warnings because there is no desktop.
        .stderr(Stdio::null());
    let output = browser.output().map_err(|error| error.to_string())?;
    let page = String::from_utf8_lossy(&output.stdout);
    let verdicts = page.split("data-verdict=\"").skip(1);
    Ok(verdicts
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect())
}

fn url(path: &Path) -> Result<String, String> {
    let whole: PathBuf = path.canonicalize().map_err(|error| failed(path, &error))?;
    Ok(format!("file://{}", whole.display()))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
