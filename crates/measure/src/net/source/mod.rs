//! The source, which sends probes and measures the time until they return.

#[cfg(test)]
mod tests;

use std::io;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::account::{Arrival, account, seen_classes};
use super::reflector::is_about_another_packet;
use super::wire::{HEADER_LEN, Header, Kind, LARGEST, RunId};
use super::{NetError, Repairs, Tally, Transport, Trip};
use crate::{Clock, Grant, Now, Pacing, Scheduling, Stop};

/// Maximum number of packets per run. A packet needs 40 bytes of memory, and its echo needs 24.
pub const MAX_PACKETS: u64 = 20_000_000;

/// Time after which a ping-pong packet counts as lost.
const PING_PONG_WAIT: Duration = Duration::from_millis(200);

/// Rule for the time at which the next packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Constant rate per second, regardless of the fate of earlier packets. Packets that a stall
    /// delays count as late.
    PerSecond(NonZeroU32),
    /// Each packet is sent when the previous packet has returned. This measures the minimum round
    /// trip, without load.
    PingPong,
}

impl Pace {
    /// Returns the fixed interval between packets in nanoseconds. Returns `None` if the interval is not
    /// fixed.
    pub(super) fn interval_ns(self) -> Option<i64> {
        match self {
            Pace::PerSecond(rate) => Some(1_000_000_000 / i64::from(rate.get())),
            Pace::PingPong => None,
        }
    }
}

/// Packets to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Pace of sending.
    pub pace: Pace,
    /// Payload size in bytes.
    pub size: usize,
    /// Duration without the warm-up.
    pub time: Duration,
    /// Duration of the warm-up, whose packets do not count.
    pub warm_up: Duration,
    /// Maximum time without an echo, after which the reflector counts as silent. It is also the
    /// maximum wait for the last echoes.
    pub patience: Duration,
}

impl Traffic {
    /// Returns the number of packets, including the warm-up. For ping-pong, the number is not known in
    /// advance, so the function returns the maximum number.
    fn packets(&self) -> Result<u64, NetError> {
        if !(HEADER_LEN..=LARGEST).contains(&self.size) {
            return Err(NetError::Size {
                asked: self.size,
                smallest: HEADER_LEN,
                largest: LARGEST,
            });
        }
        let interval_ns = self.pace.interval_ns();
        if nanoseconds(self.time) < interval_ns.unwrap_or(1) {
            let (time, pace) = (self.time, self.pace);
            return Err(NetError::NothingDue { time, pace });
        }
        let Some(interval_ns) = interval_ns else {
            return Ok(MAX_PACKETS);
        };
        let ns = (self.warm_up + self.time).as_nanos();
        match u64::try_from(ns / interval_ns.max(1) as u128).unwrap_or(u64::MAX) {
            asked @ ..=MAX_PACKETS => Ok(asked),
            asked => Err(NetError::TooMany {
                asked,
                most: MAX_PACKETS,
            }),
        }
    }

    /// Returns the maximum time without an echo in nanoseconds. This time is at least four intervals. If
    /// packets are rare, their echoes are also rare.
    fn patience_ns(&self) -> i64 {
        nanoseconds(self.patience).max(self.pace.interval_ns().unwrap_or(0).saturating_mul(4))
    }
}

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// All packets were sent, and the source waited for their echoes.
    AsPlanned,
    /// `stop` returned true.
    Stopped,
    /// The reflector sent no echo for the maximum time.
    Silent,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RoundTrips {
    /// Packets in order of sending, without the warm-up.
    pub trips: Vec<Trip>,
    /// Numbers of packets that were sent, lost, duplicated and so on.
    pub tally: Tally,
    /// Each traffic class with which packets reached the reflector, and the number of returned packets in
    /// this class. The list is empty if the reflector's system does not report classes.
    pub seen_classes: Vec<(u8, u64)>,
    /// Scheduling grants.
    pub grants: Vec<Grant>,
    /// Repairs, if the transport repairs losses.
    pub repairs: Option<Repairs>,
    /// Error of the last packet, if the system refused this packet.
    pub refused: Option<String>,
    /// Reason why the run ended. The results before the end are kept in any case.
    pub ended: RunEnd,
}

/// Clock, scheduling and stop condition of a run.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    /// Clock for the round trips.
    pub clock: &'a Clock,
    /// Scheduling requests of each thread that sends or receives.
    pub scheduling: &'a Scheduling,
    /// Function that ends the run early.
    pub stop: Stop<'a>,
}

