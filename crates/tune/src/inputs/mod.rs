//! Readers of files that contain settings: exports, hives, policies, outputs of commands.
//!
//! [`read_files`] reads files and folders, and [`read`] reads the bytes of one file. The content
//! determines the format. If a file has the name of another format, it is an error. Unreadable lines are
//! counted and reported, and the rest is read.

mod admx;
mod archive;
mod bcdedit;
mod cmdlet;
mod energy_report;
mod hive;
mod identity;
mod latency_mon;
mod lgpo;
#[cfg(windows)]
pub mod live;
mod netsh;
mod policy_rules;
mod power_scheme;
mod reading;
pub mod reg;
mod registry_pol;
mod security_template;
mod text;
mod walk;
mod windbg;
mod xml;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use registry::{HiveError, HiveLog, Key, is_hive, is_hive_log, is_log_name_of, replay};

use crate::machine::Machine;
use crate::observation::Observation;
use crate::placed_value::{InputPosition, Origin, PlacedValue};
pub use admx::PolicyName;
use archive::Member;
pub use identity::complete;
use reading::Reading;

/// Maximum size of a file, in bytes. A hive has at most 2 GiB.
const MAX_FILE: u64 = 2 << 30;

/// Maximum size of a text file, in bytes. A `.reg` export of a whole machine is about this large.
const MAX_TEXT: usize = 512 << 20;

/// Content of one file.
#[derive(Clone, Debug)]
pub struct Input {
    /// File name. For a file in an archive, the name of the archive is in front.
    pub name: String,
    /// Format of the file.
    pub format: Format,
    /// Values that the file sets or deletes, in the order of the file.
    pub found: Vec<PlacedValue>,
    /// Values that the file contains and that are not settings, in the order of the file.
    pub observed: Vec<Observation>,
    /// Registry keys that the file deletes with all subkeys.
    pub deleted_keys: Vec<(Key, Origin)>,
    /// Names of the policies that write registry values, if the file is an ADMX file.
    pub policy_names: Vec<PolicyName>,
    /// Name, build and edition of the machine, if the file states them.
    pub machine: Machine,
    /// Parts of the file that could not be read.
    pub complaints: Complaints,
}

/// Unreadable parts of an input.
#[derive(Clone, Debug, Default)]
pub struct Complaints {
    /// The first [`MAX_LISTED`](Self::MAX_LISTED) complaints.
    pub first: Vec<Complaint>,
    /// Number of all complaints, including complaints that are not listed.
    pub count: u64,
}

impl Complaints {
    /// Maximum number of complaints that are listed.
    pub const MAX_LISTED: usize = 20;
}

/// An unreadable part of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Position of the part in the input.
    pub at: InputPosition,
    /// Sentence that describes the problem.
    pub what: String,
}

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Export of the Registry Editor (`.reg`).
    Reg,
    /// Registry hive file.
    Hive,
    /// Registry values of a group policy (`registry.pol`).
    RegistryPol,
    /// Text in the format of `LGPO.exe /parse`.
    Lgpo,
    /// Security template, such as `GptTmpl.inf`.
    SecurityTemplate,
    /// Baseline of Policy Analyzer (`.PolicyRules`).
    PolicyRules,
    /// Definitions of policies (ADMX).
    Admx,
    /// Display names of policies (ADML).
    Adml,
    /// Zip archive or cabinet.
    Archive,
    /// Output of `bcdedit /enum`.
    BcdEdit,
    /// Output of a PowerShell cmdlet, as list or table.
    Cmdlet,
    /// Output of a PowerShell cmdlet, as JSON.
    CmdletJson,
    /// Output of `netsh int tcp show global`.
    Netsh,
    /// Output of `powercfg /query`.
    PowerScheme,
    /// Report of `powercfg /energy`, as XML.
    EnergyReport,
    /// Report of `powercfg /energy`, as HTML.
    EnergyReportHtml,
    /// Log of WinDbg.
    WinDbg,
    /// Report of LatencyMon.
    LatencyMon,
    /// Live registry of the running system.
    Live,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reg => "a .reg export",
            Self::Hive => "a registry hive",
            Self::RegistryPol => "a registry.pol file",
            Self::Lgpo => "LGPO text",
            Self::SecurityTemplate => "a security template",
            Self::PolicyRules => "a .PolicyRules file",
            Self::Admx => "an ADMX file",
            Self::Adml => "an ADML file",
            Self::Archive => "an archive",
            Self::BcdEdit => "bcdedit output",
            Self::Cmdlet => "PowerShell output",
            Self::CmdletJson => "JSON",
            Self::Netsh => "netsh output",
            Self::PowerScheme => "powercfg output",
            Self::EnergyReport | Self::EnergyReportHtml => "a powercfg /energy report",
            Self::WinDbg => "a WinDbg log",
            Self::LatencyMon => "a LatencyMon report",
            Self::Live => "the registry of the running system",
        })
    }
}

