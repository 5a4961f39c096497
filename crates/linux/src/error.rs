//! Errors of opening a recording.

use std::io;

/// Reason why a file cannot be opened as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read the recording")]
    Read(#[from] io::Error),
    /// The file does not begin like a recording.
    #[error("not a recording of perf: the first bytes are not PERFILE2")]
    Foreign,
    /// The header is damaged.
    #[error("cannot read the recording's header: {0}")]
    Header(&'static str),
    /// The recording describes no event.
    #[error(
        "the recording describes no event; the description of events may be damaged, or perf ended before it wrote \
         them"
    )]
    NoEvents,
}
