//! Why something was not written.

use std::io;

/// Why an event was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The record does not fit in a buffer or in a record's 16-bit size.
    #[error("event of {size} bytes is larger than the {limit} a record can have")]
    TooLarge {
        /// Size of the record, header included.
        size: usize,
        /// Largest size.
        limit: usize,
    },
    /// The CPU is not one of the session's.
    #[error("CPU {cpu} is not one of the session's {processors}")]
    NoSuchCpu {
        /// CPU asked for.
        cpu: u16,
        /// CPUs there are.
        processors: u16,
    },
    /// The CPU's last event is later than this one.
    #[error("event at raw time {time} follows one at {last} on CPU {cpu}")]
    OutOfOrder {
        /// CPU concerned.
        cpu: u16,
        /// Time of the event.
        time: i64,
        /// Time of the CPU's last event.
        last: i64,
    },
    /// The session cannot be written as asked.
    #[error("session: {0}")]
    BadSession(&'static str),
    /// The output failed.
    #[error("writing the trace: {0}")]
    Io(#[from] io::Error),
}
