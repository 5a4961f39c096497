//! Checks that numbers of real traces and of damaged copies are possible: no share above 100 %, no delay that is longer than
//! the recording, no count of CPUs that no machine has.

use std::path::Path;

use serde_json::Value;
use simulated::{list, number};

use crate::program;

/// Reports whose numbers are checked.
const REPORTS: [&str; 6] = [
    "cpudisk",
    "dpcisr",
    "profile",
    "diskio",
    "hardfault",
    "cswitch",
];

/// Longest time of a recording that is believed, in nanoseconds: ten years.
const LONGEST_NS: i64 = 10 * 366 * 86_400 * 1_000_000_000;

/// Offset of the number of processors in the header of a log file.
const PROCESSORS: usize = 72 + 32 + 0xC;

/// Asserts that each percentage in a text is at most 100 %, and that no duration is absurd.
fn check_text(text: &str, about: &str) {
    for (place, _) in text.match_indices(" %") {
        let before = text[..place].rsplit(|c: char| !(c.is_ascii_digit() || ".,-".contains(c)));
        let digits = before.take(1).collect::<String>().replace(',', "");
        if let Ok(share) = digits.parse::<f64>() {
            assert!(
                (0.0..=100.0).contains(&share),
                "{about}: {share} % in {}",
                line(text, place)
            );
        }
    }
    for absurd in [
        "2562047 h",
        "4,294,967,295",
        "65,535 CPUs",
        " 0 CPUs",
        "NaN",
        "inf %",
    ] {
        let place = text.find(absurd);
        assert!(
            place.is_none(),
            "{about}: {}",
            line(text, place.unwrap_or(0))
        );
    }
}

/// Returns the line at a place of a text.
fn line(text: &str, place: usize) -> &str {
    let from = text[..place].rfind('\n').map_or(0, |at| at + 1);
    let to = text[place..].find('\n').map_or(text.len(), |at| place + at);
    &text[from..to]
}

/// Asserts that the numbers of an explanation are possible.
fn check_explanation(report: &Value, about: &str) {
    let trace = &report["info"]["trace"];
    let last = trace["last_event_ns"].as_i64().unwrap_or(0);
    let first = trace["first_event_ns"].as_i64().unwrap_or(0);
    let recorded_ns = last.saturating_sub(first).max(0);
    let explanation = &report["explanation"];
    let findings = list(explanation, "findings");
    for finding in findings {
        let delay = &finding["delay"];
        if !delay.is_null() {
            let ns = number(delay, "ns");
            let how = &delay["how"];
            assert!(
                (0..=recorded_ns).contains(&ns),
                "{about}: delay {ns} ns {how}"
            );
        }
        check_evidence(finding, about);
        for verdict in finding["weighed"].as_array().into_iter().flatten() {
            check_evidence(verdict, about);
        }
    }
    for verdict in list(explanation, "theories") {
        check_evidence(verdict, about);
    }
    let stated = report["info"]["cpus"]["stated"].as_u64();
    assert!(
        stated.is_none_or(|cpus| (1..=2048).contains(&cpus)),
        "{about}: {stated:?} CPUs"
    );
}

fn check_evidence(of: &Value, about: &str) {
    for evidence in of["evidence"].as_array().into_iter().flatten() {
        for (place, column) in list(evidence, "columns").iter().enumerate() {
            for row in list(evidence, "rows") {
                let Some(cell) = row[place].as_f64() else {
                    continue;
                };
                let is_possible = match column["unit"].as_str() {
                    Some("percent") => (0.0..=100.0).contains(&cell),
                    Some("count") => cell >= 0.0,
                    Some("duration") => cell.abs() <= LONGEST_NS as f64,
                    _ => true,
                };
                assert!(
                    is_possible,
                    "{about}: {cell} in {column} of {}",
                    evidence["title"]
                );
            }
        }
    }
}

/// Checks the outputs of a trace. A trace that cannot be read is refused with exit code 2.
fn check(folder: &Path, trace: &str, about: &str) {
    let run = |arguments: &[&str]| {
        let output = program::laglab_in(folder, arguments);
        let code = output.status.code();
        assert!(
            matches!(code, Some(0..=2)),
            "{about}: {arguments:?}: {code:?}"
        );
        (code == Some(0)).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if let Some(json) = run(&["explain", trace, "--no-cache", "--json"]) {
        check_explanation(&serde_json::from_str(&json).expect("output is JSON"), about);
    }
    for arguments in [
        &["explain", trace, "--no-cache"][..],
        &["explain", trace, "--no-cache", "--all"],
        &["report", trace, "--no-cache", "-o", "-"],
        &["info", trace],
    ] {
        if let Some(text) = run(arguments) {
            // The script at the end of a page has words of JavaScript, such as NaN.
            let (text, _) = text.rsplit_once("<script nonce=").unwrap_or((&text, ""));
            check_text(text, &format!("{about}: {arguments:?}"));
        }
    }
    for report in REPORTS {
        if let Some(text) = run(&[report, trace]) {
            check_text(&text, &format!("{about}: {report}"));
        }
    }
}

#[test]
fn numbers_of_real_traces_are_possible() {
    let folder = testdata::path("etl");
    testdata::for_each_in_parallel(testdata::traces(), |(path, _)| {
        let name = path.trim_start_matches("etl/");
        check(&folder, name, name);
    });
}

#[test]
fn numbers_of_damaged_traces_are_possible() {
    const LARGEST: usize = 4 << 20;
    testdata::for_each_in_parallel(testdata::traces(), |(path, _)| {
        let whole = testdata::bytes(&path);
        if whole.len() > LARGEST || whole.len() < PROCESSORS + 4 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let cpus = |number: u32| {
            let mut bytes = whole.clone();
            bytes[PROCESSORS..PROCESSORS + 4].copy_from_slice(&number.to_le_bytes());
            bytes
        };
        let mut zeroed = whole.clone();
        let middle = whole.len() / 2;
        let until = (middle + 65_536).min(whole.len());
        zeroed[middle..until].fill(0);
        let copies = [
            ("no CPUs", cpus(0)),
            ("65,535 CPUs", cpus(65_535)),
            ("4,294,967,295 CPUs", cpus(u32::MAX)),
            ("zeros in the middle", zeroed),
            ("half of the file", whole[..middle].to_vec()),
        ];
        for (damage, bytes) in copies {
            std::fs::write(folder.path().join("damaged.etl"), bytes).unwrap();
            check(
                folder.path(),
                "damaged.etl",
                &format!("{path} with {damage}"),
            );
        }
    });
}
