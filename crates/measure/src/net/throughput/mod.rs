//! How many packets a second go from one end to the other, by the way in which they are sent and
//! received.
//!
//! A method is a file here: how it sends a burst, and how it takes what has come. Both ends of UDP use
//! connected sockets, so that no stranger's packet is counted, but for `group`; PGM knows its session.

mod blocking;
mod group;
#[cfg(windows)]
mod iocp;
#[cfg(target_os = "linux")]
mod mmsg;
mod plan;
mod poll;
mod ready;
mod reliable;
#[cfg(windows)]
mod rio;
#[cfg(any(target_os = "linux", windows))]
mod segments;
#[cfg(target_os = "linux")]
mod uring;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

pub use plan::{PeerThroughputRun, ThroughputPlan, ThroughputReport, ThroughputRun};

use super::buffers::{Buffers, grant};
use super::testbed::{Family, Side, Testbed};
use super::wire::{HEADER_LEN, LARGEST};
use super::{Carrier, NetError, source::Around};
use crate::Now;
use reliable::Batch;

/// How long a receiver waits before it looks whether the sender has ended.
const WAIT: Duration = Duration::from_millis(100);

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
    /// As PGM's, so that the two can be compared.
    Group,
    Pgm(Batch),
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
        Method {
            name: "group",
            calls: if cfg!(target_os = "linux") {
                "sendto a group, recvmsg"
            } else {
                "sendto a group, recvfrom"
            },
            way: Way::Group,
        },
        Method {
            name: "pgm",
            calls: "PGM: a call a message",
            way: Way::Pgm(Batch::One),
        },
        Method {
            name: "pgm_gso",
            calls: "PGM: 64 messages a call, which come one by one",
            way: Way::Pgm(Batch::Sent),
        },
        Method {
            name: "pgm_many",
            calls: "PGM: 64 messages a call, which come as many",
            way: Way::Pgm(Batch::Both),
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
    ];

    /// What is measured by it: a group is sent to as PGM's messages are, and measured beside them.
    pub fn carrier(&self) -> Carrier {
        match self.way {
            Way::Udp { .. } => Carrier::Udp,
            Way::Group | Way::Pgm(_) => Carrier::Pgm,
        }
    }

    /// The method of this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL
            .iter()
            .copied()
            .find(|method| method.name == name)
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

/// What a run is about, beside its method.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Where both ends are: the near side sends.
    pub testbed: &'a Testbed,
    /// Which addresses they use.
    pub family: Family,
    /// The group that PGM uses.
    pub group: Option<SocketAddr>,
    /// The size of a packet, in bytes of payload.
    pub size: usize,
    /// For how long packets are sent, as fast as it goes.
    pub time: Duration,
    /// Bytes of send and receive buffer to ask for; the system's default if none.
    pub buffer_bytes: Option<usize>,
}

/// The two ends, each made on the thread that uses it.
struct Ends {
    sender: Make<dyn Send>,
    receiver: Make<dyn Receive>,
    sender_buffers: Buffers,
    receiver_buffers: Buffers,
}

type Make<T> = Box<dyn FnOnce() -> io::Result<Box<T>> + core::marker::Send>;

impl Load<'_> {
    fn ends(&self, method: Method) -> Result<Ends, NetError> {
        let size = self.size;
        let buffers = |socket: Option<&UdpSocket>| match socket {
            Some(socket) => grant(&SockRef::from(socket), self.buffer_bytes)
                .map_err(NetError::while_doing("asking for buffers")),
            None => Ok(Buffers::default()),
        };
        match method.way {
            Way::Udp {
                socket,
                sender,
                receiver,
            } => {
                let open = |side| open(self.testbed, side, self.family, socket);
                let (far, near) = (open(Side::Far)?, open(Side::Near)?);
                connect(&near, &far).map_err(NetError::while_doing("connecting the two ends"))?;
                Ok(Ends {
                    sender_buffers: buffers(Some(&near))?,
                    receiver_buffers: buffers(Some(&far))?,
                    sender: Box::new(move || sender(near, size)),
                    receiver: Box::new(move || receiver(far, size)),
                })
            }
            Way::Group => {
                let group = self.group.ok_or(NetError::NoGroup)?;
                let [near, far] = group::ends(self.testbed, group, self.buffer_bytes)?;
                let ((near, sender_buffers), (far, receiver_buffers)) = (near, far);
                Ok(Ends {
                    sender_buffers,
                    receiver_buffers,
                    sender: Box::new(move || Ok(group::sender(near, size))),
                    receiver: Box::new(move || Ok(group::receiver(far, size))),
                })
            }
            Way::Pgm(batch) => {
                let group = self.group.ok_or(NetError::NoGroup)?;
                let (near, far) = reliable::ends(self.testbed, group, batch, self.buffer_bytes)?;
                let sender_buffers = buffers(near.socket.sockets().last())?;
                let receiver_buffers = buffers(far.socket.sockets().next())?;
                Ok(Ends {
                    sender_buffers,
                    receiver_buffers,
                    sender: Box::new(move || Ok(reliable::sender(near, batch, size))),
                    receiver: Box::new(move || Ok(reliable::receiver(far, size))),
                })
            }
        }
    }
}

