//! Checks that commands in README.md and in pages of docs/ print the output that these documents show.

mod program;

use simulated::Simulated;

/// Command in a document, and the output that the document shows below it. A line `…` matches any number of
/// lines.
struct Shown {
    arguments: Vec<String>,
    lines: Vec<String>,
}

fn shown(markdown: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let blocks = markdown.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        if let Some(command) = line.strip_prefix("$ laglab ") {
            let arguments = command.split(' ').map(str::to_owned).collect();
            let lines = Vec::new();
            all.push(Shown { arguments, lines });
        } else {
            all.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    all
}

/// Returns the first shown line that the output does not contain.
fn missing<'s>(shown: &'s [String], printed: &str) -> Option<&'s str> {
    let mut rest = printed.lines();
    let mut may_skip = false;
    for line in shown {
        if line.trim() == "…" {
            may_skip = true;
            continue;
        }
        let found = match may_skip {
            true => rest.any(|printed| printed == line),
            false => rest.next() == Some(line),
        };
        if !found {
            return Some(line);
        }
        may_skip = false;
    }
    None
}

/// Documents with commands and their output.
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "docs/info.md",
    "docs/stats.md",
    "docs/events.md",
    "docs/trim.md",
];

#[test]
fn documents_show_real_output() {
    let stall = Simulated::new("rank-stall", &[]);
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    let part = part.to_str().unwrap();
    let mut all = Vec::new();
    for page in DOCUMENTS {
        let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let found = shown(&text.replace("\r\n", "\n"));
        assert!(!found.is_empty(), "{page}");
        all.extend(found);
    }
    assert!(all.len() >= 6, "{}", all.len());
    for Shown { arguments, lines } in all {
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|argument| match argument.as_str() {
                "target/demo/rank-stall.etl" => stall.trace.as_str(),
                "trace.etl" => "filtrace__etw.etl",
                "part.etl" => part,
                other => other,
            })
            .collect();
        let printed = program::text(&arguments)
            .replace(part, "part.etl")
            .replace("simulated.etl", "rank-stall.etl");
        assert_eq!(missing(&lines, &printed), None, "{arguments:?}\n{printed}");
    }
}
