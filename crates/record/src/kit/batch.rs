//! Batch files that start, mark and stop a recording. They need only the recorder and commands that every
//! Windows has.
//!
//! A marker file ([`Recorder::marker_file`]) exists while a recorder of this kit runs. A new
//! recording ends an earlier recording only if this file exists. It therefore never ends recordings
//! of other programs.

use super::commands::{
    KERNEL_SESSION, Mode, SETTINGS, cancel, cancel_boot, start_packets, stop_packets, xperf_cancel,
    xperf_files, xperf_save, xperf_start,
};
use super::readme::megabytes;
use super::{Command, Kit};

/// Commands of a recorder. Each command is one or several lines that set `errorlevel`.
struct Recorder {
    /// Name of the batch file.
    file: &'static str,
    /// Name of a file that exists while the recorder of this kit runs.
    marker_file: &'static str,
    /// Lines that start recording to a file.
    start_to_file: Vec<String>,
    /// Lines that start recording in memory.
    start_in_memory: Vec<String>,
    /// Command that undoes the first line of a start. It runs if the second line fails.
    undo_start: String,
    /// Lines that stop the recording and save it as `%trace%` with the note `%note%`.
    stop: Vec<String>,
    /// Lines that save the events in memory as `%trace%`.
    save: Vec<String>,
    /// True if saving also stops the recorder.
    is_stopped_by_save: bool,
    /// Command that stops the recording without saving it.
    cancel: String,
    /// Command that writes a mark with the text `%note%` into the trace.
    mark: String,
    /// Commands that record the next boot; `None` if the recorder cannot record boots.
    boot: Option<Boot>,
}

/// Commands that record the next boot.
struct Boot {
    start: String,
    /// Command that saves `%trace%` and ends the recording.
    stop: String,
    /// Command that ends the recording without saving it.
    cancel: String,
}

/// Line that handles an error. `if errorlevel 1` would ignore the exit codes of WPR, which are negative.
const OR_FAIL: &str = "if not %errorlevel%==0 goto failed";

