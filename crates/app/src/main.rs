//! The `laglab` program: reads arguments, asks the other crates, prints.

mod answer;
mod cli;
mod contents;
mod damage;
mod duration;
mod event_filter;
mod event_lines;
mod export;
mod html_report;
mod info;
mod kernel_flags;
mod key;
mod lives;
mod measured;
mod metadata;
mod moment;
mod output;
mod pass;
mod processes;
mod report;
mod server;
mod silence;
mod stack_modules;
mod stats;
mod survey;
mod symbolication;
mod trim;
mod watch;
mod windows_release;

use std::process::ExitCode;

fn main() -> ExitCode {
    watch::install_interrupt();
    cli::run()
}
