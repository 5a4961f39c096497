//! Folders that the server may read, and the traces in them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wording::QuotedName;

use crate::failure::Failure;
use crate::marks::unquoted;

/// Folders and files that the user named at the start. Nothing outside of them is opened, not even through a link.
#[derive(Debug)]
pub struct Folders {
    /// Full paths without links.
    roots: Vec<PathBuf>,
    /// Traces that are already open.
    open: Vec<TraceFile>,
}

/// Error of a folder that the user named.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}; give folders or traces that exist", .path.display())]
pub struct FolderError {
    path: PathBuf,
    source: io::Error,
}

#[derive(Clone, Debug)]
pub(crate) struct TraceFile {
    /// Handle by which calls name the trace. It is computed from the path, and from the size and the modification time
    /// of two files: the trace, and the facts next to it (`FILE.proc`). If one of these files is replaced, the trace
    /// gets another handle.
    pub(crate) handle: String,
    /// Path below the folder, with `/` between its parts.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Time of the last change, if the file system has it.
    pub(crate) changed: Option<SystemTime>,
}

/// Endings of the names of traces.
const ENDINGS: [&str; 9] = [
    ".etl",
    ".etl.zip",
    ".etl.gz",
    ".zip",
    ".cab",
    ".diagsession",
    ".pcapng",
    ".pcap",
    ".parquet",
];

/// Maximum depth of folders, maximum number of visited entries, and maximum number of traces.
const DEPTH: usize = 8;
const ENTRIES: usize = 20_000;
const TRACES: usize = 2_000;

impl Folders {
    /// Creates the list of allowed folders and files.
    ///
    /// # Errors
    /// Returns an error if one of `paths` does not exist or cannot be read.
    pub fn new(paths: &[PathBuf]) -> Result<Folders, FolderError> {
        let full = paths.iter().map(|path| {
            path.canonicalize().map_err(|source| FolderError {
                path: path.clone(),
                source,
            })
        });
        Ok(Folders {
            roots: full.collect::<Result<_, _>>()?,
            open: Vec::new(),
        })
    }

    /// Allows only the traces that are already open. The server then opens no file.
    pub(crate) fn of_open(open: Vec<TraceFile>) -> Folders {
        Folders {
            roots: Vec::new(),
            open,
        }
    }

    /// Returns all traces, sorted by folder and name. Does not follow links.
    pub(crate) fn traces(&self) -> Vec<TraceFile> {
        let mut traces = self.open.clone();
        let mut entries = ENTRIES;
        for root in &self.roots {
            let is_folder = root.is_dir();
            let base = if is_folder {
                root.as_path()
            } else {
                root.parent().unwrap_or(root)
            };
            let mut paths = Vec::new();
            if is_folder {
                walk(root, DEPTH, &mut entries, &mut paths)
            } else {
                paths.push(root.clone())
            }
            paths.sort();
            traces.extend(paths.into_iter().map(|path| TraceFile::new(base, path)));
        }
        traces.dedup_by(|a, b| a.path == b.path);
        traces.truncate(TRACES);
        traces
    }

    /// Returns the trace that a call asks for by its handle or name. If the call names no trace, returns the only
    /// trace.
    pub(crate) fn find(&self, asked: Option<&str>) -> Result<TraceFile, Failure> {
        let mut traces = self.traces();
        let Some(asked) = asked else {
            return match traces.len() {
                1 => Ok(traces.remove(0)),
                0 => Err(Failure::unknown(
                    "there are no traces in the folders of this server",
                )),
                _ => Err(Failure::arguments(
                    "there are several traces; name one with `trace` (the tool `traces` lists them)",
                )),
            };
        };
        let name = unquoted(asked);
        let is_meant = |trace: &&TraceFile| {
            trace.handle == asked || trace.name == name || file_name(&trace.name) == name
        };
        let mut meant: Vec<&TraceFile> = traces.iter().filter(is_meant).collect();
        if meant.is_empty() {
            // If no name is equal, the search ignores the case and the ending of names.
            let ending = format!("{name}.*");
            let is_like = |trace: &&TraceFile| {
                [trace.name.as_str(), file_name(&trace.name)]
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(&name) || matches(&ending, known))
            };
            let has_pattern = name.contains(['*', '?']);
            meant = (traces.iter().filter(is_like))
                .filter(|_| !has_pattern)
                .collect();
        }
        if meant.len() > 1 {
            return Err(Failure::arguments(
                "several traces have this name; name one by its handle (the tool `traces` lists handles)",
            ));
        }
        let trace = meant.first().map(|trace| (*trace).clone());
        // A file may have been replaced by a link after the folder was listed, so its path is checked again.
        let is_open = |trace: &TraceFile| self.open.iter().any(|open| open.handle == trace.handle);
        let trace = trace.filter(|trace| is_open(trace) || self.allows(&trace.path));
        trace.ok_or_else(|| {
            if is_handle(asked) {
                return Failure::unknown(
                    "no trace has this handle: the file changed, or is gone; call `traces`, then `explain` again",
                );
            }
            let names = traces.iter().map(|trace| file_name(&trace.name));
            let close: Vec<String> = (wording::closest(&name, names, 3).into_iter())
                .map(|name| QuotedName(name).to_string())
                .collect();
            let close = if close.is_empty() { String::new() } else { format!("; the closest are {}", close.join(", ")) };
            Failure::unknown(format!(
                "no trace has this handle or name{close} (the tool `traces` lists all)"
            ))
        })
    }

    fn allows(&self, path: &Path) -> bool {
        path.canonicalize()
            .is_ok_and(|full| self.roots.iter().any(|root| full.starts_with(root)))
    }
}

