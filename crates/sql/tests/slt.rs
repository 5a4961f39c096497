//! Runs the queries in `tests/slt/*.slt` and compares their results with the expected ones.
//!
//! The files have a simple form of the sqllogictest format. They consist of blocks separated by empty lines.
//! A block has a directive, SQL, `----` and the expected result.
//!
//! - `trace simulated NAME [SETTING…]` or `trace real FILE` opens the trace for the queries that follow.
//! - `query` expects rows, with `|` between values.
//! - `error` expects an error whose message contains the expected lines.
//!
//! Expected values in braces are references to the ground truth of the trace. In simulated traces,
//! `{/disks/0/reads}` is a JSON pointer into the sums of the simulation. In real traces, `{Thread 36}` is
//! the number of events of a class and opcode that an independent reader counted. No expected value is
//! copied from results of laglab.

use crate::given;

use given::{TraceWithTruth, answer, ask, real, session, simulated};
use serde_json::Value;
use sql::Settings;

#[test]
fn queries_have_the_expected_results() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt");
    let mut queries = 0;
    for entry in std::fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        queries += run(&path.display().to_string(), &text.replace("\r\n", "\n"));
    }
    assert!(queries > 20, "only {queries} queries");
}

/// Runs all queries of a file and returns their number.
fn run(path: &str, text: &str) -> usize {
    let mut given = None;
    let mut queries = 0;
    for block in text.split("\n\n") {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        let block: Vec<&str> = lines.collect();
        let Some((directive, rest)) = block.split_first() else {
            continue;
        };
        if let Some(trace) = directive.strip_prefix("trace ") {
            let trace = open(trace);
            given = Some((session(&[&trace], Settings::default()), trace));
            continue;
        }
        let (session, trace) = given.as_ref().expect("`trace` is the first directive");
        let end = rest.iter().position(|line| *line == "----");
        let (query, expected) = rest.split_at(end.expect("`----` ends a query"));
        let query = filled(&query.join("\n"), trace);
        let expected = &expected[1..];
        match *directive {
            "query" => {
                let expected: Vec<_> = expected.iter().map(|line| filled(line, trace)).collect();
                assert_eq!(answer(session, &query), expected, "{path}\n{query}");
            }
            "error" => {
                let error = ask(session, &query).expect_err(&query).to_string();
                assert!(
                    expected.iter().all(|part| error.contains(part)),
                    "{path}\n{query}\n{error}"
                );
            }
            other => panic!("{path}: unknown directive `{other}`"),
        }
        queries += 1;
    }
    queries
}

fn open(trace: &str) -> TraceWithTruth {
    let mut words = trace.split(' ');
    match (words.next(), words.next()) {
        (Some("simulated"), Some(name)) => simulated(name, &words.collect::<Vec<_>>()),
        (Some("real"), Some(file)) => real(file),
        _ => panic!("unknown directive `trace {trace}`"),
    }
}

/// Replaces each reference in braces by its value in the ground truth.
fn filled(line: &str, given: &TraceWithTruth) -> String {
    let mut parts = line.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_once('}').expect("braces are closed");
        filled += &truth(place, &given.truth);
        filled += rest;
    }
    filled
}

fn truth(place: &str, truth: &Value) -> String {
    if place.starts_with('/') {
        return match truth
            .pointer(place)
            .unwrap_or_else(|| panic!("no {place} in the truth"))
        {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
    }
    let (class, opcode) = place.split_once(' ').expect("a class and an opcode");
    let events = truth["kernel_events"].as_array().expect("a list").iter();
    let of = events.filter(|e| e["cls"] == class && e["opcode"].as_u64() == opcode.parse().ok());
    of.map(|e| e["count"].as_u64().expect("a number"))
        .sum::<u64>()
        .to_string()
}
