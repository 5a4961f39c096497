//! JSON files that the server keeps for the user.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use session::NewFile;

use crate::{Refusal, body};

/// Reads a file. Returns `None` if it does not exist. `what` is the name of the content in error messages.
///
/// # Errors
/// Returns an error if the file is damaged, is too large or cannot be read.
pub(super) fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<Option<T>, Refusal> {
    let failed = |why: &dyn Display| {
        Refusal::failed(format!(
            "cannot read {what} from {}: {why}; repair it, or move it away to start without {what}",
            path.display()
        ))
    };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = Vec::new();
    let read = file.take(body::LONGEST as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| failed(&error))?;
    if text.len() > body::LONGEST {
        return Err(failed(&"it is larger than 1 MiB"));
    }
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|error| failed(&error))
}

/// Replaces a file as a whole. The folder of the file must exist. `what` is the name of the content in error messages.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn replace(path: &Path, what: &str, text: &[u8]) -> Result<(), Refusal> {
    let new = NewFile::create(path)?;
    new.file()
        .write_all(text)
        .map_err(|error| cannot_write(path, what, &error))?;
    new.finish()?;
    Ok(())
}

/// Returns the error for a file that cannot be written. `what` is the name of the content.
pub(super) fn cannot_write(path: &Path, what: &str, error: &io::Error) -> Refusal {
    Refusal::failed(format!(
        "cannot write {what} to {}: {error}",
        path.display()
    ))
}
