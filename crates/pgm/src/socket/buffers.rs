//! Sizes of the system's buffers.

/// Sizes of the system's buffers for a socket, in bytes. If they are smaller than requested, bursts
/// cause repairs. Linux includes its overhead and reports twice the usable size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Requested size of each buffer.
    pub requested: usize,
    /// Size of the receive buffer for packets to the group.
    pub receive: usize,
    /// Size of the send buffer.
    pub send: usize,
}
