//! What `laglab report` writes, shown by Chromium: each page says of itself whether all is well.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::apt;
use crate::command::{self, cargo, installed, program, root, target};

/// Scenarios whose reports are shown, and how long they run: ranks and focus, a flood of DPCs,
/// frozen processes.
const SCENARIOS: [(&str, &str); 3] = [
    ("rank-stall", "60s"),
    ("dpc-flood-no-teaming", "2s"),
    ("frozen", "9s"),
];

/// Traces of real machines: one with context switches, one with nothing to draw.
const REAL: [&str; 2] = [
    "filtrace__etw.etl",
    "perfview__SelfDescribingSingleEvent.etl",
];

/// How wide the windows are: a screen's, and a small phone's. And which theme they have.
const WINDOWS: [(u32, &str); 2] = [(1280, "light"), (360, "dark")];

/// The browser, as Debian calls it and its package.
const CHROMIUM: &str = "chromium";

/// What keeps it to itself, and lets it reach no other machine.
const ALONE: [&str; 9] = [
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

/// Has reports written, opened and checked. Where there is no Chromium and none can be installed,
/// it says so and is content.
///
/// # Errors
///
/// When a report cannot be written, or a page has errors, lacks a chart or is too wide.
pub(crate) fn shows_reports() -> Result<(), String> {
    if let Err(why) = find() {
        println!("left out: {why}");
        return Ok(());
    }
    let folder = target().join("reports");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for (scenario, duration) in SCENARIOS {
        let trace = folder.join(scenario).with_extension("etl");
        let simulate = ["simulate", scenario, "--duration", duration, "--output"];
        command::read(laglab(&simulate).arg(&trace))?;
        check(&folder, &trace)?;
    }
    for name in REAL {
        check(&folder, &root().join("../shared/data/etl").join(name))?;
    }
    Ok(())
}

/// Where the browser is, which is installed if it is missing and that can be done.
///
/// # Errors
///
/// When there is none; says what to do.
pub(crate) fn find() -> Result<PathBuf, String> {
    if let Some(found) = installed(CHROMIUM) {
        return Ok(found);
    }
    apt::install(&[CHROMIUM]).map_err(|why| format!("there is no {CHROMIUM}: {why}"))?;
    installed(CHROMIUM).ok_or_else(|| format!("there is no {CHROMIUM}, although it was installed"))
}

/// Writes the report of a trace and looks at it in all windows.
fn check(folder: &Path, trace: &Path) -> Result<(), String> {
    let name = trace.file_stem().unwrap_or_default().to_string_lossy();
    let report = folder.join(format!("{name}.html"));
    let mut laglab = laglab(&["report", "--no-cache"]);
    command::read(laglab.arg(trace).arg("--output").arg(&report))?;
    let told = verdicts(folder, &name)?;
    for (verdict, (width, _)) in told.iter().zip(WINDOWS) {
        if !(verdict.starts_with("fine: ") && verdict.ends_with(&format!(" in {width} px"))) {
            return Err(format!("{}: {verdict}", report.display()));
        }
        println!("{name}: {verdict}");
    }
    match told.len() == WINDOWS.len() {
        true => Ok(()),
        false => Err(format!(
            "{}: the page does not say how it is",
            report.display()
        )),
    }
}

/// What the page of that name says of itself in each window. A window of the browser cannot be as
/// narrow as a phone, a frame can.
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
         frame.dataset.told = event.data;});</script>",
    );
    let path = folder.join(format!("{name}.frames.html"));
    std::fs::write(&path, frames).map_err(|error| failed(&path, &error))?;
    let profile = folder.join("profile");
    let mut browser = program(CHROMIUM);
    browser
        .args(ALONE)
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--window-size=1800,2100", "--virtual-time-budget=30000"])
        .arg("--dump-dom")
        .arg(url(&path)?)
        // It complains of what a machine without a desktop lacks.
        .stderr(Stdio::null());
    let output = browser.output().map_err(|error| error.to_string())?;
    let page = String::from_utf8_lossy(&output.stdout);
    let told = page.split("data-told=\"").skip(1);
    Ok(told
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect())
}

fn url(path: &Path) -> Result<String, String> {
    let whole: PathBuf = path.canonicalize().map_err(|error| failed(path, &error))?;
    Ok(format!("file://{}", whole.display()))
}

fn laglab(arguments: &[&str]) -> std::process::Command {
    let laglab = [
        "run",
        "--quiet",
        "--no-default-features",
        "--bin",
        "laglab",
        "--",
    ];
    let mut command = cargo(&laglab);
    command.args(arguments);
    command
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
