//! Archives and folders with settings: baselines as zip files or cabinets, and backups of group
//! policies.
//!
//! An archive is hostile input. Names in it are used as labels, never as paths. The extracted size is
//! limited, and archives inside an archive are not opened.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::InputError;

/// Maximum number of files in a zip archive or folder.
const MAX_FILES: usize = 20_000;

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 16;

/// Maximum total size of files extracted from an archive, in bytes.
const MAX_EXTRACTED: usize = 256 << 20;

/// A file extracted from an archive.
pub(super) struct Member {
    /// Name of the archive, followed by the name of the file in it.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Returns true if an archive can start with these bytes.
pub(super) fn starts(bytes: &[u8]) -> bool {
    is_zip(bytes) || is_cabinet(bytes)
}

fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

fn is_cabinet(bytes: &[u8]) -> bool {
    bytes.starts_with(b"MSCF")
}

/// Returns true if a file with this name may contain settings. Archives also contain documents and programs.
fn is_wanted(name: &str) -> bool {
    const ENDS: [&str; 14] = [
        "adml",
        "admx",
        "hiv",
        "htm",
        "html",
        "inf",
        "json",
        "log",
        "log1",
        "log2",
        "pol",
        "policyrules",
        "reg",
        "txt",
    ];
    const NAMES: [&str; 4] = ["bcd", "ntuser.dat", "software", "system"];
    let name = name.to_ascii_lowercase();
    let base = name.rsplit(['/', '\\']).next().unwrap_or("");
    NAMES.contains(&base)
        || base
            .rsplit_once('.')
            .is_some_and(|(_, end)| ENDS.contains(&end))
}

/// Extracts the files that may contain settings.
pub(super) fn members(name: &str, bytes: &[u8]) -> Result<Vec<Member>, InputError> {
    let members = if is_zip(bytes) {
        zip(bytes)
    } else {
        cabinet(bytes)
    };
    let members = members.map_err(|source| InputError::Archive {
        name: name.to_owned(),
        source,
    })?;
    Ok(members
        .into_iter()
        .map(|(member, bytes)| Member {
            name: format!("{name}/{}", member.replace('\\', "/")),
            bytes,
        })
        .collect())
}

type Files = Vec<(String, Vec<u8>)>;

fn zip(bytes: &[u8]) -> io::Result<Files> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    // The library shows only the last of several files with the same name.
    if archive.has_duplicate_names() {
        let directory = archive.central_directory_start();
        let name = etl::repeated_name(archive.into_inner(), directory)?;
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "two of its files are called {name:?}; unpack it with a program that gives them different names, \
                 and give the folder"
            ),
        ));
    }
    let mut extracted = ExtractedFiles::default();
    if archive.len() > MAX_FILES {
        return Err(too_many("archive"));
    }
    for index in 0..archive.len() {
        let file = archive.by_index(index)?;
        let name = String::from_utf8_lossy(file.name_raw()).into_owned();
        if is_wanted(&name) {
            extracted.add(name, file)?;
        }
    }
    Ok(extracted.files)
}

fn cabinet(bytes: &[u8]) -> io::Result<Files> {
    etl::cabinet_files(Cursor::new(bytes), is_wanted, MAX_EXTRACTED as u64)
}

#[derive(Default)]
struct ExtractedFiles {
    files: Files,
    size: usize,
}

impl ExtractedFiles {
    fn add(&mut self, name: String, file: impl Read) -> io::Result<()> {
        let left = MAX_EXTRACTED - self.size;
        let mut bytes = Vec::new();
        file.take(left as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > left {
            return Err(too_large());
        }
        self.size += bytes.len();
        self.files.push((name, bytes));
        Ok(())
    }
}

fn too_large() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("its files expand to more than {MAX_EXTRACTED} bytes; no baseline is that large"),
    )
}

/// Returns the error for an archive or a folder with too many files.
fn too_many(container: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it has more than {MAX_FILES} files: give the {container} of one baseline"),
    )
}

/// Returns the files below a folder that may contain settings, sorted by name.
pub(super) fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            } else if kind.is_file() && is_wanted(&path.to_string_lossy()) {
                files.push(path);
            }
            if files.len() + folders.len() > MAX_FILES {
                return Err(too_many("folder"));
            }
        }
    }
    files.sort();
    Ok(files)
}
