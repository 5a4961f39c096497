//! One call for a train of packets of equal size. The system splits a sent train as late as
//! possible and joins received packets as early as possible. Linux has the options `UDP_SEGMENT`
//! and `UDP_GRO`. Windows has `UDP_SEND_MSG_SIZE` and `UDP_RECV_MAX_COALESCED_SIZE` (USO and URO).
//!
//! Unsafe code is allowed for Windows, because there is no safe wrapper for these options. This use is sound
//! because each call gets a local integer and the size of this integer.

use std::io;
use std::net::UdpSocket;

use super::super::wire::LARGEST;
use super::{BURST, Receive, ReceivedCount, Send, if_ready};

struct Sender {
    socket: UdpSocket,
    size: usize,
    train: Vec<u8>,
}

struct Receiver {
    socket: UdpSocket,
    size: usize,
    buffer: Vec<u8>,
}

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    cut(&socket, size)?;
    let packets = (LARGEST / size).clamp(1, BURST);
    Ok(Box::new(Sender {
        socket,
        size,
        train: vec![0; packets * size],
    }))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    join(&socket)?;
    Ok(Box::new(Receiver {
        socket,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    }))
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        match if_ready(self.socket.send(&self.train))? {
            Some(bytes) => Ok((bytes / self.size) as u64),
            None => Ok(0),
        }
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut count = ReceivedCount::default();
        // All packets have the same size, so their total length gives their number.
        if let Some(bytes) = if_ready(self.socket.recv(&mut self.buffer))? {
            count.add(bytes, self.size);
        }
        Ok(count)
    }
}

#[cfg(target_os = "linux")]
fn cut(socket: &UdpSocket, size: usize) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    Ok(setsockopt(socket, sockopt::UdpGsoSegment, &(size as i32))?)
}

#[cfg(target_os = "linux")]
fn join(socket: &UdpSocket) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    Ok(setsockopt(socket, sockopt::UdpGroSegment, &true)?)
}

#[cfg(windows)]
fn cut(socket: &UdpSocket, size: usize) -> io::Result<()> {
    use windows_sys::Win32::Networking::WinSock::UDP_SEND_MSG_SIZE;
    set(socket, UDP_SEND_MSG_SIZE, size as u32)
        .map_err(|error| missing("UDP_SEND_MSG_SIZE", &error))
}

#[cfg(windows)]
fn join(socket: &UdpSocket) -> io::Result<()> {
    use windows_sys::Win32::Networking::WinSock::UDP_RECV_MAX_COALESCED_SIZE;
    set(socket, UDP_RECV_MAX_COALESCED_SIZE, u32::from(u16::MAX))
        .map_err(|error| missing("UDP_RECV_MAX_COALESCED_SIZE", &error))
}

#[cfg(windows)]
fn missing(option: &str, error: &io::Error) -> io::Error {
    let why = format!("{option} needs Windows 10 2004: {error}");
    io::Error::new(error.kind(), why)
}

#[cfg(windows)]
#[allow(unsafe_code)]
fn set(socket: &UdpSocket, option: i32, value: u32) -> io::Result<()> {
    use std::os::windows::io::AsRawSocket;
    use windows_sys::Win32::Networking::WinSock::{IPPROTO_UDP, setsockopt};
    // SAFETY: the value outlives the call, and the call gets its size.
    let outcome = unsafe {
        setsockopt(
            socket.as_raw_socket() as usize,
            IPPROTO_UDP,
            option,
            (&raw const value).cast(),
            size_of::<u32>() as i32,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
