//! Errors that can occur when a recording is opened.

use std::io;

/// Reason why a file cannot be opened as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read the recording: {0}")]
    Read(#[from] io::Error),
    /// The file does not begin with the first bytes of a recording.
    #[error(
        "not a recording of perf or trace-cmd: the first bytes are neither PERFILE2 nor those of trace.dat"
    )]
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
    /// The file is a recording of trace-cmd of an unknown version.
    #[error(
        "trace.dat has version {0}, expected 6 or 7; convert it with `trace-cmd convert --file-version 7`"
    )]
    Version(String),
    /// The file is a recording of trace-cmd with an unknown compression.
    #[error(
        "trace.dat is compressed with {0}, expected zlib or zstd; convert it with `trace-cmd convert`"
    )]
    Compression(String),
    /// The clock of a recording of trace-cmd does not count nanoseconds.
    #[error("the clock `{0}` does not count nanoseconds; record with `trace-cmd record -C mono`")]
    Clock(String),
    /// A recording of trace-cmd has the text of a trace, but no events.
    #[error("the file has only the text of a trace, and no events; record with `trace-cmd record`")]
    OnlyText,
    /// A text has no line of an event.
    #[error(
        "the text has no line of an event with a time in seconds, such as `bash-12 [000] 25.266925: sched_waking: …`; \
         give the output of `perf script` or `trace-cmd report`, or the file `trace` of the kernel"
    )]
    NoLines,
}
