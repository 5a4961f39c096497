//! Throughput in packets per second from one end to the other, by method of sending and receiving.
//!
//! Each method has a module, which sends bursts and receives packets. Foreign packets do not count: UDP
//! sockets are connected, or the code compares the sender's address (method `sendto`), and PGM identifies
//! packets by their session. Only the method `group` also counts foreign packets to the group. Both ends are
//! on this machine ([`measure`]), or the other end is a [`Counter`] on another machine.

mod blocking;
mod control;
mod counter;
mod ends;
mod group;
mod in_flight;
#[cfg(windows)]
mod iocp;
#[cfg(target_os = "linux")]
mod mmsg;
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

pub use counter::{Counter, CounterSums};
pub use ends::Load;
pub use plan::{PEER, PeerThroughputRun, ThroughputPlan, ThroughputReport, ThroughputRun};

use super::wire::{HEADER_LEN, LARGEST};
use super::{Buffers, Carrier, NetError, RunContext};
use crate::{Clock, Now};
use ends::Ends;
use reliable::Batch;

/// Maximum wait of a receiver for packets. After this wait, the receiver checks whether the sender has ended.
const WAIT: Duration = Duration::from_millis(100);

/// Maximum time that the receiver waits for packets after the last burst.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// Number of packets per burst. A burst is so long that reading the clock once per burst costs almost nothing
/// in comparison.
const BURST: usize = 64;

/// Sending end of a method.
trait Send {
    /// Sends a burst. Returns the number of packets that the system accepted.
    fn burst(&mut self) -> io::Result<u64>;

    /// Ends sending after the last burst, and delivers the rest of the packets to the receiver.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receiving end of a method.
trait Receive {
    /// Receives pending packets. Waits at most [`WAIT`] for the first packet. Returns zero packets if no
    /// packet arrived in time.
    fn take(&mut self) -> io::Result<ReceivedCount>;
}

/// Number of received packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReceivedCount {
    packets: u64,
    bytes: u64,
}

impl ReceivedCount {
    /// Adds packets of `size` bytes each. The kernel joined these packets to a total of `bytes` bytes. The
    /// last packet may be shorter.
    fn add(&mut self, bytes: usize, size: usize) {
        self.packets += bytes.div_ceil(size) as u64;
        self.bytes += bytes as u64;
    }
}

/// A method of sending and receiving many packets.
#[derive(Clone, Copy)]
pub struct Method {
    /// Short name.
    pub name: &'static str,
    /// System calls of the method.
    pub calls: &'static str,
    way: Way,
}

/// Construction of the two ends of a method.
#[derive(Clone, Copy)]
enum Way {
    Udp {
        socket: Type,
        sender: MakeSender,
        receiver: MakeReceiver,
    },
    /// UDP with sockets that are not connected.
    Unconnected,
    /// Carrier that sends to a group with one call per message. The carriers are UDP, for comparison with PGM,
    /// and ZeroMQ, which cannot send batches.
    Group(Carrier),
    Pgm(Batch),
    #[cfg(target_os = "linux")]
    OpenPgm,
}

/// Functions that create a sending or receiving end from a connected socket and a packet size.
type MakeSender = fn(UdpSocket, usize) -> io::Result<Box<dyn Send>>;
type MakeReceiver = fn(UdpSocket, usize) -> io::Result<Box<dyn Receive>>;

impl Way {
    /// Returns a construction with ordinary UDP sockets.
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
    /// Methods of this system. The other methods are compared with the first.
    pub const ALL: &'static [Method] = &[
        Method {
            name: "blocking",
            calls: "send, recv",
            way: Way::udp(blocking::sender, blocking::receiver),
        },
        Method {
            name: "sendto",
            calls: "sendto, recvfrom, unconnected",
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
            calls: "64 sends per submission, multishot recv",
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
            calls: "registered I/O: 64 RIOSend, 64 RIOReceive per commit",
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
            calls: "PGM: a call per message",
            way: Way::Pgm(Batch::One),
        },
        Method {
            name: "pgm_gso",
            calls: "PGM: 128 messages per call, received one by one",
            way: Way::Pgm(Batch::Sent),
        },
        Method {
            name: "pgm_many",
            calls: "PGM: 128 messages per call, at both ends",
            way: Way::Pgm(Batch::Both),
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "openpgm",
            calls: "OpenPGM: a call per message",
            way: Way::OpenPgm,
        },
        #[cfg(target_os = "linux")]
        Method {
            name: "epgm",
            calls: "ZeroMQ: a call per message",
            way: Way::Group(Carrier::Epgm),
        },
    ];

    /// Returns the type of the method's UDP sockets.
    fn socket(&self) -> Type {
        match self.way {
            Way::Udp { socket, .. } => socket,
            _ => Type::DGRAM,
        }
    }

    /// Returns the carrier that the method measures. The result for the method `group` is PGM, because this method is
    /// compared with PGM and also sends to a group.
    pub fn carrier(&self) -> Carrier {
        match self.way {
            Way::Udp { .. } | Way::Unconnected => Carrier::Udp,
            Way::Group(Carrier::Udp) | Way::Pgm(_) => Carrier::Pgm,
            Way::Group(carrier) => carrier,
            #[cfg(target_os = "linux")]
            Way::OpenPgm => Carrier::OpenPgm,
        }
    }

    /// Returns the method with this name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL
            .iter()
            .copied()
            .find(|method| method.name == name)
    }

    fn failed(self, what: &str) -> impl FnOnce(io::Error) -> NetError {
        NetError::context(format!("{what} by {}", self.name))
    }
}

