//! Reception of a datagram with its sender and traffic class.

use std::io;
use std::net::UdpSocket;

use super::ReceivedPacket;

/// Receives a datagram. If there is no control buffer, the traffic class is not read. This is faster. If
/// `at_once` is true and the system supports it, the call does not wait.
///
/// # Errors
/// Returns the error of the system. The error is [`io::ErrorKind::WouldBlock`] or
/// [`io::ErrorKind::TimedOut`] if no datagram arrived in time.
#[cfg(target_os = "linux")]
pub(super) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    control: Option<&mut Vec<u8>>,
    at_once: bool,
) -> io::Result<ReceivedPacket> {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recv, recvmsg};
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
    use std::os::fd::AsRawFd;

    let flags = if at_once {
        MsgFlags::MSG_DONTWAIT
    } else {
        MsgFlags::empty()
    };
    let Some(control) = control else {
        return Ok(ReceivedPacket {
            len: recv(socket.as_raw_fd(), buffer, flags)?,
            from: None,
            class: None,
        });
    };
    let mut parts = [io::IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(control), flags)?;
    let class = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4Tos(class) => Some(class),
        ControlMessageOwned::Ipv6TClass(class) => u8::try_from(class).ok(),
        _ => None,
    });
    let from = message.address.and_then(|address| {
        let v4 = address.as_sockaddr_in();
        let v6 = address.as_sockaddr_in6();
        v4.map(|v4| SocketAddr::V4(SocketAddrV4::from(*v4)))
            .or_else(|| v6.map(|v6| SocketAddr::V6(SocketAddrV6::from(*v6))))
    });
    Ok(ReceivedPacket {
        len: message.bytes,
        from,
        class,
    })
}

/// Receives a datagram. The traffic class is not available on this system.
///
/// # Errors
/// Returns the error of the system. The error is [`io::ErrorKind::WouldBlock`] or
/// [`io::ErrorKind::TimedOut`] if no datagram arrived in time.
#[cfg(not(target_os = "linux"))]
pub(super) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    _: Option<&mut Vec<u8>>,
    _: bool,
) -> io::Result<ReceivedPacket> {
    let (len, from) = socket.recv_from(buffer)?;
    Ok(ReceivedPacket {
        len,
        from: Some(from),
        class: None,
    })
}

/// Returns a buffer for the control messages of one datagram.
pub(super) fn control_room() -> Vec<u8> {
    #[cfg(target_os = "linux")]
    return nix::cmsg_space!(u8, i32);
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}
