//! Sizes of the system's buffers.

/// Sizes in bytes of the system's buffers for a socket. If the buffers are smaller than requested, bursts
/// cause repairs. On Linux, the sizes include the overhead of the system, so they are twice the usable sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Requested size of each buffer.
    pub requested: usize,
    /// Size of the receive buffer for packets to the group.
    pub receive: usize,
    /// Size of the send buffer.
    pub send: usize,
}
