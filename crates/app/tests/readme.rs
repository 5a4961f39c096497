//! Checks that commands in README.md, in pages of docs/ and in the tutorials print the output that these documents
//! show, and that the commands of docs/from-wpa.md exist.

use crate::program;

use simulated::Simulated;

/// Command in a document, and the output that the document shows below it. A line `…` matches any number of
/// lines.
struct Example {
    arguments: Vec<String>,
    lines: Vec<String>,
}

fn shown(markdown: &str) -> Vec<Example> {
    let mut all: Vec<Example> = Vec::new();
    let blocks = markdown.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        if let Some(command) = line.strip_prefix("$ laglab ") {
            let arguments = arguments(command);
            let lines = Vec::new();
            all.push(Example { arguments, lines });
        } else {
            all.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    all
}

/// Splits a command into its arguments. Single and double quotes join words, as in a shell.
fn arguments(command: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ' ') => all.push(String::new()),
            _ => all.last_mut().unwrap().push(character),
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
        let found = if may_skip {
            rest.any(|printed| printed == line)
        } else {
            rest.next() == Some(line)
        };
        if !found {
            return Some(line);
        }
        may_skip = false;
    }
    None
}

/// Reads a document of the repository.
fn document(page: &str) -> String {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.replace("\r\n", "\n")
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
        let found = shown(&document(page));
        assert!(!found.is_empty(), "{page}");
        all.extend(found);
    }
    assert!(all.len() >= 6, "{}", all.len());
    for Example { arguments, lines } in all {
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

/// Checks the query in docs/linux.md with a recording of Linux.
#[cfg(feature = "sql")]
#[test]
fn the_query_about_recordings_of_linux_is_answered() {
    let page = document("docs/linux.md");
    let (_, query) = page.split_once("laglab sql x.data \"").unwrap();
    let query = query.split('"').next().unwrap();
    let trace = testdata::path("linux/s01_wait_spans_cpus.data");
    let rows = program::json_lines(&["sql", "--json", trace.to_str().unwrap(), query]);
    assert!(
        rows.iter().any(|row| row["longest"].as_i64() > Some(0)),
        "{rows:?}"
    );
}

/// Tutorials. One of them needs a Unix shell, and they simulate hundreds of megabytes, which takes long under Wine.
#[cfg(unix)]
mod tutorials {
    use std::path::Path;

    use super::{Example, arguments, document, missing, program, shown};

    /// Returns the files that a tutorial asks its reader to save, with their contents: blocks of code with a file name
    /// after the language.
    fn files_to_save(markdown: &str) -> Vec<(&str, &str)> {
        let blocks = markdown.split("```").skip(1).step_by(2);
        let named = blocks.filter_map(|block| {
            let (first, content) = block.split_once('\n')?;
            let (_, name) = first.split_once(' ')?;
            Some((name, content))
        });
        named.collect()
    }

    /// Runs the commands of a tutorial, and compares their output.
    fn follow(tutorial: &str) {
        follow_page(&format!("docs/tutorials/{tutorial}"), &[]);
    }

    /// Runs the commands of a page in a new folder. The commands `before` make the files that the page assumes.
    fn follow_page(page: &str, before: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for command in before {
            let arguments = arguments(command);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = program::laglab_in(folder.path(), &arguments);
            assert!(output.status.success(), "{command}: {output:?}");
        }
        follow_in(folder.path(), page);
    }

    /// Runs the commands of a page one after the other in a folder, and compares their output: messages, then results.
    fn follow_in(folder: &Path, page: &str) {
        let text = document(page);
        for (name, content) in files_to_save(&text) {
            std::fs::write(folder.join(name), content).unwrap();
        }
        let commands = shown(&text);
        assert!(!commands.is_empty(), "{page}");
        for Example {
            mut arguments,
            mut lines,
        } in commands
        {
            // Another program filters the output.
            if let Some(pipe) = arguments.iter().position(|word| word == "|") {
                arguments.truncate(pipe);
                lines.clear();
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = program::laglab_in(folder, &arguments);
            let printed = [output.stderr, output.stdout].concat();
            let printed = String::from_utf8(printed).unwrap().replace("\r\n", "\n");
            assert_eq!(missing(&lines, &printed), None, "{arguments:?}\n{printed}");
            // Code 1 is a result, such as a verdict. If a command is refused, the page shows the error.
            let is_refused = output.status.code().is_none_or(|code| code > 1);
            let shows_error = lines
                .first()
                .is_some_and(|line| line.starts_with("laglab: "));
            assert!(!is_refused || shows_error, "{arguments:?}\n{printed}");
        }
    }

    #[test]
    fn the_page_about_recordings_of_linux_shows_real_output() {
        let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/linux");
        follow_in(Path::new(recordings), "docs/linux.md");
    }

    #[test]
    fn the_page_about_reports_shows_real_output() {
        let flood = "simulate dpc-flood-teaming --duration 3s -o flood.etl";
        follow_page(
            "docs/reports.md",
            &[flood, "simulate rank-stall -o stall.etl"],
        );
    }

    #[test]
    fn the_page_about_proofs_shows_real_output() {
        follow_page("docs/prove.md", &[]);
    }

    #[test]
    fn the_pages_about_simulations_and_their_reports_show_real_output() {
        follow_page("docs/simulate.md", &[]);
        follow_page("docs/report.md", &["simulate rank-stall"]);
    }

    #[test]
    fn the_tutorial_about_a_login_shows_real_output() {
        follow("login.md");
    }

    #[test]
    fn the_tutorial_about_audio_shows_real_output() {
        follow("audio.md");
    }

    #[test]
    fn the_tutorial_about_a_backup_server_shows_real_output() {
        follow("backup-server.md");
    }

    #[test]
    fn the_tutorial_about_many_settings_shows_real_output() {
        follow("which-setting.md");
    }

    #[test]
    fn the_tutorial_about_a_tweak_shows_real_output() {
        follow("tweak.md");
    }

    /// Checks that the commands parse: with `--help`, a command prints its options, but unknown commands and options
    /// before `--help` are errors.
    #[cfg(all(feature = "sql", feature = "standard"))]
    #[test]
    fn commands_of_the_guide_from_wpa_exist() {
        let guide = document("docs/from-wpa.md");
        let code = guide.split('`').skip(1).step_by(2);
        let commands: Vec<&str> = code
            .filter_map(|code| code.strip_prefix("laglab "))
            .collect();
        assert!(commands.len() >= 25, "{}", commands.len());
        for command in commands {
            // After `--`, all words are names of files.
            let before = command.split(" -- ").next().unwrap();
            let arguments = arguments(before);
            let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            arguments.push("--help");
            let help = program::text(&arguments);
            assert!(help.contains("Usage: "), "{command}\n{help}");
            let options = arguments.iter().filter(|word| word.starts_with("--"));
            for option in options {
                let option = option.split('=').next().unwrap();
                assert!(help.contains(option), "{command}: {option}\n{help}");
            }
        }
    }
}
