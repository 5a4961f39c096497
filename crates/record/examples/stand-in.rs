//! Fake recorder for tests of scripts. For each call, it appends a line with its arguments to the file in
//! `STAND_IN_LOG`. It also creates the trace that a real recorder would save. It fails if its arguments
//! start with the text in `STAND_IN_FAILS`.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let program = std::env::current_exe().expect("its own path");
    let name = program.file_stem().expect("a name").to_string_lossy();
    let log = std::env::var("STAND_IN_LOG").expect("STAND_IN_LOG is set");
    let mut log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("the log can be written");
    let words: Vec<String> = arguments.iter().map(|word| format!("[{word}]")).collect();
    writeln!(log, "{name} {}", words.join(" ")).expect("the log can be written");
    let fails = std::env::var("STAND_IN_FAILS").unwrap_or_default();
    if !fails.is_empty() && arguments.join(" ").starts_with(&fails) {
        // Exit codes of WPR are negative.
        std::process::exit(0xC558_0612_u32.cast_signed());
    }
    let saved = arguments.iter().find(|word| word.ends_with(".etl"));
    let is_saved = ["-stop", "-merge", "-boottrace"]
        .iter()
        .any(|verb| arguments.first().is_some_and(|first| first == verb));
    if let Some(path) = saved.filter(|_| is_saved && name == "wpr") {
        std::fs::write(path, "trace").expect("the trace can be written");
    }
    ExitCode::SUCCESS
}
