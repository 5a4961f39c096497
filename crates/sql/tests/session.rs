//! Tests of sessions: skipped chunks, several traces, cancellation, limits.

use crate::given;

use std::cell::Cell;
use std::sync::Barrier;
use std::thread;

use given::{answer, ask, real, session, simulated};
use sql::{Settings, SqlError};
use tables::{Options, Table};

#[test]
fn only_chunks_in_the_time_range_are_read() {
    let given = simulated("rank-stall", &[]);
    let session = session(&[&given], Settings::default());
    let options = Options::default();
    let stored = given.store.table(Table::ContextSwitches, options).unwrap();
    let chunks = stored.chunks();
    let read = |condition: &str| {
        let text = format!("SELECT max(cpu) FROM context_switches WHERE {condition}");
        let statement = &sql::parse(&text).unwrap()[0];
        let query = session.prepare(statement, options).unwrap();
        let rows: Result<Vec<_>, _> = query.batches(&|| true).unwrap().collect();
        rows.unwrap();
        query.chunks_read()
    };
    let (first, last) = (chunks[0].first, chunks[chunks.len() - 1].last);
    assert_eq!(read("true"), chunks.len());
    assert_eq!(read(&format!("time_ns < {first}")), 0);
    assert_eq!(read(&format!("time_ns > {last}")), 0);
    assert_eq!(read(&format!("time_ns > {last}.0 + 5000.0")), 0);
    assert_eq!(read("time_ns BETWEEN 5 AND 4"), 0);
    assert_eq!(read(&format!("time_ns <= {first}")), 1);
    assert_eq!(read(&format!("time_ns = {last} AND cpu >= 0")), 1);
}

#[test]
fn a_time_range_selects_the_rows_within_it() {
    // The expected number is a count over all rows of the table.
    let given = simulated("rank-stall", &[]);
    let options = Options::default();
    let stored = given.store.table(Table::ContextSwitches, options).unwrap();
    let mut times = Vec::new();
    for chunk in 0..stored.chunks().len() {
        let batch = stored.read(chunk, &["time_ns"]).unwrap();
        let view = tables::ContextSwitchesView::new(&batch).unwrap();
        times.extend_from_slice(view.time_ns);
    }
    let ours = session(&[&given], Settings::default());
    let mut rng = testdata::Rng(7);
    for _ in 0..20 {
        let (mut from, mut to) = (times[rng.below(times.len())], times[rng.below(times.len())]);
        if from > to {
            (from, to) = (to, from);
        }
        let within = times
            .iter()
            .filter(|time| (from..=to).contains(time))
            .count();
        let text = format!(
            "SELECT count(*), count(new_priority) FROM context_switches \
             WHERE time_ns >= {from} AND time_ns <= {to}"
        );
        assert_eq!(answer(&ours, &text), [format!("{within}|{within}")]);
        let ranged = session(
            &[&given],
            Settings {
                range: Some(from..=to),
                ..Settings::default()
            },
        );
        let all = "SELECT count(*), count(new_priority) FROM context_switches";
        assert_eq!(answer(&ranged, all), [format!("{within}|{within}")]);
        // The time range does not restrict the table `processes`, because rows of any time refer to
        // processes.
        let processes = "SELECT count(*) FROM processes";
        assert_eq!(answer(&ranged, processes), answer(&ours, processes));
    }
}

#[test]
fn the_first_rows_by_time_are_found_without_sorting() {
    let given = simulated("rank-stall", &[]);
    let session = session(&[&given], Settings::default());
    let plan = answer(
        &session,
        "EXPLAIN SELECT time_ns FROM context_switches ORDER BY time_ns LIMIT 5",
    );
    let plan = plan.join("\n");
    assert!(plan.contains("Scan"), "{plan}");
    assert!(!plan.contains("SortExec"), "{plan}");
}

