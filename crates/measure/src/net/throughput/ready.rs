//! Waiting until a socket can do something, but not for long.
//!
//! Of this file only what is for Windows has unsafe code, since nobody wraps `WSAPoll`. It is sound
//! because the call is given one entry, says so, and keeps no address of it.

use std::io;
use std::net::UdpSocket;

use super::{WAIT, if_ready};

/// What a socket is to be ready for.
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
    // SAFETY: one entry is there, as the count says, and nothing keeps its address.
    match unsafe { WSAPoll(&mut entry, 1, WAIT.as_millis() as i32) } {
        SOCKET_ERROR => if_ready(Err(io::Error::last_os_error())).map(|_: Option<()>| ()),
        _ => Ok(()),
    }
}