/// Reason why a file cannot be read at all. The error message does not include the source error.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file or folder cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file is larger than the limit for its format.
    #[error("{name} is too large: {size} bytes, at most {limit} are read")]
    TooLarge {
        /// File name.
        name: String,
        /// Size in bytes.
        size: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The format is unknown.
    #[error(
        "unknown format of {name}: {found}; give a .reg export, a hive, a policy or baseline, or the output of \
         bcdedit, netsh, powercfg, WinDbg, LatencyMon or PowerShell"
    )]
    Unknown {
        /// File name.
        name: String,
        /// Description of the content.
        found: String,
    },
    /// The format is known, but it has no settings, or its settings cannot be found.
    #[error("cannot read {name}: it is {found}; {advice}")]
    Unusable {
        /// File name.
        name: String,
        /// Description of the content.
        found: &'static str,
        /// Advice for the user: the file to give instead.
        advice: &'static str,
    },
    /// The file name belongs to another format than the content.
    #[error(
        "cannot read {name}: the content does not match the file name: expected {claimed}, found {found}; rename \
         the file or give the right one"
    )]
    NotWhatItClaims {
        /// File name.
        name: String,
        /// Format to which the file name belongs.
        claimed: Format,
        /// Description of the content.
        found: String,
    },
    /// The hive is damaged.
    #[error("cannot read the hive {name}")]
    Hive {
        /// File name.
        name: String,
        /// Cause.
        source: HiveError,
    },
    /// The XML is invalid, has a document type (DTD), or exceeds a limit.
    #[error("cannot read the XML of {name}")]
    Xml {
        /// File name.
        name: String,
        /// Cause, with its position.
        source: ::xml::Error,
    },
    /// The JSON is invalid.
    #[error("cannot read the JSON of {name}")]
    Json {
        /// File name.
        name: String,
        /// Cause, with its position.
        source: serde_json::Error,
    },
    /// The archive is damaged.
    #[error("cannot read the archive {name}")]
    Archive {
        /// File name of the archive.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// The file is the transaction log of a hive, and the hive is missing.
    #[error(
        "{name} is the transaction log of a hive and has no settings on its own: give the hive; laglab finds \
         the logs in the folder of the hive"
    )]
    LogOfHive {
        /// File name.
        name: String,
    },
    /// The folder or archive contains no file with settings.
    #[error("no policy, baseline or export in {name}")]
    Nothing {
        /// Name of the folder or archive.
        name: String,
    },
}

/// Reads files, and the files below folders, such as folders of backups and baselines. In a folder or archive, files of
/// an unknown format are skipped.
///
/// # Errors
/// Returns an error if a file cannot be read at all or does not match its name. Also returns an error if a file outside
/// a folder or archive has an unknown format, or if a folder or archive has no file with settings.
pub fn read_files(paths: &[impl AsRef<Path>]) -> Result<Vec<Input>, InputError> {
    let mut inputs = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let failed = |source| InputError::Io {
            path: path.to_owned(),
            source,
        };
        if path.is_dir() {
            let files = archive::files_below(path).map_err(failed)?;
            let files = files.iter().map(|file| read_file(file));
            inputs.extend(known_inputs(&path.display().to_string(), files)?);
        } else {
            match read_file(path) {
                // The hive of this log is also in `paths` and is read together with the log.
                Err(InputError::LogOfHive { .. }) if is_log_of_any(path, paths) => {}
                file => inputs.extend(file?),
            }
        }
    }
    Ok(with_policy_names(inputs))
}