#[test]
fn rows_of_several_traces_do_not_mix() {
    let (one, other) = (
        real("filtrace__etw.etl"),
        simulated("healthy", &["duration=2s"]),
    );
    let both = session(&[&one, &other], Settings::default());
    for text in [
        "SELECT count(*) FROM samples",
        "SELECT count(*) FROM processes",
        "SELECT count(*) FROM samples JOIN processes USING (process_row)",
        "SELECT count(DISTINCT process(process_row)) FROM samples",
        "SELECT count(process) FROM cpu_by_process",
        "SELECT count(*) FROM (SELECT DISTINCT module(image_row) FROM samples)",
    ] {
        let mut lines = Vec::new();
        for (name, given) in [("a", &one), ("b", &other)] {
            let alone = session(&[given], Settings::default());
            let of = format!("{text} WHERE trace = '{name}'");
            let of = if text.contains("USING") {
                of.replace("WHERE trace", "WHERE samples.trace")
            } else {
                of
            };
            let of = if text.contains("FROM (") {
                format!(
                    "SELECT count(*) FROM (SELECT DISTINCT module(image_row) FROM samples \
                     WHERE trace = '{name}')"
                )
            } else {
                of
            };
            assert_eq!(answer(&both, &of), answer(&alone, text), "{of}");
            lines.extend(answer(&alone, text));
        }
        assert_ne!(lines[0], "0");
        assert_ne!(lines[1], "0");
    }
    let error = ask(&both, "SELECT utc(time_ns) FROM samples").unwrap_err();
    assert!(error.to_string().contains("utc(time_ns, trace)"), "{error}");
    assert_eq!(
        answer(
            &both,
            "SELECT count(utc(time_ns, trace)) = count(*) FROM samples"
        ),
        ["true"]
    );
}

#[test]
fn utc_follows_the_clock_of_the_trace() {
    let given = real("filtrace__etw.etl");
    let trace = etl::open(&[testdata::path("etl/filtrace__etw.etl")]).unwrap();
    let clock = trace.clock();
    let start = clock.to_unix_ns(clock.origin());
    let session = session(&[&given], Settings::default());
    assert_eq!(
        answer(&session, "SELECT CAST(utc(5) AS BIGINT)"),
        [(start + 5).to_string()]
    );
}

#[test]
fn a_query_can_be_cancelled() {
    let given = simulated("rank-stall", &[]);
    let session = session(&[&given], Settings::default());
    // This query combines about 10^14 rows.
    let text = "SELECT a.cpu FROM samples a, samples b, samples c WHERE a.time_ns + b.time_ns < 0";
    let query = session
        .prepare(&sql::parse(text).unwrap()[0], Options::default())
        .unwrap();
    let asked = Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() < 4
    };
    let mut batches = query.batches(&go_on).unwrap();
    assert!(matches!(batches.next(), Some(Err(SqlError::Cancelled))));
    assert!(batches.next().is_none());
    // Threads of the cancelled query may still compute. They must not block other queries.
    assert_eq!(answer(&session, "SELECT 2"), ["2"]);
}

#[test]
fn building_tables_can_be_cancelled() {
    let given = simulated("healthy", &["duration=2s"]);
    let session = session(&[&given], Settings::default());
    let options = Options {
        progress: &|_| false,
    };
    let statement = &sql::parse("SELECT * FROM samples").unwrap()[0];
    let outcome = session.prepare(statement, options);
    assert!(matches!(outcome.unwrap_err(), SqlError::Cancelled));
}

#[test]
fn a_query_above_its_memory_limit_fails() {
    let given = simulated("rank-stall", &[]);
    let settings = Settings {
        memory_bytes: 1 << 20,
        ..Settings::default()
    };
    let session = session(&[&given], settings);
    let text = "SELECT array_agg(address) FROM samples";
    let error = ask(&session, text).unwrap_err();
    assert!(
        matches!(error, SqlError::Memory { limit_mib: 1 }),
        "{error}"
    );
}

#[test]
fn equal_names_of_traces_are_refused() {
    let given = real("perfview__smallEtlFile.etl");
    let twice = ["x", "x"].map(|name| sql::NamedTrace {
        name: name.to_owned(),
        store: given.store.clone(),
    });
    let outcome = sql::Session::new(twice.into(), Settings::default());
    assert!(matches!(outcome, Err(SqlError::SameName(_))));
}

#[test]
fn every_view_can_be_queried() {
    let given = simulated("healthy", &["duration=2s"]);
    let session = session(&[&given], Settings::default());
    for view in sql::view_names() {
        let rows = ask(&session, &format!("SELECT * FROM {view} LIMIT 3"));
        assert!(rows.is_ok(), "{view}: {}", rows.unwrap_err());
    }
}