/// Result of one run of a method.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Throughput {
    /// Payload size in bytes.
    pub size: usize,
    /// Number of packets that the system accepted.
    pub sent: u64,
    /// Number of packets received.
    pub received: u64,
    /// Number of payload bytes received.
    pub bytes: u64,
    /// Time in nanoseconds from the first burst to the last received packet. If the counter is on
    /// another machine, the time starts with the first received packet.
    pub took_ns: i64,
    /// Buffer sizes of the sender.
    pub sender_buffers: Buffers,
    /// Buffer sizes of the receiver.
    pub receiver_buffers: Buffers,
}

impl Throughput {
    /// Returns the number of received packets per second. Returns `None` if no packet was received, or if the
    /// measured time is 0.
    pub fn packets_per_second(&self) -> Option<f64> {
        self.per_second(self.received)
    }

    /// Returns the number of received payload bytes per second. Returns `None` if no byte was received, or if the
    /// measured time is 0.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.bytes)
    }

    /// Returns the number of packets that were sent but not received.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        (count > 0 && self.took_ns > 0).then(|| count as f64 * 1e9 / self.took_ns as f64)
    }
}

/// Sends at the maximum rate from the near side of a test bed to the far side, and counts the
/// packets there.
///
/// # Errors
/// Returns an error if the size is invalid, or if the system lacks the method or refuses to send or
/// receive.
pub fn measure(
    load: Load<'_>,
    method: Method,
    context: RunContext<'_>,
) -> Result<Throughput, NetError> {
    let size = load.size;
    check(size)?;
    let Ends {
        sender,
        receiver,
        sender_buffers,
        receiver_buffers,
    } = load.ends(method, context.scheduling)?;
    let is_ready = AtomicBool::new(false);
    let has_ended = AtomicBool::new(false);
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            context.scheduling.apply();
            let receiver = receiver();
            is_ready.store(true, Ordering::Release);
            receive(&mut *receiver?, &has_ended, context.clock)
        });
        let sending = || {
            let mut sender = sender()?;
            while !is_ready.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            let shall_end = || (context.stop)() || receiving.is_finished();
            send(&mut *sender, load.time, context.clock, &shall_end)
        };
        let sent = (context.scheduling)
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
        received: arrived.count.packets,
        bytes: arrived.count.bytes,
        took_ns,
        sender_buffers,
        receiver_buffers,
    })
}

/// Checks the packet size.
fn check(size: usize) -> Result<(), NetError> {
    if (HEADER_LEN..=LARGEST).contains(&size) {
        Ok(())
    } else {
        Err(NetError::Size {
            asked: size,
            smallest: HEADER_LEN,
            largest: LARGEST,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct SenderResult {
    /// Time of the first burst in nanoseconds.
    start_ns: i64,
    /// Number of packets that the system accepted.
    packets: u64,
}

/// Sends bursts at the maximum rate until the time is over or `shall_end` returns true.
fn send(
    sender: &mut dyn Send,
    time: Duration,
    clock: &Clock,
    shall_end: &dyn Fn() -> bool,
) -> io::Result<SenderResult> {
    let start_ns = clock.now_ns();
    let end_ns = start_ns + i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 2);
    let mut packets = 0;
    while clock.now_ns() < end_ns && !shall_end() {
        packets += sender.burst()?;
    }
    sender.finish()?;
    Ok(SenderResult { start_ns, packets })
}

/// Received packets, with the times of the first and the last packet.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    count: ReceivedCount,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

/// Receives until the sender has ended and no more packets arrive.
fn receive(
    receiver: &mut dyn Receive,
    has_ended: &AtomicBool,
    clock: &Clock,
) -> io::Result<Arrivals> {
    let mut arrived = Arrivals::default();
    // Remaining time to wait for packets in flight after the sender has ended. Before that, no limit is
    // needed, because the sender always ends.
    let mut patience = LEFT_OVER.as_nanos() as i64;
    loop {
        let was_ended = has_ended.load(Ordering::Acquire);
        let before_ns = clock.now_ns();
        let count = receiver.take()?;
        let now_ns = clock.now_ns();
        if count.packets > 0 {
            arrived.first_ns.get_or_insert(now_ns);
            arrived.last_ns = Some(now_ns);
        }
        arrived.count.packets += count.packets;
        arrived.count.bytes += count.bytes;
        if was_ended {
            patience -= now_ns - before_ns;
            // The receiver also returns no packets if a foreign packet arrives. Only a long wait shows that
            // no packet arrived.
            let was_silent = count.packets == 0 && now_ns - before_ns >= WAIT.as_nanos() as i64 / 2;
            if was_silent || patience <= 0 {
                return Ok(arrived);
            }
        }
    }
}

/// Converts errors that mean "not ready" into `None`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_packets_are_no_negative_loss() {
        let through = |sent, received| Throughput {
            size: 100,
            sent,
            received,
            bytes: 100 * received,
            took_ns: 1_000_000,
            sender_buffers: Buffers::default(),
            receiver_buffers: Buffers::default(),
        };
        assert_eq!(through(10, 7).lost(), 3);
        assert_eq!(through(10, 12).lost(), 0);
    }
}
