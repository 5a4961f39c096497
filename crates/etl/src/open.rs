//! The driver that opens traces by path: plain logs, and logs inside archives.

use std::collections::HashSet;
use std::fs::{self, File, FileType};
use std::io;
use std::path::{Path, PathBuf};

use crate::archive::{MemberData, extract, is_archive};
use crate::error::OpenError;
use crate::source::{FileSource, Source};
use crate::trace::Trace;

/// Opens the files of one trace: `.etl`, or archives that hold such (`.etl.zip`, `.diagsession`,
/// netsh's `.cab`), told apart by their first bytes. Members of an archive are named
/// `archive: member`.
///
/// # Errors
/// [`OpenError`] names the path, what was found there and what to do, in one line. Damage inside
/// a trace is no error: see [`Trace::damage`].
pub fn open(paths: &[PathBuf]) -> Result<Trace, OpenError> {
    let mut sources = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        // A path that has no canonical form cannot be opened either, which says why.
        if fs::canonicalize(path).is_ok_and(|canonical| !seen.insert(canonical)) {
            return Err(OpenError::Twice {
                name: printable(path),
            });
        }
        add_sources(path, &mut sources)?;
    }
    Trace::from_sources(sources)
}

fn add_sources(path: &Path, sources: &mut Vec<(String, Box<dyn Source>)>) -> Result<(), OpenError> {
    let name = printable(path);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::NotFound { name: name.clone() },
        io::ErrorKind::PermissionDenied => OpenError::NoPermission { name: name.clone() },
        _ => OpenError::Io {
            name: name.clone(),
            error,
        },
    };
    // Asked before opening: opening a pipe would wait for a writer.
    let found = fs::metadata(path).map_err(failed)?;
    if let Some((what, advice)) = not_a_file(found.file_type()) {
        return Err(OpenError::NotAFile { name, what, advice });
    }
    let source = FileSource::new(File::open(path).map_err(failed)?).map_err(failed)?;
    let mut first = [0; 4];
    let n = source.read_at(0, &mut first).map_err(failed)?;
    if !is_archive(&first[..n]) {
        sources.push((name, Box::new(source)));
        return Ok(());
    }
    let members =
        extract(File::open(path).map_err(failed)?).map_err(|error| OpenError::Archive {
            name: name.clone(),
            error,
        })?;
    for member in members {
        let source: Box<dyn Source> = match member.data {
            MemberData::Memory(bytes) => Box::new(bytes),
            MemberData::File(file) => Box::new(FileSource::new(file).map_err(failed)?),
        };
        let label = printable(Path::new(&member.name));
        sources.push((format!("{name}: {label}"), source));
    }
    Ok(())
}

/// The path as a message can show it: control characters in it must not reach a terminal.
fn printable(path: &Path) -> String {
    path.to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// What something other than a regular file is, and what to do about it.
fn not_a_file(kind: FileType) -> Option<(&'static str, &'static str)> {
    if kind.is_dir() {
        return Some(("a directory", "give the .etl files in it"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        const SAVE: &str = "a trace is read at many places at once, so save it to a file first";
        if kind.is_fifo() {
            return Some(("a pipe", SAVE));
        }
        if kind.is_socket() {
            return Some(("a socket", SAVE));
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some(("a device", SAVE));
        }
    }
    (!kind.is_file()).then_some(("something special", "give an .etl file"))
}
