//! Files that say how a machine is set: exports, hives, policies, what commands print.
//!
//! [`read_files`] reads files and folders, [`read`] the bytes of one. What a file is, its content
//! tells; a name that claims something else is an error. A line that cannot be read is counted and
//! shown, and the rest is read.

mod admx;
mod archive;
mod bcd;
mod bcdedit;
mod cmdlet;
mod energy_report;
mod hive;
mod hive_logs;
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
mod regf;
mod registry_pol;
mod security_template;
mod text;
mod walk;
mod windbg;
mod xml;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use admx::PolicyName;
pub use identity::complete;
pub use regf::HiveError;

use crate::found::{At, Found, Origin};
use crate::machine::Machine;
use crate::registry::Key;
use archive::Member;
use hive_logs::Log;
use reading::Reading;

/// The largest file that is read, in bytes: hives are at most 2 GiB.
const MAX_FILE: u64 = 2 << 30;

/// The longest text that is read, in bytes. A `.reg` export of a whole machine is about as long.
const MAX_TEXT: usize = 512 << 20;

/// What one file says.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name; of a file in an archive the archive's name before it.
    pub name: String,
    /// What it is.
    pub format: Format,
    /// What it says of settings, in its order.
    pub found: Vec<Found>,
    /// Keys that it deletes, with all that is below them.
    pub deleted_keys: Vec<(Key, Origin)>,
    /// Which policies write which values, of an ADMX.
    pub policy_names: Vec<PolicyName>,
    /// What it tells of the machine.
    pub machine: Machine,
    /// What could not be read.
    pub complaints: Complaints,
}

/// What could not be read of an input.
#[derive(Clone, Debug, Default)]
pub struct Complaints {
    /// The first ones.
    pub first: Vec<Complaint>,
    /// How many there are.
    pub count: u64,
}

