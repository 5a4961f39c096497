//! PGM (RFC 3208) as a transport that repairs losses.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::pgm::wire::Tsi;
use ::pgm::{
    Encapsulation, Event, Received as Reception, ReceiverConfig, Socket, SocketConfig, SocketError,
    SourceConfig,
};
use socket2::SockRef;

use super::buffers::grant;
use super::spinning::Spinning;
use super::udp::{READING, WAIT, busy_poll, with_later_port};
use super::{NetError, Place, ReceivedPacket, Repairs, Transport, UdpGrants, UdpOptions};

/// Default size in bytes of the socket buffers. This default applies to transports that repair losses.
pub(super) const BUFFER: usize = 8 << 20;

/// Maximum time until the service thread notices that it must end.
const NOTICE: Duration = Duration::from_millis(20);

/// An end of a PGM connection. It is the source of one session and the receiver of the other end's
/// session.
///
/// PGM uses the first port after the given port for packets to the group, and the second port for repair
/// requests. UDP can therefore use the given port of the same group at the same time.
pub struct Pgm {
    sender: Arc<Mutex<Socket>>,
    receiver: Arc<Mutex<Socket>>,
    /// Session of this end. If packets loop back, the receiver of this end also gets the packets of this
    /// session and ignores them.
    session: Tsi,
    spinning: Spinning,
    /// Thread for repairs. The thread ends when the last handle of this end is dropped.
    service: Arc<Service>,
}

impl fmt::Debug for Pgm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pgm")
    }
}

impl Pgm {
    /// Opens an end and returns the grants of its options. Two ends on one machine need different addresses.
    ///
    /// # Errors
    /// Returns an error if `place` is not a group, there is no such interface or route, or the system refuses
    /// to open a socket.
    pub fn open(place: &Place, options: &UdpOptions) -> Result<(Pgm, UdpGrants), NetError> {
        let (group, interface) = place.group()?;
        let own = interface.address(group.ip())?;
        let mut config = config(group, own)?;
        config.buffer = options.buffer_bytes.unwrap_or(BUFFER);
        let session = Tsi::random();
        let open = |dscp| -> Result<(Socket, Socket), SocketError> {
            let config = SocketConfig {
                dscp,
                ..config.clone()
            };
            let source = SourceConfig::new(session, own, config.group);
            let receiver = ReceiverConfig::new(own, config.group);
            Ok((
                Socket::open(&config, Some(source), None)?,
                Socket::open(&config, None, Some(receiver))?,
            ))
        };
        let ((sender, receiver), marking) = match open(options.dscp.unwrap_or_default()) {
            Err(SocketError::NotMarked { source, .. }) => (open(0)?, Err(source)),
            opened => (opened?, Ok(())),
        };
        let grants = request_options(&sender, &receiver, options, marking)?;
        let service = Arc::new(Service::default());
        let waiter = sender.waiter()?;
        let sender = Arc::new(Mutex::new(sender));
        service.begin(Arc::clone(&sender), waiter)?;
        let pgm = Pgm {
            sender,
            receiver: Arc::new(Mutex::new(receiver)),
            session,
            spinning: Spinning::new(options),
            service,
        };
        Ok((pgm, grants))
    }
}

/// Returns the socket configuration of an end with the address `own`.
pub(super) fn config(group: SocketAddr, own: IpAddr) -> Result<SocketConfig, NetError> {
    let encapsulation = Encapsulation::Udp {
        multicast: with_later_port(group, 1)?.port(),
        unicast: with_later_port(group, 2)?.port(),
    };
    Ok(SocketConfig {
        encapsulation,
        // On the loopback interface, the other end is on this machine, so packets must loop back.
        loopback: own.is_loopback(),
        ..SocketConfig::new(::pgm::Interface::find(&own.to_string())?, group.ip())
    })
}

impl Transport for Pgm {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        let sent = lock(&self.sender).send(packet);
        self.service.flags.has_sent.store(true, Ordering::Relaxed);
        match sent {
            Ok(_) => Ok(()),
            Err(SocketError::WouldBlock { .. }) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        let mut receiver = lock(&self.receiver);
        let session = self.session;
        let look = || next(&mut receiver, session, buffer).map(Result::ok);
        if let Some(received) = self.spinning.look(look)? {
            return Ok(Some(received));
        }
        // The code subtracts the requested waits, not measured times. It therefore does not read the clock
        // for each packet.
        let mut rest = WAIT;
        let received = loop {
            match next(&mut receiver, session, buffer)? {
                Ok(received) => break Some(received),
                Err(_) if rest.is_zero() => break None,
                Err(wait) => {
                    let wait = wait.min(rest);
                    receiver.wait(Some(wait)).map_err(io::Error::other)?;
                    rest = rest.saturating_sub(wait.max(Duration::from_micros(1)));
                }
            }
        };
        self.spinning.slept();
        Ok(received)
    }

    fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Pgm {
            sender: Arc::clone(&self.sender),
            receiver: Arc::clone(&self.receiver),
            session: self.session,
            spinning: self.spinning.clone_handle(),
            service: Arc::clone(&self.service),
        }))
    }

    fn repairs(&self) -> Option<Repairs> {
        let sent = lock(&self.sender).source_statistics().unwrap_or_default();
        let receiver = lock(&self.receiver);
        let heard: Vec<_> = receiver
            .sources()
            .filter_map(|source| receiver.statistics(source))
            .collect();
        Some(Repairs {
            requests_heard: sent.naks,
            sent: sent.repairs,
            requests_sent: heard.iter().map(|source| source.naks).sum(),
            received: heard.iter().map(|source| source.repairs).sum(),
            lost: heard.iter().map(|source| source.lost).sum(),
        })
    }
}

/// Returns the next packet of the other end, or the time until the next action of PGM.
fn next(
    receiver: &mut Socket,
    own: Tsi,
    buffer: &mut [u8],
) -> io::Result<Result<ReceivedPacket, Duration>> {
    loop {
        match receiver.recv().map_err(io::Error::other)? {
            Reception::Event(Event::Message {
                source, payload, ..
            }) if source != own => {
                let len = payload.len().min(buffer.len());
                buffer[..len].copy_from_slice(&payload[..len]);
                return Ok(Ok(ReceivedPacket {
                    len,
                    from: None,
                    class: None,
                }));
            }
            // Packets of this end are ignored. A packet that cannot be repaired never arrives, so the
            // measurement counts it as lost.
            Reception::Event(_) => {}
            Reception::TimerPending(wait) => return Ok(Err(wait)),
            Reception::WouldBlock | Reception::End => return Ok(Err(WAIT)),
        }
    }
}

/// Locks a socket. Code that holds the lock does not panic. Even a poisoned socket stays usable.
pub(super) fn lock<T>(socket: &Mutex<T>) -> MutexGuard<'_, T> {
    socket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Thread that serves repair requests and sends source path messages (SPMs). The thread does this even if no
/// code calls the end.
#[derive(Debug, Default)]
struct Service {
    flags: Arc<Flags>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Flags {
    has_ended: AtomicBool,
    /// True if a packet was sent since the service thread last checked.
    has_sent: AtomicBool,
}

impl Service {
    fn begin(&self, sender: Arc<Mutex<Socket>>, waiter: ::pgm::Waiter) -> Result<(), NetError> {
        let flags = Arc::clone(&self.flags);
        let serving = thread::Builder::new().spawn(move || {
            // If the system refuses a packet, the packet counts as lost and is requested again. Errors are
            // therefore ignored.
            let serve = || match lock(&sender).recv() {
                Ok(Reception::TimerPending(wait)) => wait.min(NOTICE),
                _ => NOTICE,
            };
            let mut wait = serve();
            while !flags.has_ended.load(Ordering::Relaxed) {
                match waiter.wait(Some(wait)) {
                    // The sending thread does all due work itself. Work by this thread would now only delay
                    // the next packet.
                    Ok(false) if flags.has_sent.swap(false, Ordering::Relaxed) => continue,
                    Ok(_) => {}
                    Err(_) => return,
                }
                wait = serve();
            }
        });
        let serving = serving.map_err(NetError::context("starting a thread"))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(serving);
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.flags.has_ended.store(true, Ordering::Relaxed);
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // The thread does not panic, so there is no result to handle.
            let _ = thread.join();
        }
    }
}

/// Requests the options for both sockets and returns the grants. `marking` is the outcome of the
/// DSCP request, which was made when the sockets were opened.
fn request_options(
    sender: &Socket,
    receiver: &Socket,
    options: &UdpOptions,
    marking: io::Result<()>,
) -> Result<UdpGrants, NetError> {
    let mut grants = UdpGrants::default();
    // All sockets got the same request and the same grant, so the loop returns the grant of the last socket.
    for socket in sender.sockets().chain(receiver.sockets()) {
        let socket = SockRef::from(socket);
        grants.buffers = grant(&socket, options.buffer_bytes)
            .map_err(NetError::context("setting buffer sizes"))?;
    }
    let [marks, polls, spins] = options.requests();
    if let Some(marks) = marks {
        grants.add(marks, marking);
        let why = io::Error::other("the PGM receiver does not report it");
        grants.add(READING, Err(why));
    }
    if let Some((time, polls)) = options.busy_poll.zip(polls) {
        let mut sockets = receiver.sockets();
        let outcome = sockets.try_for_each(|socket| busy_poll(&SockRef::from(socket), time));
        grants.add(polls, outcome);
    }
    if let Some(spins) = spins {
        grants.add(spins, Ok(()));
    }
    Ok(grants)
}
