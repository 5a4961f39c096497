//! Compressed records (`perf record -z`), expanded into a temporary file.

use std::fs::File;
use std::io::{self, Write};

use zstd::stream::raw::{Decoder, Operation};

/// Maximum ratio of the expanded size to the recording's size.
const MAX_EXPANSION: u64 = 200;

/// Expanded size in bytes that is allowed for every recording, even a small one.
const MAY_EXPAND: u64 = 1 << 30;

/// Expanded records of a recording. The compressed records of a file are one stream of Zstandard.
pub(crate) struct Inflated {
    decoder: Decoder<'static>,
    file: io::BufWriter<File>,
    /// Number of bytes that may still be expanded.
    budget: u64,
    buffer: Vec<u8>,
}

impl Inflated {
    /// Creates an empty temporary file for a recording of `size` bytes.
    pub(crate) fn new(size: u64) -> io::Result<Inflated> {
        Ok(Inflated {
            decoder: Decoder::new()?,
            file: io::BufWriter::new(tempfile::tempfile()?),
            budget: size.saturating_mul(MAX_EXPANSION).max(MAY_EXPAND),
            buffer: vec![0; 1 << 17],
        })
    }

    /// Expands the data of a record. Returns false if the data is damaged, or expands too far.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub(crate) fn add(&mut self, mut data: &[u8]) -> io::Result<bool> {
        loop {
            let Ok(status) = self.decoder.run_on_buffers(data, &mut self.buffer) else {
                return Ok(false);
            };
            data = &data[status.bytes_read..];
            let expanded = status.bytes_written as u64;
            if expanded > self.budget {
                return Ok(false);
            }
            self.budget -= expanded;
            self.file.write_all(&self.buffer[..status.bytes_written])?;
            let is_full = status.bytes_written == self.buffer.len();
            if data.is_empty() && !is_full {
                return Ok(true);
            }
            if status.bytes_read == 0 && status.bytes_written == 0 {
                return Ok(false);
            }
        }
    }

    /// Returns the file with all expanded records.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub(crate) fn finish(self) -> io::Result<File> {
        self.file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
    }
}
