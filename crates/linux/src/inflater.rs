//! Expansion of compressed records (`perf record -z`) or pages (trace-cmd) into a temporary file.

use std::fs::File;
use std::io::{self, Write};

use files::NoSpace;
use zstd::stream::raw::{Decoder, Operation};

/// Maximum ratio of the expanded size to the recording's size.
const MAX_EXPANSION: u64 = 200;

/// Expanded size in bytes that is allowed for every recording, even a small one. Recordings compress 5 to 30 times, and
/// the memory for reading one grows with its expanded size.
const MAY_EXPAND: u64 = 32 << 20;

/// Number of bytes that are written between two checks of the free space.
const BETWEEN_CHECKS: u64 = 16 << 20;

/// Returns the number of bytes to which the compressed parts of a recording of `size` bytes may expand.
pub(crate) fn max_expanded(size: u64) -> u64 {
    size.saturating_mul(MAX_EXPANSION).max(MAY_EXPAND)
}

/// Writer of the expanded records. The data of all compressed records of a recording is one Zstandard stream.
pub(crate) struct Inflater {
    decoder: Decoder<'static>,
    file: io::BufWriter<File>,
    /// Number of bytes to which the remaining data may expand.
    budget: u64,
    buffer: Vec<u8>,
    len: u64,
    /// Number of bytes that may be written before the next check of the free space.
    checked: u64,
    /// Check that a number of bytes fits on the disk of temporary files.
    check: fn(u64) -> Result<(), NoSpace>,
}

impl Inflater {
    /// Creates an empty temporary file for a recording of `size` bytes.
    pub(crate) fn new(size: u64) -> io::Result<Inflater> {
        Ok(Inflater {
            decoder: Decoder::new()?,
            file: io::BufWriter::new(tempfile::tempfile()?),
            budget: max_expanded(size),
            buffer: vec![0; 1 << 17],
            len: 0,
            checked: 0,
            check: NoSpace::check,
        })
    }

    /// Expands `data`, the next part of the Zstandard stream. Returns false if the data is damaged, or if it expands
    /// to more bytes than allowed.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn add(&mut self, mut data: &[u8]) -> io::Result<bool> {
        loop {
            let Ok(status) = self.decoder.run_on_buffers(data, &mut self.buffer) else {
                return Ok(false);
            };
            data = &data[status.bytes_read..];
            let buffer = std::mem::take(&mut self.buffer);
            let is_added = self.add_expanded(&buffer[..status.bytes_written]);
            self.buffer = buffer;
            if !is_added? {
                return Ok(false);
            }
            let is_full = status.bytes_written == self.buffer.len();
            if data.is_empty() && !is_full {
                return Ok(true);
            }
            if status.bytes_read == 0 && status.bytes_written == 0 {
                return Ok(false);
            }
        }
    }

    /// Adds data that is already expanded. Returns false if the recording then has more expanded data than allowed.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be written, or if its disk is full.
    pub(crate) fn add_expanded(&mut self, data: &[u8]) -> io::Result<bool> {
        let Some(budget) = self.budget.checked_sub(data.len() as u64) else {
            return Ok(false);
        };
        self.budget = budget;
        if self.checked < data.len() as u64 {
            self.checked = BETWEEN_CHECKS.max(data.len() as u64);
            (self.check)(self.checked).map_err(|lack| {
                let full = format!("the disk is full: the expansion of compressed records {lack}");
                io::Error::new(io::ErrorKind::StorageFull, full)
            })?;
        }
        self.checked -= data.len() as u64;
        self.file.write_all(data)?;
        self.len += data.len() as u64;
        Ok(true)
    }

    /// Returns the number of expanded bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the temporary file with all expanded records.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn finish(self) -> io::Result<File> {
        self.file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_stated_cause() {
        let mut inflated = Inflater::new(1).unwrap();
        inflated.check = |needed| {
            Err(NoSpace {
                needed,
                free: 3 << 20,
                folder: "scratch".into(),
            })
        };
        let error = inflated.add_expanded(b"record").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        for part in [
            "the disk is full: ",
            "needs 16 MiB for a temporary file in scratch, where 3 MiB are free",
            "free some space",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(inflated.len(), 0);
    }
}
