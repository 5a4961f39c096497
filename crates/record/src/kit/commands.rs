//! Command lines of the recorders, for scripts and for `laglab record`.

use std::fmt;

use super::Kit;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// File name of the program.
    pub program: &'static str,
    /// Arguments, without quotation marks.
    pub arguments: Vec<String>,
}

/// Destination of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A file that grows until the recording is stopped.
    File,
    /// Memory that keeps the latest events.
    Circular,
    /// A file that records from the next boot on.
    Boot,
}

/// Registry keys that are exported to files next to a trace, each with a short name. Microsoft's
/// [documentation](https://learn.microsoft.com/troubleshoot/windows-server/performance) describes them for
/// scheduling, timers, media, networking and file sharing.
pub const SETTINGS: [(&str, &str); 9] = [
    (
        "PriorityControl",
        r"HKLM\SYSTEM\CurrentControlSet\Control\PriorityControl",
    ),
    (
        "kernel",
        r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\kernel",
    ),
    (
        "Quota-System",
        r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Quota System",
    ),
    (
        "SystemProfile",
        r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Multimedia\SystemProfile",
    ),
    (
        "Tcpip",
        r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters",
    ),
    (
        "LanmanWorkstation",
        r"HKLM\SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters",
    ),
    (
        "LanmanServer",
        r"HKLM\SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters",
    ),
    (
        "Adapters",
        r"HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}",
    ),
    ("QoS", r"HKLM\SOFTWARE\Policies\Microsoft\Windows\QoS"),
];

/// Name of the session that xperf starts for providers.
pub(super) const SESSION: &str = "laglab";
/// Name that Windows gives to the kernel session.
pub(super) const KERNEL_SESSION: &str = "NT Kernel Logger";

impl Command {
    fn new<'a>(program: &'static str, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        Command {
            program,
            arguments: arguments.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Formats the command line for a Windows command prompt.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SPECIAL: [char; 13] = [
            ' ', '\t', '&', '|', '<', '>', '(', ')', '^', ';', ',', '"', '%',
        ];
        f.write_str(self.program)?;
        for argument in &self.arguments {
            if argument.is_empty() || argument.contains(SPECIAL) {
                write!(f, " {}", quoted(argument))?
            } else {
                write!(f, " {argument}")?
            }
        }
        Ok(())
    }
}

/// Quotes an argument for a command prompt, and for the program, which splits the command line itself.
///
/// A prompt ends a quotation even at `\"`, and expands variables even in a quotation. So quotation marks and
/// percent signs are written between quotations, each after a caret.
///
/// Splitting by programs:
/// <https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments>
fn quoted(argument: &str) -> String {
    let text = |text: &str| {
        // Before a quotation mark, backslashes are doubled.
        let backslashes = &text[text.trim_end_matches('\\').len()..];
        format!("\"{text}{backslashes}\"")
    };
    let joined = |part: &str| part.split('%').map(text).collect::<Vec<_>>().join("^%");
    let parts: Vec<String> = argument.split('"').map(joined).collect();
    parts.join("\\^\"")
}

/// Returns the command that starts recording with a WPR profile. Temporary files are written to the folder
/// `temporary`. This folder should be on a fast disk that is not under investigation.
pub fn start(kit: &Kit, profile: &str, mode: Mode, temporary: Option<&str>) -> Command {
    let profile = kit.profile_argument(profile);
    let mut arguments = match mode {
        Mode::File => vec!["-start", &profile, "-filemode"],
        Mode::Circular => vec!["-start", &profile],
        Mode::Boot => vec!["-boottrace", "-addboot", &profile, "-filemode"],
    };
    if let Some(folder) = temporary.filter(|_| mode != Mode::Circular) {
        arguments.extend(["-recordtempto", folder]);
    }
    Command::new("wpr.exe", arguments)
}

/// Returns the command that stops the recording and saves the trace with a note.
pub fn stop(mode: Mode, trace: &str, note: &str) -> Command {
    match mode {
        Mode::Boot => Command::new("wpr.exe", ["-boottrace", "-stopboot", trace]),
        _ => Command::new("wpr.exe", ["-stop", trace, note]),
    }
}

/// Returns the command that writes a mark into the trace.
pub fn mark(text: &str) -> Command {
    Command::new("wpr.exe", ["-marker", text])
}

/// Returns the command that ends the recording of the next boot without saving it.
pub fn cancel_boot() -> Command {
    Command::new("wpr.exe", ["-boottrace", "-cancelboot"])
}

/// Returns the command that ends a recording without saving it.
pub fn cancel() -> Command {
    Command::new("wpr.exe", ["-cancel"])
}

/// Returns the command that exports a registry key to a file.
pub fn export_setting(key: &str, file: &str) -> Command {
    Command::new("reg.exe", ["export", key, file, "/y"])
}

