//! Tests of `laglab open`: its arguments, and how it ends. The crate `serve` tests requests and responses.

use crate::program;
use crate::served;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;

use serde_json::{Value, json};
use served::Served;
use simulated::Simulated;

/// Small real trace.
const REAL: &str = "filtrace__etw.etl";

fn sentences(explanation: &Value) -> Vec<String> {
    let findings = explanation["findings"].as_array().unwrap().iter();
    let sentences = findings.map(|finding| finding["sentence"].to_string());
    sentences.collect()
}

/// Checks that the server shows the same findings as `laglab explain`, with names of functions. Also checks
/// that presets are stored in the configured folder.
#[test]
fn traces_are_opened_with_their_symbols() {
    let flood = Simulated::new("dpc-flood-no-teaming", &["duration=2s"]);
    let served = Served::open(&[REAL, &flood.trace, "--symbols", &flood.symbols]);
    let session = served.get("api/session");
    let traces = session["traces"].as_array().unwrap().iter();
    let names: Vec<&Value> = traces.map(|trace| &trace["name"]).collect();
    assert_eq!(names, [REAL, "simulated.etl"]);

    let explain = [
        "explain",
        "--json",
        &flood.trace,
        "--symbols",
        &flood.symbols,
    ];
    let explained = program::json(&explain)["explanation"].take();
    let findings = served.get("api/traces/1/findings");
    assert_eq!(sentences(&findings), sentences(&explained));
    assert!(findings.to_string().contains("ndis.sys!ndisInterruptDpc"));

    served.post("api/presets", &json!([]));
    assert!(served.config().join("presets.json").exists());
}

/// Checks the recordings of the manual, whose findings are those that `laglab explain` prints there.
#[test]
fn recordings_of_linux_are_opened() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/linux");
    let recordings = ["api", "player", "shop"].map(|name| format!("{folder}/{name}.data"));
    let served = Served::open(&recordings.each_ref().map(String::as_str));
    for (number, recording) in recordings.iter().enumerate() {
        let explained = program::json(&["explain", "--json", recording])["explanation"].take();
        let findings = served.get(&format!("api/traces/{number}/findings"));
        assert_eq!(sentences(&findings), sentences(&explained));
        assert!(!sentences(&findings).is_empty(), "{recording}");
        let traces = &served.get("api/session")["traces"];
        assert_eq!(traces[number]["cpus"], 2, "{traces}");
    }
}

#[test]
fn scenarios_are_opened_by_name() {
    let served = Served::open(&["healthy"]);
    let said = &served.said;
    assert!(said.contains("healthy.etl, simulated"), "{said}");
    assert_eq!(served.get("api/session")["traces"][0]["simulated"], true);
    assert!(served.get("api/progress")["done"].is_u64());

    let refused = program::laglab(&["open", "no-such-scenario", "--no-browser"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("no file or scenario has this name"), "{said}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_and_leaves_nothing_behind() {
    let mut served = Served::open(&["healthy"]);
    let session = served.get("api/session");
    let trace = session["traces"][0]["files"][0].as_str().unwrap();
    let trace = Path::new(trace);
    let own = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("laglab-")
    };
    let folder = trace.ancestors().skip(1).find(own).unwrap();
    let permissions = folder.metadata().unwrap().permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&permissions);
    assert_eq!(mode & 0o777, 0o700, "only its owner can read it");
    assert!(trace.exists());
    assert!(served.interrupt(), "it ends well");
    assert!(!trace.exists());
}

/// Checks that the temporary files of a program that was killed are deleted by the next one.
#[test]
fn files_of_a_killed_server_are_deleted() {
    let killed = Served::open(&["healthy"]);
    let session = killed.get("api/session");
    let trace = session["traces"][0]["files"][0].as_str().unwrap();
    drop(killed);
    let next = Served::open(&["healthy"]);
    assert!(!Path::new(trace).exists(), "{trace}");
    let session = next.get("api/session");
    let trace = session["traces"][0]["files"][0].as_str().unwrap();
    assert!(Path::new(trace).exists(), "{trace}");
}

/// Checks that the page is served even if no program can start a browser. Other systems start it without `PATH`.
#[cfg(target_os = "linux")]
#[test]
fn a_browser_that_does_not_start_is_no_failure() {
    let served = Served::open_without_programs(&[REAL]);
    // The server answers after it has tried to start a browser.
    assert_eq!(served.get("api/session")["traces"][0]["name"], REAL);
    let said = served.end();
    assert!(
        said.contains("laglab: cannot start a browser; open the address yourself\n"),
        "{said}"
    );
    assert!(!said.contains("ExitStatus"), "{said}");
}

#[test]
fn only_the_loopback_address_is_served() {
    let served = Served::open(&[REAL]);
    let connect = |ip: IpAddr| TcpStream::connect((ip, served.port));
    assert!(connect(Ipv4Addr::LOCALHOST.into()).is_ok());
    // The address from which this machine would send to a network. Nothing is sent.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let own = socket
        .connect("192.0.2.1:9")
        .and_then(|()| socket.local_addr());
    let mut others: Vec<IpAddr> = own.iter().map(SocketAddr::ip).collect();
    if cfg!(any(target_os = "linux", windows)) {
        // All addresses of 127.0.0.0/8 belong to the machine.
        others.push(Ipv4Addr::new(127, 0, 0, 2).into());
    }
    for other in others {
        assert!(connect(other).is_err(), "{other}");
    }
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let served = Served::open(&[REAL]);
    let port = served.port.to_string();
    let refused = program::laglab(&["open", REAL, "--no-browser", "--port", &port]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains(&format!("cannot listen on 127.0.0.1:{port}")),
        "{said}"
    );
}

#[cfg(feature = "sql")]
#[test]
fn answers_are_those_of_the_command() {
    let served = Served::open(&[REAL]);
    let query = "SELECT process(process_row) AS process, sum(cpu_ns) AS cpu_ns, NULL AS nothing \
                 FROM cpu_runs GROUP BY 1 ORDER BY 2 DESC, 1";
    let answer = served.post(
        "api/sql",
        &json!({"traces": [0], "query": query, "first": 3}),
    );
    assert_eq!(
        answer["columns"][1],
        json!({"name": "cpu_ns", "type": "Int64", "unit": "ns"})
    );
    let rows = program::json_lines(&["sql", REAL, query, "--json"]);
    let expected: Vec<Value> = rows
        .iter()
        .take(3)
        .map(|row| json!([row["process"], row["cpu_ns"], null]))
        .collect();
    assert_eq!(answer["rows"], json!(expected));
    assert_eq!(answer["more"], rows.len() > 3);
    let all = served.post("api/sql", &json!({"query": query, "first": 100_000}));
    assert_eq!(all["rows"].as_array().unwrap().len(), rows.len());
    assert_eq!(all["more"], false);
}
