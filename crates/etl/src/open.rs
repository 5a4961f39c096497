//! Opening of traces by path. A path names a plain log or an archive with logs.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::{FileSource, Source};
use files::{open_file, other_kind};

use crate::archive::{MemberData, extract, is_archive};
use crate::error::OpenError;
use crate::trace::Trace;

/// Opens the files of one trace. Each file is an `.etl` file or an archive with `.etl` files (`.etl.zip`,
/// `.diagsession`, netsh's `.cab`). The first bytes of a file decide its format. A member of an archive gets
/// the name `archive: member`.
///
/// # Errors
/// Returns an [`OpenError`]. Its message names the path, the problem and a remedy in one line. Damage inside
/// a trace is not an error: see [`Trace::damage`].
pub fn open(paths: &[PathBuf]) -> Result<Trace, OpenError> {
    let mut sources = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        // If a path has no canonical form, it cannot be opened. The later attempt to open it returns an error
        // that states the reason.
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
            source: error,
        },
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if let Some(what) = other_kind(metadata.file_type()) {
        let advice = if metadata.is_dir() {
            "give the .etl files in it"
        } else {
            "a trace is read at many places at once, so save it to a file first"
        };
        return Err(OpenError::NotAFile { name, what, advice });
    }
    let source = FileSource::new(open_file(path).map_err(failed)?).map_err(failed)?;
    let mut first = [0; 4];
    let n = source.read_at(0, &mut first).map_err(failed)?;
    if !is_archive(&first[..n]) {
        sources.push((name, Box::new(source)));
        return Ok(());
    }
    let members =
        extract(open_file(path).map_err(failed)?).map_err(|source| OpenError::Archive {
            name: name.clone(),
            source,
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

/// Returns the path in a form that is safe to print. It contains no control characters.
fn printable(path: &Path) -> String {
    path.to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
