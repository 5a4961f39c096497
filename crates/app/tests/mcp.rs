//! Tests of `laglab mcp` as a program.
#![cfg(all(feature = "mcp", feature = "sql"))]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use simulated::Simulated;

/// Checks that the program ends soon after the client closes its side, although a query would run until its limit of 30
/// s.
#[test]
fn the_server_ends_with_its_client() {
    let simulated = Simulated::new("healthy", &["duration=1s"]);
    let mut server = Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(["mcp", "--no-cache"])
        .arg(Path::new(&simulated.trace).parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut send = |message: serde_json::Value| writeln!(input, "{message}").unwrap();
    let mut receive = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let client = json!({"name": "test", "version": "1"});
    let initialize =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}));
    assert!(receive().contains("laglab"));
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut ask = |id: u32, query: &str| {
        let call = json!({"name": "sql", "arguments": {"query": query}});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
    };
    ask(2, "SELECT count(*) FROM cpu_runs");
    assert!(receive().contains("1 row"));
    ask(
        3,
        "SELECT count(*) FROM cpu_runs a, cpu_runs b, cpu_runs c WHERE a.cpu + b.cpu + c.cpu = -1",
    );
    sleep(Duration::from_millis(500));
    assert!(server.try_wait().unwrap().is_none(), "the query ended");
    drop(input);
    let begun = Instant::now();
    while server.try_wait().unwrap().is_none() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the server lives"
        );
        sleep(Duration::from_millis(20));
    }
}
