//! The questions in `tests/slt/*.slt` have the answers that stand below them.
//!
//! The files are in a simple form of sqllogictest's: blocks between empty lines, each a
//! directive, SQL, `----`, and what is expected.
//!
//! - `trace simulated NAME [SETTING…]` or `trace real FILE` begins questions about another trace.
//! - `query` expects rows, with `|` between values.
//! - `error` expects an error that has the line in it.
//!
//! Expected values that are in braces come from the trace's truth: `{/disks/0/reads}` is a pointer
//! into what the simulation summed while it ran, `{Thread 36}` the number of events of a class and
//! opcode that an independent reader counted in a real trace. Nothing expected is copied from
//! laglab's own answers.

mod given;

use given::{Given, answer, ask, real, session, simulated};
use serde_json::Value;
use sql::Settings;

#[test]
fn questions_have_their_answers() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt");
    let mut asked = 0;
    for entry in std::fs::read_dir(folder).expect("there are questions") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("it is text");
        asked += run(&path.display().to_string(), &text.replace("\r\n", "\n"));
    }
    assert!(asked > 20, "only {asked} questions were asked");
}

/// Asks all questions of a file; says how many.
fn run(path: &str, text: &str) -> usize {
    let mut given = None;
    let mut asked = 0;
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
        let (session, trace) = given.as_ref().expect("`trace` comes first");
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
            other => panic!("{path}: what is `{other}`?"),
        }
        asked += 1;
    }
    asked
}

fn open(trace: &str) -> Given {
    let mut words = trace.split(' ');
    match (words.next(), words.next()) {
        (Some("simulated"), Some(name)) => simulated(name, &words.collect::<Vec<_>>()),
        (Some("real"), Some(file)) => real(file),
        _ => panic!("what is `trace {trace}`?"),
    }
}

/// The line with the truth in place of what stands in braces.
fn filled(line: &str, given: &Given) -> String {
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