/// Returns true if a file has the name of a transaction log of a hive in `paths`.
fn is_log_of_any(log: &Path, paths: &[impl AsRef<Path>]) -> bool {
    let mut hives = paths.iter().map(|path| path.as_ref().to_string_lossy());
    hives.any(|hive| is_log_name_of(&log.to_string_lossy(), &hive))
}

/// Returns the inputs of a folder or archive. Skips files of an unknown format or without settings, and transaction
/// logs, which are read with their hives. If the name of a file belongs to a known format, but its content does not,
/// this is an error.
fn known_inputs(
    name: &str,
    files: impl Iterator<Item = Result<Vec<LocalizedInput>, InputError>>,
) -> Result<Vec<LocalizedInput>, InputError> {
    let mut inputs = Vec::new();
    for file in files {
        match file {
            Err(
                InputError::Unknown { .. }
                | InputError::Unusable { .. }
                | InputError::LogOfHive { .. },
            ) => {}
            file => inputs.extend(file?),
        }
    }
    if inputs.is_empty() {
        return Err(InputError::Nothing {
            name: name.to_owned(),
        });
    }
    Ok(inputs)
}

fn read_file(path: &Path) -> Result<Vec<LocalizedInput>, InputError> {
    let failed = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let name = path.display().to_string();
    let bytes = files::read_file(path, MAX_FILE).map_err(failed)?;
    read_any(&name, bytes, &|| logs_next_to(path))
}

/// Reads the transaction logs next to a hive. An unreadable log is handled like a missing log, so the
/// missing changes are reported.
fn logs_next_to(hive: &Path) -> Vec<HiveLog> {
    let (Some(name), Some(folder)) = (hive.file_name(), hive.parent()) else {
        return Vec::new();
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let hive = name.to_string_lossy();
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let logs = files.filter_map(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let is_wanted = is_log_name_of(&name, &hive);
        let bytes = is_wanted.then(|| files::read_file(&file.path(), MAX_FILE).ok())??;
        Some(HiveLog { name, bytes })
    });
    logs.collect()
}

/// Reads the bytes of a file. Returns one input, or several if the file is an archive. Transaction logs
/// of a hive are found only in the same archive.
///
/// # Errors
/// See [`read_files`].
pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<Input>, InputError> {
    Ok(with_policy_names(read_any(
        name,
        bytes.to_vec(),
        &Vec::new,
    )?))
}

/// An input, with its strings if it is an ADML file.
struct LocalizedInput {
    input: Input,
    strings: admx::Strings,
}

impl From<Reading> for LocalizedInput {
    fn from(reading: Reading) -> Self {
        Self {
            input: reading.input,
            strings: Vec::new(),
        }
    }
}

/// Replaces the policy names of each ADMX file by the policy names in the ADML file with the same name.
fn with_policy_names(inputs: Vec<LocalizedInput>) -> Vec<Input> {
    let stem = |input: &Input| {
        let base = input.name.rsplit(['/', '\\']).next().unwrap_or("");
        let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
        stem.to_lowercase()
    };
    let strings: Vec<_> = (inputs.iter())
        .filter(|localized| localized.input.format == Format::Adml)
        .map(|localized| (stem(&localized.input), localized.strings.clone()))
        .collect();
    let inputs = inputs.into_iter().map(|localized| localized.input);
    inputs
        .map(|mut input| {
            if input.format == Format::Admx {
                let own = stem(&input);
                for (_, strings) in strings.iter().filter(|(stem, _)| *stem == own) {
                    admx::translate(&mut input.policy_names, strings);
                }
            }
            input
        })
        .collect()
}

fn read_any(
    name: &str,
    bytes: Vec<u8>,
    logs: &dyn Fn() -> Vec<HiveLog>,
) -> Result<Vec<LocalizedInput>, InputError> {
    if !archive::starts(&bytes) {
        return Ok(vec![read_one(name, bytes, logs)?]);
    }
    check_claim(name, Format::Archive)?;
    let members = archive::members(name, &bytes)?.into_iter();
    let (logs, members): (Vec<_>, Vec<_>) = members.partition(|member| is_hive_log(&member.bytes));
    let logs: Vec<HiveLog> = (logs.into_iter())
        .map(|Member { name, bytes }| HiveLog { name, bytes })
        .collect();
    let members = members.into_iter().map(|member| {
        let own = || {
            let own = logs.iter();
            let own = own.filter(|log| is_log_name_of(&log.name, &member.name));
            own.cloned().collect()
        };
        Ok(vec![read_one(&member.name, member.bytes, &own)?])
    });
    known_inputs(name, members)
}

