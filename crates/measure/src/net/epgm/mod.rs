//! ZeroMQ's `epgm` as a transport: messages on the way that OpenPGM's library makes of UDP.
//!
//! It runs in this program, as OpenPGM does and for the same reasons; its network is on a thread of its
//! own, which the library starts. It ends a program that it cannot open a socket for, so that this is
//! tried before.

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
use super::pgm::{BUFFER, lock};
use super::udp::{WAIT, later};
use super::{
    Buffers, Interface, NetError, Place, Received, Side, Transport, Udp, UdpGrants, UdpOptions,
};
use crate::{Grant, Policy, Scheduling};

/// In kilobits a second: far above what goes through, since the library's own is 100.
const RATE: i32 = 4_000_000;

/// What a publisher remembers, in milliseconds at that rate.
const RECOVERY: i32 = 1_000;

/// How many messages wait at either end.
const HIGH_WATER: i32 = 100_000;

/// An end of `epgm`: a publisher, and a subscriber to the other end's.
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
    /// Opens an end, and says what was granted of what was asked.
    ///
    /// The source publishes at the fourth port after the one that is named, the reflector at the fifth:
    /// of two sockets that share a port the system gives requests for repair to either. The library's threads
    /// have the real-time priority that is asked for, if it is granted.
    ///
    /// # Errors
    /// When the library is not installed or lacks `epgm`, the place is no group, or there is no such
    /// interface or way to it.
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
        let there = [later(group, 4)?, later(group, 5)?];
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
            // What finds no room is to wait, not to vanish.
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
            // What they were granted only the library knows.
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

/// The real-time policy and priority that are asked for, if they are granted: the library ends a program
/// whose threads it may not give them to.
fn granted(scheduling: &Scheduling) -> Option<(i32, i32)> {
    let real_time = match scheduling.policy {
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority.into()),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority.into()),
        _ => return None,
    };
    let asked = Scheduling {
        policy: scheduling.policy,
        ..Scheduling::default()
    };
    let ((), grants) = asked.run(|_| ()).ok()?;
    grants.iter().all(Grant::is_granted).then_some(real_time)
}

/// Whether it can be measured here. Gives the library's version.
///
/// # Errors
/// When it is not installed, or was built without `epgm`.
pub(super) fn check() -> Result<String, NetError> {
    Ok(format!("libzmq {}", ZeroMq::get()?.version))
}

/// Whether the group can be joined at all.
fn try_out(group: SocketAddr, interface: &Interface) -> Result<(), NetError> {
    let place = Place::Group {
        group,
        interface: Some(interface.clone()),
    };
    Udp::open(&place, &UdpOptions::default()).map(|_| ())
}

fn refused(what: &str) -> impl FnOnce(io::Error) -> NetError {
    NetError::while_doing(format!("ZeroMQ refuses {what}"))
}

impl Transport for Epgm {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        lock(&self.publisher).send(packet)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        match lock(&self.subscriber).recv(buffer) {
            Ok(len) => Ok(Some(Received {
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

    fn another(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Epgm {
            publisher: Arc::clone(&self.publisher),
            subscriber: Arc::clone(&self.subscriber),
        }))
    }
}
