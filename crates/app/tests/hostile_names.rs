//! Names in a trace control neither a terminal, a reader, a page nor a spreadsheet.

mod program;

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;
use testdata::HOSTILE_NAMES;

/// Programs of the scenario `healthy`.
const PROGRAMS: &[&str] = &[
    "dwm.exe",
    "audiodg.exe",
    "explorer.exe",
    "firefox.exe",
    "MsMpEng.exe",
];

/// A trace whose programs have hostile names.
struct Hostile {
    folder: TempDir,
    trace: String,
}

/// Simulates traces that have all hostile names between them.
fn traces() -> Vec<Hostile> {
    let healthy = program::text(&["simulate", "healthy", "--show"]);
    let of = |names: &'static [&'static str]| {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let mut text = healthy.clone();
        for (program, name) in PROGRAMS.iter().zip(names) {
            let quoted = toml::Value::from(*name).to_string();
            let replaced = text.replace(&format!("\"{program}\""), &quoted);
            assert_ne!(replaced, text, "{program}");
            text = replaced;
        }
        fs::write(path("s.toml"), text).unwrap();
        let trace = path("t.etl");
        program::text(&[
            "simulate",
            &path("s.toml"),
            "-o",
            &trace,
            "--duration",
            "1s",
        ]);
        Hostile { folder, trace }
    };
    HOSTILE_NAMES.chunks(PROGRAMS.len()).map(of).collect()
}

/// Returns the characters of a text, except line breaks, that `wording` would escape.
fn harmful(text: &str) -> BTreeSet<char> {
    let lines = text.replace(['\n', '\r', '\t'], "");
    lines
        .chars()
        .filter(|c| wording::Printable(c.encode_utf8(&mut [0; 4])).to_string() != c.to_string())
        .collect()
}

fn check(args: &[&str]) -> String {
    let output = program::laglab(args);
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8(bytes.clone()).unwrap());
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{args:?}: {err}"
    );
    for text in [&out, &err] {
        assert_eq!(harmful(text), BTreeSet::new(), "{args:?}");
    }
    out
}

const REPORTS: &[&[&str]] = &[
    &["process"],
    &["process", "--tree"],
    &["cswitch"],
    &["cpudisk"],
    &["profile"],
    &["stack"],
    &["diskio"],
    &["hardfault"],
    &["focuschange"],
    &["dpcisr", "--summary"],
    &["readythread"],
    &["marks"],
];

#[test]
fn no_command_passes_a_harmful_character() {
    for Hostile { trace, .. } in traces() {
        let trace = trace.as_str();
        for command in ["info", "stats", "explain"] {
            check(&[command, trace]);
            let json: serde_json::Value =
                serde_json::from_str(&check(&[command, trace, "--json"])).unwrap();
            assert!(!json.is_null());
        }
        for report in REPORTS {
            for format in ["text", "json", "csv"] {
                check(&[*report, &["--format", format, trace]].concat());
            }
        }
        for format in ["text", "json", "csv"] {
            check(&["events", trace, "--format", format, "--provider", "Process"]);
        }
    }
}

/// JSON keeps the names, and no cell of CSV is a formula.
#[cfg(feature = "sql")]
#[test]
fn programs_read_the_names_without_harm() {
    let mut found = BTreeSet::new();
    for Hostile { trace, .. } in traces() {
        let query = "SELECT image_name FROM processes";
        check(&["sql", &trace, query]);
        for row in check(&["sql", &trace, query, "--format", "jsonl"]).lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            found.extend(row["image_name"].as_str().map(str::to_owned));
        }
        let cells = check(&["sql", &trace, query, "--format", "csv"]);
        let mut cells = csv::Reader::from_reader(cells.as_bytes());
        for cell in cells.records().map(|record| record.unwrap()[0].to_owned()) {
            assert!(
                !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
                "{cell}"
            );
        }
    }
    for name in HOSTILE_NAMES {
        assert!(found.contains(*name), "{name:?}: {found:?}");
    }
}

#[test]
fn no_page_passes_a_harmful_character() {
    for Hostile { folder, trace, .. } in traces() {
        let page = folder.path().join("r.html");
        check(&["report", &trace, "-o", page.to_str().unwrap()]);
        let page = fs::read_to_string(page).unwrap();
        assert_eq!(harmful(&page), BTreeSet::new());
        assert!(!page.contains("<img"));
    }
}
