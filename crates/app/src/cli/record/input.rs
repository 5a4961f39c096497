//! `laglab record input`.

use std::time::Duration;

use record::input::{Recorder, RecorderError};

use crate::cli::Failure;

use crate::output::say;
use crate::watch;

/// Logs the times of key presses and foreground window changes as events of the provider Laglab-Input,
/// for recordings with a kit that enables it. Without --keys it does not log which key was pressed. It
/// stores and sends nothing itself.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Also log which key was pressed; the recording then contains passwords that are typed
    #[arg(long)]
    keys: bool,
    /// End after N seconds [default: at Ctrl-C]
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let recorder = Recorder::start(args.keys).map_err(|error| match error {
        RecorderError::NotWindows => Failure::Input(error.to_string()),
        RecorderError::Refused { .. } => Failure::Negative(error.to_string()),
    })?;
    let what = if args.keys {
        "logging key presses with their keys, and foreground windows"
    } else {
        "logging times of key presses, without their keys"
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
