//! The `laglab` program: reads arguments, asks the other crates, prints.

mod cli;
mod damage;
mod key;
mod metadata;
mod output;
mod pass;
mod stats;
mod survey;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    watch::install_interrupt();
    cli::run()
}
