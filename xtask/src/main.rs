//! Project tasks: everything that is more than one cargo command.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod apt;
mod bench;
mod browser;
mod command;
mod demo;
mod dist;
mod exports;
mod network;
mod page;
mod peers;
mod python;
mod same_bytes;
mod test;
mod tidy;
mod wine;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

Commands:
  page            build the page of `laglab open`, for builds of laglab to hold it
  demo [PATH...]  build laglab and explain the traces at PATH, or one that shows what it can do
  test [--quick]  everything that must hold before a change goes in; --quick leaves out
                  the dependency check, other people's readers and the Windows half
  tidy            check that the repository keeps its own rules
  bench           measure, and compare with the last committed run
  dist            build laglab for Windows, and pack it as a zip
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
        ["test"] => test::run(test::Extent::Everything),
        ["test", "--quick"] => test::run(test::Extent::Quick),
        ["tidy"] => tidy::run(),
        ["bench"] => bench::run(),
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
