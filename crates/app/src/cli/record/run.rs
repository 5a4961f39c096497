//! `laglab record --run` and `--dry-run`: runs the commands of a recording, or prints them.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::{Kit, Mode, SETTINGS, commands};
use serde::Serialize;
use session::TraceTables;
use tables::{ImagesView, Table};

use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::cli::open::TabledTrace;
use crate::output::say;
use crate::output::{self, Columns, Side};
use crate::watch::{self, Watch};

/// Options of a recording.
#[derive(clap::Args)]
pub(super) struct Recording {
    /// Duration in seconds
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = integer::<u32>(1, 86_400), help_heading = "With --run and --dry-run")]
    seconds: u32,
    /// Record into a ring buffer in memory until Ctrl-C, then save it
    #[arg(
        long,
        conflicts_with = "seconds",
        help_heading = "With --run and --dry-run"
    )]
    circular: bool,
    /// Note about the recording, one line, saved in the trace and next to it
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "laglab",
        value_parser = note,
        help_heading = "With --run and --dry-run"
    )]
    note: String,
    /// Folder for temporary files, on a fast disk that is not investigated [default: temp in the kit's
    /// folder]
    #[arg(long, value_name = "DIR", help_heading = "With --run and --dry-run")]
    temporary: Option<PathBuf>,
    /// Do not explain the trace afterwards
    #[arg(long, help_heading = "With --run and --dry-run")]
    no_explain: bool,
}

