//! Socket buffers: what was asked for, and what the system gave.

use std::io;

use socket2::Socket;

/// What was asked for and granted of a socket's buffers, in bytes of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Buffers {
    /// Asked for, of each; the system's default if none.
    pub asked: Option<usize>,
    /// The send buffer that was granted; none if that is not known.
    pub send: Option<usize>,
    /// The receive buffer that was granted; none if that is not known.
    pub receive: Option<usize>,
}

/// Asks for buffers: beyond the system's limit where the program has the right to.
///
/// # Errors
/// What the system says. That it grants less is none.
pub(super) fn grant(socket: &Socket, asked: Option<usize>) -> io::Result<Buffers> {
    if let Some(bytes) = asked {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
        force(socket, bytes);
    }
    // Linux grants double, half of it for its own bookkeeping, and tells the double (socket(7)).
    let counted = if cfg!(target_os = "linux") { 2 } else { 1 };
    Ok(Buffers {
        asked,
        send: Some(socket.send_buffer_size()? / counted),
        receive: Some(socket.recv_buffer_size()? / counted),
    })
}

/// Who may administer the network may go beyond the limit; who may not has what the limit gave.
#[cfg(target_os = "linux")]
fn force(socket: &Socket, bytes: usize) {
    use nix::sys::socket::{setsockopt, sockopt};
    let _ = setsockopt(socket, sockopt::SndBufForce, &bytes);
    let _ = setsockopt(socket, sockopt::RcvBufForce, &bytes);
}

#[cfg(not(target_os = "linux"))]
fn force(_: &Socket, _: usize) {}
