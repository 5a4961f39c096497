//! Errors of the writer.

use std::io;

/// Error that can occur while a log is written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The record is larger than a buffer, or larger than its 16-bit size field allows.
    #[error("event of {size} bytes is too large; a record has at most {limit} bytes")]
    TooLarge {
        /// Size of the record in bytes, including its header.
        size: usize,
        /// Maximum size of a record in bytes.
        limit: usize,
    },
    /// The session does not have this CPU.
    #[error("the session has no CPU {cpu}; it has {processors} CPUs")]
    NoSuchCpu {
        /// Index of the requested CPU.
        cpu: u16,
        /// Number of CPUs of the session.
        processors: u16,
    },
    /// The event's time is before the time of the CPU's last event.
    #[error("event at raw time {time} is earlier than the previous event of CPU {cpu}, at {last}")]
    OutOfOrder {
        /// Index of the CPU.
        cpu: u16,
        /// Raw time of the event.
        time: i64,
        /// Raw time of the CPU's last event.
        last: i64,
    },
    /// The session's settings are invalid.
    #[error("invalid session: {0}")]
    BadSession(&'static str),
    /// Writing to the output failed.
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
}