fn read_one(
    name: &str,
    mut bytes: Vec<u8>,
    logs: &dyn Fn() -> Vec<HiveLog>,
) -> Result<LocalizedInput, InputError> {
    let mut localized = if is_hive_log(&bytes) {
        return Err(InputError::LogOfHive {
            name: name.to_owned(),
        });
    } else if is_hive(&bytes) {
        check_claim(name, Format::Hive)?;
        let notes = replay(&mut bytes, logs);
        let read = hive::read(name, &bytes);
        let mut reading = read.map_err(|source| InputError::Hive {
            name: name.to_owned(),
            source,
        })?;
        for note in notes {
            reading.complain(InputPosition::Whole, note.to_string());
        }
        reading.into()
    } else if registry_pol::starts(&bytes) {
        check_claim(name, Format::RegistryPol)?;
        read_policy(name, &bytes).into()
    } else {
        read_text(name, bytes)?
    };
    let input = &mut localized.input;
    complete(&mut input.machine, &identity::identify(&input.found));
    Ok(localized)
}

/// Reads a `registry.pol` file. The name of its folder is the only sign that its policies apply to
/// users.
fn read_policy(name: &str, bytes: &[u8]) -> Reading {
    let mut folders = name.rsplit(['/', '\\']).skip(1);
    let folder = folders.next().unwrap_or("").to_ascii_lowercase();
    let hive = if folder == "user" { "HKCU" } else { "HKLM" };
    let mut reading = registry_pol::read(name, bytes, hive);
    if folder != "user" && folder != "machine" {
        reading.complain(
            InputPosition::Whole,
            "this file was read as a policy of the machine; policies of users must be in a folder User",
        );
    }
    reading
}

fn read_text(name: &str, bytes: Vec<u8>) -> Result<LocalizedInput, InputError> {
    if bytes.len() > MAX_TEXT {
        return Err(InputError::TooLarge {
            name: name.to_owned(),
            size: bytes.len() as u64,
            limit: MAX_TEXT as u64,
        });
    }
    let start: Vec<u8> = bytes.iter().take(8).copied().collect();
    let text = text::decode(bytes);
    let Some(format) = recognise(&text.text) else {
        let name = name.to_owned();
        if let Some((found, advice)) = unusable(&text.text) {
            return Err(InputError::Unusable {
                name,
                found,
                advice,
            });
        }
        let words = first_words(&start, &text.text);
        return Err(match claim(&name) {
            Some(claimed) => InputError::NotWhatItClaims {
                name,
                claimed,
                found: words,
            },
            None => InputError::Unknown { name, found: words },
        });
    };
    check_claim(name, format)?;
    let mut strings = Vec::new();
    let mut reading = match format {
        Format::Reg => reg::read(name, &text),
        Format::Lgpo => lgpo::read(name, &text),
        Format::SecurityTemplate => security_template::read(name, &text),
        Format::PolicyRules => policy_rules::read(name, &text)?,
        Format::Admx => admx::read(name, &text)?,
        Format::Adml => {
            strings = admx::strings(name, &text)?;
            Reading::new(name, format)
        }
        Format::BcdEdit => bcdedit::read(name, &text),
        Format::Cmdlet => cmdlet::read(name, &text),
        Format::CmdletJson => cmdlet::read_json(name, &text)?,
        Format::Netsh => netsh::read(name, &text),
        Format::PowerScheme => power_scheme::read(name, &text),
        Format::EnergyReport => energy_report::read_xml(name, &text)?,
        Format::EnergyReportHtml => energy_report::read_html(name, &text)?,
        Format::WinDbg => windbg::read(name, &text),
        Format::LatencyMon => latency_mon::read(name, &text),
        Format::Hive | Format::RegistryPol | Format::Archive | Format::Live => {
            unreachable!("these formats are not text")
        }
    };
    if text.guessed {
        reading.complain(
            InputPosition::Whole,
            "the text is neither UTF-8 nor UTF-16: characters other than ASCII are guessed and may be wrong",
        );
    }
    Ok(LocalizedInput {
        input: reading.input,
        strings,
    })
}

