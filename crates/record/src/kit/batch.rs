//! Batch files that record: start, wait, mark, stop. They need nothing but the recorder and what
//! every Windows has.
//!
//! What belongs to somebody else is left alone: a file says that this kit's recorder was started
//! ([`Recorder::mark_of_running`]), and only then an earlier recording is ended before a new one.

use super::commands::{
    KERNEL_SESSION, Mode, SETTINGS, cancel, cancel_boot, start_packets, stop_packets, xperf_cancel,
    xperf_files, xperf_save, xperf_start,
};
use super::readme::megabytes;
use super::{Command, Kit};

/// What a batch file does with its recorder, each in lines that leave `errorlevel`.
struct Recorder {
    /// The file's own name.
    file: &'static str,
    /// The file that is there while the recorder runs.
    mark_of_running: &'static str,
    /// Begins to record to a file.
    start_to_file: Vec<String>,
    /// Begins to record in memory.
    start_in_memory: Vec<String>,
    /// Ends what the first line of a start began, should the second fail.
    undo_start: String,
    /// Stops, and saves as `%trace%` with the word `%note%`.
    stop: Vec<String>,
    /// Saves what is in memory as `%trace%`.
    save: Vec<String>,
    /// Whether it records no more after that.
    is_stopped_by_save: bool,
    /// Ends without saving.
    cancel: String,
    /// Marks the moment with `%note%`.
    mark: String,
    /// Records the next boot; nothing if it cannot.
    boot: Option<Boot>,
}

/// What records the next boot.
struct Boot {
    start: String,
    /// Saves it as `%trace%`, and ends it.
    stop: String,
    /// Ends it.
    cancel: String,
}

/// Not `if errorlevel 1`: the codes that WPR fails with are negative.
const OR_FAIL: &str = "if not %errorlevel%==0 goto failed";