/// Parses a note. Command lines cannot have control characters.
fn note(text: &str) -> Result<String, String> {
    if text.contains(char::is_control) {
        Err("a note is one line without control characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Command of a recording, with its purpose.
#[derive(Serialize)]
pub(super) struct Step {
    what: &'static str,
    command: String,
}

/// Commands of a recording in the order in which they run.
#[derive(Serialize)]
pub(super) struct Commands {
    wpr: Vec<Step>,
    xperf: Vec<Step>,
}

impl Recording {
    fn mode(&self) -> Mode {
        if self.circular {
            Mode::Circular
        } else {
            Mode::File
        }
    }

    fn temporary(&self, folder: &Path) -> PathBuf {
        self.temporary
            .clone()
            .unwrap_or_else(|| folder.join("temp"))
    }

    /// Returns the commands as text without running them. Paths are in Windows syntax.
    pub(super) fn commands(&self, kit: &Kit, folder: &Path) -> Commands {
        let mode = self.mode();
        let of_windows = |path: &Path| path.display().to_string().replace('/', r"\");
        let temporary = of_windows(&self.temporary(folder));
        let folder = of_windows(folder);
        let profile = format!(r"{folder}\{}", kit.profile_file());
        let trace = format!(r"{folder}\{}-1.etl", kit.name());
        let step = |what, command: record::Command| Step {
            what,
            command: command.to_string(),
        };
        let start = |mode| commands::start(kit, &profile, mode, Some(&temporary));
        let mut wpr = Vec::new();
        if kit.has_packets() {
            let packets = format!(r"{temporary}\packets.etl");
            wpr.push(step("capture packets", commands::start_packets(&packets)));
        }
        wpr.push(step("start", start(mode)));
        wpr.push(step("mark a moment", commands::mark("now")));
        wpr.push(step("stop", commands::stop(mode, &trace, &self.note)));
        if kit.has_packets() {
            wpr.push(step("stop packets", commands::stop_packets()));
        }
        for (label, key) in SETTINGS {
            let file = format!("{trace}.{label}.reg");
            wpr.push(step("keep settings", commands::export_setting(key, &file)));
        }
        wpr.push(step("discard", commands::cancel()));
        wpr.push(step("record the next boot", start(Mode::Boot)));
        wpr.push(step(
            "save the boot trace",
            commands::stop(Mode::Boot, &trace, ""),
        ));
        wpr.push(step("discard the boot trace", commands::cancel_boot()));
        let of_xperf = |what, commands: Vec<record::Command>| {
            commands.into_iter().map(move |command| step(what, command))
        };
        let mut xperf: Vec<Step> =
            of_xperf("start", commands::xperf_start(kit, mode, &temporary)).collect();
        let saved = commands::xperf_save(kit, mode, &temporary, &trace);
        xperf.extend(of_xperf("save", saved.to_vec()));
        Commands { wpr, xperf }
    }

    /// Runs the recording, then explains the trace.
    pub(super) fn record(&self, kit: &Kit, folder: &Path) -> Result<(), Failure> {
        let temporary = self.temporary(folder);
        super::in_folder(&temporary, || self.record_through(kit, folder, &temporary))
    }

    fn record_through(&self, kit: &Kit, folder: &Path, temporary: &Path) -> Result<(), Failure> {
        let mode = self.mode();
        let trace = next_trace(kit, folder);
        let packets = temporary.join("packets.etl");
        let has_packets = kit.has_packets() && start_packets(&packets);
        let profile = folder.join(kit.profile_file()).display().to_string();
        let temporary = temporary.display().to_string();
        let started = wpr(&commands::start(kit, &profile, mode, Some(&temporary)));
        if started.is_err() && has_packets {
            let _ = run(&commands::stop_packets());
        }
        started?;
        self.wait();
        // The recording is saved even after Ctrl-C.
        let stopped = wpr(&commands::stop(
            mode,
            &trace.display().to_string(),
            &self.note,
        ));
        if has_packets {
            stop_packets(&packets, &trace);
        }
        stopped?;
        save_settings(&trace);
        save_notes(&trace, &self.note, kit)?;
        save_symbol_ids(&trace)?;
        say(&format!("recorded {}", trace.display()));
        if self.no_explain {
            Ok(())
        } else {
            explain(&trace)
        }
    }

    /// Waits until the requested duration is over or the user presses Ctrl-C.
    fn wait(&self) {
        const STEP: Duration = Duration::from_millis(200);
        let began = Instant::now();
        let whole = if self.circular {
            None
        } else {
            Some(Duration::from_secs(self.seconds.into()))
        };
        if self.circular {
            say("recording into memory; press Ctrl-C to save the latest events");
        }
        let progress = whole.map(|whole| {
            Watch::new("recording: reproduce the lag now", whole.as_millis() as u64).in_percent()
        });
        while whole.is_none_or(|whole| began.elapsed() < whole) {
            let is_stopped = match &progress {
                Some(watch) => watch.reach(began.elapsed().as_millis() as u64).is_err(),
                None => watch::check().is_err(),
            };
            if is_stopped {
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Starts the capture of packets. Returns true on success. If it fails, the recording continues without
/// packets.
fn start_packets(file: &Path) -> bool {
    let command = commands::start_packets(&file.display().to_string());
    let is_started = run(&command).is_ok_and(|is_fine| is_fine);
    if !is_started {
        say("cannot capture packets: netsh failed; the recording continues without them");
    }
    is_started
}

fn stop_packets(packets: &Path, trace: &Path) {
    let is_stopped = run(&commands::stop_packets()).is_ok_and(|is_fine| is_fine);
    let name = trace.file_stem().unwrap_or_default().to_string_lossy();
    let target = trace.with_file_name(format!("{name}-packets.etl"));
    if is_stopped && packets.is_file() && fs::rename(packets, &target).is_err() {
        say(&format!(
            "cannot move the captured packets; they remain in {}",
            packets.display()
        ));
    }
}

/// Prints commands as text.
pub(super) fn write_commands(commands: &Commands) -> io::Result<()> {
    let mut out = output::for_people();
    for (heading, steps) in [
        ("With Windows Performance Recorder", &commands.wpr),
        ("With xperf", &commands.xperf),
    ] {
        if heading.contains("xperf") {
            output::heading(&mut out, heading)?
        } else {
            output::first_heading(&mut out, heading)?
        }
        let mut columns = Columns::new(&[Side::Left, Side::Left]);
        for step in steps {
            columns.row([step.what, &step.command]);
        }
        columns.write(&mut out)?;
    }
    out.flush()
}

/// Returns the first unused file name for a trace of the kit.
fn next_trace(kit: &Kit, folder: &Path) -> PathBuf {
    let of_number = |number: u32| folder.join(format!("{}-{number}.etl", kit.name()));
    let mut numbers = 1..;
    numbers
        .find(|number| !of_number(*number).exists())
        .map_or_else(|| of_number(u32::MAX), of_number)
}

/// Runs a command with high priority, and prints its output on stderr. Returns true if the command succeeded.
fn run(command: &record::Command) -> io::Result<bool> {
    let mut started = Command::new(command.program);
    started
        .args(&command.arguments)
        .stdin(Stdio::null())
        .stdout(io::stderr());
    #[cfg(windows)]
    {
        use std::os::windows::process::CommandExt;
        /// Priority class that gives the command a CPU even if all CPUs are busy.
        const HIGH_PRIORITY_CLASS: u32 = 0x80;
        started.creation_flags(HIGH_PRIORITY_CLASS);
    }
    Ok(started.status()?.success())
}

fn wpr(command: &record::Command) -> Result<(), Failure> {
    match run(command) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Negative(format!(
            "`{command}` failed: see its messages above; run from an elevated prompt and end other \
             recordings (`logman query -ets` lists them, `wpr -cancel` ends one of WPR)"
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::Input(
            "cannot find wpr.exe, which is part of Windows 10 and later; on Linux, use `laglab record now`; on other \
             machines, print the commands with --dry-run or write scripts with -o"
                .to_owned(),
        )),
        Err(error) => Err(Failure::Input(format!(
            "cannot start wpr.exe: {error}"
        ))),
    }
}

/// Saves registry settings that a trace does not contain. Keys that do not exist are skipped.
fn save_settings(trace: &Path) {
    for (label, key) in SETTINGS {
        let file = sibling(trace, &format!("{label}.reg"));
        let command = commands::export_setting(key, &file.display().to_string());
        let output = Command::new(command.program)
            .args(&command.arguments)
            .output();
        if output.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return say("cannot save settings: reg.exe not found");
        }
    }
}

fn save_notes(trace: &Path, note: &str, kit: &Kit) -> Result<(), Failure> {
    let path = sibling(trace, "notes.txt");
    let text = format!(
        "{note}\nrecorded by laglab {} for: {}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        kit.investigation.question(),
        jiff::Timestamp::now(),
    );
    fs::write(&path, text).map_err(|error| Failure::writing(&path, &error))
}

/// Saves the ids of the PDBs of all modules. With them, another machine can download the symbols even after
/// an update has replaced the binaries on this machine.
fn save_symbol_ids(trace: &Path) -> Result<(), Failure> {
    let tables: TraceTables = TabledTrace::new(&[trace.to_owned()], false).open()?;
    let table = tables.table(Table::Images)?;
    let mut lines: Vec<String> = Vec::new();
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["path", "pdb_path", "pdb_guid", "pdb_age"])?;
        let view = ImagesView::new(&batch)?;
        for row in 0..view.len() {
            let parts = (
                view.pdb_path.get(row),
                view.pdb_guid.get(row),
                view.pdb_age.get(row),
            );
            if let (Some(pdb), Some(guid), Some(age)) = parts {
                let path = view.path.get(row).unwrap_or_default();
                lines.push(format!("{path}\t{pdb}\t{guid}\t{age}"));
            }
        }
    }
    lines.sort();
    lines.dedup();
    let path = sibling(trace, "symbols.tsv");
    let mut file = fs::File::create(&path).map_err(|error| Failure::writing(&path, &error))?;
    let text = format!("module\tpdb\tguid\tage\n{}\n", lines.join("\n"));
    file.write_all(text.as_bytes())
        .map_err(|error| Failure::writing(&path, &error))
}

/// Returns the path of a file next to the trace: `trace.etl.NAME`.
fn sibling(trace: &Path, name: &str) -> PathBuf {
    let mut path = trace.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    PathBuf::from(path)
}

/// Runs `laglab explain` on the trace.
fn explain(trace: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Input(format!("cannot start laglab explain: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let status = Command::new(program)
        .arg("explain")
        .arg(trace)
        .status()
        .map_err(failed)?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Negative(format!(
            "cannot explain {}: see the message above",
            trace.display()
        )))
    }
}
