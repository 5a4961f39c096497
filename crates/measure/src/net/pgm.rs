//! PGM as a transport: what is lost on its way is sent again (RFC 3208).

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::pgm::wire::Tsi;
use ::pgm::{
    Encapsulation, Event, Received as Heard, ReceiverConfig, Socket, SocketConfig, SocketError,
    SourceConfig,
};
use socket2::SockRef;

use super::buffers::grant;
use super::spinning::Spinning;
use super::udp::{READING, WAIT, busy_poll, later};
use super::{NetError, Place, Received, Repairs, Transport, UdpGrants, UdpOptions};

/// Bytes of socket buffers that reliable ends ask for unless told.
pub(super) const BUFFER: usize = 8 << 20;

/// How long who serves requests may take to notice that it shall end.
const NOTICE: Duration = Duration::from_millis(20);

/// An end of PGM: a source of a session, and a receiver of the other end's.
///
/// The group is sent to at the port after the one that is named, and repairs are asked for at the
/// port after that one, so that UDP can be used in the same group at the same time.
pub struct Pgm {
    speaks: Arc<Mutex<Socket>>,
    hears: Arc<Mutex<Socket>>,
    /// Its own session, which it may hear, too.
    session: Tsi,
    spinning: Spinning,
    /// Dropped with the last handle of this end.
    service: Arc<Service>,
}

impl fmt::Debug for Pgm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pgm")
    }
}

impl Pgm {
    /// Opens an end, and says what was granted of what was asked. Two ends on one machine need
    /// different addresses.
    ///
    /// # Errors
    /// When the place is no group, there is no such interface or way to it, or the system refuses.
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
        let ((speaks, hears), marking) = match open(options.dscp.unwrap_or_default()) {
            Err(SocketError::NotMarked { error, .. }) => (open(0)?, Err(error)),
            opened => (opened?, Ok(())),
        };
        let grants = ask(&speaks, &hears, options, marking)?;
        let service = Arc::new(Service::default());
        let waiter = speaks.waiter()?;
        let speaks = Arc::new(Mutex::new(speaks));
        service.begin(Arc::clone(&speaks), waiter)?;
        let pgm = Pgm {
            speaks,
            hears: Arc::new(Mutex::new(hears)),
            session,
            spinning: Spinning::of(options),
            service,
        };
        Ok((pgm, grants))
    }
}

/// Where an end with this address sends and listens.
pub(super) fn config(group: SocketAddr, own: IpAddr) -> Result<SocketConfig, NetError> {
    let encapsulation = Encapsulation::Udp {
        multicast: later(group, 1)?.port(),
        unicast: later(group, 2)?.port(),
    };
    Ok(SocketConfig {
        encapsulation,
        // Over the loopback the other end is on this machine.
        loopback: own.is_loopback(),
        ..SocketConfig::new(::pgm::Interface::find(&own.to_string())?, group.ip())
    })
}

impl Transport for Pgm {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        let sent = lock(&self.speaks).send(packet);
        self.service.flags.has_sent.store(true, Ordering::Relaxed);
        match sent {
            Ok(_) => Ok(()),
            Err(SocketError::NotYet { .. }) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut hears = lock(&self.hears);
        let session = self.session;
        let look = || next(&mut hears, session, buffer).map(Result::ok);
        if let Some(received) = self.spinning.look(look)? {
            return Ok(Some(received));
        }
        // Counted down by what was to be waited, so that no clock is read for a packet.
        let mut rest = WAIT;
        let received = loop {
            match next(&mut hears, session, buffer)? {
                Ok(received) => break Some(received),
                Err(_) if rest.is_zero() => break None,
                Err(wait) => {
                    let wait = wait.min(rest);
                    hears.wait(Some(wait)).map_err(io::Error::other)?;
                    rest = rest.saturating_sub(wait.max(Duration::from_micros(1)));
                }
            }
        };
        self.spinning.slept();
        Ok(received)
    }