/// Sends hellos until the reflector answers, and then sends the probes of a run. In error messages, the text `to` is
/// the name of the reflector.
///
/// # Errors
/// Returns an error if no reflector answers, the traffic is invalid, a thread cannot be started, or sending or
/// receiving fails permanently. If the reflector falls silent later, this is not an error, and the results are kept.
pub fn measure(
    mut transport: Box<dyn Transport>,
    to: &str,
    traffic: &Traffic,
    context: RunContext<'_>,
) -> Result<RoundTrips, NetError> {
    let packets = traffic.packets()?;
    let run = RunId::random()
        .map_err(|error| NetError::context("getting a random number")(io::Error::other(error)))?;
    let (books, grants) = if introduce(&mut *transport, to, run, traffic, context)? {
        (context.scheduling)
            .run(|_| match traffic.pace {
                Pace::PerSecond(_) => paced(&mut *transport, run, traffic, packets, context),
                Pace::PingPong => ping_pong(&mut *transport, run, traffic, context),
            })
            .map_err(NetError::context("starting a thread"))?
    } else {
        (Ok(Books::new(0, RunEnd::Stopped)), Vec::new())
    };
    Ok(RoundTrips {
        grants,
        repairs: transport.repairs(),
        ..books?.closed(traffic.warm_up)
    })
}

/// Records of sent and received packets.
struct Books {
    trips: Vec<Trip>,
    /// Error of the last packet, if the system refused this packet.
    refused: Option<io::Error>,
    heard: ReceivedEchoes,
    ended: RunEnd,
}

impl Books {
    fn new(packets: u64, ended: RunEnd) -> Books {
        Books {
            trips: Vec::with_capacity(packets as usize),
            refused: None,
            heard: ReceivedEchoes::default(),
            ended,
        }
    }

    /// Records a packet that was sent or that the system refused.
    fn sent(&mut self, intended_ns: i64, sent_ns: Result<i64, io::Error>) {
        let (sent_ns, refused) = match sent_ns {
            Ok(sent_ns) => (Some(sent_ns), None),
            Err(error) => (None, Some(error)),
        };
        self.refused = refused;
        self.trips.push(Trip {
            intended_ns,
            sent_ns,
            back_ns: None,
        });
    }

    /// Drops the packets of the warm-up and counts the other packets by fate: returned, lost and so on.
    fn closed(mut self, warm_up: Duration) -> RoundTrips {
        let start_ns = self.trips.first().map_or(0, |trip| trip.intended_ns);
        let end_ns = start_ns.saturating_add(nanoseconds(warm_up));
        let first = self.trips.partition_point(|trip| trip.intended_ns < end_ns);
        self.trips.drain(..first);
        let arrivals: Vec<Arrival> = (self.heard.arrivals.iter())
            .filter_map(|arrival| {
                Some(Arrival {
                    sequence: arrival.sequence.checked_sub(first as u64)?,
                    ..*arrival
                })
            })
            .collect();
        let mut tally = account(&mut self.trips, &arrivals);
        tally.strangers += self.heard.strangers;
        tally.duplicates += self.heard.beyond;
        RoundTrips {
            seen_classes: seen_classes(&self.trips, &arrivals),
            trips: self.trips,
            tally,
            grants: Vec::new(),
            repairs: None,
            refused: self.refused.map(|error| error.to_string()),
            ended: self.ended,
        }
    }
}

/// Echoes that the source received.
#[derive(Default)]
struct ReceivedEchoes {
    arrivals: Vec<Arrival>,
    /// Number of echoes that were not kept, because `arrivals` was full (2 · [`MAX_PACKETS`] echoes). It is above 0
    /// only if the network duplicates packets.
    beyond: u64,
    strangers: u64,
}

impl ReceivedEchoes {
    /// Records a received packet. If it is an echo of this run, returns its sequence number.
    fn note(&mut self, packet: &[u8], run: RunId, at_ns: i64) -> Option<u64> {
        let Some(header) = Header::read(packet).filter(|header| header.run == run) else {
            self.strangers += 1;
            return None;
        };
        // A group may return our own probes, and a welcome may arrive twice.
        if header.kind != Kind::Echo {
            return None;
        }
        if (self.arrivals.len() as u64) < 2 * MAX_PACKETS {
            self.arrivals.push(Arrival {
                sequence: header.sequence,
                at_ns,
                seen_class: header.seen_class,
            })
        } else {
            self.beyond += 1
        }
        Some(header.sequence)
    }
}

