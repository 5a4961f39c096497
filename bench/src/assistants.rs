//! Benchmark of `laglab mcp`: the time of an assistant's calls, without and with cached tables.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;

/// Number of times that each warm call is made.
const ROUNDS: usize = 9;

/// Numbers of events of the scenario `load`, for traces of about 30 and 115 MB.
const EVENTS: [&str; 2] = ["390000", "1490000"];

/// Maximum number of calls that the server handles at the same time.
const PLACES: usize = 4;

/// Measures calls about traces of two sizes, which are simulated into the folder.
pub(crate) fn calls(report: &mut String, laglab: &Path, scratch: &Path) -> Outcome<()> {
    writeln!(
        report,
        "\n## Assistants\n\nCalls of `laglab mcp` over standard input and output. *Cold* is the first call of a new \
         server without cached tables. Medians of {ROUNDS}. Limits: 50 ms for a warm call about 30 MB, 1.5 s for a \
         cold call about 115 MB.\n\n\
         | trace, MB | call | cold, ms | warm, ms | answer, kB |\n|---|---|---|---|---|"
    )?;
    let mut ended = Vec::new();
    for events in EVENTS {
        let folder = scratch.join(format!("assistants-{events}"));
        fs::create_dir_all(&folder)?;
        let trace = folder.join("load.etl");
        let mut simulate = Command::new(laglab);
        simulate.args(["simulate", "load", "--events", events, "-o"]);
        let done = simulate.arg(&trace).stdout(Stdio::null()).status()?;
        if !done.success() {
            return Err("laglab simulate failed".into());
        }
        let megabytes = fs::metadata(&trace)?.len() as f64 / 1e6;
        for (tool, arguments) in [
            ("explain", json!({})),
            (
                "summarize",
                json!({ "table": "cpu_runs", "by": ["process"], "measures": ["time"] }),
            ),
            (
                "timeline",
                json!({ "table": "cpu_runs", "by": "process", "measure": "time" }),
            ),
            ("sql", json!({ "query": "SELECT count(*) FROM cpu_runs" })),
        ] {
            let cache = tempfile::tempdir()?;
            let mut server = Server::new(laglab, &folder, cache.path())?;
            let (cold, bytes) = server.call(tool, &arguments)?;
            let mut warm = Vec::new();
            for _ in 0..ROUNDS {
                warm.push(server.call(tool, &arguments)?.0);
            }
            warm.sort_by(f64::total_cmp);
            writeln!(
                report,
                "| {megabytes:.0} | `{tool}` | {:.0} | {:.1} | {:.1} |",
                cold * 1e3,
                warm[ROUNDS / 2] * 1e3,
                bytes as f64 / 1e3
            )?;
        }
        let mut server = Server::new(laglab, &folder, tempfile::tempdir()?.path())?;
        let seconds = server.cancel("explain", &json!({}))?;
        ended.push(format!("{:.0} ms ({megabytes:.0} MB)", seconds * 1e3));
        fs::remove_dir_all(&folder)?;
    }
    writeln!(
        report,
        "\n{PLACES} cold calls of `explain` were cancelled after 0.1 s. Their work ended {} later. Limit: 200 ms.",
        ended.join(" and ")
    )?;
    Ok(())
}

/// A server, to which requests are written as lines.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn new(laglab: &Path, folder: &Path, cache: &Path) -> Outcome<Server> {
        let mut child = Command::new(laglab)
            .arg("mcp")
            .arg(folder)
            .env("LAGLAB_CACHE", cache)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut server = Server {
            child,
            input,
            output,
            id: 0,
        };
        let client = json!({ "name": "bench", "version": "1" });
        server.request(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
        )?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(server.input, "{ready}")?;
        Ok(server)
    }

    fn send(&mut self, method: &str, params: &Value) -> Outcome<()> {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        writeln!(self.input, "{request}")?;
        self.input.flush()?;
        Ok(())
    }

    /// Sends a request. Returns the answer and its size in bytes.
    fn request(&mut self, method: &str, params: &Value) -> Outcome<(Value, usize)> {
        self.send(method, params)?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == self.id {
                return Ok((answer, line.len()));
            }
        }
    }

    /// Calls a tool. Returns the time in seconds, and the size of the answer in bytes.
    fn call(&mut self, tool: &str, arguments: &Value) -> Outcome<(f64, usize)> {
        let start = Instant::now();
        let params = json!({ "name": tool, "arguments": arguments });
        let (answer, bytes) = self.request("tools/call", &params)?;
        let seconds = start.elapsed().as_secs_f64();
        if answer["result"]["isError"] == true || answer["error"].is_object() {
            Err(format!("{tool}: {answer}").into())
        } else {
            Ok((seconds, bytes))
        }
    }
}

impl Server {
    /// Fills all places of the server with calls of a tool, and cancels these calls. Returns the seconds until a
    /// further call gets a place.
    fn cancel(&mut self, tool: &str, arguments: &Value) -> Outcome<f64> {
        let first = self.id + 1;
        for _ in 0..PLACES {
            self.send(
                "tools/call",
                &json!({ "name": tool, "arguments": arguments }),
            )?;
        }
        thread::sleep(Duration::from_millis(100));
        for id in first..=self.id {
            let cancelled = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id }
            });
            writeln!(self.input, "{cancelled}")?;
        }
        self.input.flush()?;
        Ok(self.call("traces", &json!({}))?.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
