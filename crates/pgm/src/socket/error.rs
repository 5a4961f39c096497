//! Errors of sockets.

use std::{
    io::{self, ErrorKind},
    net::IpAddr,
    time::Duration,
};

use crate::{ConfigError, ReceiverError, SendError};

/// Error of a socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No interface has this name or address.
    #[error("no interface {requested}; existing interfaces: {known}")]
    NoInterface {
        /// Requested name or address of an interface.
        requested: String,
        /// Names and addresses of the existing interfaces.
        known: String,
    },
    /// The interface has no address in the family of the group.
    #[error("the interface {interface} has no address in the family of the group {group}")]
    NoAddress {
        /// Name of the interface.
        interface: String,
        /// Multicast group.
        group: IpAddr,
    },
    /// The DSCP mark is out of range.
    #[error("invalid DSCP mark {0}; use 0 to 63")]
    Dscp(u8),
    /// The system refuses to mark packets.
    #[error("cannot mark packets with DSCP {dscp}: {source}")]
    NotMarked {
        /// Requested DSCP mark.
        dscp: u8,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The configuration of the source is invalid.
    #[error(transparent)]
    Source(#[from] ConfigError),
    /// The configuration of the receiver is invalid.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// The user may not open raw sockets.
    #[error(
        "cannot open a raw socket: permission denied; run with CAP_NET_RAW (Linux) or as \
         administrator (Windows), or use UDP"
    )]
    NoPermission,
    /// Another system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// Description of the failed action.
        action: String,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The socket has no source.
    #[error("cannot send: the socket was opened without a source")]
    NoSource,
    /// Too many packets wait to be sent.
    #[error("too many packets wait to be sent; try again later")]
    WouldBlock {
        /// Time until the send rate allows the next packet. `None` while congestion control waits for an
        /// acknowledgement.
        wait: Option<Duration>,
    },
    /// The message cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
}

impl SocketError {
    /// Returns true if a packet from the network can cause this error of a receive call. Such a
    /// packet is an ICMP error message about an earlier packet or, on Windows, a datagram larger
    /// than the buffer.
    pub(super) fn is_caused_by_network(&self) -> bool {
        let SocketError::System { source, .. } = self else {
            return false;
        };
        let is_kind = matches!(
            source.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionAborted
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::NetworkDown
                | ErrorKind::PermissionDenied
                | ErrorKind::TimedOut
        );
        is_kind
            || source
                .raw_os_error()
                .is_some_and(|code| ICMP_CODES.contains(&code))
    }
}

/// Error codes that ICMP messages can cause and that have no `ErrorKind` in the standard library.
#[cfg(target_os = "linux")]
const ICMP_CODES: &[i32] = &[
    nix::errno::Errno::EHOSTDOWN as i32,
    nix::errno::Errno::EMSGSIZE as i32,
    nix::errno::Errno::ENONET as i32,
    nix::errno::Errno::ENOPROTOOPT as i32,
    nix::errno::Errno::EOPNOTSUPP as i32,
    nix::errno::Errno::EPROTO as i32,
];

/// Windows error codes `WSAEMSGSIZE` and `WSAENETRESET`.
#[cfg(windows)]
const ICMP_CODES: &[i32] = &[10_040, 10_052];

#[cfg(not(any(target_os = "linux", windows)))]
const ICMP_CODES: &[i32] = &[];

/// Adds the failed action to an error of the system.
pub(super) trait Context<T> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, SocketError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, SocketError> {
        self.map_err(|source| SocketError::System {
            action: action(),
            source,
        })
    }
}
