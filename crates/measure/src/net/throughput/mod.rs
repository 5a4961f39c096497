//! How many packets a second go from one end to the other, by the way in which they are sent and
//! received.
//!
//! A method is a file here: how it sends a burst, and how it takes what has come. Both ends of UDP use
//! connected sockets, so that no stranger's packet is counted, but for `group`; PGM knows its session.
//! Both ends are here ([`measure`]), or the other one is a [`Counter`] on another machine.

mod blocking;
mod control;
mod counter;
mod ends;
mod group;
#[cfg(windows)]
mod iocp;
#[cfg(target_os = "linux")]
mod mmsg;
mod on_the_way;
#[cfg(target_os = "linux")]
mod openpgm;
mod plan;
mod poll;
mod ready;
mod reliable;
mod remote;
#[cfg(windows)]
mod rio;
#[cfg(any(target_os = "linux", windows))]
mod segments;
mod sendto;
#[cfg(target_os = "linux")]
mod uring;

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use socket2::Type;

pub use counter::{Counted, Counter};
pub use ends::Load;
pub use plan::{PEER, PeerThroughputRun, ThroughputPlan, ThroughputReport, ThroughputRun};

use super::wire::{HEADER_LEN, LARGEST};
use super::{Around, Buffers, Carrier, NetError};
use crate::{Clock, Now};
use ends::Ends;
use reliable::Batch;

/// How long a receiver waits before it looks whether the sender has ended.
const WAIT: Duration = Duration::from_millis(100);

/// How long what is left over is received after the last burst.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// How many packets go in one burst: enough that asking for the time costs nothing beside.
const BURST: usize = 64;

/// Sends.
trait Send {
    /// Sends a burst. Gives how many packets the system took.
    fn burst(&mut self) -> io::Result<u64>;

    /// After the last burst: whatever is still owed to the receiver.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receives.
trait Receive {
    /// Takes what has come, and waits for it at most [`WAIT`]. Gives packets and bytes; 0 packets if
    /// none came in time.
    fn take(&mut self) -> io::Result<Taken>;
}

/// What came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    packets: u64,
    bytes: u64,
}

impl Taken {
    /// Enters a run of equal packets of which the last may be shorter, as the kernel joins them.
    fn add(&mut self, bytes: usize, size: usize) {
        self.packets += bytes.div_ceil(size) as u64;
        self.bytes += bytes as u64;
    }
}

/// A way to send and receive many packets.
#[derive(Clone, Copy)]
pub struct Method {
    /// Its short name.
    pub name: &'static str,
    /// The calls it makes.
    pub calls: &'static str,
    way: Way,
}

/// How its ends are made.
#[derive(Clone, Copy)]
enum Way {
    Udp {
        socket: Type,
        sender: MakeSender,
        receiver: MakeReceiver,
    },
    /// UDP that is not connected.
    Unconnected,
    /// UDP to a group, as PGM's, so that the two can be compared; or what nobody batches.
    Group(Carrier),
    Pgm(Batch),
    #[cfg(target_os = "linux")]
    OpenPgm,
}

/// Makes an end of a connected socket and the size of a packet.
type MakeSender = fn(UdpSocket, usize) -> io::Result<Box<dyn Send>>;
type MakeReceiver = fn(UdpSocket, usize) -> io::Result<Box<dyn Receive>>;