    fn another(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(Pgm {
            speaks: Arc::clone(&self.speaks),
            hears: Arc::clone(&self.hears),
            session: self.session,
            spinning: self.spinning.another(),
            service: Arc::clone(&self.service),
        }))
    }

    fn repairs(&self) -> Option<Repairs> {
        let sent = lock(&self.speaks).source_statistics().unwrap_or_default();
        let hears = lock(&self.hears);
        let heard: Vec<_> = hears
            .sources()
            .filter_map(|source| hears.statistics(source))
            .collect();
        Some(Repairs {
            requests_heard: sent.naks,
            sent: sent.repairs,
            requests_sent: heard.iter().map(|of| of.naks).sum(),
            received: heard.iter().map(|of| of.repairs).sum(),
            lost: heard.iter().map(|of| of.lost).sum(),
        })
    }
}

/// The next packet that has come, or how long there is nothing to do but to wait for one.
fn next(hears: &mut Socket, own: Tsi, buffer: &mut [u8]) -> io::Result<Result<Received, Duration>> {
    loop {
        match hears.recv().map_err(io::Error::other)? {
            Heard::Event(Event::Message {
                source, payload, ..
            }) if source != own => {
                let len = payload.len().min(buffer.len());
                buffer[..len].copy_from_slice(&payload[..len]);
                return Ok(Ok(Received {
                    len,
                    from: None,
                    class: None,
                }));
            }
            // What it said itself is no news, and what is lost for good is a packet that never comes,
            // as with any transport.
            Heard::Event(_) => {}
            Heard::TimerPending(wait) => return Ok(Err(wait)),
            Heard::WouldBlock | Heard::End => return Ok(Err(WAIT)),
        }
    }
}

/// Nothing panics while it has one of these, and if it did, a socket could still be used.
pub(super) fn lock<T>(socket: &Mutex<T>) -> MutexGuard<'_, T> {
    socket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that serves requests for repair and announces the session, whatever the end does.
#[derive(Debug, Default)]
struct Service {
    flags: Arc<Flags>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Flags {
    has_ended: AtomicBool,
    /// Something was sent since the service looked last.
    has_sent: AtomicBool,
}

impl Service {
    fn begin(&self, speaks: Arc<Mutex<Socket>>, waiter: ::pgm::Waiter) -> Result<(), NetError> {
        let flags = Arc::clone(&self.flags);
        let serving = thread::Builder::new().spawn(move || {
            // What the system refuses to send is a loss, and asked for again.
            let serve = || match lock(&speaks).recv() {
                Ok(Heard::TimerPending(wait)) => wait.min(NOTICE),
                _ => NOTICE,
            };
            let mut wait = serve();
            while !flags.has_ended.load(Ordering::Relaxed) {
                match waiter.wait(Some(wait)) {
                    // Who sends does what is due, too; here it would only hold up the next packet.
                    Ok(false) if flags.has_sent.swap(false, Ordering::Relaxed) => continue,
                    Ok(_) => {}
                    Err(_) => return,
                }
                wait = serve();
            }
        });
        let serving = serving.map_err(NetError::while_doing("starting a thread"))?;
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
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// Asks for what the options say, of both sockets, and says what became of it; of marking that is known.
fn ask(
    speaks: &Socket,
    hears: &Socket,
    options: &UdpOptions,
    marking: io::Result<()>,
) -> Result<UdpGrants, NetError> {
    let mut grants = UdpGrants::default();
    // Of several sockets the last is said: of all the same was asked, so the same is granted.
    for socket in speaks.sockets().chain(hears.sockets()) {
        let socket = SockRef::from(socket);
        grants.buffers = grant(&socket, options.buffer_bytes)
            .map_err(NetError::while_doing("asking for buffers"))?;
    }
    let [marks, polls, spins] = options.wishes();
    if let Some(marks) = marks {
        grants.enter(marks, marking);
        let why = io::Error::other("PGM's receiver does not tell it");
        grants.enter(READING, Err(why));
    }
    if let Some((time, polls)) = options.busy_poll.zip(polls) {
        let mut sockets = hears.sockets();
        let outcome = sockets.try_for_each(|socket| busy_poll(&SockRef::from(socket), time));
        grants.enter(polls, outcome);
    }
    if let Some(spins) = spins {
        grants.enter(spins, Ok(()));
    }
    Ok(grants)
}
