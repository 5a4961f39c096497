//! The `laglab` program: parses arguments, calls the other crates, prints results.

mod cli;
mod event_lines;
#[cfg(feature = "measure")]
mod measured;
mod output;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    watch::install_interrupt();
    cli::run()
}