/// Checks that statements with thousands of nested operators are answered or refused. Recursion over such statements
/// can overflow a small stack and so end the process.
#[test]
fn deep_statements_are_answered_or_refused() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    let terms = 3_900;
    let ors: Vec<String> = (0..terms / 2)
        .map(|id| format!("thread_id = {id}"))
        .collect();
    let ors = ors.join(" OR ");
    let same = format!(
        "SELECT count(*) FROM samples WHERE thread_id BETWEEN 0 AND {}",
        terms / 2 - 1
    );
    assert_eq!(
        answer(
            &session,
            &format!("SELECT count(*) FROM samples WHERE {ors}")
        ),
        answer(&session, &same)
    );
    let sum = format!("SELECT 1{}", "+1".repeat(terms / 20));
    assert_eq!(answer(&session, &sum), ["196"]);
    let sums = "+ cpu".repeat(terms / 20 - 1);
    answer(&session, &format!("SELECT max(cpu {sums}) FROM samples"));
    let union = format!(
        "SELECT count(*) FROM (SELECT 1{})",
        " UNION ALL SELECT 1".repeat(terms / 8)
    );
    assert_eq!(answer(&session, &union), ["488"]);
    let text = format!("SELECT 'a'{}", " || 'a'".repeat(terms / 4));
    assert_eq!(answer(&session, &text), ["a".repeat(terms / 4 + 1)]);

    let error = ask(&session, &format!("SELECT 1{}", "+1".repeat(60_000))).unwrap_err();
    assert!(matches!(error, SqlError::TooComplex { .. }), "{error}");
    // The complexity of a view counts in each statement that uses the view.
    let create = format!("CREATE VIEW deep AS SELECT 1{} AS a", "+1".repeat(150));
    ask(&session, &create).unwrap();
    assert_eq!(answer(&session, "SELECT a FROM deep"), ["151"]);
    let error = ask(&session, &format!("SELECT a{} FROM deep", "+1".repeat(150))).unwrap_err();
    assert!(matches!(error, SqlError::TooComplex { .. }), "{error}");
}

#[test]
fn columns_of_many_inner_queries_are_limited() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    // Each level doubles the value. If the filter moves below the projections, each level also doubles its
    // expression.
    let doubled = |levels: u32| {
        let inner = (0..levels).fold("SELECT 1 AS a".to_owned(), |inner, _| {
            format!("SELECT a + a AS a FROM ({inner})")
        });
        format!("SELECT a FROM ({inner}) WHERE a > 0 AND a < 100000")
    };
    assert_eq!(answer(&session, &doubled(8)), ["256"]);
    let error = ask(&session, &doubled(18)).unwrap_err();
    assert!(matches!(error, SqlError::TooNested), "{error}");
    for level in 1..30 {
        let of = match level {
            1 => "(SELECT 1 AS a)".to_owned(),
            _ => format!("s{}", level - 1),
        };
        let view = format!("CREATE VIEW s{level} AS SELECT a + a AS a FROM {of}");
        if let Err(error) = ask(&session, &view) {
            assert!(matches!(error, SqlError::TooNested), "{error}");
            assert!(level > 8, "level {level}");
            return;
        }
    }
    panic!("views of any depth are possible");
}

#[test]
fn equal_inner_queries_are_all_computed() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    for (text, rows) in [
        (
            "SELECT concat(a, 'x') AS a FROM (SELECT concat(a, 'x') AS a FROM (SELECT 'y' AS a))",
            &["yxx"][..],
        ),
        (
            "SELECT a * 2 AS a, b FROM (SELECT a * 2 AS a, b FROM (SELECT 3 AS a, 'k' AS b)) WHERE a > 5",
            &["12|k"],
        ),
        (
            "SELECT a FROM (SELECT 1 AS a) WHERE a IN (SELECT b - 1 AS b FROM (SELECT b - 1 AS b FROM (SELECT 3 AS b)))",
            &["1"],
        ),
        (
            "CREATE VIEW twice AS SELECT -a AS a FROM (SELECT -a AS a FROM (SELECT 5 AS a))",
            &[],
        ),
        ("SELECT a FROM twice", &["5"]),
    ] {
        assert_eq!(answer(&session, text), rows, "{text}");
    }
}

