//! Benchmarks of `laglab open`: the time to the first graph, and the response times of views.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::against::Cost;
use crate::{Outcome, process};

/// Number of times that each request is sent. The first request about a table decodes the columns of the
/// table, and this time is included.
const ROUNDS: usize = 5;

/// Opens the page on a simulated file and measures requests, first without cached tables and then with them.
pub(crate) fn requests(report: &mut String, laglab: &Path, file: &Path) -> Outcome<()> {
    let (cold, cold_runs) = {
        let cache = tempfile::tempdir()?;
        PageServer::new(laglab, file, Some(cache.path()))?.first_graphs()?
    };
    PageServer::new(laglab, file, None)?.first_graphs()?;
    let opened = PageServer::new(laglab, file, None)?;
    let (cached, cached_runs) = opened.first_graphs()?;
    writeln!(
        report,
        "\n## The page\n\n`laglab open` on 1 GiB, measured from the program's start. The first graph (DPC and \
         ISR time by CPU) came after {cold:.2} s without cached tables (limit: 3 s) and {cached:.2} s with \
         them (0.5 s), CPU time by process after {cold_runs:.2} s and {cached_runs:.2} s. Then each request \
         was sent {ROUNDS} times; the first may decode columns. Limits: median 200 ms, maximum 1 s.\n\n\
         | what the user does | request | median, ms | worst, ms | answer, kB |\n|---|---|---|---|---|"
    )?;
    let span = opened.span()?;
    let (mut all, mut worst) = (Vec::new(), 0.0_f64);
    for (what, request, body) in work(span) {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            bytes = opened.post(request, &body)?.len();
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        worst = worst.max(times[ROUNDS - 1]);
        writeln!(
            report,
            "| {what} | `{request}` | {:.0} | {:.0} | {:.0} |",
            times[ROUNDS / 2],
            times[ROUNDS - 1],
            bytes as f64 / 1e3
        )?;
        all.extend(times);
    }
    all.sort_by(f64::total_cmp);
    writeln!(
        report,
        "\nAll {} requests: median {:.0} ms, maximum {worst:.0} ms. Peak memory of the server: {:.0} MB \
         (limit: 3,000).",
        all.len(),
        all[all.len() / 2],
        opened.peak_megabytes()
    )?;
    Ok(())
}

/// Opens the page on a file without cached tables. Returns the cost until both first graphs are answered, and the cost until
/// all requests of typical user actions are answered once.
pub(crate) fn costs(laglab: &Path, file: &Path) -> Outcome<[Cost; 2]> {
    let cache = tempfile::tempdir()?;
    let opened = PageServer::new(laglab, file, Some(cache.path()))?;
    opened.first_graphs()?;
    let first = opened.cost();
    for (_, request, body) in work(opened.span()?) {
        opened.post(request, &body)?;
    }
    Ok([first, opened.cost()])
}

/// Returns the requests of typical user actions: first for the whole time, then for the middle tenth.
#[expect(clippy::too_many_lines, reason = "a table")]
fn work([start, end]: [i64; 2]) -> Vec<(&'static str, &'static str, Value)> {
    let tenth = (end - start) / 10;
    let middle = json!([start + tenth * 4, start + tenth * 5]);
    let odd_cpus = json!([{ "column": "cpu", "in": [1, 3, 5, 7] }]);
    let pivot = |keys: &[&str], path: Value, aggregates: &[&str], more: Value| {
        let mut request = json!({
            "table": "cpu_runs", "keys": keys, "path": path, "aggregates": aggregates,
            "sort": { "by": aggregates[0], "descending": true }, "offset": 0, "first": 100,
        });
        if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
            request.extend(more);
        }
        request
    };
    let times = ["cpu_ns:sum", "rows", "ready_ns:max"];
    vec![
        (
            "sees CPU time by process",
            "timeline",
            timeline("cpu_runs", "process", json!({})),
        ),
        (
            "regroups it by priority",
            "timeline",
            timeline("cpu_runs", "priority", json!({})),
        ),
        (
            "zooms in",
            "timeline",
            timeline("cpu_runs", "process", json!({ "range": middle })),
        ),
        (
            "keeps half the CPUs",
            "timeline",
            timeline("cpu_runs", "process", json!({ "filter": odd_cpus })),
        ),
        (
            "opens the table",
            "pivot",
            pivot(&["process", "thread"], json!([]), &times, json!({})),
        ),
        (
            "expands a process",
            "pivot",
            pivot(&["process", "thread"], json!([1]), &times, json!({})),
        ),
        (
            "drags a column over the bar",
            "pivot",
            pivot(&["cpu", "process"], json!([]), &times, json!({})),
        ),
        (
            "filters to the selection",
            "pivot",
            pivot(
                &["process"],
                json!([]),
                &times,
                json!({ "range": middle, "filter": odd_cpus }),
            ),
        ),
        (
            "wants percentiles",
            "pivot",
            pivot(
                &["process"],
                json!([]),
                &["ready_ns:p99", "ready_ns:p50"],
                json!({}),
            ),
        ),
        (
            "looks at the longest waits",
            "rows",
            json!({
                "table": "cpu_runs", "columns": ["start_ns", "process", "thread", "ready_ns", "priority"],
                "sort": { "column": "ready_ns", "descending": true }, "offset": 0, "first": 100,
            }),
        ),
        (
            "sees DPCs by module",
            "pivot",
            json!({
                "table": "interrupts", "keys": ["module"], "path": [], "offset": 0, "first": 100,
                "aggregates": ["exclusive_ns:sum", "rows", "duration_ns:max"],
            }),
        ),
        (
            "sees their durations",
            "heat",
            json!({
                "table": "interrupts", "value": "duration_ns", "buckets": 300, "rows": 60,
            }),
        ),
        (
            "sees the threads on each CPU",
            "lanes",
            json!({ "width": 1200 }),
        ),
        (
            "zooms in",
            "lanes",
            json!({ "width": 1200, "range": middle }),
        ),
        (
            "sees sampled modules",
            "pivot",
            json!({
                "table": "samples", "keys": ["module", "process"], "path": [], "offset": 0,
                "first": 100, "aggregates": ["weight_ns:sum", "rows"],
            }),
        ),
        (
            "sees the flame graph",
            "flame",
            json!({
                "table": "samples", "stack": "stack_id", "weight": "weight_ns",
            }),
        ),
    ]
}

