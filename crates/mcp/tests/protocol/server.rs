//! Tests of the server with the client of the official SDK.

use std::path::Path;
#[cfg(feature = "sql")]
use std::time::Duration;

use crate::client::{BYTES_PER_TOKEN, Client};
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams, ResourceContents,
};
#[cfg(feature = "sql")]
use rmcp::{
    model::{ClientRequest, Request},
    service::PeerRequestOptions,
};
use serde_json::{Value, json};
use simulated::Simulated;

fn folder(simulated: &Simulated) -> &Path {
    Path::new(&simulated.trace).parent().unwrap()
}

async fn read(client: &Client, uri: &str) -> String {
    let request = ReadResourceRequestParams::new(uri);
    let result = client.service.read_resource(request).await.unwrap();
    let Some(ResourceContents::TextResourceContents { text, .. }) = result.contents.first() else {
        panic!("{uri} is no text");
    };
    assert!(text.len() <= 8_000 * BYTES_PER_TOKEN, "{uri}");
    text.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_answers() {
    let stall = Simulated::new("rank-stall", &[]);
    let client = Client::new(folder(&stall), Some(Path::new(&stall.symbols))).await;

    let traces = client.ask("traces", json!({})).await;
    let handle = traces["traces"][0]["trace"].as_str().unwrap().to_owned();
    assert_eq!(traces["traces"][0]["file"], "“simulated.etl”");
    assert_eq!(
        client.ask("traces", json!({"glob": "*.zip"})).await["traces"],
        json!([])
    );

    let explained = client.ask("explain", json!({"trace": handle})).await;
    assert_eq!(explained["simulated"], true);
    let first = &explained["findings"][0];
    assert_eq!(first["theory"], "long-waits");
    // The scenario says: the worker of LockApp.exe waits 19.493 s because of its rank.
    let sentence = first["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("“LockApp.exe”") && sentence.contains("rank"),
        "{sentence}"
    );
    let delay = first["delay_ns"].as_i64().unwrap();
    assert!((delay - 19_493_000_000).abs() < 10_000_000, "{delay}");

    // The calls that an answer proposes succeed without changes.
    for next in explained["next"].as_array().unwrap() {
        let tool = next["tool"].as_str().unwrap();
        client.ask(tool, next["arguments"].clone()).await;
    }
    let finding = client.ask("finding", json!({"id": first["id"]})).await;
    let weighed = finding["weighed"].as_array().unwrap().iter();
    let rank = weighed
        .clone()
        .find(|verdict| verdict["cause"] == "rank")
        .unwrap();
    assert_eq!(rank["answer"], "yes");
    assert!(
        !finding["evidence"][0]["rows"]
            .as_array()
            .unwrap()
            .is_empty()
    );

    let at = first["during_ns"][0].clone();
    let thread = first["subjects"][0]
        .as_str()
        .unwrap()
        .strip_prefix("thread ")
        .unwrap();
    let thread: u32 = thread.parse().unwrap();
    let story = client
        .ask("story", json!({"thread": thread, "at": at}))
        .await;
    assert_eq!(story["state"], "ready");
    // The scenario says: a thread of System calls KeSetEvent, which readies the worker.
    let told = story["story"].to_string();
    assert!(
        told.contains("“System” (4)") && told.contains("KeSetEvent"),
        "{told}"
    );
    let scoped = client
        .ask("explain", json!({"thread": thread, "at": "40s"}))
        .await;
    let id = scoped["findings"][0]["id"].as_str().unwrap();
    assert_eq!(id.split('/').count(), 3, "{id}");
    client.ask("finding", json!({"id": id})).await;

    check_sums(&client).await;

    let line = client
        .ask(
            "timeline",
            json!({"table": "cpu_runs", "by": "process", "measure": "time", "buckets": 12}),
        )
        .await;
    let values = line["series"][0]["values"].as_array().unwrap();
    assert_eq!(values.len(), 12);
    assert_eq!(
        line["series"][0]["line"].as_str().unwrap().chars().count(),
        12
    );

    let tables = client.ask("schema", json!({})).await;
    for table in tables["tables"].as_array().unwrap() {
        let columns = client.ask("schema", json!({"table": table["name"]})).await;
        assert!(
            !columns["columns"].as_array().unwrap().is_empty(),
            "{table}"
        );
    }
    let compared = client
        .ask("compare", json!({"before": [handle], "after": [handle]}))
        .await;
    assert_eq!(
        compared["findings"],
        json!([]),
        "a trace does not differ from itself"
    );
}

/// Checks that sums are sorted, that a name of an answer selects its rows, and that the next page has rows.
async fn check_sums(client: &Client) {
    let by_process = json!({
        "table": "cpu_runs", "by": ["process"], "measures": ["time", "rows"], "first": 3,
        "where": [{"column": "process", "is_not": ["“Idle” (0)"]}]
    });
    let sums = client.ask("summarize", by_process).await;
    assert_eq!(sums["rows"].as_array().unwrap().len(), 3);
    let times: Vec<i64> = (sums["rows"].as_array().unwrap().iter())
        .map(|row| row[1].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    assert!(sums["totals"][0].as_i64().unwrap() > times.iter().sum::<i64>());
    let named = sums["rows"][0][0].as_str().unwrap();
    let only = json!({"table": "cpu_runs", "where": [{"column": "process", "is": [named]}], "measures": ["time"]});
    let only = client.ask("summarize", only).await;
    assert_eq!(
        only["totals"][0], times[0],
        "a name of an answer selects its rows"
    );
    let after =
        json!({"table": "cpu_runs", "by": ["process", "cpu"], "after": sums["more"]["after"]});
    assert!(
        !client.ask("summarize", after).await["rows"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[cfg(feature = "sql")]
#[tokio::test(flavor = "multi_thread")]
async fn sql_answers_in_pages() {
    let stall = Simulated::new("healthy", &["duration=1s"]);
    let client = Client::new(folder(&stall), None).await;
    let query = "SELECT image_name FROM processes WHERE image_name IS NOT NULL ORDER BY image_name";
    let all = client
        .ask("sql", json!({"query": query, "first": 200}))
        .await;
    let all = all["rows"].as_array().unwrap().clone();
    let (mut paged, mut after) = (Vec::new(), json!(0));
    loop {
        let page = client
            .ask("sql", json!({"query": query, "first": 3, "after": after}))
            .await;
        paged.extend(page["rows"].as_array().unwrap().clone());
        after = page["more"]["after"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(paged, all);
    assert!(all.contains(&json!(["“firefox.exe”"])), "{all:?}");
    for query in [
        "SELECT",
        "SELECT 1; DROP TABLE processes",
        "COPY processes TO 'x.csv'",
    ] {
        assert_eq!(
            client.fail("sql", json!({"query": query})).await,
            "arguments",
            "{query}"
        );
    }
}

/// Checks that a recording of Linux is read. Also checks that each tool that cannot read the recording names tools that
/// can.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn recordings_of_linux_are_read() {
    let folder = tempfile::TempDir::new().unwrap();
    let events =
        "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_process_exec";
    // The recording has all processes of the machine. No other test has a program with this name.
    let work = "cp /bin/true mcp-runs; for i in 1 2 3 4 5; do ./mcp-runs; sleep 0.01; done";
    if testdata::perf::record(folder.path(), events, &[], work).is_none() {
        return;
    }
    let client = Client::new(folder.path(), None).await;
    let trace = json!("perf.data");
    let listed = client.ask("traces", json!({})).await["traces"].clone();
    let listed = listed.as_array().unwrap();
    let is_ours = |listed: &&Value| listed["file"] == "“perf.data”";
    assert_eq!(listed.iter().find(is_ours).unwrap()["system"], "Linux");

    let explained = client.ask("explain", json!({"trace": trace})).await;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let recorded = explained["recorded"].as_str().unwrap();
    assert!(
        recorded.contains(&format!("Linux “{}”", release.trim())),
        "{recorded}"
    );
    for finding in explained["findings"].as_array().unwrap() {
        client.ask("finding", json!({"id": finding["id"]})).await;
    }
    let execs = json!({"trace": trace, "table": "processes", "where": [{"column": "image_name", "is": ["mcp-runs"]}]});
    assert_eq!(client.ask("summarize", execs).await["totals"], json!([5]));
    let time = json!({"trace": trace, "table": "cpu_runs", "by": "process", "measure": "time", "buckets": 4});
    let time = client.ask("timeline", time).await;
    assert!(!time["series"].as_array().unwrap().is_empty());
    for (table, reason) in [
        ("interrupts", "irq:softirq"),
        ("disk_io", "block:block_rq_issue"),
        ("network", "such recordings have no network events"),
    ] {
        let lacks = json!({"trace": trace, "table": table});
        let missing = client.ask("summarize", lacks).await["missing"].to_string();
        assert!(missing.contains(reason), "{missing}");
    }
    for (tool, arguments) in [
        ("story", json!({"trace": trace, "thread": 1, "at": 0})),
        ("compare", json!({"before": [trace], "after": [trace]})),
    ] {
        let result = client.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true));
        let message = crate::client::text(&result);
        assert!(
            message.contains("recording of Linux") && message.contains("`explain`"),
            "{message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_revisions_have_the_same_tools() {
    let empty = tempfile::TempDir::new().unwrap();
    let old = Client::new(empty.path(), None).await;
    let new = Client::stateless(empty.path()).await;
    let [first, second, third] = [
        old.service.list_tools(None).await.unwrap(),
        old.service.list_tools(None).await.unwrap(),
        new.service.list_tools(None).await.unwrap(),
    ];
    let bytes = |list: &rmcp::model::ListToolsResult| serde_json::to_string(&list.tools).unwrap();
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(bytes(&first), bytes(&third));
    // In the newer version of the protocol, lists state how long they stay valid.
    assert!(third.ttl_ms.is_some() && third.cache_scope.is_some());
    assert!(bytes(&first).len() <= 3_500 * BYTES_PER_TOKEN);
    for client in [&old, &new] {
        assert_eq!(client.ask("traces", json!({})).await["traces"], json!([]));
        assert_eq!(client.fail("explain", json!({})).await, "unknown");
        let request = CallToolRequestParams::new("delete_everything");
        assert!(client.service.call_tool(request).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_and_prompts_are_read() {
    let stall = Simulated::new("rank-stall", &[]);
    let client = Client::new(folder(&stall), None).await;
    let explained = client.ask("explain", json!({})).await;
    let uri = explained["findings"][0]["evidence"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let csv = read(&client, &uri).await;
    assert!(
        csv.lines().count() > 1 && csv.lines().all(|line| line.contains(',')),
        "{csv}"
    );
    let (finding, _) = uri.split_once("/evidence/").unwrap();
    let finding: Value = serde_json::from_str(&read(&client, finding).await).unwrap();
    assert_eq!(finding["answer"], explained["findings"][0]["sentence"]);
    assert!(
        read(&client, "laglab://table/cpu_runs")
            .await
            .contains("start_ns")
    );
    for resource in client.service.list_all_resources().await.unwrap() {
        assert!(!read(&client, &resource.uri).await.is_empty());
    }
    for uri in [
        "laglab://table/none",
        "laglab://docs/../SECURITY",
        "laglab://trace/t-00000000/finding/1",
        "file:///etc/passwd",
        "https://example.com/",
        "",
    ] {
        let request = ReadResourceRequestParams::new(uri);
        assert!(
            client.service.read_resource(request).await.is_err(),
            "{uri}"
        );
    }
    for prompt in client.service.list_all_prompts().await.unwrap() {
        let arguments = prompt.arguments.unwrap().into_iter();
        let given = arguments.map(|argument| (argument.name, json!("GIVEN")));
        let request = GetPromptRequestParams::new(prompt.name).with_arguments(given.collect());
        let prompt = client.service.get_prompt(request).await.unwrap();
        let text = serde_json::to_string(&prompt.messages).unwrap();
        assert!(text.contains("GIVEN"), "{text}");
    }
}

/// Checks that cancelled work ends. Four queries that would need hours take all places of the server. Tools that read
/// no tables still answer, and other calls report that the server is busy. After the queries are cancelled, a call gets
/// a place long before the time limit of the queries, which is 30 s.
#[cfg(feature = "sql")]
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_work_ends() {
    let simulated = Simulated::new("healthy", &["duration=1s"]);
    let client = Client::new(folder(&simulated), None).await;
    client
        .ask("sql", json!({"query": "SELECT count(*) FROM cpu_runs"}))
        .await;
    let endless = "SELECT count(*) FROM cpu_runs a, cpu_runs b, cpu_runs c \
                   WHERE a.cpu + b.cpu + c.cpu = -1";
    let endless = json!({"query": endless});
    let mut calls = Vec::new();
    for _ in 0..4 {
        let arguments = endless.as_object().unwrap().clone();
        let request = CallToolRequestParams::new("sql").with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(Request::new(request));
        let options = PeerRequestOptions::no_options();
        let call = client.service.send_cancellable_request(request, options);
        calls.push(call.await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for tool in ["traces", "schema"] {
        let quick = tokio::time::timeout(Duration::from_secs(5), client.ask(tool, json!({})));
        quick.await.expect("a quick tool has its own places");
    }
    let table = json!({"table": "cpu_runs"});
    let busy = tokio::time::timeout(
        Duration::from_secs(20),
        client.fail("summarize", table.clone()),
    );
    assert_eq!(
        busy.await
            .expect("an answer before the limit of the queries"),
        "busy"
    );
    for call in calls {
        call.cancel(None).await.unwrap();
    }
    let answered = tokio::time::timeout(Duration::from_secs(15), client.ask("summarize", table));
    answered.await.expect("the cancelled queries ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_told() {
    let stall = Simulated::new("healthy", &["duration=1s"]);
    let client = Client::new(folder(&stall), None).await;
    for (tool, arguments, kind) in [
        ("explain", json!({"trace": "t-00000000"}), "unknown"),
        ("explain", json!({"trace": "../../etc/passwd"}), "unknown"),
        ("explain", json!({"process": "absent.exe"}), "unknown"),
        ("explain", json!({"thread": 4_000_000_000_u32}), "unknown"),
        ("explain", json!({"at": "yesterday"}), "arguments"),
        ("explain", json!({"at": "1h"}), "arguments"),
        ("explain", json!({"at": 1, "between": [1, 2]}), "arguments"),
        ("explain", json!({"between": [2, 1]}), "arguments"),
        ("explain", json!({"max_tokens": 100_000}), "arguments"),
        ("explain", json!({"other": 1}), "arguments"),
        ("finding", json!({"id": "x"}), "unknown"),
        ("finding", json!({}), "arguments"),
        ("story", json!({"thread": 1, "at": 0}), "unknown"),
        ("summarize", json!({"table": "none"}), "arguments"),
        (
            "summarize",
            json!({"table": "cpu_runs", "by": ["none"]}),
            "arguments",
        ),
        (
            "summarize",
            json!({"table": "cpu_runs", "measures": ["none"]}),
            "arguments",
        ),
        (
            "summarize",
            json!({"table": "cpu_runs", "first": 51}),
            "arguments",
        ),
        (
            "summarize",
            json!({"table": "cpu_runs", "where": [{"column": "cpu"}]}),
            "arguments",
        ),
        (
            "timeline",
            json!({"table": "cpu_runs", "buckets": 61}),
            "arguments",
        ),
        ("schema", json!({"table": "cpu_run"}), "unknown"),
        ("compare", json!({"before": [], "after": []}), "arguments"),
        (
            "compare",
            json!({"before": ["x"], "after": ["y"], "by": "z"}),
            "arguments",
        ),
    ] {
        assert_eq!(
            client.fail(tool, arguments.clone()).await,
            kind,
            "{tool} {arguments}"
        );
    }
}