/// Writes the batch file that records with WPR.
pub(super) fn with_wpr(kit: &Kit) -> String {
    let start = |arguments: &str| {
        // The command `start` uses its first quoted argument as a title, so an empty title is given. Without
        // /wait, the next line would run before the recorder has started.
        format!(
            r#"start "" /b /wait /high{} wpr.exe {arguments}"#,
            kit.node
                .map_or(String::new(), |node| format!(" /node {node}"))
        )
    };
    let stop = vec![start(r#"-stop "%trace%" "%note%""#)];
    let recorder = Recorder {
        file: "record.cmd",
        marker_file: "wpr-runs",
        start_to_file: vec![start(
            r#"-start "%profile%" -filemode -recordtempto "%temporary%""#,
        )],
        start_in_memory: vec![start(r#"-start "%profile%""#)],
        undo_start: String::new(),
        // WPR must stop to save the events. The script therefore starts WPR again afterwards.
        save: stop.clone(),
        is_stopped_by_save: true,
        stop,
        cancel: cancel().to_string(),
        mark: r#"wpr.exe -marker "%note%""#.to_owned(),
        boot: Some(Boot {
            start:
                r#"wpr.exe -boottrace -addboot "%profile%" -filemode -recordtempto "%temporary%""#
                    .to_owned(),
            stop: r#"wpr.exe -boottrace -stopboot "%trace%""#.to_owned(),
            cancel: cancel_boot().to_string(),
        }),
    };
    write(kit, &recorder)
}

/// Writes the batch file that records with xperf, for systems without WPR.
pub(super) fn with_xperf(kit: &Kit) -> String {
    const FOLDER: &str = "%temporary%";
    let lines = |commands: Vec<Command>| -> Vec<String> {
        commands.iter().map(with_variables_in_quotes).collect()
    };
    let saved = |mode: Mode| {
        let [save, merge] = xperf_save(kit, mode, FOLDER, "%trace%");
        let merge = with_variables_in_quotes(&merge);
        let uncompressed = merge.trim_end_matches(" -compress");
        let mut saved = vec![
            with_variables_in_quotes(&save),
            OR_FAIL.to_owned(),
            // On Windows 7, traces cannot be compressed. If merging with compression fails, the next line merges
            // without compression.
            merge.clone(),
            format!("if not %errorlevel%==0 {uncompressed}"),
            OR_FAIL.to_owned(),
        ];
        let files = xperf_files(kit, FOLDER);
        saved.extend(
            files
                .iter()
                .map(|file| format!(r#"del "{file}" >nul 2>&1"#)),
        );
        saved
    };
    let recorder = Recorder {
        file: "record-xperf.cmd",
        marker_file: "xperf-runs",
        start_to_file: lines(xperf_start(kit, Mode::File, FOLDER)),
        start_in_memory: lines(xperf_start(kit, Mode::Circular, FOLDER)),
        undo_start: format!("xperf.exe -stop \"{KERNEL_SESSION}\" >nul 2>&1"),
        stop: saved(Mode::File),
        save: saved(Mode::Circular),
        is_stopped_by_save: false,
        cancel: with_variables_in_quotes(&xperf_cancel(kit)),
        mark: r#"xperf.exe -m "%note%""#.to_owned(),
        boot: None,
    };
    write(kit, &recorder)
}

/// Formats a command. Arguments that contain variables are quoted, because their values may contain spaces.
fn with_variables_in_quotes(command: &Command) -> String {
    let quoted = command.arguments.iter().map(|argument| {
        if argument.contains('%') || argument == KERNEL_SESSION {
            format!("\"{argument}\"")
        } else {
            argument.clone()
        }
    });
    let mut words = vec![command.program.to_owned()];
    words.extend(quoted);
    words.join(" ")
}

fn write(kit: &Kit, recorder: &Recorder) -> String {
    let mut file = Batch(Vec::new());
    write_settings(&mut file, kit, recorder);
    write_timed(&mut file, recorder);
    write_steps(&mut file, kit, recorder);
    write_starting(&mut file, kit, recorder);
    write_saving(&mut file, kit, recorder);
    write_failures(&mut file, recorder);
    file.0.join("\n") + "\n"
}

/// Writes the lines that parse arguments and create folders.
fn write_settings(file: &mut Batch, kit: &Kit, recorder: &Recorder) {
    file.lines(&[
        "@echo off",
        &format!("rem {}", kit.investigation.question()),
        "rem Made by laglab; README.md describes what it records and what that costs.",
        "rem Run it from an elevated prompt.",
        "setlocal EnableExtensions DisableDelayedExpansion",
        "set \"here=%~dp0\"",
        &format!(
            "set \"profile=%here%{}\"",
            kit.profile_argument(&kit.profile_file())
        ),
        "rem Temporary files go to the folder of this file; put it on a fast disk.",
        "set \"temporary=%here%temp\"",
        &format!("set \"running=%temporary%\\{}\"", recorder.marker_file),
        "set \"action=%~1\"",
        "set \"note=%~2\"",
        "if \"%action%\"==\"\" set \"action=20\"",
        &format!("if \"%note%\"==\"\" set \"note={}\"", kit.name()),
    ]);
    for action in recorder.actions() {
        file.line(&format!("if /i \"%action%\"==\"{action}\" goto {action}"));
    }
}

/// Writes the lines that record for a number of seconds.
fn write_timed(file: &mut Batch, recorder: &Recorder) {
    let itself = recorder.file;
    file.lines(&[
        "rem The action is a number of seconds. Leading zeros would make it octal.",
        "for /f \"delims=0123456789\" %%c in (\"%action%\") do goto usage",
        "for /f \"delims=0 tokens=*\" %%n in (\"%action%\") do set \"action=%%n\"",
        "rem A recording that an earlier run of this file left running would make the start fail.",
        "if exist \"%running%\" call :cancel >nul 2>&1",
        "call :start-to-file",
        "if not %errorlevel%==0 exit /b 1",
        "echo Recording for %action% s. Make it lag now.",
        &format!(
            "echo After Ctrl-C the recorder keeps running: {itself} stop saves, {itself} cancel discards."
        ),
        "rem Without a console, timeout does not wait. ping waits between packets, so it sends one",
        "rem more than there are seconds.",
        "set /a pings=%action%+1",
        "timeout.exe /t %action% /nobreak >nul 2>&1",
        "if not %errorlevel%==0 ping.exe -n %pings% 127.0.0.1 >nul",
        "call :stop-and-save",
        "exit /b %errorlevel%",
    ]);
}

/// Writes the lines for the single steps: start, mark, save, stop, cancel, boot.
fn write_steps(file: &mut Batch, kit: &Kit, recorder: &Recorder) {
    let itself = recorder.file;
    file.label("start");
    file.lines(&[
        "call :start-to-file",
        "if not %errorlevel%==0 exit /b 1",
        &format!(
            "echo Recording until {itself} stop. It fills the disk by about {} per second on a busy \
             machine.",
            megabytes(kit.cost().busy_bytes_per_second)
        ),
        "exit /b 0",
    ]);
    file.label("circular");
    file.lines(&[
        "call :start-in-memory",
        "if not %errorlevel%==0 exit /b 1",
        &format!("echo Recording in memory. After a lag, save the latest events: {itself} save"),
        &format!("echo To end the recording: {itself} cancel"),
        "exit /b 0",
    ]);
    file.label("mark");
    file.line(&recorder.mark);
    file.line("exit /b %errorlevel%");
    file.label("save");
    file.line("call :next-trace");
    file.lines(&recorder.save);
    if recorder.is_stopped_by_save {
        file.lines(&[
            OR_FAIL,
            "del \"%running%\" >nul 2>&1",
            "call :save-settings",
            "call :start-in-memory",
            "exit /b %errorlevel%",
        ]);
    } else {
        file.line("goto save-settings");
    }
    file.label("stop");
    file.lines(&["call :stop-and-save", "exit /b %errorlevel%"]);
    file.label("cancel");
    file.lines(&[
        recorder.cancel.as_str(),
        "set \"result=%errorlevel%\"",
        "del \"%running%\" >nul 2>&1",
    ]);
    if kit.has_packets() {
        file.line("call :stop-packets");
    }
    file.line("exit /b %result%");
    if let Some(boot) = &recorder.boot {
        file.label("boot");
        file.lines(&[
            "if not exist \"%temporary%\" mkdir \"%temporary%\"",
            &boot.start,
            OR_FAIL,
            &format!("echo Restart, log on, and when the machine is idle: {itself} boot-stop"),
            &format!(
                "echo Until then, or until {itself} boot-cancel, every boot is recorded to the disk."
            ),
            "exit /b 0",
        ]);
        file.label("boot-stop");
        file.lines(&[
            "call :next-trace",
            &boot.stop,
            OR_FAIL,
            "goto save-settings",
        ]);
        file.label("boot-cancel");
        file.lines(&[boot.cancel.as_str(), "exit /b %errorlevel%"]);
    }
}

/// Writes the subroutines that start a recording. If a start fails, they stop everything that they started.
fn write_starting(file: &mut Batch, kit: &Kit, recorder: &Recorder) {
    let is_in_steps = recorder.start_to_file.len() > 1;
    for (label, start) in [
        ("start-to-file", &recorder.start_to_file),
        ("start-in-memory", &recorder.start_in_memory),
    ] {
        file.label(label);
        file.line("if not exist \"%temporary%\" mkdir \"%temporary%\"");
        if kit.has_packets() {
            file.line("call :start-packets");
        }
        for (place, line) in start.iter().enumerate() {
            file.line(line);
            file.line(match place {
                0 => "if not %errorlevel%==0 goto start-failed",
                _ => "if not %errorlevel%==0 goto half-started",
            });
        }
        file.lines(&[">\"%running%\" echo %DATE% %TIME%", "exit /b 0"]);
    }
    if is_in_steps {
        file.label("half-started");
        file.line(&recorder.undo_start);
    }
    file.label("start-failed");
    if kit.has_packets() {
        file.line("call :stop-packets");
    }
    file.line("goto failed");
    if kit.has_packets() {
        file.label("start-packets");
        file.lines(&[
            "call :stop-packets",
            &with_variables_in_quotes(&start_packets("%temporary%\\packets.etl")),
            "if %errorlevel%==0 >\"%temporary%\\packets-run\" echo %DATE% %TIME%",
            "if not %errorlevel%==0 echo netsh cannot capture packets; the recording will have none. 1>&2",
            "exit /b 0",
        ]);
        file.label("stop-packets");
        file.lines(&[
            "if not exist \"%temporary%\\packets-run\" exit /b 0",
            &format!("{} >nul", stop_packets()),
            "del \"%temporary%\\packets-run\" >nul 2>&1",
            "exit /b 0",
        ]);
    }
}

/// Writes the subroutines that end a recording. They also save settings of Windows that a trace does not
/// contain.
fn write_saving(file: &mut Batch, kit: &Kit, recorder: &Recorder) {
    file.label("stop-and-save");
    file.line("call :next-trace");
    file.lines(&recorder.stop);
    file.lines(&[OR_FAIL, "del \"%running%\" >nul 2>&1"]);
    if kit.has_packets() {
        file.lines(&[
            "call :stop-packets",
            "move /y \"%temporary%\\packets.etl\" \"%packets%\" >nul 2>&1",
        ]);
    }
    file.label("save-settings");
    file.line("rem Settings that a trace does not contain are saved next to it.");
    for (label, key) in SETTINGS {
        file.line(&format!(
            "reg.exe export \"{key}\" \"%trace%.{label}.reg\" /y >nul 2>&1"
        ));
    }
    file.lines(&[
        ">\"%trace%.notes.txt\" echo \"%note%\"",
        ">>\"%trace%.notes.txt\" echo %DATE% %TIME%, %NUMBER_OF_PROCESSORS% processors",
        "echo Saved %trace%. Then: laglab explain \"%trace%\"",
        "exit /b 0",
    ]);

    file.label("next-trace");
    file.line("set \"number=0\"");
    file.label("next-number");
    let name = kit.name();
    file.lines(&[
        "set /a number=%number%+1",
        &format!("set \"trace=%here%{name}-%number%.etl\""),
        &format!("set \"packets=%here%{name}-%number%-packets.etl\""),
        "if exist \"%trace%\" goto next-number",
        "exit /b 0",
    ]);
}

fn write_failures(file: &mut Batch, recorder: &Recorder) {
    let itself = recorder.file;
    file.label("failed");
    file.lines(&[
        "echo The recorder failed; its message is above. Is this prompt elevated? Does another \
         recording run? 1>&2",
        &format!(
            "echo \"logman query -ets\" lists running sessions; {itself} cancel ends a recording of \
             this recorder. 1>&2"
        ),
        "exit /b 1",
    ]);
    file.label("usage");
    file.lines(&[
        &format!(
            "echo {itself} [SECONDS ^| {}] [NOTE] 1>&2",
            recorder.actions().join(" ^| ")
        ),
        "exit /b 2",
    ]);
}

impl Recorder {
    /// Returns the names of all actions. Instead of an action, the user can also give a number of seconds.
    /// This number has no name, so the list does not contain it.
    fn actions(&self) -> Vec<&'static str> {
        let mut actions = vec!["start", "circular", "mark", "save", "stop", "cancel"];
        if self.boot.is_some() {
            actions.extend(["boot", "boot-stop", "boot-cancel"]);
        }
        actions
    }
}

/// Lines of a batch file.
struct Batch(Vec<String>);

impl Batch {
    fn line(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }

    fn lines(&mut self, lines: &[impl AsRef<str>]) {
        self.0
            .extend(lines.iter().map(|line| line.as_ref().to_owned()));
    }

    fn label(&mut self, name: &str) {
        self.0.extend([String::new(), format!(":{name}")]);
    }
}
