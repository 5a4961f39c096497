//! What can go wrong with a socket.

use std::{io, net::IpAddr, time::Duration};

use crate::{ConfigError, ReceiverError, SendError};

/// What can go wrong with a socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// There is no such interface.
    #[error("there is no interface {asked}; there are {known}")]
    NoInterface {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// The interface has no address of the group's family.
    #[error("the interface {interface} has no address of the family of the group {group}")]
    NoAddress {
        /// The interface.
        interface: String,
        /// The group.
        group: IpAddr,
    },
    /// There is no such mark.
    #[error("a DSCP mark of {0} is not possible: 0 to 63 are")]
    Dscp(u8),
    /// The system does not mark packets.
    #[error("packets cannot be marked with DSCP {dscp}: {error}")]
    NotMarked {
        /// The mark.
        dscp: u8,
        /// Why.
        error: io::Error,
    },
    /// The source's configuration is not possible.
    #[error(transparent)]
    Source(#[from] ConfigError),
    /// The receiver's configuration is not possible.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// The system does not let this user send and receive bare packets.
    #[error(
        "protocol 113 needs the permission for raw sockets (on Linux CAP_NET_RAW, on Windows an \
         administrator's); or encapsulate in UDP"
    )]
    NoPermission,
    /// Something else refused.
    #[error("cannot {what}: {error}")]
    System {
        /// What was to be done.
        what: String,
        /// Why it was not.
        error: io::Error,
    },
    /// This socket has no source.
    #[error("this socket only receives: it was opened without a source")]
    NoSource,
    /// Too much is waiting to be sent.
    #[error("too much is waiting to be sent; try again later")]
    NotYet {
        /// When: unknown while congestion control waits for an acknowledgement.
        wait: Option<Duration>,
    },
    /// The message cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Says what was to be done when the system refuses.
pub(super) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, SocketError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, SocketError> {
        self.map_err(|error| SocketError::System {
            what: what(),
            error,
        })
    }
}