/// Returns a request for a timeline of CPU time. `more` contains additional fields of the request.
fn timeline(table: &str, by: &str, more: Value) -> Value {
    let mut request = json!({
        "table": table, "by": by, "measure": "time", "function": "sum", "buckets": 1200,
        "first": 12,
    });
    if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
        request.extend(more);
    }
    request
}

/// Running server. Dropping this value ends the server.
struct PageServer {
    child: Child,
    started: Instant,
    host: String,
    path: String,
}

impl PageServer {
    /// Starts the server. If a folder is given, the server caches tables there.
    fn new(laglab: &Path, file: &Path, cache: Option<&Path>) -> Outcome<PageServer> {
        let mut command = Command::new(laglab);
        command.arg("open").arg(file).arg("--no-browser");
        if let Some(cache) = cache {
            command.env(crate::reports::CACHE, cache);
        }
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let address = loop {
            let line = lines.next().ok_or("laglab open ended at once")??;
            if let Some(address) = line.trim().strip_prefix("http://") {
                break address.to_owned();
            }
        };
        let (host, path) = address.split_once('/').ok_or("an address without a path")?;
        Ok(PageServer {
            child,
            started,
            host: host.to_owned(),
            path: format!("/{path}"),
        })
    }

    /// Returns the seconds from the start of the program until the first graph of the overview, and until the
    /// graph of CPU time.
    fn first_graphs(&self) -> Outcome<(f64, f64)> {
        let interrupts = timeline("interrupts", "cpu", json!({}));
        let runs = timeline("cpu_runs", "process", json!({}));
        let answered_after = |request| -> Outcome<f64> {
            self.post("timeline", request)?;
            Ok(self.started.elapsed().as_secs_f64())
        };
        Ok((answered_after(&interrupts)?, answered_after(&runs)?))
    }

    /// Returns the times of the first and the last event in nanoseconds.
    fn span(&self) -> Outcome<[i64; 2]> {
        let session: Value = serde_json::from_slice(&self.send("GET", "session", "")?)?;
        let range = session["traces"][0]["range"].clone();
        Ok(serde_json::from_value(range)?)
    }

    fn post(&self, request: &str, body: &Value) -> Outcome<Vec<u8>> {
        self.send("POST", &format!("traces/0/{request}"), &body.to_string())
    }

    /// Sends a request on a new connection, and returns the body of the response.
    fn send(&self, method: &str, request: &str, body: &str) -> Outcome<Vec<u8>> {
        let (host, path) = (&self.host, &self.path);
        let mut stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        let length = body.len();
        let head = format!(
            "{method} {path}api/{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let rest = answer.split_off(end.ok_or("no HTTP answer")? + 4);
        if answer.starts_with(b"HTTP/1.1 200") {
            Ok(rest)
        } else {
            Err(format!("{request}: {}", String::from_utf8_lossy(&rest)).into())
        }
    }

    /// Returns the cost of the server so far.
    fn cost(&self) -> Cost {
        Cost {
            seconds: self.started.elapsed().as_secs_f64(),
            peak_megabytes: self.peak_megabytes(),
            read_megabytes: (process::read_bytes(self.child.id()))
                .map_or(f64::NAN, |bytes| bytes as f64 / 1e6),
        }
    }

    /// Returns the peak resident memory of the server so far in megabytes; NaN if the system does not report
    /// it.
    fn peak_megabytes(&self) -> f64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1024.0 / 1e6)
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        // Errors are ignored, because the server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
