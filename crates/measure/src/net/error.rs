//! Errors of network measurements, with advice.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::Pace;

/// Error of a network measurement.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No interface has this name, index or address.
    #[error("no interface `{asked}`; existing interfaces: {known}")]
    UnknownInterface {
        /// Requested interface.
        asked: String,
        /// Existing interfaces.
        known: String,
    },
    /// The interface has no address of the family in use.
    #[error("interface `{interface}` has no IPv{version} address")]
    NoAddress {
        /// Name of the interface.
        interface: String,
        /// IP version: 4 or 6.
        version: u8,
    },
    /// The address is not a multicast group.
    #[error(
        "{0} is not a multicast group; use an address of 224.0.0.0/4 or ff00::/8, for example of 239.255.0.0/16, which is for local use"
    )]
    NotMulticast(IpAddr),
    /// PGM was requested without a multicast group.
    #[error("PGM needs a group; name one with --group, such as 239.255.76.76")]
    NoGroup,
    /// PGM also needs ports after the given port, but the given port is too high for that.
    #[error("port {0} is too high: PGM also uses ports above it; choose a lower port with --port")]
    PortTooHigh(u16),
    /// Two ends of PGM on one machine need different addresses, but the machine has only one address for
    /// them.
    #[error(
        "two ends of PGM need two addresses, but the loopback interface has only one IPv6 address; \
         use IPv4, or network namespaces (--self-test)"
    )]
    OneAddress,
    /// The carrier cannot distinguish two ends that share the loopback interface.
    #[error(
        "its two ends need different interfaces, but both are on the loopback interface; use network \
         namespaces (--self-test)"
    )]
    OneInterface,
    /// No counter answers. A counter is the receiving end of a throughput measurement.
    #[error(
        "no counter answers at {to}: {said}; start `laglab measure net --throughput --role reflector` there, and check firewalls"
    )]
    NoCounter {
        /// Address of the counter.
        to: SocketAddr,
        /// Text of the system's error.
        said: String,
    },
    /// The counter refuses a run.
    #[error("the counter at {to} refuses the run: {why}")]
    CounterRefuses {
        /// Address of the counter.
        to: SocketAddr,
        /// Reason that the counter gave.
        why: String,
    },
    /// The counter closed the connection, did not answer in time, or answered incorrectly.
    #[error("the counter at {to} stopped: {said}")]
    CounterStopped {
        /// Address of the counter.
        to: SocketAddr,
        /// Description of the error.
        said: String,
    },
    /// The method needs both ends on this machine.
    #[error("it needs both ends on this machine")]
    OnlyHere,
    /// A library of another project is missing or unsuitable.
    #[error("cannot use {name}: {source}")]
    Library {
        /// File name of the library.
        name: &'static str,
        /// Problem with the library.
        source: LibraryError,
    },
    /// Error of PGM.
    #[error(transparent)]
    Pgm(#[from] pgm::SocketError),
    /// There is no route to the multicast group.
    #[error("no multicast route to {0}; name the interface with --interface")]
    NoMulticastRoute(IpAddr),
    /// There is no route to the other end.
    #[error("no route to {0}; check the address and the routes of this machine")]
    NoRoute(SocketAddr),
    /// The port is in use.
    #[error(
        "cannot listen on {0}: the port is in use; stop the other reflector, or choose another port with --port"
    )]
    PortInUse(SocketAddr),
    /// The system forbids the port: another program uses it exclusively, the system reserves it, or the user lacks a
    /// privilege.
    #[error(
        "cannot listen on {0}: {reason}; choose another port with --port",
        reason = forbidden_port()
    )]
    PortForbidden(SocketAddr),
    /// The local address belongs to no interface.
    #[error("{0} is not an address of this machine; use one of its addresses")]
    ForeignAddress(IpAddr),
    /// The requested packet size is invalid.
    #[error("invalid packet size of {asked} bytes; use {smallest} to {largest}")]
    Size {
        /// Requested size in bytes.
        asked: usize,
        /// Minimum packet size in bytes.
        smallest: usize,
        /// Maximum packet size in bytes.
        largest: usize,
    },
    /// The run would have more packets than it can store.
    #[error(
        "too many packets: {asked}, but a run stores at most {most}; lower the rate or the time"
    )]
    TooMany {
        /// Requested number of packets.
        asked: u64,
        /// Maximum number of packets.
        most: u64,
    },
    /// No packet is due within the run, because the run is shorter than the interval.
    #[error("no packet is due in {} s at {pace}; use a longer --run-for or another --rate", .time.as_secs_f64())]
    NothingDue {
        /// Length of a run.
        time: Duration,
        /// Pace of sending.
        pace: Pace,
    },
    /// No reflector answered.
    #[error("no reflector answers at {to} after {} s{}: start `laglab measure net --role reflector` there with the same --port, --transport, --group and --ipv6, and check firewalls", .waited.as_secs_f64(), .said.as_ref().map_or(String::new(), |said| format!(" ({said})")))]
    NoAnswer {
        /// Address of the reflector.
        to: String,
        /// Time that the source waited.
        waited: Duration,
        /// Error of the system, for example that the port is closed or there is no route.
        said: Option<String>,
    },
    /// Network namespaces cannot be created, for example because a privilege or a program is
    /// missing.
    #[error("cannot create two network namespaces ({doing}): {why}")]
    Namespaces {
        /// Step that failed.
        doing: String,
        /// Reason why the step failed.
        why: String,
    },
    /// Another system call failed.
    #[error("{doing}: {source}")]
    System {
        /// Action that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
}

/// Error of a library of another project.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LibraryError {
    /// The library is not installed.
    #[error("it is not installed")]
    NotInstalled,
    /// The library cannot be loaded.
    #[error("it cannot be loaded: {0}")]
    Load(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The library lacks a symbol.
    #[error("it has no `{0}`; it may be another version")]
    NoSymbol(String),
    /// The library failed to initialise. The text is the library's message.
    #[error("it does not start: {0}")]
    Start(String),
    /// ZeroMQ was built without `epgm`.
    #[error("it was built without epgm")]
    NoEpgm,
    /// The library aborts a program that sends a message longer than this number of bytes.
    #[error("it aborts a program whose message needs more than one packet; use at most {0} bytes")]
    TooLong(usize),
}

/// Returns the reason why a port may be forbidden.
fn forbidden_port() -> &'static str {
    if cfg!(windows) {
        "another program uses it exclusively, or Windows reserves it (see `netsh interface ipv4 show \
             excludedportrange protocol=udp`)"
    } else {
        "ports below 1024 need root"
    }
}

impl NetError {
    /// Returns a function for `map_err` that converts a system error. `doing` is the name of the failed
    /// action.
    pub(crate) fn context(doing: impl Into<String>) -> impl FnOnce(io::Error) -> NetError {
        let doing = doing.into();
        move |source| NetError::System { doing, source }
    }
}