/// Sends hellos until a reflector answers. Returns false if `stop` returned true.
fn introduce(
    transport: &mut dyn Transport,
    to: &str,
    run: RunId,
    traffic: &Traffic,
    context: RunContext<'_>,
) -> Result<bool, NetError> {
    let packet = packet_of(traffic.size, Kind::Hello, run);
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let end_ns = context.clock.now_ns() + nanoseconds(traffic.patience);
    let mut said = None;
    while context.clock.now_ns() < end_ns {
        if (context.stop)() {
            return Ok(false);
        }
        let mut answer = transport.send(&packet, None).map(|()| None);
        // The loop reads at most 64 packets per hello, so that other senders cannot delay the next hello.
        for _ in 0..64 {
            if answer.is_err() {
                break;
            }
            answer = transport.receive(&mut buffer);
            let Ok(Some(received)) = answer else { break };
            let header = Header::read(&buffer[..received.len]);
            if header.is_some_and(|header| header.kind == Kind::Welcome && header.run == run) {
                return Ok(true);
            }
        }
        match answer {
            Ok(_) => {}
            Err(error) if is_about_another_packet(&error) => {
                said = Some(error.to_string());
                thread::sleep(Duration::from_millis(50));
            }
            Err(error) => {
                let doing = format!("sending {} bytes to {to}", packet.len());
                return Err(NetError::context(doing)(error));
            }
        }
    }
    Err(NetError::NoAnswer {
        to: to.to_owned(),
        waited: traffic.patience,
        said,
    })
}

/// Progress that the two threads of a run share.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    is_done: AtomicBool,
    is_silent: AtomicBool,
}

/// Sends probes at a constant rate on this thread and receives echoes on another thread.
fn paced(
    transport: &mut dyn Transport,
    run: RunId,
    traffic: &Traffic,
    packets: u64,
    context: RunContext<'_>,
) -> Result<Books, NetError> {
    let RunContext {
        clock,
        scheduling,
        stop,
    } = context;
    let mut receiver =
        (transport.clone_handle()).map_err(NetError::context("duplicating the socket"))?;
    let progress = Progress::default();
    thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            scheduling.apply();
            hear(
                &mut *receiver,
                run,
                traffic.patience_ns(),
                packets,
                clock,
                &progress,
            )
        });
        let mut packet = packet_of(traffic.size, Kind::Probe, run);
        let mut books = Books::new(packets, RunEnd::AsPlanned);
        let mut failed = None;
        let interval_ns = traffic.pace.interval_ns().unwrap_or(1);
        let mut pacing = Pacing::every(interval_ns, clock.now_ns());
        for sequence in 0..packets {
            if stop() {
                books.ended = RunEnd::Stopped;
                break;
            }
            if progress.is_silent.load(Ordering::Relaxed) {
                books.ended = RunEnd::Silent;
                break;
            }
            let slot = pacing.slot();
            let early_ns = slot.intended_ns - clock.now_ns();
            if early_ns > 0 {
                thread::sleep(Duration::from_nanos(early_ns as u64));
            }
            match send_probe(transport, &mut packet, sequence, clock) {
                Ok(sent_ns) => books.sent(slot.intended_ns, sent_ns),
                Err(error) => {
                    failed = Some(NetError::context("sending")(error));
                    break;
                }
            }
            progress.sent.store(sequence + 1, Ordering::Relaxed);
        }
        progress.is_done.store(true, Ordering::Relaxed);
        let heard = hearing.join().expect("the receiver does not panic");
        books.heard = heard.map_err(NetError::context("receiving"))?;
        match failed {
            Some(error) => Err(error),
            None => Ok(books),
        }
    })
}

/// Receives echoes until all packets have returned or the maximum wait is over.
fn hear(
    receiver: &mut dyn Transport,
    run: RunId,
    patience_ns: i64,
    packets: u64,
    clock: &Clock,
    progress: &Progress,
) -> io::Result<ReceivedEchoes> {
    let mut heard = ReceivedEchoes {
        arrivals: Vec::with_capacity(packets as usize),
        ..ReceivedEchoes::default()
    };
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut last_ns = clock.now_ns();
    let mut done_ns = None;
    loop {
        let received = match receiver.receive(&mut buffer) {
            Ok(received) => received,
            Err(error) if is_about_another_packet(&error) => None,
            Err(error) => {
                // No more echoes are received, so the sending thread can stop.
                progress.is_silent.store(true, Ordering::Relaxed);
                return Err(error);
            }
        };
        match received {
            Some(received) => {
                let at_ns = clock.now_ns();
                if heard.note(&buffer[..received.len], run, at_ns).is_some() {
                    last_ns = at_ns;
                }
            }
            None => {
                let sent = progress.sent.load(Ordering::Relaxed);
                let is_missing = (heard.arrivals.len() as u64) < sent;
                if done_ns.is_some() && !is_missing {
                    return Ok(heard);
                }
                if is_missing && clock.now_ns() - last_ns >= patience_ns {
                    progress.is_silent.store(true, Ordering::Relaxed);
                }
            }
        }
        if progress.is_done.load(Ordering::Relaxed) {
            let now_ns = clock.now_ns();
            if now_ns - *done_ns.get_or_insert(now_ns) >= patience_ns {
                return Ok(heard);
            }
        }
    }
}

