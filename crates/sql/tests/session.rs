//! What a session does besides answering: reading no more than it must, several traces, limits.

mod given;

use std::cell::Cell;

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
fn a_time_range_gives_the_rows_within_it() {
    // Compared with counting the rows of the whole table one by one.
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
        // Processes are referred to by rows of any time.
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
            let of = match text.contains("USING") {
                true => of.replace("WHERE trace", "WHERE samples.trace"),
                false => of,
            };
            let of = match text.contains("FROM (") {
                true => format!(
                    "SELECT count(*) FROM (SELECT DISTINCT module(image_row) FROM samples \
                     WHERE trace = '{name}')"
                ),
                false => of,
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
fn moments_are_those_of_the_traces_clock() {
    let given = real("filtrace__etw.etl");
    let clock = given.store.trace().clock();
    let start = clock.to_unix_ns(clock.origin());
    let session = session(&[&given], Settings::default());
    assert_eq!(
        answer(&session, "SELECT CAST(utc(5) AS BIGINT)"),
        [(start + 5).to_string()]
    );
}

#[test]
fn a_query_stops_when_it_shall() {
    let given = simulated("rank-stall", &[]);
    let session = session(&[&given], Settings::default());
    // Some 10^14 rows.
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
    // What still computes is in nobody's way.
    assert_eq!(answer(&session, "SELECT 2"), ["2"]);
}

#[test]
fn making_tables_stops_when_it_shall() {
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
fn too_much_memory_is_refused_with_the_limit() {
    let given = simulated("rank-stall", &[]);
    let settings = Settings {
        memory_bytes: 1 << 20,
        ..Settings::default()
    };
    let session = session(&[&given], settings);
    let text = "SELECT array_agg(address) FROM samples";
    let error = ask(&session, text).unwrap_err();
    assert!(
        matches!(error, SqlError::Memory { limit_mib: 1, .. }),
        "{error}"
    );
}

#[test]
fn names_of_traces_differ() {
    let given = real("perfview__smallEtlFile.etl");
    let twice = ["x", "x"].map(|name| sql::NamedTrace {
        name: name.to_owned(),
        store: given.store.clone(),
    });
    let outcome = sql::Session::new(twice.into(), Settings::default());
    assert!(matches!(outcome, Err(SqlError::SameName(_))));
}

#[test]
fn every_view_answers() {
    let given = simulated("healthy", &["duration=2s"]);
    let session = session(&[&given], Settings::default());
    for view in sql::view_names() {
        let rows = ask(&session, &format!("SELECT * FROM {view} LIMIT 3"));
        assert!(rows.is_ok(), "{view}: {}", rows.unwrap_err());
    }
}
