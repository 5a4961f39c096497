//! Tasks of this project that are more than one cargo command.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod apt;
mod assistants;
mod bench;
mod browser;
mod built;
mod command;
mod demo;
mod deny;
mod dist;
mod exports;
mod junit;
mod nextest;
mod page;
mod peers;
mod pictures;
mod python;
mod same_bytes;
mod steps;
mod summary;
mod test;
mod tidy;
mod verdicts;
mod wine;
mod workflows;

use std::process::ExitCode;

use steps::Extent;

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

Commands:
  page            build the page of `laglab open`, which later builds of laglab embed
  demo [PATH...]  build laglab quickly and explain the traces at PATH, or a simulated one
  test            check everything that must hold before a change is merged
  test --full     also run what takes long: Wine, other readers, recordings of this machine, all browser tests
  test [--full] --step NAME
                  run one step of `test`
  tidy            check the repository's own rules
  pictures        take the pictures of README.md
  bench           measure laglab and write the results to bench/runs
  bench --against REVISION
                  compare laglab with its build of an earlier commit
  dist            build laglab for Windows and pack it as a zip
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        [] | ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["page"] => page::build(),
        ["demo", paths @ ..] => demo::run(paths),
        ["test"] => test::run(Extent::Gate),
        ["test", "--full"] => test::run(Extent::Full),
        ["test", "--step", name] => test::run_step(name, Extent::Gate),
        ["test", "--full", "--step", name] => test::run_step(name, Extent::Full),
        ["tidy"] => tidy::run(),
        ["pictures"] => pictures::take(),
        ["bench"] => bench::run(),
        ["bench", "--against", revision] => bench::against(revision),
        ["dist"] => dist::run(),
        _ => {
            eprint!("error: `{}` is not a task\n\n{USAGE}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
