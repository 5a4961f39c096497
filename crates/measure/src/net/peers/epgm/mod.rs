//! Carrier for comparison: ZeroMQ's `epgm`, which sends messages over OpenPGM over UDP.
//!
//! The library runs in this process, for the same reasons as OpenPGM (see the module `openpgm`). The library starts a
//! thread for its I/O. If the library cannot open a socket, it aborts the process. This module therefore first checks
//! that a socket can join the group.

mod library;
mod socket;

use std::ffi::CString;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use library::{PUB, SUB, ZeroMq, option};
use socket::{Context, Socket};

use super::openpgm::silence;
use crate::net::pgm::{BUFFER, lock};
use crate::net::udp::{WAIT, with_later_port};
use crate::net::{
    Buffers, Interface, NetError, Place, ReceivedPacket, Side, Transport, Udp, UdpGrants,
    UdpOptions,
};
use crate::{Grant, Policy, Scheduling};

/// Rate in kilobits per second. It is far above any possible rate, because the library's default of
/// 100 would limit the sender.
const RATE: i32 = 4_000_000;

/// Maximum age in milliseconds of a message that a publisher can repair.
const RECOVERY: i32 = 1_000;

/// Maximum number of messages that wait in the queue of each end.
const HIGH_WATER: i32 = 100_000;

/// An end of an `epgm` connection: a publisher, and a subscriber to the other end's publisher.
pub struct Epgm {
    publisher: Arc<Mutex<Socket>>,
    subscriber: Arc<Mutex<Socket>>,
}

impl fmt::Debug for Epgm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Epgm")
    }
}

impl Epgm {
    /// Opens an end and returns the grants of its options.
    ///
    /// The source publishes at the fourth port after the given port. The reflector publishes at the fifth
    /// port. If both publishers shared a port, the system could deliver a repair request to the wrong socket.
    /// If the requested real-time priority is granted, the library's threads run with this priority.
    ///
    /// # Errors
    /// Returns an error if the library is not installed or lacks `epgm`, `place` is not a group, or there is
    /// no such interface or route.
    pub fn open(
        side: Side,
        place: &Place,
        options: &UdpOptions,
        scheduling: &Scheduling,
    ) -> Result<(Epgm, UdpGrants), NetError> {
        let library = ZeroMq::get()?;
        silence();
        let (group, interface) = place.group()?;
        let own = interface.address(group.ip())?;
        let there = [with_later_port(group, 4)?, with_later_port(group, 5)?];
        let (to, from) = match side {
            Side::Near => (there[0], there[1]),
            Side::Far => (there[1], there[0]),
        };
        let mut addresses = Vec::new();
        for group in [to, from] {
            try_out(group, &interface)?;
            let address = format!("epgm://{own};{}:{}", group.ip(), group.port());
            let address = CString::new(address);
            addresses
                .push(address.map_err(|error| refused("an address")(io::Error::other(error)))?);
        }
        let buffer_bytes = options.buffer_bytes.unwrap_or(BUFFER);
        let buffer = i32::try_from(buffer_bytes).unwrap_or(i32::MAX);
        let real_time = granted(scheduling);
        let make = || {
            let context = Context::new(library)?;
            if let Some((policy, priority)) = real_time {
                context.set(option::THREAD_SCHED_POLICY, policy)?;
                context.set(option::THREAD_PRIORITY, priority)?;
            }
            let publisher = Socket::new(&context, PUB)?;
            let subscriber = Socket::new(&context, SUB)?;
            for socket in [&publisher, &subscriber] {
                socket.set(option::RATE, RATE)?;
                socket.set(option::RECOVERY_IVL, RECOVERY)?;
                socket.set(option::LINGER, 0)?;
                socket.set(option::IPV6, i32::from(group.is_ipv6()))?;
                socket.set(option::SNDBUF, buffer)?;
                socket.set(option::RCVBUF, buffer)?;
            }
            publisher.set(option::SNDHWM, HIGH_WATER)?;
            // A full queue must refuse messages instead of dropping them, so that the sender
            // notices it.
            publisher.set(option::XPUB_NODROP, 1)?;
            subscriber.set(option::RCVHWM, HIGH_WATER)?;
            subscriber.set(option::RCVTIMEO, WAIT.as_millis() as i32)?;
            subscriber.set_bytes(option::SUBSCRIBE, b"")?;
            publisher.connect(&addresses[0])?;
            subscriber.connect(&addresses[1])?;
            Ok((publisher, subscriber))
        };
        let (publisher, subscriber) = make().map_err(refused("a socket"))?;
        let mut grants = UdpGrants {
            // The granted sizes are unknown here, because only the library knows them.
            buffers: Buffers {
                asked: Some(buffer_bytes),
                ..Buffers::default()
            },
            others: Vec::new(),
        };
        grants.refuse(options, "ZeroMQ");
        let end = Epgm {
            publisher: Arc::new(Mutex::new(publisher)),
            subscriber: Arc::new(Mutex::new(subscriber)),
        };
        Ok((end, grants))
    }
}

/// Returns the real-time policy and priority if the system grants them. The library must not request a policy
/// and a priority that the system refuses, because the library would then abort the process.
fn granted(scheduling: &Scheduling) -> Option<(i32, i32)> {
    let real_time = match scheduling.policy {
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority.into()),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority.into()),
        _ => return None,
    };
    let request = Scheduling {
        policy: scheduling.policy,
        ..Scheduling::default()
    };
    let ((), grants) = request.run(|_| ()).ok()?;
    grants.iter().all(Grant::is_granted).then_some(real_time)
}

/// Checks whether `epgm` is available. Returns the library's version.
///
/// # Errors
/// Returns an error if the library is not installed, or if it was built without `epgm`.
pub(in crate::net) fn check() -> Result<String, NetError> {
    Ok(format!("libzmq {}", ZeroMq::get()?.version))
}

/// Checks whether a socket can join the group.
fn try_out(group: SocketAddr, interface: &Interface) -> Result<(), NetError> {
    let place = Place::Group {
        group,
        interface: Some(interface.clone()),
    };
    Udp::open(&place, &UdpOptions::default()).map(|_| ())
}

fn refused(what: &str) -> impl FnOnce(io::Error) -> NetError {
    NetError::context(format!("ZeroMQ refuses {what}"))
}

impl Transport for Epgm {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        lock(&self.publisher).send(packet)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        match lock(&self.subscriber).recv(buffer) {
            Ok(len) => Ok(Some(ReceivedPacket {
                len,
                from: None,
                class: None,
            })),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Epgm {
            publisher: Arc::clone(&self.publisher),
            subscriber: Arc::clone(&self.subscriber),
        }))
    }
}
