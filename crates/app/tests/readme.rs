//! What README.md shows is what the program prints.

mod program;
mod simulated;

use simulated::Simulated;

/// A command that is shown, and the lines below it; `…` stands for any.
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

/// The first line that is not printed where it is shown.
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

#[test]
fn the_readme_shows_what_is_printed() {
    let stall = Simulated::new("rank-stall", &[]);
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    let part = part.to_str().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let all = shown(&readme.replace("\r\n", "\n"));
    assert!(all.len() >= 5, "{}", all.len());
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
        let printed = program::text(&arguments).replace(part, "part.etl");
        assert_eq!(missing(&lines, &printed), None, "{arguments:?}\n{printed}");
    }
}