/// Returns the command that starts a packet capture. It also binds the filter driver that the packet
/// provider needs.
pub fn start_packets(file: &str) -> Command {
    let file = format!("tracefile={file}");
    let arguments = [
        "trace",
        "start",
        "capture=yes",
        "report=disabled",
        "maxsize=1024",
        "overwrite=yes",
        &file,
    ];
    Command::new("netsh.exe", arguments)
}

/// Returns the command that stops the packet capture.
pub fn stop_packets() -> Command {
    Command::new("netsh.exe", ["trace", "stop"])
}

/// Returns the commands that start xperf's sessions. The sessions write to files in `folder`, or keep the latest
/// events in memory. The command for the kernel session is first.
pub fn xperf_start(kit: &Kit, mode: Mode, folder: &str) -> Vec<Command> {
    let in_memory = mode == Mode::Circular;
    let capture = kit.capture();
    let (kernel, providers) = kit.buffers(in_memory);
    let mut commands = Vec::new();
    let mut add = |session: &str, what: &[String], buffers: crate::Buffers, file: &str| {
        let (size, count) = (buffers.size_kib.to_string(), buffers.count.to_string());
        let file = format!(r"{folder}\{file}");
        let mut arguments = vec!["-start", session];
        arguments.extend(what.iter().map(String::as_str));
        arguments.extend(["-buffersize", &size, "-minbuffers", &count]);
        arguments.extend(["-maxbuffers", &count]);
        if in_memory {
            arguments.push("-buffering")
        } else {
            arguments.extend(["-f", &file])
        }
        commands.push(Command::new("xperf.exe", arguments));
    };
    let flags = capture.xperf_flags().unwrap_or_default();
    let of_kernel: Vec<String> = ["-on"]
        .into_iter()
        .chain(flags.split(' '))
        .map(str::to_owned)
        .collect();
    add(KERNEL_SESSION, &of_kernel, kernel, "kernel.etl");
    if let Some(buffers) = providers {
        let enabled: Vec<String> = (capture.providers().iter())
            .map(|enabled| match enabled.keywords {
                0 => enabled.provider.session_name().to_owned(),
                keywords => format!("{}:{keywords:#x}", enabled.provider.session_name()),
            })
            .collect();
        let of_providers = ["-on".to_owned(), enabled.join("+")];
        add(SESSION, &of_providers, buffers, "providers.etl");
    }
    commands
}

/// Returns the files to which xperf's sessions are written or saved. The file of the kernel session is
/// first.
pub(super) fn xperf_files(kit: &Kit, folder: &str) -> Vec<String> {
    let mut files = vec![format!(r"{folder}\kernel.etl")];
    if kit.buffers(false).1.is_some() {
        files.push(format!(r"{folder}\providers.etl"));
    }
    files
}

/// Returns two commands that save xperf's sessions as one trace. The first saves each session to a file, and
/// the second merges the files. Sessions in memory continue.
pub fn xperf_save(kit: &Kit, mode: Mode, folder: &str, trace: &str) -> [Command; 2] {
    let files = xperf_files(kit, folder);
    let mut first = Vec::new();
    for (session, file) in [KERNEL_SESSION, SESSION].iter().zip(&files) {
        match mode {
            Mode::Circular => first.extend(["-flush", session, "-f", file]),
            _ => first.extend(["-stop", session]),
        }
    }
    let mut merge = vec!["-merge"];
    merge.extend(files.iter().map(String::as_str));
    merge.extend([trace, "-compress"]);
    [
        Command::new("xperf.exe", first),
        Command::new("xperf.exe", merge),
    ]
}

/// Returns the command that ends xperf's sessions without saving them.
pub fn xperf_cancel(kit: &Kit) -> Command {
    let mut arguments = vec!["-stop", KERNEL_SESSION];
    if kit.buffers(false).1.is_some() {
        arguments.extend(["-stop", SESSION]);
    }
    Command::new("xperf.exe", arguments)
}

#[cfg(test)]
mod tests {
    use testdata::HOSTILE_NAMES;

    use super::*;
    use crate::{Investigation, Machine};

    fn kit() -> Kit {
        Kit::new(Investigation::Dpc, Machine::TYPICAL)
    }

    #[test]
    fn wpr_command_lines_are_formed() {
        let start = |mode| start(&kit(), "laglab-dpc.wprp", mode, Some(r"S:\temp")).to_string();
        assert_eq!(
            start(Mode::File),
            r"wpr.exe -start laglab-dpc.wprp!laglab-dpc -filemode -recordtempto S:\temp"
        );
        assert_eq!(
            start(Mode::Circular),
            "wpr.exe -start laglab-dpc.wprp!laglab-dpc"
        );
        assert_eq!(
            start(Mode::Boot),
            r"wpr.exe -boottrace -addboot laglab-dpc.wprp!laglab-dpc -filemode -recordtempto S:\temp"
        );
        assert_eq!(
            stop(Mode::File, "a b.etl", "frozen again").to_string(),
            r#"wpr.exe -stop "a b.etl" "frozen again""#
        );
    }