/// Recognises the format of a text. The most reliable signs are checked first.
fn recognise(text: &str) -> Option<Format> {
    let start = text.trim_start();
    if start.starts_with('<') {
        // A document type may precede the root element. The parser refuses it later.
        let head: String = start.chars().take(8192).collect();
        let has_root = |root: &str| head.contains(&format!("<{root}"));
        return [
            (policy_rules::ROOT, Format::PolicyRules),
            (admx::LANGUAGE, Format::Adml),
            (admx::POLICIES, Format::Admx),
            (energy_report::ROOT, Format::EnergyReport),
        ]
        .into_iter()
        .find(|(root, _)| has_root(root))
        .map(|(_, format)| format)
        .or_else(|| energy_report::is_html(start).then_some(Format::EnergyReportHtml));
    }
    if start.starts_with('{') || start.starts_with('[') && start[1..].trim_start().starts_with('{')
    {
        return Some(Format::CmdletJson);
    }
    type Sign = fn(&str) -> bool;
    let signs: [(Sign, Format); 9] = [
        (reg::starts, Format::Reg),
        (security_template::starts, Format::SecurityTemplate),
        (lgpo::starts, Format::Lgpo),
        (latency_mon::starts, Format::LatencyMon),
        (windbg::starts, Format::WinDbg),
        (power_scheme::starts, Format::PowerScheme),
        (bcdedit::starts, Format::BcdEdit),
        (netsh::starts, Format::Netsh),
        (cmdlet::starts, Format::Cmdlet),
    ];
    let format = signs.into_iter().find(|(starts, _)| starts(text));
    format.map(|(_, format)| format)
}

/// Returns the description of a text that has no settings, and advice for the user. Such texts look like inputs,
/// because the same commands print them.
fn unusable(text: &str) -> Option<(&'static str, &'static str)> {
    if power_scheme::is_list(text) {
        return Some((
            "a list of power schemes without their settings",
            "give the output of `powercfg /qh`",
        ));
    }
    let start = text.trim_start().chars().take(8192).collect::<String>();
    let start = start.to_lowercase();
    let has_one = |names: [&str; 2]| names.iter().any(|name| start.contains(name));
    if !start.starts_with('<') {
        None
    } else if has_one(["schemas.microsoft.com/sleepstudy", "<title>sleep study"]) {
        Some((
            "a sleep-study report (powercfg /sleepstudy), which has no settings and no timer requests",
            "give the report of `powercfg /energy`",
        ))
    } else if has_one(["schemas.microsoft.com/battery", "<title>battery report"]) {
        Some((
            "a battery report (powercfg /batteryreport), which has no settings and no timer requests",
            "give the report of `powercfg /energy`",
        ))
    } else {
        None
    }
}

/// Returns the format to which a file name belongs, if any.
fn claim(name: &str) -> Option<Format> {
    let base = name.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    if ["system", "software", "bcd", "ntuser.dat"].contains(&base.as_str()) {
        return Some(Format::Hive);
    }
    Some(match base.rsplit_once('.')?.1 {
        "reg" => Format::Reg,
        "hiv" | "hve" => Format::Hive,
        "pol" => Format::RegistryPol,
        "inf" => Format::SecurityTemplate,
        "policyrules" => Format::PolicyRules,
        "admx" => Format::Admx,
        "adml" => Format::Adml,
        "zip" | "cab" => Format::Archive,
        "json" => Format::CmdletJson,
        _ => return None,
    })
}

fn check_claim(name: &str, found: Format) -> Result<(), InputError> {
    match claim(name) {
        Some(claimed) if claimed != found => Err(InputError::NotWhatItClaims {
            name: name.to_owned(),
            claimed,
            found: found.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Describes the start of a file of unknown format, from its first bytes and its text.
fn first_words(start: &[u8], text: &str) -> String {
    if start.is_empty() {
        return "an empty file".to_owned();
    }
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    match first {
        Some(first)
            if !text
                .chars()
                .take(256)
                .any(|c| c.is_control() && !c.is_whitespace()) =>
        {
            let words: String = first.chars().take(60).collect();
            format!("text starting with {words:?}")
        }
        _ => {
            let bytes = start.iter().map(|byte| format!("{byte:02x}"));
            format!("data starting with {}", bytes.collect::<Vec<_>>().join(" "))
        }
    }
}

#[cfg(test)]
mod tests;