impl Way {
    /// By sockets as they usually are.
    const fn udp(sender: MakeSender, receiver: MakeReceiver) -> Way {
        Way::Udp {
            socket: Type::DGRAM,
            sender,
            receiver,
        }
    }
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Method {
    /// The methods of this system; the first is what the others are compared to.
    pub const ALL: &'static [Method] = &[
        Method {
            name: "blocking",
            calls: "send, recv",
            way: Way::udp(blocking::sender, blocking::receiver),
        },
        Method {
            name: "sendto",
            calls: "sendto, recvfrom, not connected",
            way: Way::Unconnected,
        },
        Method {
            name: "poll",
            calls: if cfg!(windows) {
                "send, WSAPoll, recv until empty"
            } else {
                "send, poll, recv until empty"
            },
            way: Way::udp(poll::sender, poll::receiver),
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "mmsg",
            calls: "sendmmsg, recvmmsg of 64",
            way: Way::udp(mmsg::sender, mmsg::receiver),
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "io_uring",
            calls: "64 sends a submission, multishot recv",
            way: Way::udp(uring::sender, uring::receiver),
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "gso",
            calls: "UDP_SEGMENT, recv",
            way: Way::udp(segments::sender, blocking::receiver),
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "gso_gro",
            calls: "UDP_SEGMENT, UDP_GRO",
            way: Way::udp(segments::sender, segments::receiver),
        },
        #[cfg(windows)]
        Method {
            name: "iocp",
            calls: "64 WSASend, 64 WSARecv, a completion port",
            way: Way::udp(iocp::sender, iocp::receiver),
        },
        #[cfg(windows)]
        Method {
            name: "rio",
            calls: "registered I/O: 64 RIOSend, 64 RIOReceive a commit",
            way: Way::Udp {
                socket: rio::SOCKET,
                sender: rio::sender,
                receiver: rio::receiver,
            },
        },
        #[cfg(windows)]
        Method {
            name: "uso",
            calls: "UDP_SEND_MSG_SIZE, recv",
            way: Way::udp(segments::sender, blocking::receiver),
        },
        #[cfg(windows)]
        Method {
            name: "uso_uro",
            calls: "UDP_SEND_MSG_SIZE, UDP_RECV_MAX_COALESCED_SIZE",
            way: Way::udp(segments::sender, segments::receiver),
        },
        Method {
            name: "group",
            calls: if cfg!(target_os = "linux") {
                "sendto a group, recvmsg"
            } else {
                "sendto a group, recvfrom"
            },
            way: Way::Group(Carrier::Udp),
        },
        Method {
            name: "pgm",
            calls: "PGM: a call a message",
            way: Way::Pgm(Batch::One),
        },
        Method {
            name: "pgm_gso",
            calls: "PGM: 128 messages a call, which come one by one",
            way: Way::Pgm(Batch::Sent),
        },
        Method {
            name: "pgm_many",
            calls: "PGM: 128 messages a call, which come as many",
            way: Way::Pgm(Batch::Both),
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "openpgm",
            calls: "OpenPGM: a call a message",
            way: Way::OpenPgm,
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "epgm",
            calls: "ZeroMQ: a call a message",
            way: Way::Group(Carrier::Epgm),
        },
    ];

    /// The sockets that it takes, of UDP.
    fn socket(&self) -> Type {
        match self.way {
            Way::Udp { socket, .. } => socket,
            _ => Type::DGRAM,
        }
    }

    /// What is measured by it: a group is sent to as PGM's messages are, and measured beside them.
    pub fn carrier(&self) -> Carrier {
        match self.way {
            Way::Udp { .. } | Way::Unconnected => Carrier::Udp,
            Way::Group(Carrier::Udp) | Way::Pgm(_) => Carrier::Pgm,
            Way::Group(carrier) => carrier,
            #[cfg(target_os = "linux")]
            Way::OpenPgm => Carrier::OpenPgm,
        }
    }

    /// The method of this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL
            .iter()
            .copied()
            .find(|method| method.name == name)
    }

    fn failed(self, what: &str) -> impl FnOnce(io::Error) -> NetError {
        NetError::while_doing(format!("{what} by {}", self.name))
    }
}

/// What one run of one method brought.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Throughput {
    /// The size of a packet, in bytes of payload.
    pub size: usize,
    /// Packets that the system took.
    pub sent: u64,
    /// Packets that came.
    pub received: u64,
    /// Bytes of payload that came.
    pub bytes: u64,
    /// From the first burst until the last packet came, in nanoseconds.
    pub took_ns: i64,
    /// The sender's buffers.
    pub sender_buffers: Buffers,
    /// The receiver's buffers.
    pub receiver_buffers: Buffers,
}

impl Throughput {
    /// Packets a second that came; none if none did.
    pub fn packets_per_second(&self) -> Option<f64> {
        self.per_second(self.received)
    }

