//! Regular files. Other kinds of files, such as pipes and devices, may have no end, and opening a pipe may wait for ever.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a regular file.
///
/// # Errors
/// Returns an error if the path is a directory, pipe, socket or device, or if the file cannot be opened.
pub fn open_file(path: &Path) -> io::Result<File> {
    // The kind of the file is checked before the file is opened, because opening a pipe would wait for a writer.
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if let Some(kind) = other_kind(kind) {
        let kind = format!("it is {kind}, not a file; give a file");
        return Err(io::Error::new(ErrorKind::InvalidInput, kind));
    }
    File::open(path)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Returns the errors of [`open_file`], and an error if the file cannot be read or is larger. Its size in the file system
/// may be wrong, so the number of bytes that are read is limited, too.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_file(path)?;
    let is_large = file.metadata()?.len() > most;
    if !is_large {
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if is_large || bytes.len() as u64 > most {
        Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes; give a smaller file"),
        ))
    } else {
        Ok(bytes)
    }
}

/// Returns a name for the kind of file. Returns `None` for a regular file.
pub fn other_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_dir() {
        return Some("a directory");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("a pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some("a device");
        }
    }
    (!kind.is_file()).then_some("something special")
}

/// Returns the first `N` bytes of a regular file. Returns `None` if the file cannot be read or is shorter.
pub fn first_bytes<const N: usize>(path: &Path) -> Option<[u8; N]> {
    let mut first = [0; N];
    open_file(path).ok()?.read_exact(&mut first).ok()?;
    Some(first)
}

/// Returns true if both paths name the same existing file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