/// Sends as fast as it goes, from the near side of a test bed to the far one.
///
/// # Errors
/// When the size is impossible, or the system lacks the method or refuses to send or receive.
pub fn measure(load: Load<'_>, method: Method, around: Around<'_>) -> Result<Throughput, NetError> {
    let size = load.size;
    if !(HEADER_LEN..=LARGEST).contains(&size) {
        return Err(NetError::Size {
            asked: size,
            smallest: HEADER_LEN,
            largest: LARGEST,
        });
    }
    let failed = |what: &str| NetError::while_doing(format!("{what} by {}", method.name));
    let Ends {
        sender,
        receiver,
        sender_buffers,
        receiver_buffers,
    } = load.ends(method)?;
    let is_ready = AtomicBool::new(false);
    let has_ended = AtomicBool::new(false);
    let clock = around.clock;
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            around.scheduling.apply();
            let receiver = receiver();
            is_ready.store(true, Ordering::Release);
            let mut receiver = receiver?;
            let mut all = Taken::default();
            let mut last_ns = None;
            // The sender ends in any case, and after that whatever is on its way does too.
            let mut patience = WAIT.as_nanos() as i64 * 10;
            loop {
                let was_ended = has_ended.load(Ordering::Acquire);
                let before_ns = clock.now_ns();
                let taken = receiver.take()?;
                let now_ns = clock.now_ns();
                if taken.packets > 0 {
                    last_ns = Some(now_ns);
                }
                all.packets += taken.packets;
                all.bytes += taken.bytes;
                if was_ended {
                    patience -= now_ns - before_ns;
                    if taken.packets == 0 || patience <= 0 {
                        return Ok((all, last_ns));
                    }
                }
            }
        });
        let sending = || {
            let mut sender = sender()?;
            while !is_ready.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            let start_ns = clock.now_ns();
            let end_ns = start_ns + i64::try_from(load.time.as_nanos()).unwrap_or(i64::MAX / 2);
            let mut sent = 0;
            while clock.now_ns() < end_ns && !(around.stop)() && !receiving.is_finished() {
                sent += sender.burst()?;
            }
            sender.finish()?;
            Ok((start_ns, sent))
        };
        let sent = (around.scheduling)
            .run(|_| sending())
            .and_then(|(sent, _)| sent);
        has_ended.store(true, Ordering::Release);
        let received: io::Result<_> = receiving.join().expect("the receiver does not panic");
        (sent, received)
    });
    let (start_ns, sent) = sent.map_err(failed("sending"))?;
    let (taken, last_ns) = received.map_err(failed("receiving"))?;
    Ok(Throughput {
        size,
        sent,
        received: taken.packets,
        bytes: taken.bytes,
        took_ns: last_ns.map_or(0, |last_ns| last_ns - start_ns),
        sender_buffers,
        receiver_buffers,
    })
}

fn open(testbed: &Testbed, side: Side, family: Family, kind: Type) -> Result<UdpSocket, NetError> {
    let address: SocketAddr = (testbed.address(side, family), 0).into();
    let bound = testbed.on(side, || {
        let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
        socket.bind(&address.into())?;
        Ok(socket.into())
    })?;
    bound.map_err(NetError::while_doing(format!("listening at {address}")))
}

fn connect(near: &UdpSocket, far: &UdpSocket) -> io::Result<()> {
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    for socket in [near, far] {
        socket.set_read_timeout(Some(WAIT))?;
        socket.set_write_timeout(Some(WAIT))?;
    }
    Ok(())
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
