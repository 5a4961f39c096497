//! OpenPGM, a common library for reliable multicast. laglab's own PGM is compared with it.
//!
//! OpenPGM runs in this process, as laglab's PGM does. The same clock and the same code time the packets of
//! both, on threads with the same scheduling. A difference is therefore caused by the library. Arguments that
//! are known to crash the library are rejected first.

mod library;
mod socket;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub(in crate::net) use socket::{Does, OpenPgmSocket, Reception};

use library::OpenPgmLibrary;

use crate::net::pgm::BUFFER;
use crate::net::udp::{WAIT, with_later_port};
use crate::net::{LibraryError, NetError, Place, ReceivedPacket, Transport, UdpGrants, UdpOptions};

/// Maximum message size in bytes. Such a message certainly fits into one packet. Version 5.3 aborts
/// the process on larger messages.
pub(in crate::net) const LARGEST: usize = 1_400;

/// Message buffer with the alignment of the library's own buffers. The library faults with other
/// alignments.
#[repr(C, align(64))]
pub(in crate::net) struct Message([u8; LARGEST]);

impl Message {
    /// Returns a message of zeros.
    pub(in crate::net) fn new() -> Box<Message> {
        Box::new(Message([0; LARGEST]))
    }
}

/// An end of an OpenPGM connection. It is the source of one session and the receiver of the other
/// end's session.
pub struct OpenPgm {
    socket: Arc<OpenPgmSocket>,
    message: Box<Message>,
}

impl fmt::Debug for OpenPgm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenPgm")
    }
}

impl OpenPgm {
    /// Opens an end and returns the grants of its options.
    ///
    /// # Errors
    /// Returns an error if the library is not installed, `place` is not a group, there is no such interface
    /// or route, or the library refuses to open a socket.
    pub fn open(place: &Place, options: &UdpOptions) -> Result<(OpenPgm, UdpGrants), NetError> {
        let (group, interface) = place.group()?;
        let buffer_bytes = options.buffer_bytes.or(Some(BUFFER));
        let (socket, buffers) =
            OpenPgmSocket::open(&interface, at(group)?, Does::Both, buffer_bytes)?;
        let mut grants = UdpGrants {
            buffers,
            others: Vec::new(),
        };
        grants.refuse(options, "OpenPGM");
        let end = OpenPgm {
            socket: Arc::new(socket),
            message: Message::new(),
        };
        Ok((end, grants))
    }
}

/// Prevents the library from logging to standard output.
pub(super) fn silence() {
    // Loading the library turns off its log. If the library is missing, it cannot log.
    let _ = OpenPgmLibrary::get();
}

/// Checks whether messages of this size can be sent. Returns the library's version.
///
/// # Errors
/// Returns an error if the library is not installed, or if it does not support the size.
pub(in crate::net) fn check(size: usize) -> Result<String, NetError> {
    let library = OpenPgmLibrary::get()?;
    if size > LARGEST {
        return Err(NetError::Library {
            name: library::NAME,
            source: LibraryError::TooLong(LARGEST),
        });
    }
    Ok(format!("libpgm {}", library.version))
}

/// Returns the address of the group for OpenPGM. Its port is the third port after the given port, because
/// laglab's PGM uses the first two ports.
pub(in crate::net) fn at(group: SocketAddr) -> Result<SocketAddr, NetError> {
    with_later_port(group, 3)
}

impl Transport for OpenPgm {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        let room = self.message.0.get_mut(..packet.len());
        let room = room.ok_or(io::ErrorKind::FileTooLarge)?;
        room.copy_from_slice(packet);
        if self.socket.send(&self.message, packet.len())? {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        // The code subtracts the requested waits, not measured times. It therefore does not read the clock
        // for each packet.
        let mut rest = WAIT;
        loop {
            let wait = match self.socket.recv(buffer)? {
                Reception::Message(len) => {
                    return Ok(Some(ReceivedPacket {
                        len,
                        from: None,
                        class: None,
                    }));
                }
                Reception::Lost => continue,
                Reception::Nothing(wait) => wait,
            };
            if rest.is_zero() {
                return Ok(None);
            }
            let wait = wait.min(rest);
            self.socket.wait(wait)?;
            rest = rest.saturating_sub(wait);
        }
    }

    fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(OpenPgm {
            socket: Arc::clone(&self.socket),
            message: Message::new(),
        }))
    }
}
