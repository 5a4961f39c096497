//! How much the system buffers.

/// How much the system buffers for a socket, in bytes. It may be less than it was asked for, which
/// costs repairs where packets come faster than they are taken; Linux counts its own overhead, too,
/// and says twice as much as can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// What was asked for.
    pub asked: usize,
    /// For what comes to the group.
    pub receive: usize,
    /// For what is sent.
    pub send: usize,
}