impl Complaints {
    /// How many are kept.
    pub const KEPT: usize = 20;
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where it is.
    pub at: At,
    /// What is wrong with it.
    pub what: String,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.reg`.
    Reg,
    /// A hive of the registry.
    Hive,
    /// `registry.pol`.
    RegistryPol,
    /// LGPO text.
    Lgpo,
    /// A security template, such as `GptTmpl.inf`.
    SecurityTemplate,
    /// `.PolicyRules`.
    PolicyRules,
    /// ADMX.
    Admx,
    /// ADML.
    Adml,
    /// A zip archive or a cabinet.
    Archive,
    /// `bcdedit /enum`.
    BcdEdit,
    /// What one of PowerShell's commands answers.
    Cmdlet,
    /// The same as JSON.
    CmdletJson,
    /// `netsh int tcp show global`.
    Netsh,
    /// `powercfg /query`.
    PowerScheme,
    /// `powercfg /energy` as XML.
    EnergyReport,
    /// The same as HTML.
    EnergyReportHtml,
    /// A log of WinDbg.
    WinDbg,
    /// A report of LatencyMon.
    LatencyMon,
    /// The registry of the running system.
    Live,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reg => "a .reg export",
            Self::Hive => "a hive of the registry",
            Self::RegistryPol => "a registry.pol",
            Self::Lgpo => "LGPO text",
            Self::SecurityTemplate => "a security template",
            Self::PolicyRules => "a .PolicyRules file",
            Self::Admx => "an ADMX file",
            Self::Adml => "an ADML file",
            Self::Archive => "an archive",
            Self::BcdEdit => "a listing of bcdedit",
            Self::Cmdlet => "an answer of PowerShell",
            Self::CmdletJson => "JSON",
            Self::Netsh => "a listing of netsh",
            Self::PowerScheme => "a listing of powercfg",
            Self::EnergyReport | Self::EnergyReportHtml => "a report of powercfg /energy",
            Self::WinDbg => "a log of WinDbg",
            Self::LatencyMon => "a report of LatencyMon",
            Self::Live => "the registry of the running system",
        })
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is larger than any that says something of settings.
    #[error("{name}: {size} bytes are more than such a file has (at most {limit})")]
    TooLarge {
        /// The file.
        name: String,
        /// Its size, in bytes.
        size: u64,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// It is nothing that is known.
    #[error(
        "{name}: {found}, and nothing that says how a machine is set: give a .reg export, a hive, a \
         policy or baseline, or what bcdedit, netsh, powercfg, WinDbg, LatencyMon or PowerShell printed"
    )]
    Unknown {
        /// The file.
        name: String,
        /// What it is, as far as that can be told.
        found: String,
    },
    /// It is not what its name says.
    #[error("{name}: by its name it is {claimed}, but it is {found}")]
    NotWhatItClaims {
        /// The file.
        name: String,
        /// What it should be.
        claimed: Format,
        /// What it is, as far as that can be told.
        found: String,
    },
    /// A hive that cannot be read.
    #[error("{name}: the hive cannot be read: {source}")]
    Hive {
        /// The file.
        name: String,
        /// Why.
        source: HiveError,
    },
    /// XML that cannot be read, or may not be.
    #[error("{name}:{line}: {what}")]
    Xml {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u32,
        /// Why.
        what: String,
    },
    /// JSON that cannot be read.
    #[error("{name}:{line}: {what}")]
    Json {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// Why.
        what: String,
    },
    /// An archive that cannot be read.
    #[error("{name}: the archive cannot be read: {source}")]
    Archive {
        /// The archive.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A transaction log of a hive, without the hive.
    #[error(
        "{name}: this is the log of a hive, which holds no settings by itself: give the hive, beside which \
         its logs are looked for"
    )]
    LogOfHive {
        /// The file.
        name: String,
    },
    /// A folder or archive without a file that says something of settings.
    #[error("{name}: no policy, baseline or export is in it")]
    Nothing {
        /// The folder or archive.
        name: String,
    },
}

/// Reads files, and the folders of backups and baselines with all that is in them.
///
/// # Errors
/// If one cannot be read at all, is nothing that is known, or not what its name says.
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
            inputs.extend(known(&path.display().to_string(), files)?);
        } else {
            match read_file(path) {
                // The hive that it belongs to is read with it.
                Err(InputError::LogOfHive { .. }) if is_log_of_one(path, paths) => {}
                file => inputs.extend(file?),
            }
        }
    }
    Ok(named(inputs))
}

/// Whether a file is by its name a log of a hive that is among the others.
fn is_log_of_one(log: &Path, paths: &[impl AsRef<Path>]) -> bool {
    let mut hives = paths.iter().map(|path| path.as_ref().to_string_lossy());
    hives.any(|hive| hive_logs::is_named_after(&log.to_string_lossy(), &hive))
}

/// What is known of the files of a folder or archive, in which others lie too: those are passed over
/// unless their names claim something.
fn known(
    name: &str,
    files: impl Iterator<Item = Result<Vec<Translated>, InputError>>,
) -> Result<Vec<Translated>, InputError> {
    let mut inputs = Vec::new();
    for file in files {
        match file {
            Err(InputError::Unknown { .. } | InputError::LogOfHive { .. }) => {}
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

fn read_file(path: &Path) -> Result<Vec<Translated>, InputError> {
    let failed = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let name = path.display().to_string();
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MAX_FILE {
        return Err(InputError::TooLarge {
            name,
            size,
            limit: MAX_FILE,
        });
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    read_any(&name, bytes, &|| logs_beside(path))
}

/// The logs that lie beside a hive. One that cannot be read is as if it were not there: what is missing
/// then, is said.
fn logs_beside(hive: &Path) -> Vec<Log> {
    let (Some(name), Some(folder)) = (hive.file_name(), hive.parent()) else {
        return Vec::new();
    };
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let hive = name.to_string_lossy();
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let logs = files.filter_map(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let is_wanted = hive_logs::is_named_after(&name, &hive)
            && file.metadata().is_ok_and(|data| data.len() <= MAX_FILE);
        let bytes = is_wanted.then(|| std::fs::read(file.path()).ok())??;
        Some(Log { name, bytes })
    });
    logs.collect()
}

/// Reads the bytes of a file: one input, or those in it if it is an archive. Of a hive, logs are looked for
/// in the archive only.
///
/// # Errors
/// As [`read_files`].
pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<Input>, InputError> {
    Ok(named(read_any(name, bytes.to_vec(), &Vec::new)?))
}

/// An input, with the texts of policies if it is an ADML.
struct Translated {
    input: Input,
    strings: admx::Strings,
}

impl From<Reading> for Translated {
    fn from(reading: Reading) -> Self {
        Self {
            input: reading.input,
            strings: Vec::new(),
        }
    }
}

/// Gives the policies of each ADMX the names in the ADML that is called as it is.
fn named(inputs: Vec<Translated>) -> Vec<Input> {
    let stem = |input: &Input| {
        let base = input.name.rsplit(['/', '\\']).next().unwrap_or("");
        let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
        stem.to_lowercase()
    };
    let strings: Vec<_> = (inputs.iter())
        .filter(|translated| translated.input.format == Format::Adml)
        .map(|translated| (stem(&translated.input), translated.strings.clone()))
        .collect();
    let inputs = inputs.into_iter().map(|translated| translated.input);
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
    logs: &dyn Fn() -> Vec<Log>,
) -> Result<Vec<Translated>, InputError> {
    if !archive::starts(&bytes) {
        return Ok(vec![read_one(name, bytes, logs)?]);
    }
    check_claim(name, Format::Archive)?;
    let members = archive::members(name, &bytes)?.into_iter();
    let (logs, members): (Vec<_>, Vec<_>) =
        members.partition(|member| hive_logs::is_log(&member.bytes));
    let logs: Vec<Log> = (logs.into_iter())
        .map(|Member { name, bytes }| Log { name, bytes })
        .collect();
    let members = members.into_iter().map(|member| {
        let own = || {
            let own = logs.iter();
            let own = own.filter(|log| hive_logs::is_named_after(&log.name, &member.name));
            own.cloned().collect()
        };
        Ok(vec![read_one(&member.name, member.bytes, &own)?])
    });
    known(name, members)
}

fn read_one(
    name: &str,
    mut bytes: Vec<u8>,
    logs: &dyn Fn() -> Vec<Log>,
) -> Result<Translated, InputError> {
    let mut translated = if hive_logs::is_log(&bytes) {
        return Err(InputError::LogOfHive {
            name: name.to_owned(),
        });
    } else if regf::starts(&bytes) {
        check_claim(name, Format::Hive)?;
        let said = hive_logs::replay(&mut bytes, logs);
        let read = hive::read(name, &bytes);
        let mut reading = read.map_err(|source| InputError::Hive {
            name: name.to_owned(),
            source,
        })?;
        for what in said {
            reading.complain(At::Whole, what);
        }
        reading.into()
    } else if registry_pol::starts(&bytes) {
        check_claim(name, Format::RegistryPol)?;
        read_policy(name, &bytes).into()
    } else {
        read_text(name, &bytes)?
    };
    let input = &mut translated.input;
    complete(&mut input.machine, &identity::of(&input.found));
    Ok(translated)
}

/// Reads a `registry.pol` for the machine or for users: which of the two, only its folder says.
fn read_policy(name: &str, bytes: &[u8]) -> Reading {
    let mut folders = name.rsplit(['/', '\\']).skip(1);
    let folder = folders.next().unwrap_or("").to_ascii_lowercase();
    let hive = if folder == "user" { "HKCU" } else { "HKLM" };
    let mut reading = registry_pol::read(name, bytes, hive);
    if folder != "user" && folder != "machine" {
        reading.complain(
            At::Whole,
            "whose policy it is, only a folder Machine or User would say: taken for the machine's",
        );
    }
    reading
}

fn read_text(name: &str, bytes: &[u8]) -> Result<Translated, InputError> {
    if bytes.len() > MAX_TEXT {
        return Err(InputError::TooLarge {
            name: name.to_owned(),
            size: bytes.len() as u64,
            limit: MAX_TEXT as u64,
        });
    }
    let text = text::decode(bytes);
    let Some(format) = recognise(&text.text) else {
        let name = name.to_owned();
        let found = first_words(bytes, &text.text);
        return Err(match claim(&name) {
            Some(claimed) => InputError::NotWhatItClaims {
                name,
                claimed,
                found,
            },
            None => InputError::Unknown { name, found },
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
        Format::EnergyReportHtml => energy_report::read_html(name, &text),
        Format::WinDbg => windbg::read(name, &text),
        Format::LatencyMon => latency_mon::read(name, &text),
        Format::Hive | Format::RegistryPol | Format::Archive | Format::Live => {
            unreachable!("no text is recognised as such")
        }
    };
    if text.guessed {
        reading.complain(
            At::Whole,
            "neither UTF-8 nor UTF-16: letters beyond ASCII are guessed",
        );
    }
    Ok(Translated {
        input: reading.input,
        strings,
    })
}

/// What a text is; the surest signs are looked for first.
fn recognise(text: &str) -> Option<Format> {
    let start = text.trim_start();
    if start.starts_with('<') {
        // Where a document type stands before it, the reader will refuse it.
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
    let found = signs.into_iter().find(|(starts, _)| starts(text));
    found.map(|(_, format)| format)
}

/// What a name says that the file is, if it says so.
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

/// How a file that is not known begins.
fn first_words(bytes: &[u8], text: &str) -> String {
    if bytes.is_empty() {
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
            format!("text that begins with {words:?}")
        }
        _ => {
            let bytes = bytes.iter().take(8).map(|byte| format!("{byte:02x}"));
            format!(
                "data that begins with {}",
                bytes.collect::<Vec<_>>().join(" ")
            )
        }
    }
}

#[cfg(test)]
mod tests;