    /// Returns the command line that a prompt makes from a typed line: variables are expanded, and carets
    /// outside quotations are removed. Returns `None` if the line has more than one command.
    fn typed(line: &str, variables: &[(&str, &str)]) -> Option<String> {
        let mut expanded = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('%') {
            expanded.push_str(before);
            let named = after.split_once('%').and_then(|(name, after)| {
                let name = name.split_once(':').map_or(name, |(name, _)| name);
                let mut variables = variables.iter();
                Some((variables.find(|(known, _)| *known == name)?.1, after))
            });
            rest = match named {
                Some((value, after)) => {
                    expanded.push_str(value);
                    after
                }
                // At a prompt, unlike in a batch file, an unknown variable is not replaced.
                None => {
                    expanded.push('%');
                    after
                }
            };
        }
        expanded.push_str(rest);
        let mut passed = String::new();
        let mut is_quoted = false;
        let mut letters = expanded.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => is_quoted = !is_quoted,
                '^' if !is_quoted => {
                    passed.extend(letters.next());
                    continue;
                }
                '&' | '|' | '<' | '>' if !is_quoted => return None,
                _ => {}
            }
            passed.push(letter);
        }
        Some(passed)
    }

    /// Splits a command line by the rules of Microsoft's C runtime.
    fn split(line: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut letters = line.chars().peekable();
        while letters.peek().is_some() {
            let (mut argument, mut is_quoted, mut backslashes) = (String::new(), false, 0);
            for letter in letters.by_ref() {
                if letter == '\\' {
                    backslashes += 1;
                    continue;
                }
                let count = if letter == '"' {
                    backslashes / 2
                } else {
                    backslashes
                };
                argument.extend(std::iter::repeat_n('\\', count));
                match letter {
                    '"' if backslashes % 2 == 1 => argument.push('"'),
                    '"' => is_quoted = !is_quoted,
                    ' ' if !is_quoted => break,
                    _ => argument.push(letter),
                }
                backslashes = 0;
            }
            argument.extend(std::iter::repeat_n('\\', backslashes));
            arguments.push(argument);
        }
        arguments
    }

    #[test]
    fn a_printed_command_runs_as_it_is_typed() {
        let variables = [("PATH", "& calc"), ("OS", "\" & calc")];
        let bare = r#"wpr.exe -stop t.etl "x"; calc & %OS%""#;
        assert_eq!(typed(bare, &variables), None, "the test can fail");
        let own = [
            r#"x"; calc & %PATH%"#,
            "%OS%",
            "%OS:~0,1%",
            "100 %",
            "%%OS%%",
            r"C:\a folder\",
            r#"a\"b\\"#,
            r"a\%b\%",
            "\"\"",
            "^^",
            "",
        ];
        for note in HOSTILE_NAMES.iter().chain(&own) {
            let command = stop(Mode::File, r"S:\50%\t.etl", note);
            let line = typed(&command.to_string(), &variables);
            let line = line.unwrap_or_else(|| panic!("two commands: {command}"));
            let expected = ["wpr.exe", "-stop", r"S:\50%\t.etl", note];
            assert_eq!(split(&line), expected, "{command}");
        }
    }

    #[test]
    fn xperf_command_lines_are_formed() {
        let kit = Kit::new(Investigation::Timer, Machine::TYPICAL);
        let lines = |commands: Vec<Command>| -> Vec<String> {
            commands.iter().map(Command::to_string).collect()
        };
        // The typical machine has 16 GiB of memory. 1/32 of it is 512 buffers of 1 MiB.
        assert_eq!(
            lines(xperf_start(&kit, Mode::Circular, "t")),
            [
                "xperf.exe -start \"NT Kernel Logger\" -on \
                 PROC_THREAD+LOADER+CSWITCH+DISPATCHER+PROFILE+POWER -buffersize 1024 -minbuffers \
                 512 -maxbuffers 512 -buffering",
                "xperf.exe -start laglab -on Microsoft-Windows-Kernel-Power -buffersize 128 \
                 -minbuffers 256 -maxbuffers 256 -buffering",
            ]
        );
        assert_eq!(
            lines(xperf_save(&kit, Mode::Circular, "t", "out.etl").to_vec()),
            [
                r#"xperf.exe -flush "NT Kernel Logger" -f t\kernel.etl -flush laglab -f t\providers.etl"#,
                r"xperf.exe -merge t\kernel.etl t\providers.etl out.etl -compress",
            ]
        );
        assert_eq!(
            lines(xperf_save(&kit, Mode::File, "t", "out.etl").to_vec())[0],
            r#"xperf.exe -stop "NT Kernel Logger" -stop laglab"#
        );
    }
}
