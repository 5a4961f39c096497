//! OpenPGM as a transport: the library that others send reliable multicast with.
//!
//! It runs in this program, as ours does, and not in one of its own: so its packets are timed by the
//! same clock, on threads with the same scheduling, by the same code, and a difference is its own. What
//! is known to end a program that uses it is kept from it.

mod library;
mod socket;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) use socket::{Does, Heard, OpenPgmSocket};

use library::OpenPgmLibrary;

use super::pgm::BUFFER;
use super::udp::{WAIT, later};
use super::{NetError, Place, Received, Transport, UdpGrants, UdpOptions};

/// The largest message: what surely fits one packet. Its 5.3 ends the program of who sends a larger
/// one.
pub(super) const LARGEST: usize = 1_400;

/// Room for a message, aligned as the library's own buffers are: it faults on others.
#[repr(C, align(64))]
pub(super) struct Message([u8; LARGEST]);

impl Message {
    /// Zeros.
    pub(super) fn new() -> Box<Message> {
        Box::new(Message([0; LARGEST]))
    }
}

/// An end of OpenPGM: a source of a session, and a receiver of the other end's.
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
    /// Opens an end, and says what was granted of what was asked.
    ///
    /// # Errors
    /// When the library is not installed, the place is no group, there is no such interface or way to
    /// it, or the library refuses.
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

/// Keeps the library from talking to the standard output, whoever uses it.
pub(super) fn silence() {
    // It is silenced when it is loaded; where it is not there, nobody talks.
    let _ = OpenPgmLibrary::get();
}

/// Whether messages of so many bytes can be sent here. Gives the library's version.
///
/// # Errors
/// When it is not installed, or does not bear them.
pub(super) fn check(size: usize) -> Result<String, NetError> {
    let library = OpenPgmLibrary::get()?;
    if size > LARGEST {
        return Err(NetError::Library {
            name: library::NAME,
            why: format!(
                "ends a program that sends more than a packet at once: {LARGEST} bytes can be"
            ),
        });
    }
    Ok(format!("libpgm {}", library.version))
}

/// Where a group is talked with: ours uses the first two ports after the one that is named.
pub(super) fn at(group: SocketAddr) -> Result<SocketAddr, NetError> {
    later(group, 3)
}

impl Transport for OpenPgm {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        let room = self.message.0.get_mut(..packet.len());
        let room = room.ok_or(io::ErrorKind::FileTooLarge)?;
        room.copy_from_slice(packet);
        match self.socket.send(&self.message, packet.len())? {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        // Counted down by what was to be waited, so that no clock is read for a packet.
        let mut rest = WAIT;
        loop {
            let wait = match self.socket.recv(buffer)? {
                Heard::Message(len) => {
                    return Ok(Some(Received {
                        len,
                        from: None,
                        class: None,
                    }));
                }
                Heard::Lost => continue,
                Heard::Nothing(wait) => wait,
            };
            if rest.is_zero() {
                return Ok(None);
            }
            let wait = wait.min(rest);
            self.socket.wait(wait)?;
            rest = rest.saturating_sub(wait);
        }
    }

    fn another(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(OpenPgm {
            socket: Arc::clone(&self.socket),
            message: Message::new(),
        }))
    }
}
