//! Checks `laglab mcp` and `/mcp` of `laglab open` with clients that other projects wrote: the Python SDK, the
//! inspector and the conformance suite of the Model Context Protocol.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::{self, program, root, target};
use crate::steps::left_out;
use crate::{apt, built, python};

/// Python package of the SDK.
const PYTHON: [&str; 1] = ["mcp==2.3.0"];

/// Packages of npm. The inspector and the conformance suite need a newer Node.js than Debian has, so the package
/// `node` is installed, too.
const NPM: [&str; 3] = [
    "node@22.23.3",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
];

/// Scenarios of the conformance suite that any server can pass, by revision of the protocol. Other scenarios call tools
/// of a special test server.
const CONFORMANCE: [(&str, &str); 13] = [
    ("2025-11-25", "server-initialize"),
    ("2025-11-25", "ping"),
    ("2025-11-25", "tools-list"),
    ("2025-11-25", "resources-list"),
    ("2025-11-25", "prompts-list"),
    ("2025-11-25", "dns-rebinding-protection"),
    ("2026-07-28", "tools-list"),
    ("2026-07-28", "resources-list"),
    ("2026-07-28", "prompts-list"),
    ("2026-07-28", "caching"),
    ("2026-07-28", "sep-2164-resource-not-found"),
    ("2026-07-28", "dns-rebinding-protection"),
    ("2026-07-28", "http-header-validation"),
];

/// Name of the scenario whose trace the clients ask about.
const SCENARIO: &str = "rank-stall";

/// Asks about a simulated trace with each client.
///
/// # Errors
///
/// Returns an error if an answer is wrong. In CI, also if a client cannot be installed.
pub(crate) fn are_answered() -> Result<(), String> {
    let folder = target().join("assistants");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let traces = folder.join("traces");
    std::fs::create_dir_all(&traces).map_err(|error| format!("{}: {error}", traces.display()))?;
    let trace = traces.join(SCENARIO).with_extension("etl");
    let mut simulate = built::run_laglab(&["simulate", SCENARIO, "--output"]);
    command::read(simulate.arg(&trace))?;
    match python::with("assistants/python", &PYTHON) {
        Ok(python) => {
            let mut ask = program(python);
            ask.env("PYTHONDONTWRITEBYTECODE", "1");
            ask.arg(root().join("xtask/readers/ask_mcp.py"));
            command::run(ask.arg(built::laglab()).arg(&traces))?;
        }
        Err(error) => left_out("the Python client of assistants", &error)?,
    }
    match install(&folder) {
        Ok(()) => {
            inspect(&folder, &traces)?;
            conform(&folder, &trace)
        }
        Err(error) => left_out("the inspector and the conformance suite", &error),
    }
}

/// Installs the packages of npm in a folder.
fn install(folder: &Path) -> Result<(), String> {
    apt::provide(&[apt::NPM])?;
    let done = folder.join("installed.txt");
    let list = NPM.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.current_dir(folder);
    npm.args([
        "install",
        "--prefix",
        ".",
        "--silent",
        "--no-audit",
        "--no-fund",
    ]);
    command::install(npm.args(NPM))?;
    std::fs::write(&done, list).map_err(|error| format!("{}: {error}", done.display()))
}

/// Returns a command that runs a program of a package.
fn node(folder: &Path, name: &str) -> Command {
    let programs = folder.join("node_modules/.bin");
    let mut node = program(programs.join("node"));
    node.arg(programs.join(name));
    node
}

/// Lists the tools and calls one tool with the inspector.
fn inspect(folder: &Path, traces: &Path) -> Result<(), String> {
    let inspect = |arguments: &[&str]| {
        let mut inspector = node(folder, "mcp-inspector");
        inspector.arg("--cli").arg(built::laglab());
        inspector.arg("mcp").arg(traces).args(arguments);
        command::read(&mut inspector)
    };
    let tools = inspect(&["--method", "tools/list"])?;
    let explained = inspect(&["--method", "tools/call", "--tool-name", "explain"])?;
    if tools.contains("\"explain\"") && explained.contains("LockApp.exe") {
        Ok(())
    } else {
        Err(format!(
            "the inspector got other answers: {tools}\n{explained}"
        ))
    }
}

/// Server of `laglab open`, which is ended when this value is dropped.
struct PageServer(Child);

impl Drop for PageServer {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the scenarios of the suite against `/mcp` of `laglab open`.
fn conform(folder: &Path, trace: &Path) -> Result<(), String> {
    let mut open = built::run_laglab(&["open", "--no-browser", "--no-cache"]);
    let mut child = open
        .arg(trace)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("laglab open: {error}"))?;
    let out = child.stdout.take();
    let _served = PageServer(child);
    let lines = out.map(|out| BufReader::new(out).lines());
    let address = lines.into_iter().flatten().map_while(Result::ok);
    let address = address
        .into_iter()
        .find(|line| line.starts_with("http://"))
        .ok_or("laglab open prints no address")?;
    let results: PathBuf = folder.join("conformance");
    for (revision, scenario) in CONFORMANCE {
        let mut suite = node(folder, "conformance");
        suite.args(["server", "--url", &format!("{address}mcp")]);
        suite.args(["--scenario", scenario, "--spec-version", revision]);
        command::read(suite.arg("--output-dir").arg(&results))?;
    }
    Ok(())
}