impl TraceFile {
    fn new(base: &Path, path: PathBuf) -> TraceFile {
        let below = path.strip_prefix(base).unwrap_or(&path);
        let parts = below.iter().map(|part| part.to_string_lossy());
        let name = parts.collect::<Vec<_>>().join("/");
        let metadata = fs::metadata(&path).ok();
        let bytes = metadata.as_ref().map_or(0, fs::Metadata::len);
        let changed = metadata.and_then(|metadata| metadata.modified().ok());
        let mut hasher = blake3::Hasher::new();
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(format!("\0{bytes} {changed:?}").as_bytes());
        if let Ok(facts) = fs::metadata(import_linux::facts_path(&path)) {
            let changed = facts.modified().ok();
            hasher.update(format!("\0{} {changed:?}", facts.len()).as_bytes());
        }
        TraceFile {
            handle: format!("t-{}", &hasher.finalize().to_hex()[..8]),
            bytes,
            changed,
            name,
            path,
        }
    }

    /// Returns an open trace. Several open traces can have the same name, but not the same number.
    pub(crate) fn open(number: usize, name: String, bytes: u64) -> TraceFile {
        let digest = blake3::hash(format!("{number} {name}").as_bytes()).to_hex();
        TraceFile {
            handle: format!("t-{}", &digest[..8]),
            path: PathBuf::from(&name),
            name,
            bytes,
            changed: None,
        }
    }

    /// Returns the name for an answer.
    pub(crate) fn shown(&self) -> String {
        QuotedName(&self.name).to_string()
    }

    /// Returns true if both values describe the same file in the same state.
    pub(crate) fn is_same(&self, other: &TraceFile) -> bool {
        self.handle == other.handle && self.bytes == other.bytes && self.changed == other.changed
    }
}

/// Returns true if a text has the form of a handle.
fn is_handle(text: &str) -> bool {
    let digits = text.strip_prefix("t-");
    digits.is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns true if a file is a trace by the ending of its name. Many other programs also use the endings of recordings
/// of Linux (`.data` and `.dat`). For these endings, the first bytes of the file are checked, too.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
        || (name.ends_with(".data") || name.ends_with(".dat")) && import_linux::is_recording(path)
}

/// Adds the traces in a folder. Folders that cannot be read are left out.
fn walk(folder: &Path, depth: usize, entries: &mut usize, found: &mut Vec<PathBuf>) {
    let Ok(listed) = fs::read_dir(folder) else {
        return;
    };
    let mut folders = Vec::new();
    for entry in listed.flatten() {
        if *entries == 0 {
            return;
        }
        *entries -= 1;
        // `file_type` does not follow links. So a link is neither a folder nor a file here, and it is skipped.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 1 {
            folders.push(entry.path());
        } else if kind.is_file() && is_trace(&entry.path()) {
            found.push(entry.path());
        }
    }
    folders.sort();
    for folder in folders {
        walk(&folder, depth - 1, entries, found);
    }
}

/// Returns true if a name matches a pattern with `*` and `?`. Case is ignored.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let [pattern, name] =
        [pattern, name].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    let (mut p, mut n) = (0, 0);
    // Position after the last `*` in the pattern, and the position in the name at which the rest of the pattern is
    // tried next.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, is) in [
            ("*", "", true),
            ("*.etl", "a/B.ETL", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
        let stars = "*a".repeat(40);
        assert!(!matches(&stars, &"a".repeat(39)));
    }

    #[test]
    fn facts_next_to_a_recording_belong_to_its_handle() {
        let folder = tempfile::TempDir::new().unwrap();
        let recording = folder.path().join("x.data");
        let facts = folder.path().join("x.data.proc");
        fs::write(&recording, "PERFILE2").unwrap();
        let folders = Folders::new(&[folder.path().to_owned()]).unwrap();
        let handle = || folders.find(Some("x.data")).unwrap().handle;
        let alone = handle();
        fs::write(&facts, "/proc/1/task/1/status:Cpus_allowed_list: 0-3").unwrap();
        let with_facts = handle();
        assert_ne!(with_facts, alone);
        fs::write(&facts, "/proc/1/task/1/status:Cpus_allowed_list: 0").unwrap();
        assert_ne!(handle(), with_facts);
        fs::remove_file(&facts).unwrap();
        assert_eq!(handle(), alone);
    }

    #[test]
    fn only_traces_in_the_folders_are_found() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = |below: &str| folder.path().join(below);
        fs::create_dir_all(path("in/deep")).unwrap();
        for file in ["in/a.etl", "in/deep/b.etl", "in/c.txt", "out.etl"] {
            fs::write(path(file), "x").unwrap();
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("out.etl"), path("in/link.etl")).unwrap();
            std::os::unix::fs::symlink(folder.path(), path("in/up")).unwrap();
        }
        let folders = Folders::new(&[path("in")]).unwrap();
        let names: Vec<String> = folders.traces().into_iter().map(|t| t.name).collect();
        assert_eq!(names, ["a.etl", "deep/b.etl"]);
        assert_eq!(folders.find(Some("b.etl")).unwrap().name, "deep/b.etl");
        let handle = folders.find(Some("a.etl")).unwrap().handle;
        assert_eq!(folders.find(Some(&handle)).unwrap().name, "a.etl");
        let outside = path("out.etl");
        for asked in [
            outside.to_str().unwrap(),
            "../out.etl",
            "link.etl",
            "c.txt",
            "",
        ] {
            assert!(folders.find(Some(asked)).is_err(), "{asked}");
        }
        assert!(folders.find(None).is_err());
        assert!(Folders::new(&[path("none")]).is_err());
    }
}