#[test]
fn long_lists_are_answered() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    let ids: Vec<String> = (0..60_000).map(|id| id.to_string()).collect();
    let listed = format!(
        "SELECT count(*) FROM samples WHERE thread_id IN ({})",
        ids.join(",")
    );
    let between = "SELECT count(*) FROM samples WHERE thread_id BETWEEN 0 AND 59999";
    assert_eq!(answer(&session, &listed), answer(&session, between));
}

#[test]
fn an_overflow_is_an_error() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    for text in [
        "SELECT 9223372036854775807 + 1",
        "SELECT 1 << 63",
        "SELECT max(time_ns << 40) FROM samples",
        "SELECT -9223372036854775807 - 2",
        "SELECT sum(time_ns * 9000000000) FROM samples",
        "SELECT max(9223372036854775800 + cpu * 10) FROM samples WHERE cpu > 0",
        "SELECT sum(9223372036854775807 - cpu) FROM samples",
        "SELECT cpu, sum(9223372036854775807 - cpu) FROM samples GROUP BY cpu",
        "SELECT sum(9223372036854775807 - cpu) OVER (ORDER BY time_ns ROWS 3 PRECEDING) FROM samples",
    ] {
        let error = ask(&session, text).unwrap_err().to_string();
        assert!(error.to_lowercase().contains("overflow"), "{text}: {error}");
    }
    for text in ["SELECT 1 << 200", "SELECT 1 >> 64", "SELECT 1 << -1"] {
        let error = ask(&session, text).unwrap_err().to_string();
        assert!(error.contains("give 0 to 63"), "{text}: {error}");
    }
    let shifted = answer(
        &session,
        "SELECT 1 << 62, 3 >> 1, -8 >> 1, -1 << 63, 5 << NULL",
    );
    assert_eq!(
        shifted,
        ["4611686018427387904|1|-4|-9223372036854775808|NULL"]
    );
    // The results and their column names stay the same if nothing overflows.
    assert_eq!(
        answer(
            &session,
            "SELECT 2 + 3 * 4 - 5, 7 - 2.5, 3 * CAST(2 AS SMALLINT)"
        ),
        ["9|4.5|6"]
    );
    assert_eq!(
        answer(
            &session,
            "SELECT sum(x) FROM (VALUES (9223372036854775807), (-1), (NULL)) AS t(x)"
        ),
        ["9223372036854775806"]
    );
    assert_eq!(
        answer(
            &session,
            "SELECT sum(DISTINCT x) FROM (VALUES (1), (1), (2)) AS t(x)"
        ),
        ["3"]
    );
    assert_eq!(
        answer(
            &session,
            "SELECT k + 1 AS n, sum(x) FROM (VALUES (1, 2), (1, 3)) AS t(k, x) GROUP BY k + 1"
        ),
        ["2|5"]
    );
}

#[test]
fn tables_of_the_session_are_bounded() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let settings = Settings {
        memory_bytes: 16 << 20,
        ..Settings::default()
    };
    let session = session(&[&given], settings);
    let create = |name: &str, from: &str| ask(&session, &format!("CREATE TABLE {name} AS {from}"));
    let error = create("large", "SELECT a.time_ns, b.cpu FROM samples a, samples b").unwrap_err();
    assert!(
        matches!(error, SqlError::Tables { limit_mib: 16 }),
        "{error}"
    );
    // Each table needs about 8 MB.
    let some = "SELECT value FROM range(0, 1000000)";
    create("first", some).unwrap();
    assert_eq!(
        answer(&session, "SELECT sum(value) FROM first"),
        ["499999500000"]
    );
    create("second", some).unwrap();
    // If a table exists already, the table and its counted size must not change.
    create("second", "SELECT 1 AS value").unwrap_err();
    create("IF NOT EXISTS second", "SELECT 1 AS value").unwrap();
    assert_eq!(answer(&session, "SELECT count(*) FROM second"), ["1000000"]);
    let error = create("third", some).unwrap_err();
    assert!(matches!(error, SqlError::Tables { .. }), "{error}");
    ask(&session, "DROP TABLE first").unwrap();
    create("third", some).unwrap();
    create("third", some).unwrap_err();
    answer(&session, "SELECT count(*) FROM second, (SELECT 1) AS one");
}

