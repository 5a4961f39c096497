//! `laglab record input`.

use std::time::Duration;

use record::input::{Recorder, RecorderError};

use crate::cli::{Failure, say};
use crate::watch;

/// Logs when keys are pressed and when another window comes to the front, as events of the provider
/// Laglab-Input: a recording of any kit that has it picks them up. Which key it was is not logged
/// unless --keys is given; nothing is kept and nothing is sent.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Log which key it was, too: passwords that are typed meanwhile are then in the recording
    #[arg(long)]
    keys: bool,
    /// End after so many seconds [default: at Ctrl-C]
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let recorder = Recorder::start(args.keys).map_err(|error| match error {
        RecorderError::NotWindows => Failure::Input(error.to_string()),
        RecorderError::Refused(_) => Failure::Negative(error.to_string()),
    })?;
    let what = match args.keys {
        true => "logging which keys are pressed, and which window is in front",
        false => "logging when keys are pressed, not which",
    };
    let for_how_long = args
        .seconds
        .map_or(String::new(), |seconds| format!("for {seconds} s, or "));
    say(&format!("{what}, {for_how_long}until Ctrl-C"));
    let end = args
        .seconds
        .map(|seconds| std::time::Instant::now() + Duration::from_secs(seconds.into()));
    while watch::check().is_ok() && end.is_none_or(|end| std::time::Instant::now() < end) {
        std::thread::sleep(Duration::from_millis(100));
    }
    recorder.stop();
    Ok(())
}
