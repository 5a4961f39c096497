//! The end that counts what another machine sends.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::control::{Answer, Control, Request, SentAll, VERSION, Version, read};
use super::ends::UdpEnd;
use super::{Method, Taken, check, receive};
use crate::net::{Around, NetError, Patience};

/// How long somebody may take to say what it wants: others wait meanwhile.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// The longest run.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How much later than planned a source may have sent all.
const GRACE: Duration = Duration::from_secs(5);

/// The most bytes of buffers that are asked for.
const MOST_BUFFER: usize = 1 << 30;

/// How long it may take until the port is free.
const FREED: Duration = Duration::from_secs(1);

/// How often it is looked whether somebody has come.
const LOOK: Duration = Duration::from_millis(10);

/// What a counter saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counted {
    /// Runs that were counted to their end.
    pub runs: u64,
    /// Packets of those.
    pub packets: u64,
    /// Their bytes of payload.
    pub bytes: u64,
    /// Connections that brought no run: strangers, sources that want what is not here, and such as broke
    /// off.
    pub others: u64,
}

/// An end that counts what comes by whichever method a source asks for, one run at a time.
///
/// Only packets of who asked for a run, over TCP, are counted, and no packet is answered.
#[derive(Debug)]
pub struct Counter(TcpListener);

impl Counter {
    /// Listens at an address, at whose port packets will come, too.
    ///
    /// # Errors
    /// When the port is taken, or the address is not of this machine.
    pub fn open(at: SocketAddr) -> Result<Counter, NetError> {
        let listener = TcpListener::bind(at).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => NetError::PortTaken(at),
            io::ErrorKind::AddrNotAvailable => NetError::NotOurAddress(at.ip()),
            _ => NetError::while_doing(format!("listening at {at}"))(error),
        })?;
        let unblocked = listener.set_nonblocking(true);
        unblocked.map_err(NetError::while_doing(format!("listening at {at}")))?;
        Ok(Counter(listener))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Counts until told to stop or the patience ends.
    ///
    /// # Errors
    /// When the system refuses to listen any longer. What goes wrong with one run ends only that.
    pub fn count(&self, patience: Patience, around: Around<'_>) -> Result<Counted, NetError> {
        let mut counted = Counted::default();
        let started = Instant::now();
        let mut last = started;
        let is_over = |limit: Option<Duration>, since: Instant| {
            limit.is_some_and(|limit| since.elapsed() >= limit)
        };
        while !(around.stop)()
            && !is_over(patience.in_all, started)
            && !is_over(patience.idle, last)
        {
            let stream = match self.0.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        thread::sleep(LOOK);
                        continue;
                    }
                    // Who came is gone already.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => continue,
                    _ => return Err(NetError::while_doing("listening")(error)),
                },
            };
            match serve(stream, around) {
                Ok(taken) => {
                    counted.runs += 1;
                    counted.packets += taken.packets;
                    counted.bytes += taken.bytes;
                }
                Err(_) => counted.others += 1,
            }
            last = Instant::now();
        }
        Ok(counted)
    }
}

/// One run, of who has come. An error is only for that one.
fn serve(stream: TcpStream, around: Around<'_>) -> io::Result<Taken> {
    // Some systems have it from the listener.
    stream.set_nonblocking(false)?;
    let (here, mut there) = (stream.local_addr()?, stream.peer_addr()?);
    let mut control = Control::new(stream)?;
    let line = control.hear(INTRODUCTION, around.stop)?;
    let prepared = admit(&line).and_then(|(request, method)| {
        there.set_port(request.port);
        let buffer_bytes = request.buffer_bytes.map(|bytes| bytes.min(MOST_BUFFER));
        let end = open(here, method, buffer_bytes).map_err(|error| error.to_string())?;
        let buffers = end.buffers;
        let receiver = end.receiver(method, there, request.size);
        let receiver = receiver.map_err(|error| error.to_string())?;
        Ok((request, method, receiver, buffers))
    });
    let (request, method, receiver, buffers) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return refuse(&mut control, why),
    };
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tell, ready) = mpsc::channel();
        let receiving = scope.spawn(|| {
            around.scheduling.apply();
            let made = receiver().map_err(|error| method.failed("receiving")(error).to_string());
            // Whoever waits for it is still there.
            let _ = tell.send(made.as_ref().map(|_| ()).map_err(String::clone));
            drop(tell);
            let mut receiver = made.map_err(io::Error::other)?;
            receive(&mut *receiver, &has_ended, around.clock)
        });
        let heard = match ready.recv() {
            Ok(Ok(())) => (control.say(&Answer::Ready { buffers }))
                .and_then(|()| control.hear(request.time() + GRACE, around.stop))
                .and_then(|line| read::<SentAll>(&line)),
            Ok(Err(why)) => refuse(&mut control, why),
            Err(_) => Err(io::ErrorKind::Other.into()),
        };
        has_ended.store(true, Ordering::Release);
        let arrived = receiving.join().expect("the receiver does not panic");
        heard?;
        let arrived = match arrived {
            Ok(arrived) => arrived,
            Err(error) => {
                let why = method.failed("receiving")(error).to_string();
                return refuse(&mut control, why);
            }
        };
        let took_ns =
            (arrived.first_ns.zip(arrived.last_ns)).map_or(0, |(first, last)| last - first);
        let taken = arrived.taken;
        control.say(&Answer::Counted {
            packets: taken.packets,
            bytes: taken.bytes,
            took_ns,
        })?;
        Ok(taken)
    })
}

/// A socket at the port that the source knows. The run before may have it for a moment: io_uring gives
/// sockets back some time after they are closed.
fn open(here: SocketAddr, method: Method, buffer_bytes: Option<usize>) -> Result<UdpEnd, NetError> {
    let started = Instant::now();
    loop {
        match UdpEnd::open(here, method.socket(), buffer_bytes) {
            Err(NetError::System { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse && started.elapsed() < FREED =>
            {
                thread::sleep(LOOK);
            }
            opened => return opened,
        }
    }
}

/// What is wanted, if it can be done; or why not.
fn admit(line: &[u8]) -> Result<(Request, Method), String> {
    let fault = |error: io::Error| error.to_string();
    let theirs = read::<Version>(line).map_err(fault)?.laglab_throughput;
    if theirs != VERSION {
        return Err(format!(
            "it speaks version {VERSION} and was spoken to in version {theirs}: use the same laglab at \
             both ends"
        ));
    }
    let request: Request = read(line).map_err(fault)?;
    check(request.size).map_err(|error| error.to_string())?;
    if request.time() > LONGEST {
        return Err(format!("a run takes at most {} s", LONGEST.as_secs()));
    }
    match Method::named(&request.method) {
        Some(method) => Ok((request, method)),
        None => Err("its system has no such method".to_owned()),
    }
}

fn refuse<T>(control: &mut Control, why: String) -> io::Result<T> {
    control.say(&Answer::Refused(why.clone()))?;
    Err(io::Error::other(why))
}
