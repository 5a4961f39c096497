//! Socket buffers: requested and granted sizes.

use std::io;

use socket2::Socket;

/// Requested and granted sizes of a socket's buffers, in bytes of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Buffers {
    /// Requested size of each buffer; `None` for the system's default.
    pub asked: Option<usize>,
    /// Granted size of the send buffer; `None` if unknown.
    pub send: Option<usize>,
    /// Granted size of the receive buffer; `None` if unknown.
    pub receive: Option<usize>,
}

/// Requests buffer sizes. If the program has the privilege, the sizes may exceed the system's
/// limit.
///
/// # Errors
/// Returns the error of the system. A smaller grant is not an error.
pub(super) fn grant(socket: &Socket, asked: Option<usize>) -> io::Result<Buffers> {
    if let Some(bytes) = asked {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
        force(socket, bytes);
    }
    // Linux reports twice the size that is available for data, because the reported size includes overhead of
    // the kernel (socket(7)).
    let counted = if cfg!(target_os = "linux") { 2 } else { 1 };
    Ok(Buffers {
        asked,
        send: Some(socket.send_buffer_size()? / counted),
        receive: Some(socket.recv_buffer_size()? / counted),
    })
}

/// Requests sizes beyond the system's limit. If the program lacks the privilege for larger sizes, the sizes
/// stay within the limit.
#[cfg(target_os = "linux")]
fn force(socket: &Socket, bytes: usize) {
    use nix::sys::socket::{setsockopt, sockopt};
    let _ = setsockopt(socket, sockopt::SndBufForce, &bytes);
    let _ = setsockopt(socket, sockopt::RcvBufForce, &bytes);
}

#[cfg(not(target_os = "linux"))]
fn force(_: &Socket, _: usize) {}
