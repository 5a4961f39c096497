//! What can stop a measurement of the network, and what to do about it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::Pace;

/// Why the network could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No interface has this name, index or address.
    #[error("no interface `{asked}` here; there are: {known}")]
    UnknownInterface {
        /// What was asked for.
        asked: String,
        /// The names that there are.
        known: String,
    },
    /// The interface lacks an address of the family in use.
    #[error("interface `{interface}` has no IPv{version} address")]
    NoAddress {
        /// The interface's name.
        interface: String,
        /// 4 or 6.
        version: u8,
    },
    /// A group that is none.
    #[error(
        "{0} is not a multicast group: groups are 224.0.0.0/4 and ff00::/8, and 239.255.0.0/16 is free to use at one's own site"
    )]
    NotMulticast(IpAddr),
    /// PGM without a group.
    #[error("PGM talks with a group: name one with --group, such as 239.255.76.76")]
    NoGroup,
    /// PGM's ports follow the one that is named.
    #[error("PGM uses ports after {0}, and there are not enough: choose another with --port")]
    PortTooHigh(u16),
    /// Two ends of PGM on one machine need an address each.
    #[error(
        "two ends of PGM need two addresses, and the loopback has one of IPv6: use IPv4, or network \
         namespaces (--self-test)"
    )]
    OneAddress,
    /// A carrier whose two ends cannot be told apart on the loopback.
    #[error(
        "its two ends need an interface each, and the loopback is one: it takes network namespaces \
         (--self-test)"
    )]
    OneInterface,
    /// Nobody counts what is sent.
    #[error(
        "nobody counts at {to} ({said}): start `laglab measure net --throughput --role reflector` there, and look for a firewall"
    )]
    NobodyCounts {
        /// Where it was looked for.
        to: SocketAddr,
        /// What the system said.
        said: String,
    },
    /// The end that counts does not want to.
    #[error("the other end, at {to}, refuses: {why}")]
    RefusesToCount {
        /// Where it is.
        to: SocketAddr,
        /// Its words.
        why: String,
    },
    /// The end that counts broke off, or says what cannot be understood.
    #[error("the other end, at {to}, stopped counting: {said}")]
    StoppedCounting {
        /// Where it is, or was.
        to: SocketAddr,
        /// What happened.
        said: String,
    },
    /// A way of sending whose two ends must both be here.
    #[error("it is measured only where both ends are here")]
    OnlyHere,
    /// Another people's library that is not there, or not as it should be.
    #[error("{name} {why}")]
    Library {
        /// The name under which it is looked for.
        name: &'static str,
        /// What is wrong, in words that follow its name.
        why: String,
    },
    /// PGM refuses.
    #[error(transparent)]
    Pgm(#[from] pgm::SocketError),
    /// Packets for the group know no way out.
    #[error("no multicast route to {0}: name the interface to use with --interface")]
    NoMulticastRoute(IpAddr),
    /// No way to the other end.
    #[error("no route to {0}: does the address belong to a network of this machine?")]
    NoRoute(SocketAddr),
    /// Somebody listens there already.
    #[error("port {} of {} is taken: another reflector runs here, or choose another with --port", .0.port(), .0.ip())]
    PortTaken(SocketAddr),
    /// The system lets nobody, or not this user, listen there.
    #[error("port {} of {} is not for this program: {}; choose another with --port", .0.port(), .0.ip(), who_has_it())]
    PortForbidden(SocketAddr),
    /// The local address is of no interface.
    #[error("{0} is not an address of this machine")]
    NotOurAddress(IpAddr),
    /// Packets of this size cannot be.
    #[error("packets of {asked} bytes cannot be: {smallest} to {largest} can")]
    Size {
        /// What was asked for, in bytes.
        asked: usize,
        /// The smallest, in bytes.
        smallest: usize,
        /// The largest, in bytes.
        largest: usize,
    },
    /// More packets than a run remembers.
    #[error("{asked} packets are more than a run remembers, {most}: lower the rate or the time")]
    TooMany {
        /// What was asked for.
        asked: u64,
        /// The most.
        most: u64,
    },
    /// Not one packet is due.
    #[error("nothing is due in {} s at {pace}: a longer --for, or another --rate", .time.as_secs_f64())]
    NothingDue {
        /// How long a run is.
        time: Duration,
        /// At which pace.
        pace: Pace,
    },
    /// Nobody answered the source's introduction.
    #[error("no reflector answers at {to} after {} s{}: start `laglab measure net --role reflector` there, with the same --port, --transport, --group and --ipv6, and look for a firewall", .waited.as_secs_f64(), .said.as_ref().map_or(String::new(), |said| format!(" ({said})")))]
    NoAnswer {
        /// Where it was looked for.
        to: String,
        /// For how long.
        waited: Duration,
        /// What the system said meanwhile: that nobody listens there, or that there is no way.
        said: Option<String>,
    },
    /// Namespaces need rights that the program lacks, or a program that is absent.
    #[error("cannot make two network namespaces here ({doing}): {why}")]
    Namespaces {
        /// What was being done.
        doing: String,
        /// What the system says.
        why: String,
    },
    /// The system refuses something else.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
}

/// Whose a forbidden port is.
fn who_has_it() -> &'static str {
    match cfg!(windows) {
        true => {
            "another has it for itself alone, or Windows keeps it (`netsh interface ipv4 show \
             excludedportrange protocol=udp` tells)"
        }
        false => "those below 1024 are for root",
    }
}

impl NetError {
    /// Makes an error of what the system said while something was being done.
    pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> NetError {
        let doing = doing.into();
        move |source| NetError::System { doing, source }
    }
}
