//! Runs the command that measures the speed with some settings.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::Failure;
use crate::watch;

/// Interval between checks whether the command has ended.
const POLL: Duration = Duration::from_millis(20);

/// Maximum number of bytes that are read from the end of the command's output.
const TAIL: u64 = 64 << 10;

/// Writes a file of settings, runs a command in the shell, and returns the last number that the command
/// prints. The environment variable LAGLAB_SETTINGS names the file.
///
/// # Errors
/// Returns an error if the command fails, takes too long, or prints no number, or if the user presses Ctrl-C.
pub(super) fn measure(
    command: &str,
    settings: &str,
    round: usize,
    timeout: Duration,
) -> Result<f64, Failure> {
    let failed = |what: String| {
        Failure::Input(format!(
            "`{command}` {what}; earlier measurements are kept; to continue, run the same laglab command again"
        ))
    };
    let system = |error: std::io::Error| failed(format!("cannot run: {error}"));
    let mut list = tempfile::NamedTempFile::new().map_err(system)?;
    list.write_all(settings.as_bytes()).map_err(system)?;
    // The file is closed now. On Windows, the command could not open a file that laglab still has open.
    let list = list.into_temp_path();
    let mut printed = tempfile::tempfile().map_err(system)?;
    let mut child = shell(command)
        .env("LAGLAB_SETTINGS", &list)
        .env("LAGLAB_ROUND", round.to_string())
        .stdin(Stdio::null())
        .stdout(printed.try_clone().map_err(system)?)
        .spawn()
        .map_err(system)?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(system)? {
            break status;
        }
        let interrupted = watch::check();
        if interrupted.is_err() || began.elapsed() > timeout {
            end(&mut child);
            interrupted?;
            return Err(failed(format!(
                "took longer than {} s (--timeout)",
                timeout.as_secs_f64()
            )));
        }
        std::thread::sleep(POLL);
    };
    // Ctrl-C may have ended the command, so cancellation is checked before the status of the command.
    watch::check()?;
    if !status.success() {
        return Err(failed(format!("failed ({status})")));
    }
    let text = tail(&mut printed).map_err(system)?;
    last_number(&text).ok_or_else(|| failed("printed no number".to_owned()))
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    use std::os::unix::process::CommandExt;
    let mut shell = Command::new("sh");
    // The command gets its own process group, so that its child processes can be ended, too.
    shell.arg("-c").arg(command).process_group(0);
    shell
}

#[cfg(windows)]
fn shell(command: &str) -> Command {
    use std::os::windows::process::CommandExt;
    // The full path avoids a different cmd.exe in the folder of laglab.
    let path = std::env::var_os("ComSpec").unwrap_or_else(|| "cmd.exe".into());
    let mut shell = Command::new(path);
    // The command is passed without quotes, because cmd has its own quoting rules.
    shell.arg("/C").raw_arg(command);
    shell
}

/// Ends a command and its child processes.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // The error is ignored, because the command may have ended already.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    #[cfg(windows)]
    if let Some(windows) = std::env::var_os("SystemRoot") {
        let _ = Command::new(std::path::Path::new(&windows).join("System32\\taskkill.exe"))
            .args(["/T", "/F", "/PID", &child.id().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn tail(file: &mut File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the last number in a text. A unit may follow it without a space.
fn last_number(text: &str) -> Option<f64> {
    text.split_whitespace().rev().find_map(|word| {
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.');
        let word = word.trim_start_matches(|c| !is_part(c));
        let unit = |c: char| !c.is_ascii_digit();
        let number: f64 = word.trim_end_matches(unit).parse().ok()?;
        number.is_finite().then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_counts() {
        for (text, number) in [
            ("412", Some(412.0)),
            ("round 3: -1.5e2\n", Some(-150.0)),
            ("10 files, 412.5MB/s\r\nbye", Some(412.5)),
            ("throughput=80.25, done", Some(80.25)),
            ("99.", Some(99.0)),
            ("version 1.2.3", None),
            ("nothing inf NaN", None),
            ("", None),
        ] {
            assert_eq!(last_number(text), number, "{text}");
        }
    }
}
