//! The counter, which receives packets from another machine and counts them.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::control::{Answer, Control, Request, SentAll, VERSION, Version, read};
use super::ends::UdpEnd;
use super::{Method, ReceivedCount, check, receive};
use crate::net::{NetError, Patience, RunContext};

/// Maximum time in which a source must send its request. This time is short because other sources may wait.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// Maximum duration of a run.
const MAX_TIME: Duration = Duration::from_secs(3_600);

/// Time by which a source may exceed the planned duration of its run.
const GRACE: Duration = Duration::from_secs(5);

/// Maximum size of a requested buffer in bytes.
const MAX_BUFFER: usize = 1 << 30;

/// Maximum time to wait until the port of the previous run is free.
const FREED: Duration = Duration::from_secs(1);

/// Interval at which the counter checks for new connections.
const LOOK: Duration = Duration::from_millis(10);

/// Numbers of runs and packets that a counter has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CounterSums {
    /// Number of runs that were counted to their end.
    pub runs: u64,
    /// Number of packets in these runs.
    pub packets: u64,
    /// Number of payload bytes in these runs.
    pub bytes: u64,
    /// Number of other connections: foreign connections, refused requests and aborted runs.
    pub others: u64,
}

/// Counter of received packets. It uses the method that a source requests, and serves one run at a
/// time.
///
/// Packets count only if they come from the source that made the TCP request. No packet is
/// answered.
#[derive(Debug)]
pub struct Counter(TcpListener);

impl Counter {
    /// Listens for requests at an address. The same port also receives the packets.
    ///
    /// # Errors
    /// Returns an error if the port is in use, or if the address does not belong to this machine.
    pub fn open(at: SocketAddr) -> Result<Counter, NetError> {
        let listener = TcpListener::bind(at).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => NetError::PortInUse(at),
            io::ErrorKind::AddrNotAvailable => NetError::ForeignAddress(at.ip()),
            _ => NetError::context(format!("listening on {at}"))(error),
        })?;
        let unblocked = listener.set_nonblocking(true);
        unblocked.map_err(NetError::context(format!("listening on {at}")))?;
        Ok(Counter(listener))
    }

    /// Returns the address at which the counter listens.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Counts until `stop` returns true or the limits are reached.
    ///
    /// # Errors
    /// Returns an error if the system refuses to listen. An error of a run ends only that run.
    pub fn count(
        &self,
        patience: Patience,
        context: RunContext<'_>,
    ) -> Result<CounterSums, NetError> {
        let mut counted = CounterSums::default();
        let started = Instant::now();
        let mut last = started;
        let is_over = |limit: Option<Duration>, since: Instant| {
            limit.is_some_and(|limit| since.elapsed() >= limit)
        };
        while !(context.stop)()
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
                    // The connection was closed already.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => continue,
                    _ => return Err(NetError::context("listening")(error)),
                },
            };
            match serve(stream, context) {
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

/// Serves one run. An error affects only this run.
fn serve(stream: TcpStream, context: RunContext<'_>) -> io::Result<ReceivedCount> {
    // On some systems, the connection inherits the non-blocking mode of the listener.
    stream.set_nonblocking(false)?;
    let (here, mut there) = (stream.local_addr()?, stream.peer_addr()?);
    let mut control = Control::new(stream)?;
    let line = control.read_line(INTRODUCTION, context.stop)?;
    let prepared = admit(&line).and_then(|(request, method)| {
        there.set_port(request.port);
        let buffer_bytes = request.buffer_bytes.map(|bytes| bytes.min(MAX_BUFFER));
        let end = open(here, method, buffer_bytes)?;
        let buffers = end.buffers;
        let receiver = end.receiver(method, there, request.size)?;
        Ok((request, method, receiver, buffers))
    });
    let (request, method, receiver, buffers) = match prepared {
        Ok(prepared) => prepared,
        Err(refused) => return refuse(&mut control, refused.to_string()),
    };
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tell, ready) = mpsc::channel();
        let receiving = scope.spawn(|| {
            context.scheduling.apply();
            let receiver =
                receiver().map_err(|error| method.failed("receiving")(error).to_string());
            // The other end of the channel still exists, so sending cannot fail.
            let _ = tell.send(receiver.as_ref().map(|_| ()).map_err(String::clone));
            drop(tell);
            let mut receiver = receiver.map_err(io::Error::other)?;
            receive(&mut *receiver, &has_ended, context.clock)
        });
        let heard = match ready.recv() {
            Ok(Ok(())) => (control.say(&Answer::Ready { buffers }))
                .and_then(|()| control.read_line(request.time() + GRACE, context.stop))
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
        let count = arrived.count;
        control.say(&Answer::Counted {
            packets: count.packets,
            bytes: count.bytes,
            took_ns,
        })?;
        Ok(count)
    })
}

/// Opens a socket on the port that the source knows. If the previous run still holds the port, this function
/// tries again. io_uring releases a socket some time after the socket was closed.
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

/// Reason why a run is refused.
#[derive(Debug, thiserror::Error)]
enum RefusedRun {
    #[error("{0}")]
    Line(#[from] io::Error),
    #[error(
        "version {0} of the protocol is not supported, only version {VERSION}; use the same laglab version at both \
         ends"
    )]
    Version(u32),
    #[error("the run is too long: a run takes at most {} s", MAX_TIME.as_secs())]
    TooLong,
    #[error("the system of the counter does not support this method")]
    NoMethod,
    #[error(transparent)]
    Net(#[from] NetError),
}

/// Checks a request. Returns the request with the method that it names.
fn admit(line: &[u8]) -> Result<(Request, Method), RefusedRun> {
    let version = read::<Version>(line)?.laglab_throughput;
    if version != VERSION {
        return Err(RefusedRun::Version(version));
    }
    let request: Request = read(line)?;
    check(request.size)?;
    if request.time() > MAX_TIME {
        return Err(RefusedRun::TooLong);
    }
    match Method::from_name(&request.method) {
        Some(method) => Ok((request, method)),
        None => Err(RefusedRun::NoMethod),
    }
}

fn refuse<T>(control: &mut Control, why: String) -> io::Result<T> {
    control.say(&Answer::Refused(why.clone()))?;
    Err(io::Error::other(why))
}
