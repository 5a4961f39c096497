//! Waiting for a socket to become ready, for a bounded time.
//!
//! Unsafe code is allowed for Windows, because there is no safe wrapper for `WSAPoll`. This use is sound
//! because the call gets one entry with the count 1, and does not keep the address of the entry.

use std::io;
use std::net::UdpSocket;

use super::{WAIT, if_ready};

/// State of a socket for which the caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    ToSend,
    ToReceive,
}

/// Waits until the socket is ready, at most [`WAIT`].
#[cfg(unix)]
pub(super) fn wait(socket: &UdpSocket, what: Ready) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let flags = match what {
        Ready::ToSend => PollFlags::OUT,
        Ready::ToReceive => PollFlags::IN,
    };
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(WAIT.subsec_nanos()),
    };
    let mut sockets = [PollFd::new(socket, flags)];
    if_ready(poll(&mut sockets, Some(&time)).map_err(io::Error::from)).map(|_| ())
}

/// Waits until the socket is ready, at most [`WAIT`].
#[cfg(windows)]
#[allow(unsafe_code)]
pub(super) fn wait(socket: &UdpSocket, what: Ready) -> io::Result<()> {
    use std::os::windows::io::AsRawSocket;
    use windows_sys::Win32::Networking::WinSock::{
        POLLRDNORM, POLLWRNORM, SOCKET_ERROR, WSAPOLLFD, WSAPoll,
    };

    let mut entry = WSAPOLLFD {
        fd: socket.as_raw_socket() as usize,
        events: match what {
            Ready::ToSend => POLLWRNORM,
            Ready::ToReceive => POLLRDNORM,
        },
        revents: 0,
    };
    // SAFETY: the count 1 matches the single entry. The call does not keep the address of the entry.
    match unsafe { WSAPoll(&mut entry, 1, WAIT.as_millis() as i32) } {
        SOCKET_ERROR => if_ready(Err(io::Error::last_os_error())).map(|_: Option<()>| ()),
        _ => Ok(()),
    }
}
