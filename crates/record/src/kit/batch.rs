//! Batch files that record: start, wait, mark, stop. They need nothing but the recorder and what
//! every Windows has.

use super::commands::{
    KERNEL_SESSION, Mode, SETTINGS, start_packets, stop_packets, xperf_cancel, xperf_save,
    xperf_start,
};
use super::{Command, Kit};

/// What a batch file does with its recorder, each in lines that leave `errorlevel`.
struct Recorder {
    /// The file's own name.
    file: &'static str,
    /// Begins to record to a file.
    start_to_file: Vec<String>,
    /// Begins to record in memory.
    start_in_memory: Vec<String>,
    /// Stops, and saves as `%trace%` with the word `%note%`.
    stop: Vec<String>,
    /// Saves what is in memory as `%trace%`, and goes on.
    save: Vec<String>,
    /// Ends without saving.
    cancel: Vec<String>,
    /// Marks the moment with `%note%`.
    mark: Vec<String>,
    /// Records the next boot, and saves that; nothing if it cannot.
    boot: Option<[String; 2]>,
}

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
    let start_in_memory = vec![start(r#"-start "%profile%""#)];
    let stop = vec![start(r#"-stop "%trace%" "%note%""#)];
    let recorder = Recorder {
        file: "record.cmd",
        start_to_file: vec![start(
            r#"-start "%profile%" -filemode -recordtempto "%temporary%""#,
        )],
        // WPR saves only by stopping: it starts again at once.
        save: [stop.clone(), start_in_memory.clone()]
            .join(&"if errorlevel 1 goto failed".to_owned()),
        start_in_memory,
        stop,
        cancel: vec!["wpr.exe -cancel".to_owned()],
        mark: vec![r#"wpr.exe -marker "%note%""#.to_owned()],
        boot: Some([
            r#"wpr.exe -boottrace -addboot "%profile%" -filemode -recordtempto "%temporary%""#
                .to_owned(),
            r#"wpr.exe -boottrace -stopboot "%trace%""#.to_owned(),
        ]),
    };
    write(kit, &recorder)
}

/// The batch file that records with xperf, for systems older than WPR and whoever knows it better.
pub(super) fn with_xperf(kit: &Kit) -> String {
    const FOLDER: &str = "%temporary%";
    let lines = |commands: Vec<Command>| -> Vec<String> {
        let mut lines = Vec::new();
        for command in commands {
            if !lines.is_empty() {
                lines.push("if errorlevel 1 goto failed".to_owned());
            }
            lines.push(with_variables_in_quotes(&command));
        }
        lines
    };
    let recorder = Recorder {
        file: "record-xperf.cmd",
        start_to_file: lines(xperf_start(kit, Mode::File, FOLDER)),
        start_in_memory: lines(xperf_start(kit, Mode::Circular, FOLDER)),
        stop: lines(xperf_save(kit, Mode::File, FOLDER, "%trace%")),
        save: lines(xperf_save(kit, Mode::Circular, FOLDER, "%trace%")),
        cancel: lines(vec![xperf_cancel(kit)]),
        mark: vec![r#"xperf.exe -m "%note%""#.to_owned()],
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
    let (name, itself) = (kit.name(), recorder.file);
    file.lines(&[
        "@echo off",
        &format!("rem {}", kit.investigation.question()),
        "rem Made by laglab; README.md says what it records, and what that costs.",
        "rem Run it from an elevated prompt.",
        "setlocal EnableExtensions DisableDelayedExpansion",
        "set \"here=%~dp0\"",
        &format!("set \"profile=%here%{}!{name}\"", kit.profile_file()),
        "rem Temporary files go to the folder of this file: let it be on a quick disk.",
        "set \"temporary=%here%temp\"",
        "set \"action=%~1\"",
        "set \"note=%~2\"",
        "if \"%action%\"==\"\" set \"action=20\"",
        &format!("if \"%note%\"==\"\" set \"note={name}\""),
    ]);
    let mut actions = vec!["start", "circular", "mark", "save", "stop", "cancel"];
    if recorder.boot.is_some() {
        actions.extend(["boot", "boot-stop"]);
    }
    for action in &actions {
        file.line(&format!("if /i \"%action%\"==\"{action}\" goto {action}"));
    }

    file.lines(&[
        "rem Then it is a number of seconds.",
        "for /f \"delims=0123456789\" %%c in (\"%action%\") do goto usage",
        "rem An earlier recording that nobody stopped would be in the way.",
    ]);
    file.lines(
        &recorder
            .cancel
            .iter()
            .map(|line| format!("{line} >nul 2>&1"))
            .collect::<Vec<_>>(),
    );
    file.lines(&[
        "call :start-to-file",
        "if errorlevel 1 exit /b 1",
        "echo Recording for %action% s. Make it lag now.",
        "rem ping waits between its packets, so it sends one more than there are seconds; it is for",
        "rem where there is no console, without which timeout does not wait.",
        "set /a packets=%action%+1",
        "timeout.exe /t %action% /nobreak >nul 2>&1",
        "if errorlevel 1 ping.exe -n %packets% 127.0.0.1 >nul",
        "call :stop-and-save",
        "exit /b %errorlevel%",
    ]);

    file.label("start");
    file.lines(&["call :start-to-file", "exit /b %errorlevel%"]);
    file.label("circular");
    file.lines(&recorder.start_in_memory);
    file.lines(&[
        "if errorlevel 1 goto failed",
        &format!("echo It keeps what just happened, in memory. When it lagged: {itself} save"),
        "exit /b 0",
    ]);
    file.label("mark");
    file.lines(&recorder.mark);
    file.line("exit /b %errorlevel%");
    file.label("save");
    file.line("call :next-trace");
    file.lines(&recorder.save);
    file.lines(&["if errorlevel 1 goto failed", "goto saved"]);
    file.label("stop");
    file.lines(&["call :stop-and-save", "exit /b %errorlevel%"]);
    file.label("cancel");
    file.lines(&recorder.cancel);
    if kit.has_packets() {
        file.line(&stop_packets().to_string());
    }
    file.line("exit /b 0");
    if let Some([add, stop]) = &recorder.boot {
        file.label("boot");
        file.lines(&[
            "if not exist \"%temporary%\" mkdir \"%temporary%\"",
            add,
            "if errorlevel 1 goto failed",
            &format!("echo Restart, log on, and when it is calm again: {itself} boot-stop"),
            "exit /b 0",
        ]);
        file.label("boot-stop");
        file.lines(&[
            "call :next-trace",
            stop,
            "if errorlevel 1 goto failed",
            "goto saved",
        ]);
    }

    file.label("start-to-file");
    file.line("if not exist \"%temporary%\" mkdir \"%temporary%\"");
    if kit.has_packets() {
        let file_of_packets = start_packets("%temporary%\\packets.etl");
        file.line(&with_variables_in_quotes(&file_of_packets));
    }
    file.lines(&recorder.start_to_file);
    file.lines(&["if errorlevel 1 goto failed", "exit /b 0"]);
    file.label("stop-and-save");
    file.line("call :next-trace");
    file.lines(&recorder.stop);
    file.line("if errorlevel 1 goto failed");
    if kit.has_packets() {
        file.line(&format!("{} >nul", stop_packets()));
        file.line("move /y \"%temporary%\\packets.etl\" \"%trace:.etl=-packets.etl%\" >nul 2>&1");
    }

    file.label("saved");
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
    file.lines(&[
        "set /a number=%number%+1",
        &format!("set \"trace=%here%{name}-%number%.etl\""),
        "if exist \"%trace%\" goto next-number",
        "exit /b 0",
    ]);
    file.label("failed");
    file.lines(&[
        "echo The recorder failed; its own words are above. Is this prompt elevated, and does no other \
         recording run? 1>&2",
        &format!("echo {itself} cancel ends one of its own. 1>&2"),
        "exit /b 1",
    ]);
    file.label("usage");
    file.lines(&[
        &format!(
            "echo {itself} [SECONDS ^| {}] [NOTE] 1>&2",
            actions.join(" ^| ")
        ),
        "exit /b 2",
    ]);
    file.0.join("\n") + "\n"
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
