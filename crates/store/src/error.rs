//! Errors of input files and table files.

use std::io;
use std::path::PathBuf;

/// A failure to read input files, or to write or read table files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The progress callback requested a stop.
    #[error("reading the files was cancelled")]
    Cancelled,
    /// An input file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// Path of the file.
        file: PathBuf,
        /// Reason given by the operating system.
        source: io::Error,
    },
    /// An input file changed while it was read.
    #[error("{} changed while it was read; copy it and open the copy", file.display())]
    Changed {
        /// Path of the file.
        file: PathBuf,
    },
    /// A table cannot be written, neither in the cache nor as a temporary file.
    #[error(
        "cannot write the table `{table}` in {}: {source}; free some space, or name another folder \
         with LAGLAB_CACHE or TMPDIR (TEMP on Windows)",
        folder.display()
    )]
    Write {
        /// Name of the table.
        table: &'static str,
        /// Path of the folder.
        folder: PathBuf,
        /// Reason given by the operating system.
        source: io::Error,
    },
    /// A table file is damaged. The table was made again, and the new file is damaged too.
    #[error(
        "the table `{table}` in {} is damaged at byte {offset}: {what}; it was made again and is \
         still damaged, so check the disk, or name another folder with LAGLAB_CACHE",
        file.display()
    )]
    Damaged {
        /// Name of the table.
        table: &'static str,
        /// Path of the damaged file. If the file has no name, this is the folder of temporary
        /// files.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
}