/// Sends each packet when the previous packet has returned or was lost.
fn ping_pong(
    transport: &mut dyn Transport,
    run: RunId,
    traffic: &Traffic,
    context: RunContext<'_>,
) -> Result<Books, NetError> {
    let clock = context.clock;
    let mut packet = packet_of(traffic.size, Kind::Probe, run);
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut books = Books::new(0, RunEnd::AsPlanned);
    let mut last_ns = clock.now_ns();
    let end_ns = last_ns + nanoseconds(traffic.warm_up + traffic.time);
    for sequence in 0..MAX_PACKETS {
        let intended_ns = clock.now_ns();
        if (context.stop)() {
            books.ended = RunEnd::Stopped;
            break;
        }
        if intended_ns - last_ns >= traffic.patience_ns() {
            books.ended = RunEnd::Silent;
            break;
        }
        if intended_ns >= end_ns {
            break;
        }
        let sent_ns = send_probe(transport, &mut packet, sequence, clock)
            .map_err(NetError::context("sending"))?;
        books.sent(intended_ns, sent_ns);
        let give_up_ns = intended_ns + nanoseconds(PING_PONG_WAIT);
        loop {
            let received = match transport.receive(&mut buffer) {
                Err(error) if is_about_another_packet(&error) => {
                    // The other end is closed, so its refusal arrives at once. After a lost packet, the
                    // sender waits `PING_PONG_WAIT` before it sends the next packet. This pause makes the
                    // wait after a refusal equally long.
                    thread::sleep(PING_PONG_WAIT);
                    None
                }
                received => received.map_err(NetError::context("receiving"))?,
            };
            let at_ns = clock.now_ns();
            let echo =
                received.and_then(|received| books.heard.note(&buffer[..received.len], run, at_ns));
            if echo.is_some() {
                last_ns = at_ns;
            }
            if echo == Some(sequence) || at_ns >= give_up_ns {
                break;
            }
        }
    }
    Ok(books)
}

/// Sends a probe and returns the send time in nanoseconds. The inner result is an error that may pass: the system has
/// no buffer or no route at present, or reports that an earlier packet was refused. The outer result is any other
/// error.
fn send_probe(
    transport: &mut dyn Transport,
    packet: &mut [u8],
    sequence: u64,
    clock: &Clock,
) -> io::Result<io::Result<i64>> {
    Header::number(packet, sequence);
    let sent_ns = clock.now_ns();
    match transport.send(packet, None) {
        Ok(()) => Ok(Ok(sent_ns)),
        Err(error) if is_about_another_packet(&error) || is_full(&error) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// Returns true if the system has no buffer for a packet at present.
fn is_full(error: &io::Error) -> bool {
    const ENOBUFS: i32 = if cfg!(target_os = "linux") { 105 } else { 55 };
    const WSAENOBUFS: i32 = 10_055;
    let code = if cfg!(windows) { WSAENOBUFS } else { ENOBUFS };
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(code)
}

/// Returns the mean cost of a sample in nanoseconds. The cost consists of numbering a packet, reading the
/// clock and recording an echo.
pub(super) fn cost_of_a_sample(clock: &Clock) -> f64 {
    const SAMPLES: u64 = 2_000;
    let run = RunId([0; 16]);
    let mut packet = packet_of(HEADER_LEN, Kind::Echo, run);
    let mut heard = ReceivedEchoes::default();
    heard.arrivals.reserve(SAMPLES as usize);
    let start_ns = clock.now_ns();
    for sequence in 0..SAMPLES {
        Header::number(&mut packet, sequence);
        let sent_ns = clock.now_ns();
        heard.note(&packet, run, clock.now_ns().max(sent_ns));
    }
    (clock.now_ns() - start_ns) as f64 / SAMPLES as f64
}

fn packet_of(size: usize, kind: Kind, run: RunId) -> Vec<u8> {
    let mut packet = vec![0; size];
    Header {
        kind,
        run,
        sequence: 0,
        seen_class: None,
    }
    .write(&mut packet);
    packet
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