/// The batch file that records with WPR.
pub(super) fn with_wpr(kit: &Kit) -> String {
    let start = |arguments: &str| {
        // `start` takes the first text in quotes for a title, hence the empty one; without /wait the
        // next line would begin before the recorder is up.
        format!(
            r#"start "" /b /wait /high{} wpr.exe {arguments}"#,
            kit.node
                .map_or(String::new(), |node| format!(" /node {node}"))
        )
    };
    let stop = vec![start(r#"-stop "%trace%" "%note%""#)];
    let recorder = Recorder {
        file: "record.cmd",
        mark_of_running: "wpr-runs",
        start_to_file: vec![start(
            r#"-start "%profile%" -filemode -recordtempto "%temporary%""#,
        )],
        start_in_memory: vec![start(r#"-start "%profile%""#)],
        undo_start: String::new(),
        // WPR saves only by stopping: it starts again at once.
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

/// The batch file that records with xperf, for systems older than WPR and whoever knows it better.
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
            // Windows 7 cannot compress traces.
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
        mark_of_running: "xperf-runs",
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

/// A command whose variables may hold spaces when it runs.
fn with_variables_in_quotes(command: &Command) -> String {
    let quoted = command.arguments.iter().map(|argument| {
        match argument.contains('%') || argument == KERNEL_SESSION {
            true => format!("\"{argument}\""),
            false => argument.clone(),
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
    write_refusals(&mut file, recorder);
    file.0.join("\n") + "\n"
}

/// What it is called with, and where that is done.
fn write_settings(file: &mut Batch, kit: &Kit, recorder: &Recorder) {
    file.lines(&[
        "@echo off",
        &format!("rem {}", kit.investigation.question()),
        "rem Made by laglab; README.md says what it records, and what that costs.",
        "rem Run it from an elevated prompt.",
        "setlocal EnableExtensions DisableDelayedExpansion",
        "set \"here=%~dp0\"",
        &format!(
            "set \"profile=%here%{}\"",
            kit.profile_of(&kit.profile_file())
        ),
        "rem Temporary files go to the folder of this file: let it be on a quick disk.",
        "set \"temporary=%here%temp\"",
        &format!("set \"running=%temporary%\\{}\"", recorder.mark_of_running),
        "set \"action=%~1\"",
        "set \"note=%~2\"",
        "if \"%action%\"==\"\" set \"action=20\"",
        &format!("if \"%note%\"==\"\" set \"note={}\"", kit.name()),
    ]);
    for action in recorder.actions() {
        file.line(&format!("if /i \"%action%\"==\"{action}\" goto {action}"));
    }
}

/// A recording for a number of seconds.
fn write_timed(file: &mut Batch, recorder: &Recorder) {
    let itself = recorder.file;
    file.lines(&[
        "rem Then it is a number of seconds; with zeros before it, it would be octal.",
        "for /f \"delims=0123456789\" %%c in (\"%action%\") do goto usage",
        "for /f \"delims=0 tokens=*\" %%n in (\"%action%\") do set \"action=%%n\"",
        "rem What an earlier run of this file left running would be in the way.",
        "if exist \"%running%\" call :cancel >nul 2>&1",
        "call :start-to-file",
        "if not %errorlevel%==0 exit /b 1",
        "echo Recording for %action% s. Make it lag now.",
        &format!(
            "echo Ctrl-C does not end the recorder: {itself} stop saves, {itself} cancel ends it."
        ),
        "rem ping waits between its packets, so it sends one more than there are seconds; it is for",
        "rem where there is no console, without which timeout does not wait.",
        "set /a pings=%action%+1",
        "timeout.exe /t %action% /nobreak >nul 2>&1",
        "if not %errorlevel%==0 ping.exe -n %pings% 127.0.0.1 >nul",
        "call :stop-and-save",
        "exit /b %errorlevel%",
    ]);
}

/// What is done step by step.
fn write_steps(file: &mut Batch, kit: &Kit, recorder: &Recorder) {
    let itself = recorder.file;
    file.label("start");
    file.lines(&[
        "call :start-to-file",
        "if not %errorlevel%==0 exit /b 1",
        &format!(
            "echo It records until {itself} stop. Till then it fills the disk, by some {} a second when \
             busy.",
            megabytes(kit.cost().busy_bytes_per_second)
        ),
        "exit /b 0",
    ]);
    file.label("circular");
    file.lines(&[
        "call :start-in-memory",
        "if not %errorlevel%==0 exit /b 1",
        &format!("echo It keeps what just happened, in memory. When it lagged: {itself} save"),
        &format!("echo To end it: {itself} cancel"),
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
            "call :keep-surroundings",
            "call :start-in-memory",
            "exit /b %errorlevel%",
        ]);
    } else {
        file.line("goto keep-surroundings");
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
            &format!("echo Restart, log on, and when it is calm again: {itself} boot-stop"),
            &format!(
                "echo Till then, or {itself} boot-cancel, every start of Windows is recorded, and fills \
                 the disk."
            ),
            "exit /b 0",
        ]);
        file.label("boot-stop");
        file.lines(&[
            "call :next-trace",
            &boot.stop,
            OR_FAIL,
            "goto keep-surroundings",
        ]);
        file.label("boot-cancel");
        file.lines(&[boot.cancel.as_str(), "exit /b %errorlevel%"]);
    }
}

/// What begins to record, and leaves nothing running if that fails.
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
            "if not %errorlevel%==0 echo netsh does not capture packets: none will be in the recording. 1>&2",
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

/// What ends a recording, and keeps beside it what a trace does not tell.
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
    file.label("keep-surroundings");
    file.line("rem What laglab explain cannot see in a trace is kept beside it.");
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

fn write_refusals(file: &mut Batch, recorder: &Recorder) {
    let itself = recorder.file;
    file.label("failed");
    file.lines(&[
        "echo The recorder failed; its own words are above. Is this prompt elevated, and does no other \
         recording run? 1>&2",
        &format!(
            "echo \"logman query -ets\" lists what runs; {itself} cancel ends a recording of this \
             recorder. 1>&2"
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
    /// What it can be told to do, beside recording for a number of seconds.
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
