//! Requests that the server accepts or rejects, and its responses.

mod served;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use explain::Scope;
use facts::Info;
use report::ExplainedTrace;
use serde_json::{Value, json};
use serve::Server;
use session::{SymbolOptions, TraceTables, Unobserved};
use simulated::Simulated;
use tables::{Cache, Options};

use served::Served;

/// Headers that every response must have. For each header, a text that its value must contain.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Small real trace.
const REAL: &str = "filtrace__etw.etl";

#[test]
fn only_the_page_in_this_machines_browser_is_served() {
    let served = Served::open(&[REAL]);
    let page = served.path("");
    let port = served.port;
    let foreign = format!("evil.example:{port}");
    let other_port = format!("http://127.0.0.1:{}", port.wrapping_add(1));
    let localhost = format!("localhost:{port}");
    let session = served.path("api/session");
    let guessed = format!("/{}/api/session", "0".repeat(32));
    for (method, path, headers, status) in [
        ("GET", page.as_str(), &[][..], 200),
        ("GET", &session, &[("Host", localhost.as_str())], 200),
        ("GET", &session, &[("Sec-Fetch-Site", "same-origin")], 200),
        ("GET", &session, &[("Sec-Fetch-Site", "none")], 200),
        // The requests name another host, as in an attack by DNS rebinding from another site.
        ("GET", &session, &[("Host", foreign.as_str())], 421),
        ("GET", &session, &[("Host", "127.0.0.1")], 421),
        ("GET", &session, &[("Host", "")], 421),
        // The requests come from pages of other sites, including other sites on this machine.
        ("GET", &session, &[("Origin", "http://evil.example")], 403),
        ("GET", &session, &[("Origin", "null")], 403),
        ("GET", &session, &[("Origin", other_port.as_str())], 403),
        ("GET", &session, &[("Sec-Fetch-Site", "cross-site")], 403),
        ("GET", &session, &[("Sec-Fetch-Site", "same-site")], 403),
        ("GET", &page, &[("Sec-Fetch-Site", "cross-site")], 403),
        // The addresses of the requests lack the secret.
        ("GET", "/", &[], 404),
        ("GET", "/api/session", &[], 404),
        ("GET", &guessed, &[], 404),
        ("PUT", "/", &[], 404),
        // The methods are not supported.
        ("PUT", &session, &[], 405),
        ("DELETE", &session, &[], 405),
        ("OPTIONS", &session, &[], 405),
        ("TRACE", &session, &[], 405),
        (
            "POST",
            &session,
            &[("Content-Type", "application/json")],
            405,
        ),
        ("POST", &session, &[("Content-Type", "text/plain")], 415),
        ("POST", &session, &[], 415),
    ] {
        let answer = served.send(method, path, headers, b"{}");
        assert_eq!(answer.status, status, "{method} {path} {headers:?}");
        for (name, held) in HEADERS {
            let value = answer.header(name).unwrap_or_default();
            assert!(value.starts_with(held), "{method} {path}: {name}: {value}");
        }
        if status != 200 && status != 404 {
            let said = answer.json()["error"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            assert!(said.len() > 10, "{method} {path}: {said}");
        }
    }
    let stranger = served.send("GET", &guessed, &[], b"");
    assert_eq!(stranger.body, b"", "strangers learn nothing");
}

#[test]
fn no_path_leads_out_of_the_page() {
    let served = Served::open(&[REAL]);
    for path in [
        "../Cargo.toml",
        "../../Cargo.toml",
        "..%2f..%2fCargo.toml",
        "%2e%2e/%2e%2e/Cargo.toml",
        "assets/../../Cargo.toml",
        "..\\..\\Cargo.toml",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "index.html/../../Cargo.toml",
        "index.html%00.js",
        "C:/Windows/win.ini",
        "api/traces/0/../../../Cargo.toml",
        "api/traces/%2e%2e/info",
        "api/traces/7/info",
        "api/traces/-1/info",
        "api/traces/18446744073709551616/info",
        "api/nothing",
    ] {
        let answer = served.send("GET", &served.path(path), &[], b"");
        assert_eq!(answer.status, 404, "{path}");
        let body = String::from_utf8_lossy(&answer.body);
        assert!(
            !body.contains("[package]") && !body.contains("root:"),
            "{path}: {body}"
        );
    }
}

#[test]
fn hostile_requests_are_refused_and_the_next_is_served() {
    let served = Served::open(&[REAL]);
    let deep = "[".repeat(100_000);
    let columns = vec!["x"; 10_000];
    let many = json!({"table": "cpu_runs", "columns": columns, "range": null, "filter": [],
                      "sort": null, "offset": 0, "first": 10})
    .to_string();
    for (what, body) in [
        ("timeline", ""),
        ("timeline", "{"),
        ("timeline", "null"),
        ("timeline", "[]"),
        ("timeline", "\u{0}"),
        ("timeline", r#"{"table": "cpu_runs"}"#),
        ("timeline", &deep),
        ("pivot", r#"{"table": 1e999}"#),
        ("rows", &many),
        ("wait", r#"{"at_ns": 9223372036854775808}"#),
        ("wait", r#"{"at_ns": 0}"#),
        ("wait", r#"{"thread_row": 4294967295, "at_ns": 0}"#),
        ("wait", r#"{"thread_id": 1, "at_ns": 0, "more": 1}"#),
    ] {
        let path = served.path(&format!("api/traces/0/{what}"));
        let answer = served.post_text(&path, body.as_bytes());
        assert_eq!(answer.status, 400, "{what} {:.60}", body);
        let said = answer.json()["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            said.len() > 10 && said.len() < 2000,
            "{what} {body:.60}: {said:.200}"
        );
    }
    let long = vec![b' '; (1 << 20) + 1];
    let path = served.path("api/traces/0/timeline");
    assert_eq!(served.post_text(&path, &long).status, 413);
    // The request states a longer body than it sends, and disconnects. The server must still answer the next
    // request.
    served.abandon(&path);
    assert_eq!(served.get("api/session")["traces"][0]["id"], 0);
}

#[test]
fn open_traces_are_listed() {
    let stall = Simulated::new("rank-stall", &["duration=2s"]);
    let served = Served::open(&[REAL, &stall.trace]);
    // Facts that need events are complete after the tables are made, so the test waits for them.
    let session = loop {
        let session = served.get("api/session");
        let mut traces = session["traces"].as_array().unwrap().iter();
        if traces.all(|trace| trace["complete"] == true) {
            break session;
        }
    };
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(session["sql"], cfg!(feature = "sql"));
    let [real, simulated] = session["traces"].as_array().unwrap().as_slice() else {
        panic!("{session}");
    };
    assert_eq!((&real["id"], &simulated["id"]), (&json!(0), &json!(1)));
    assert_eq!(
        (&real["simulated"], &simulated["simulated"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(simulated["events"], stall.truth["events"]);
    // The independent reader provides these facts.
    let traces = testdata::traces();
    let (_, truth) = traces
        .iter()
        .find(|(name, _)| name.ends_with(REAL))
        .unwrap();
    assert_eq!(real["events"], truth["total_events"]);
    let size = std::fs::metadata(testdata::path("etl").join(REAL))
        .unwrap()
        .len();
    assert_eq!(real["size_bytes"], size);
    assert_eq!(real["name"], REAL);
    let trace = imports::open(&[testdata::path("etl").join(REAL)]).unwrap();
    let info = Info::from_events(&*trace, Options::default()).unwrap();
    let info = serde_json::to_value(&info).unwrap();
    assert_eq!(served.get("api/traces/0/info"), info);
}

#[test]
fn findings_are_those_of_explain_and_show_their_rows() {
    let flood = Simulated::new("dpc-flood-no-teaming", &["duration=2s"]);
    let served = Served::with_symbols(&[&flood.trace], Some(&flood.symbols));
    let mut findings = served.get("api/traces/0/findings");
    let mut views = 0;
    let mut lists: Vec<&mut Value> = Vec::new();
    let Value::Object(fields) = &mut findings else {
        panic!("{findings}");
    };
    for (name, list) in fields.iter_mut() {
        if name == "findings" || name == "theories" {
            lists.extend(list.as_array_mut().unwrap());
        }
    }
    while let Some(of) = lists.pop() {
        let Value::Object(fields) = of else {
            continue;
        };
        for (name, value) in fields.iter_mut() {
            match name.as_str() {
                "weighed" => lists.extend(value.as_array_mut().unwrap()),
                "evidence" => {
                    for evidence in value.as_array_mut().unwrap() {
                        let view = evidence.as_object_mut().unwrap().remove("view").unwrap();
                        views += usize::from(!view.is_null());
                    }
                }
                _ => {}
            }
        }
    }
    assert!(views > 0, "no evidence can be looked at");
    let more = findings.as_object_mut().unwrap();
    assert_eq!(more.remove("conclusion"), Some(Value::Null));
    let doubtful = json!({"runs": 0, "cpu_ns": 0});
    assert_eq!(more.remove("doubtful"), Some(doubtful));
    assert_eq!(findings, explained(&flood)["explanation"]);
}

/// Returns the output of `laglab explain` for a trace.
fn explained(simulated: &Simulated) -> Value {
    let files = [PathBuf::from(&simulated.trace)];
    let tables = TraceTables::open(&files, Cache::Off, Arc::new(Unobserved)).unwrap();
    let symbols = SymbolOptions::default().with_folder(Path::new(&simulated.symbols));
    let (explained, _) = ExplainedTrace::read(&tables, Scope::default(), &symbols).unwrap();
    serde_json::from_str(&serde_json::to_string(&explained).unwrap()).unwrap()
}

/// Checks that graphs are available while tables are still being made, and that no graph disappears or
/// changes.
#[test]
fn the_overview_grows_until_it_is_complete() {
    let usb = Simulated::new("usb-wdf01000", &["duration=200ms"]);
    let served = Served::open(&[&usb.trace]);
    let mut looks = Vec::new();
    loop {
        let look = served.get("api/traces/0/overview");
        let is_complete = look["complete"] == true;
        looks.push(look["graphs"].as_array().unwrap().clone());
        if is_complete {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let whole = looks.last().unwrap();
    let shows = |table: &str| whole.iter().any(|graph| graph["view"]["table"] == table);
    assert!(shows("cpu_runs") && shows("interrupts"), "{whole:?}");
    for look in &looks {
        assert!(look.iter().all(|graph| whole.contains(graph)), "{look:?}");
    }
}

/// Groups DPCs and service routines by function. Checks that the number of runs of each function is equal to the
/// number in the truth file.
#[test]
fn groups_match_the_truth() {
    let usb = Simulated::new("usb-wdf01000", &["duration=200ms"]);
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for routine in usb.truth["windows"][0]["routines"].as_array().unwrap() {
        if routine["cpu"].is_null() {
            let name = routine["routine"].as_str().unwrap().to_owned();
            *expected.entry(name).or_default() += routine["count"].as_u64().unwrap();
        }
    }
    let served = Served::with_symbols(&[&usb.trace], Some(&usb.symbols));
    let pivot = served.post(
        "api/traces/0/pivot",
        &json!({"table": "interrupts", "keys": ["function"], "path": [], "aggregates": ["rows"],
                "range": null, "filter": [], "sort": {"by": "rows", "descending": true},
                "offset": 0, "first": 1000, "search": null}),
    );
    let found: BTreeMap<String, u64> = pivot["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            let label = group["label"].as_str().unwrap().to_owned();
            (label, group["rows"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(found, expected);
    let all: u64 = expected.values().sum();
    assert_eq!(pivot["rows"], all);
}

/// Asks about a moment within the longest wait of the scenario. Checks that the answer matches the truth
/// file.
#[test]
fn waits_match_the_truth() {
    let stall = Simulated::new("rank-stall", &[]);
    let served = Served::open(&[&stall.trace]);
    let findings = served.get("api/traces/0/findings");
    let longest = &findings["findings"][0];
    assert_eq!(longest["theory"], "long-waits");
    let row = &longest["evidence"][0]["rows"][0];
    let columns = longest["evidence"][0]["columns"].as_array().unwrap();
    let cell = |name: &str| {
        let place = columns.iter().position(|column| column["name"] == name);
        row[place.unwrap()].clone()
    };
    let (from, until) = (
        cell("ready_from_ns").as_i64().unwrap(),
        cell("start_ns").as_i64().unwrap(),
    );
    let at = from + (until - from) / 2;
    let asked = json!({"thread_id": cell("thread_id"), "at_ns": at});
    let story = served.post("api/traces/0/wait", &asked);
    assert_eq!(story["kind"], "ready", "{story:#}");
    assert_eq!(story["run"]["start_ns"], until);
    assert_eq!(story["thread"]["id"], cell("thread_id"));
    assert_eq!(story["findings"][0]["sentence"], longest["sentence"]);
    let verdicts: BTreeMap<&str, &Value> = story["theories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| (verdict["theory"].as_str().unwrap(), &verdict["judgement"]))
        .collect();
    assert_eq!(verdicts["better-rank"], "for");
    assert_eq!(verdicts["higher-priority"], "against");
    let kinds: Vec<&Value> = story["story"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["kind"])
        .collect();
    assert_eq!(kinds.last(), Some(&&json!("ran")));
    assert!(kinds.contains(&&json!("waited_behind")));
    let times: Vec<i64> = story["story"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["at_ns"].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    // The chain of threads that led to the wait has no gaps. Each of its links can be explained by another
    // request.
    let chain = story["chain"].as_array().unwrap();
    assert!(!chain.is_empty());
    for pair in chain.windows(2) {
        assert_eq!(pair[1]["to_ns"], pair[0]["from_ns"]);
    }
    let running = served.post(
        "api/traces/0/wait",
        &json!({"thread_id": cell("thread_id"), "at_ns": until}),
    );
    assert_eq!(running["kind"], "running");
}

#[test]
fn own_presets_are_kept_in_one_file() {
    let served = Served::open(&[REAL]);
    assert_eq!(served.get("api/presets"), json!([]));
    let presets = json!([{"name": "<b>mine</b>", "view": {
        "table": "cpu_runs", "columns": ["process", "|", "cpu_ns:sum"],
        "graph": {"kind": "timeline"}, "range": null, "filter": [], "sort": null}}]);
    served.post("api/presets", &presets);
    assert_eq!(served.get("api/presets"), presets);
    let file = served.presets();
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept, presets);
    // A request with invalid presets changes nothing.
    let path = served.path("api/presets");
    for hostile in [
        r#"[{"name": "x"}]"#,
        r#"{"path": "/tmp/x"}"#,
        r#"[{"name": "", "view": {}}]"#,
    ] {
        assert_eq!(
            served.post_text(&path, hostile.as_bytes()).status,
            400,
            "{hostile}"
        );
    }
    assert_eq!(served.get("api/presets"), presets);
    std::fs::write(&file, "{").unwrap();
    let damaged = served.send("GET", &path, &[], b"");
    assert_eq!(damaged.status, 500);
    assert!(
        damaged.json()["error"]
            .as_str()
            .unwrap()
            .contains("presets.json")
    );
}

#[test]
fn reports_are_separate_pages() {
    let served = Served::open(&[REAL]);
    let hostile = "</script><script>x</script>";
    let view = json!({"table": "cpu_runs", "columns": ["process", "|", "cpu_ns:sum", "rows"],
        "graph": {"kind": "timeline", "measure": "time", "by": "process"},
        "range": [0, 500_000_000], "filter": [{"column": "process", "is_not": [hostile]}]});
    let heat = json!({"table": "interrupts", "columns": ["cpu", "|", "rows"],
        "graph": {"kind": "heat", "measure": "duration_ns"}});
    let histogram = json!({"table": "interrupts", "columns": ["kind", "|", "rows"],
        "graph": {"kind": "histogram", "measure": "duration_ns", "by": "kind"}});
    let lanes = json!({"table": "cpu_runs", "columns": ["cpu", "|", "rows"],
        "graph": {"kind": "lanes"}});
    let flame = json!({"table": "samples", "columns": ["process", "|", "rows"],
        "graph": {"kind": "flame", "measure": "rows", "stack": "stack_id"}});
    let panels = json!([
        {"view": &view},
        {"view": heat, "title": "Heat & hate"},
        {"view": histogram},
        {"view": lanes, "show": "graph"},
        {"view": flame, "inverted": true, "selection": [0, 900_000_000],
            "compare": [0, 100_000_000]},
    ]);
    let body = json!({"trace": 0, "panels": panels, "title": "</title><script>x</script>"});
    let path = served.path("api/report");
    let report = served.post_text(&path, body.to_string().as_bytes());
    assert_eq!(report.status, 200);
    assert_eq!(
        report.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let html = String::from_utf8(report.body).unwrap();
    assert!(html.contains("&lt;/title&gt;&lt;script&gt;"));
    for shown in [
        "On screen",
        "data-picture=\"4\"",
        "From 0.000000 s to 0.500000 s",
        "sum(cpu_ns)",
        "Heat &amp; hate",
        "Query of the graph",
        "\"lanes\":{",
        "Compared with 0.000000 s to 0.100000 s",
    ] {
        assert!(html.contains(shown), "{shown}");
    }
    assert!(!html.contains("<script>x"));
    let (on_screen, _) = html.split_once("id=\"findings\"").unwrap();
    assert_eq!(on_screen.matches("data-picture=").count(), 5);
    let panel = json!({"view": view});
    for panels in [
        json!([{"view": {"table": "none", "columns": []}}]),
        json!([{"table": "none", "columns": []}]),
        json!(vec![panel; 33]),
    ] {
        let body = json!({"trace": 0, "panels": panels}).to_string();
        assert_eq!(served.post_text(&path, body.as_bytes()).status, 400);
    }
}

#[test]
fn two_traces_are_compared_on_request() {
    let [before, after] =
        ["smb-signing-off", "smb-signing-on"].map(|scenario| Simulated::new(scenario, &[]));
    let served = Served::comparing(&before.trace, &after.trace);
    assert_eq!(served.get("api/session")["comparison"], true);
    let comparison = served.get("api/comparison");
    assert_eq!(comparison["before"]["simulated"], true);
    // The scenarios differ only in SMB signing. The driver cng.sys computes the signatures, so the answer must name it.
    let first = comparison["findings"][0]["sentence"].as_str().unwrap();
    let why = comparison["findings"][0]["why"].to_string();
    assert!(
        first.contains("cng.sys") || why.contains("cng.sys"),
        "{comparison}"
    );
    for part in ["tables", "flames", "histograms", "strips"] {
        assert!(!comparison[part].as_array().unwrap().is_empty(), "{part}");
    }

    let alone = Served::open(&[REAL]);
    assert_eq!(alone.get("api/session")["comparison"], false);
    for path in ["api/comparison", "api/comparison/report"] {
        let answer = alone.send("GET", &alone.path(path), &[], &[]);
        assert_eq!(answer.status, 404);
        let error = answer.json()["error"].to_string();
        assert!(error.contains("--against"), "{error}");
    }
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let served = Served::open(&[]);
    let taken = Server::bind(
        served.port,
        Vec::new(),
        false,
        None,
        None,
        Arc::new(Unobserved),
    );
    let refused = taken.err().unwrap().to_string();
    let said = format!("cannot listen on 127.0.0.1:{}", served.port);
    assert!(refused.contains(&said), "{refused}");
}

/// Tests SQL queries, and compares the numbers in views with results of SQL.
#[cfg(feature = "sql")]
mod with_sql {
    use super::*;

    #[test]
    fn errors_have_a_place() {
        let served = Served::open(&[REAL]);
        let path = served.path("api/sql");
        for (query, said, place) in [
            (
                "SELECT 1\nFROM )",
                "invalid SQL",
                json!({"line": 2, "column": 6}),
            ),
            (
                "SELECT * FROM procesess",
                "did you mean `processes`?",
                json!({"line": 1, "column": 15}),
            ),
            ("DROP TABLE processes", "not possible", Value::Null),
            (
                "COPY processes TO '/tmp/x.csv'",
                "not possible",
                Value::Null,
            ),
            (
                "SELECT * FROM '/etc/passwd'",
                "there is no table",
                Value::Null,
            ),
        ] {
            let answer = served.post_text(&path, json!({"query": query}).to_string().as_bytes());
            let refused = answer.json();
            assert_eq!(answer.status, 400, "{query}: {refused}");
            assert!(
                refused["error"].as_str().unwrap().contains(said),
                "{query}: {refused}"
            );
            assert_eq!(refused["place"], place, "{query}");
        }
        let other = json!({"traces": [1], "query": "SELECT 1"}).to_string();
        assert_eq!(served.post_text(&path, other.as_bytes()).status, 400);
    }

    #[test]
    fn the_catalogue_lists_tables_columns_and_functions() {
        let served = Served::open(&[REAL]);
        let catalogue = served.get("api/sql/catalogue");
        let names: Vec<&str> = catalogue["tables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|table| table["name"].as_str().unwrap())
            .collect();
        for name in ["cpu_runs", "cpu_by_process"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let functions = catalogue["functions"].as_array().unwrap();
        assert!(
            functions
                .iter()
                .any(|f| f["signature"] == "bucket(ns, width_ns)")
        );
    }

    /// Checks that each answer for a view has an SQL query that returns the same rows.
    #[test]
    fn views_match_sql() {
        let stall = Simulated::new("rank-stall", &["duration=3s"]);
        let served = Served::open(&[&stall.trace]);
        let sql = |query: &str| {
            let asked = json!({"query": query, "first": 100_000});
            served.post("api/sql", &asked)["rows"]
                .as_array()
                .unwrap()
                .clone()
        };
        let pivot = served.post(
            "api/traces/0/pivot",
            &json!({"table": "cpu_runs", "keys": ["process"], "path": [],
                    "aggregates": ["cpu_ns:sum", "ready_ns:max", "rows"], "range": null,
                    "filter": [], "sort": {"by": "cpu_ns:sum", "descending": true}, "offset": 0,
                    "first": 1000, "search": null}),
        );
        let expected = sql(
            "SELECT process(process_row), sum(cpu_ns), max(ready_ns), count(*) FROM cpu_runs \
             WHERE process_row IS NOT NULL GROUP BY process_row ORDER BY 2 DESC",
        );
        let groups = pivot["groups"].as_array().unwrap();
        let found: BTreeMap<String, Value> = groups
            .iter()
            .map(|group| {
                (
                    group["label"].as_str().unwrap().to_owned(),
                    group["values"].clone(),
                )
            })
            .collect();
        assert!(expected.len() > 3);
        for row in &expected {
            let [label, values @ ..] = row.as_array().unwrap().as_slice() else {
                panic!("{row}");
            };
            assert_eq!(found[label.as_str().unwrap()], json!(values), "{label}");
        }
        let timeline = served.post(
            "api/traces/0/timeline",
            &json!({"table": "cpu_runs", "by": "cpu", "measure": "cpu_ns", "function": "sum",
                    "range": [0, 3_000_000_000_i64], "filter": [], "buckets": 30, "first": 64}),
        );
        let of_cpu = sql("SELECT cpu, count(*) FROM cpu_runs GROUP BY cpu ORDER BY cpu");
        assert_eq!(timeline["series"].as_array().unwrap().len(), of_cpu.len());
    }
}