#[test]
fn a_query_that_is_too_wide_is_refused() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    let columns = |count| format!("SELECT {}", vec!["1"; count].join(", "));
    let joined = |count| format!("SELECT 1 FROM {} WHERE FALSE", tables(count));
    fn tables(count: usize) -> String {
        let tables: Vec<String> = (0..count).map(|number| format!("cpus b{number}")).collect();
        tables.join(", ")
    }
    ask(&session, &joined(100)).unwrap();
    let inner = format!("SELECT cpu IN (SELECT 1 UNION {}) FROM cpus", joined(101));
    for text in [&joined(101), &inner] {
        let error = ask(&session, text).unwrap_err();
        assert!(matches!(error, SqlError::TooManyJoins), "{error}");
    }
    let explained = format!("EXPLAIN {}", columns(4_001));
    for text in [&columns(4_001), &explained] {
        let error = ask(&session, text).unwrap_err();
        assert!(matches!(error, SqlError::TooManyColumns), "{error}");
    }
}

#[test]
fn a_function_that_would_fill_the_memory_is_refused() {
    let given = simulated("rank-stall", &["duration=1s"]);
    let session = session(&[&given], Settings::default());
    for text in [
        "SELECT repeat('a', 2000000000)",
        "SELECT lpad('a', 2147483647, 'b')",
        "SELECT rpad('a', 2147483647)",
        "SELECT repeat(repeat('a', 1000000), 1000)",
        "SELECT array_repeat(1, 1000000000)",
        "SELECT range(1000000000)",
        "SELECT generate_series(-1000000000, 1000000000)",
        "SELECT range(utc(0), utc(4294967296), INTERVAL '1 nanosecond')",
        "SELECT generate_series(DATE '0001-01-01', DATE '9999-01-01', INTERVAL '1 second')",
        "SELECT array_resize(make_array(1), 1000000000, 0)",
        "SELECT replace(repeat('a', 1000000), 'a', repeat('b', 1000))",
        "SELECT regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000), 'g')",
        "SELECT sum(length(repeat(CAST(cpu AS VARCHAR), 1000000))) FROM samples",
        "SELECT array_repeat(array_repeat(array_repeat(1, 1000), 1000), 1000)",
        "SELECT array_repeat(array_repeat(cpu, 10000), 10000) FROM samples",
        "SELECT array_concat(array_repeat(cpu, 20000), array_repeat(cpu, 20000)) FROM samples",
        "SELECT (repeat('a', 1000000) LIKE repeat('%a', 1000000) || 'b')",
        "WITH RECURSIVE r(s) AS (SELECT 'a' UNION ALL SELECT s || s FROM r) SELECT max(length(s)) FROM r",
    ] {
        let error = ask(&session, text).unwrap_err().to_string();
        // DataFusion may compute an argument only once. The result is then a constant that is too large.
        let is_bounded = error.contains("at most 256 MiB")
            || error.contains("as a constant; at most 1 MiB")
            || text.contains("(repeat('a'") && error.contains("at most 32 KiB");
        assert!(is_bounded, "{text}: {error}");
    }
    let literal = format!("SELECT '{}' FROM samples", "a".repeat(100_000));
    for text in ["SELECT repeat('a', 1000000) FROM samples", &literal] {
        let error = ask(&session, text).unwrap_err().to_string();
        assert!(error.contains("at most 32 KiB"), "{error}");
    }
    assert_eq!(
        answer(
            &session,
            "SELECT repeat('ab', 2), lpad('a', 3, 'x'), length(repeat('a', 1000000))"
        ),
        ["abab|xxa|1000000"]
    );
    assert_eq!(
        answer(
            &session,
            "SELECT concat('a', 1, NULL, 'b'), replace('aXa', 'X', 'yy')"
        ),
        ["a1b|ayya"]
    );
}

/// Checks that threads may use the same view of a new session for the first time at the same moment, as two windows of
/// the page do.
#[test]
fn threads_share_the_views_of_a_session() {
    let given = simulated("healthy", &[]);
    for _ in 0..20 {
        let session = session(&[&given], Settings::default());
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    for (view, _) in sql::views() {
                        session.columns(view).unwrap();
                    }
                });
            }
        });
    }
}
