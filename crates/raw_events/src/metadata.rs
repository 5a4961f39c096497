//! Schemas of events, from the trace itself and from files that the user gives.

use std::path::{Path, PathBuf};
use std::{fs, io};

use events::Decoder;
use events::manifest::ManifestError;
use events::wpp::TmfError;

/// Maximum size of a manifest or TMF file, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Files from the user that describe events.
#[derive(Clone, Debug, Default)]
pub struct MetadataFiles {
    /// Instrumentation manifests (.man), or directories of them.
    pub manifests: Vec<PathBuf>,
    /// Message descriptions of WPP events (.tmf), or directories of them.
    pub tmf: Vec<PathBuf>,
}

/// Reason why a file with descriptions of events cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The file or directory cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is a device, or the file is too large.
    #[error("{}: expected a file of at most 64 MiB", path.display())]
    NotAFile {
        /// Path of the device or file.
        path: PathBuf,
    },
    /// The directory has no file with the expected extension.
    #[error("{}: the folder has no .{extension} file", path.display())]
    EmptyDirectory {
        /// Path of the directory.
        path: PathBuf,
        /// Expected extension of the files.
        extension: &'static str,
    },
    /// The text is not a valid instrumentation manifest.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// Path of the file.
        path: PathBuf,
        /// Position and reason of the error.
        source: ManifestError,
    },
    /// The text is not a valid message description.
    #[error("{}: {source}", path.display())]
    Tmf {
        /// Path of the file.
        path: PathBuf,
        /// Position and reason of the error.
        source: TmfError,
    },
}

impl MetadataFiles {
    /// Returns a decoder that uses the descriptions in these files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is malformed.
    pub fn decoder(&self) -> Result<Decoder, MetadataError> {
        let mut decoder = Decoder::new();
        for file in files_of(&self.manifests, "man")? {
            let text = read_text(&file)?;
            if let Err(source) = decoder.add_manifest(&text) {
                return Err(MetadataError::Manifest { path: file, source });
            }
        }
        for file in files_of(&self.tmf, "tmf")? {
            let text = read_text(&file)?;
            if let Err(source) = decoder.add_tmf(&text) {
                return Err(MetadataError::Tmf { path: file, source });
            }
        }
        Ok(decoder)
    }
}

/// Returns the given files. A directory is replaced by its files with the extension `extension`, sorted by
/// name.
fn files_of(paths: &[PathBuf], extension: &'static str) -> Result<Vec<PathBuf>, MetadataError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(|e| unreadable(path, e))? {
            let file = entry.map_err(|e| unreadable(path, e))?.path();
            if file
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case(extension))
            {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            let path = path.clone();
            return Err(MetadataError::EmptyDirectory { path, extension });
        }
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

/// Reads text in UTF-8, or in UTF-16 with a byte-order mark. The tools of Windows write both encodings.
fn read_text(path: &Path) -> Result<String, MetadataError> {
    let bytes = files::read_file(path, MAX_FILE).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => MetadataError::NotAFile {
            path: path.to_owned(),
        },
        _ => unreadable(path, error),
    })?;
    Ok(match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => {
            let (units, _) = rest.as_chunks::<2>();
            let units = units.iter().map(|u| u16::from_le_bytes(*u));
            char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn unreadable(path: &Path, source: io::Error) -> MetadataError {
    let path = path.to_owned();
    MetadataError::Read { path, source }
}
