//! The commands of recorders: what the scripts run, and `laglab record` itself.

use std::fmt;

use super::Kit;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Where the recording goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To a file that grows until the recording is stopped.
    File,
    /// To memory, which keeps what just happened.
    Circular,
    /// To a file, from the next boot on.
    Boot,
}

/// Keys of the registry that are kept beside a trace, each with a short name: what
/// [documents](https://learn.microsoft.com/troubleshoot/windows-server/performance) on scheduling,
/// timers, media, networking and file sharing speak of.
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

/// Name of the session of providers, for xperf.
pub(super) const SESSION: &str = "laglab";
/// Name of the kernel's session.
pub(super) const KERNEL_SESSION: &str = "NT Kernel Logger";

impl Command {
    fn new<'a>(program: &'static str, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        Command {
            program,
            arguments: arguments.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// As it is typed at a prompt of Windows.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        for argument in &self.arguments {
            match argument.is_empty() || argument.contains([' ', '&', '(', ')', '^', ';', ',']) {
                true => write!(f, " \"{argument}\"")?,
                false => write!(f, " {argument}")?,
            }
        }
        Ok(())
    }
}

/// Starts the profile of that file. Temporary files go to the folder given, if one is: to a quick
/// disk that is not what is investigated.
pub fn start(kit: &Kit, profile: &str, mode: Mode, temporary: Option<&str>) -> Command {
    let profile = kit.profile_of(profile);
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

/// Stops and saves the trace, with a word on it.
pub fn stop(mode: Mode, trace: &str, note: &str) -> Command {
    match mode {
        Mode::Boot => Command::new("wpr.exe", ["-boottrace", "-stopboot", trace]),
        _ => Command::new("wpr.exe", ["-stop", trace, note]),
    }
}

/// Puts a mark into what is being recorded.
pub fn mark(text: &str) -> Command {
    Command::new("wpr.exe", ["-marker", text])
}

/// Ends the recording of boots without keeping any.
pub fn cancel_boot() -> Command {
    Command::new("wpr.exe", ["-boottrace", "-cancelboot"])
}

/// Ends a recording without keeping it.
pub fn cancel() -> Command {
    Command::new("wpr.exe", ["-cancel"])
}

/// Exports a key of the registry into a file.
pub fn export_setting(key: &str, file: &str) -> Command {
    Command::new("reg.exe", ["export", key, file, "/y"])
}

/// Starts capturing packets, which binds the filter driver that the provider needs.
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

/// Stops capturing packets.
pub fn stop_packets() -> Command {
    Command::new("netsh.exe", ["trace", "stop"])
}

/// Starts the sessions with xperf; to files in that folder, or in memory. The kernel's first.
pub fn xperf_start(kit: &Kit, mode: Mode, folder: &str) -> Vec<Command> {
    let in_memory = mode == Mode::Circular;
    let capture = kit.capture();
    let (kernel, providers) = kit.buffers(in_memory);
    let joined = |names: Vec<&str>| names.join("+");
    let mut commands = Vec::new();
    let mut add = |session: &str, what: &[String], buffers: crate::Buffers, file: &str| {
        let (size, count) = (buffers.size_kib.to_string(), buffers.count.to_string());
        let file = format!(r"{folder}\{file}");
        let mut arguments = vec!["-start", session];
        arguments.extend(what.iter().map(String::as_str));
        arguments.extend(["-buffersize", &size, "-minbuffers", &count]);
        arguments.extend(["-maxbuffers", &count]);
        match in_memory {
            true => arguments.push("-buffering"),
            false => arguments.extend(["-f", &file]),
        }
        commands.push(Command::new("xperf.exe", arguments));
    };
    let flags = joined(
        (capture.keywords())
            // Always on, and no flag of its older versions.
            .filter(|keyword| *keyword != crate::Keyword::CpuConfig)
            .map(|keyword| keyword.xperf())
            .collect(),
    );
    let stacks = joined(capture.stacks().map(|stack| stack.xperf()).collect());
    let mut of_kernel = vec!["-on".to_owned(), flags];
    if !stacks.is_empty() {
        of_kernel.extend(["-stackwalk".to_owned(), stacks]);
    }
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

/// The files that xperf's sessions write or are saved to, in that folder; the kernel's first.
pub(super) fn xperf_files(kit: &Kit, folder: &str) -> Vec<String> {
    let mut files = vec![format!(r"{folder}\kernel.etl")];
    if kit.buffers(false).1.is_some() {
        files.push(format!(r"{folder}\providers.etl"));
    }
    files
}

/// Saves what xperf's sessions hold as one trace: the command that saves each, and the one that merges
/// them. Those in memory go on.
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

/// Ends xperf's sessions, whatever they hold.
pub fn xperf_cancel(kit: &Kit) -> Command {
    let mut arguments = vec!["-stop", KERNEL_SESSION];
    if kit.buffers(false).1.is_some() {
        arguments.extend(["-stop", SESSION]);
    }
    Command::new("xperf.exe", arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Investigation, Machine};

    fn kit() -> Kit {
        Kit::new(Investigation::Dpc, Machine::ORDINARY)
    }

    #[test]
    fn what_wpr_is_told_is_what_its_command_line_takes() {
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

    #[test]
    fn what_xperf_is_told_is_what_its_command_line_takes() {
        let kit = Kit::new(Investigation::Timer, Machine::ORDINARY);
        let lines = |commands: Vec<Command>| -> Vec<String> {
            commands.iter().map(Command::to_string).collect()
        };
        // 16 GiB of memory: a 32nd of it, 512 buffers of 1 MiB.
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