    /// Bytes of payload a second that came; none if none did.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.bytes)
    }

    /// Packets that were sent and did not come.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        (count > 0 && self.took_ns > 0).then(|| count as f64 * 1e9 / self.took_ns as f64)
    }
}

/// Sends as fast as it goes, from the near side of a test bed to the far one.
///
/// # Errors
/// When the size is impossible, or the system lacks the method or refuses to send or receive.
pub fn measure(load: Load<'_>, method: Method, around: Around<'_>) -> Result<Throughput, NetError> {
    let size = load.size;
    check(size)?;
    let Ends {
        sender,
        receiver,
        sender_buffers,
        receiver_buffers,
    } = load.ends(method, around.scheduling)?;
    let is_ready = AtomicBool::new(false);
    let has_ended = AtomicBool::new(false);
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            around.scheduling.apply();
            let receiver = receiver();
            is_ready.store(true, Ordering::Release);
            receive(&mut *receiver?, &has_ended, around.clock)
        });
        let sending = || {
            let mut sender = sender()?;
            while !is_ready.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            let shall_end = || (around.stop)() || receiving.is_finished();
            send(&mut *sender, load.time, around.clock, &shall_end)
        };
        let sent = (around.scheduling)
            .run(|_| sending())
            .and_then(|(sent, _)| sent);
        has_ended.store(true, Ordering::Release);
        let received = receiving.join().expect("the receiver does not panic");
        (sent, received)
    });
    let sent = sent.map_err(method.failed("sending"))?;
    let arrived = received.map_err(method.failed("receiving"))?;
    let took_ns = arrived.last_ns.map_or(0, |last_ns| last_ns - sent.start_ns);
    Ok(Throughput {
        size,
        sent: sent.packets,
        received: arrived.taken.packets,
        bytes: arrived.taken.bytes,
        took_ns,
        sender_buffers,
        receiver_buffers,
    })
}

/// Whether packets can be of this size.
fn check(size: usize) -> Result<(), NetError> {
    match (HEADER_LEN..=LARGEST).contains(&size) {
        true => Ok(()),
        false => Err(NetError::Size {
            asked: size,
            smallest: HEADER_LEN,
            largest: LARGEST,
        }),
    }
}

/// What a sender did.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// When it began.
    start_ns: i64,
    /// How many packets the system took.
    packets: u64,
}

/// Sends as fast as it goes for a time, or until it shall end.
fn send(
    sender: &mut dyn Send,
    time: Duration,
    clock: &Clock,
    shall_end: &dyn Fn() -> bool,
) -> io::Result<Sent> {
    let start_ns = clock.now_ns();
    let end_ns = start_ns + i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 2);
    let mut packets = 0;
    while clock.now_ns() < end_ns && !shall_end() {
        packets += sender.burst()?;
    }
    sender.finish()?;
    Ok(Sent { start_ns, packets })
}

/// What a receiver saw, and when the first and the last of it had come.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    taken: Taken,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

/// Receives until the sender has ended and nothing comes any more.
fn receive(
    receiver: &mut dyn Receive,
    has_ended: &AtomicBool,
    clock: &Clock,
) -> io::Result<Arrived> {
    let mut arrived = Arrived::default();
    // The sender ends in any case, and after that whatever is on its way does too.
    let mut patience = LEFT_OVER.as_nanos() as i64;
    loop {
        let was_ended = has_ended.load(Ordering::Acquire);
        let before_ns = clock.now_ns();
        let taken = receiver.take()?;
        let now_ns = clock.now_ns();
        if taken.packets > 0 {
            arrived.first_ns.get_or_insert(now_ns);
            arrived.last_ns = Some(now_ns);
        }
        arrived.taken.packets += taken.packets;
        arrived.taken.bytes += taken.bytes;
        if was_ended {
            patience -= now_ns - before_ns;
            // Nothing for as long as that, not only for now: a packet of somebody else's is none of ours.
            let was_silent = taken.packets == 0 && now_ns - before_ns >= WAIT.as_nanos() as i64 / 2;
            if was_silent || patience <= 0 {
                return Ok(arrived);
            }
        }
    }
}

/// Takes an error that says that nothing can be done at the moment for none.
fn if_ready<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}
