//! A session with hostile members in simulated time. Its script is a sequence of bytes. A fuzzer and a random
//! generator can therefore both write it.
//!
//! An honest source sends to an honest receiver. Members forge packets of up to 12 sources with any fields,
//! options, addresses and bytes. Sources fall silent at any time. Each step checks the limits that the
//! documentation states.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use pgm::{
    BackOffTuning, CongestionConfig, Destination, Event, Order, ParityConfig, Rate, Receiver,
    ReceiverConfig, Source, SourceConfig, Time, WindowLimit,
    fec::Code,
    wire::{
        Ack, BackOffInterval, Body, CongestionData, CongestionFeedback, CongestionReport, Data,
        Dialect, Fragment, Gsi, Nak, NakList, Options, Packet, ParityParameters, Poll, Polr, Reset,
        Spm, Sqn, Tsi, checksum,
    },
};

use crate::memory;

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 0, 1));
const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
/// Address that forged packets name as the destination for requests. It never sends a packet.
const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 255));
/// Number of sources. Source 0 is honest.
const SOURCES: usize = 13;
/// First data packet of the honest source. Most forged numbers are near this number.
const FIRST: Sqn = Sqn(0xffff_ffc0);
const SECOND: u64 = 1_000_000_000;
const ZEROS: [u8; 4_096] = [0; 4_096];

/// Maximum heap memory of a session in bytes. The receiver keeps 8 sources. For each source, it keeps up to
/// twice the limit of 64 KiB, one packet, and 64 slots. The source keeps 64 KiB, and up to 1,024
/// confirmations of 63 numbers.
pub(crate) const MEMORY: usize =
    8 * (2 * 65_536 + 4_096 + 64 * 512) + 2 * 65_536 + 1_024 * 63 * 4 + 65_536;

fn address(source: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, 1, source as u8))
}

fn tsi(source: usize) -> Tsi {
    Tsi {
        gsi: Gsi([1, 2, 3, 4, 5, 6]),
        port: 40_000 + source as u16,
    }
}

/// Reader of the script. After the end of the script, all values are 0.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Returns a number that is mostly near the honest source's first packet.
    fn sqn(&mut self) -> Sqn {
        match self.byte() {
            255 => Sqn(self.word()),
            near @ 240.. => FIRST.plus(u32::from(near) << 8),
            near => FIRST.plus(u32::from(near)),
        }
    }

    fn address(&mut self) -> IpAddr {
        match self.below(4) {
            0 => VICTIM,
            1 => Ipv4Addr::UNSPECIFIED.into(),
            2 => RECEIVER,
            _ => address(self.below(SOURCES)),
        }
    }

    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// Traffic between the receiver and one source.
#[derive(Default)]
struct Account {
    received: usize,
    sent: usize,
    /// Number of bytes sent since the last packet from the source.
    sent_in_silence: usize,
    /// Addresses to which packets for the source may be sent.
    addresses: BTreeSet<IpAddr>,
}

struct Session {
    receiver: Receiver,
    config: ReceiverConfig,
    source: Source,
    source_config: SourceConfig,
    now: Time,
    accounts: BTreeMap<Tsi, Account>,
    /// Number of packets that the receiver has sent beyond its rate.
    burst: f64,
    burst_at: Time,
    /// Number of messages that the honest source accepted.
    messages: u32,
    /// Number of the next message that the receiver must deliver.
    next_message: u32,
    /// True if packets from the honest source to its receivers were forged or lost.
    is_disturbed: bool,
    /// True while packets are lost.
    loses: bool,
    naks: u64,
    numbers: u64,
    upstream_bytes: usize,
    confirmation_bytes: usize,
    limited_bytes: usize,
    repairs: u64,
    spms: u64,
}

/// Runs the session and returns the maximum of its heap memory in bytes. Panics if a limit is exceeded.
pub(crate) fn run(script: &[u8]) -> usize {
    // The tables of the codes are computed on first use and then kept. This loop computes them before the
    // measurement of memory begins.
    for power in 1..=7 {
        assert!(Code::for_group_size(1 << power).is_some());
    }
    let before = memory::start();
    play(Script(script));
    let peak = memory::peak() - before;
    assert!(peak <= MEMORY, "{peak} bytes of memory");
    assert!(memory::now() <= before, "memory remains");
    peak
}

fn play(mut script: Script<'_>) {
    let mut session = Session::begin(&mut script);
    while !script.0.is_empty() {
        session.step(&mut script);
    }
    session.source.close();
    // The honest source ends, and all other sources are silent, until the receiver has given up all sources.
    session.pass(200 * SECOND);
    assert_eq!(session.receiver.sources().count(), 0, "sources remain");
    assert!(
        session.source.is_finished(session.now),
        "the source does not end"
    );
    if !session.is_disturbed {
        let dropped = session.source.statistics().dropped;
        assert!(
            session.next_message == session.messages || dropped > 0,
            "messages are missing"
        );
    }
}

impl Session {
    fn begin(script: &mut Script<'_>) -> Session {
        let config = ReceiverConfig {
            late_join: script.flag(),
            order: if script.below(4) == 0 {
                Order::AsReceived
            } else {
                Order::AsSent
            },
            trusts_path: script.below(8) == 0,
            passive: script.below(16) == 0,
            window: 64,
            bytes: 1 << 16,
            sources: 8,
            request_bytes: 4 << 10,
            packets_per_second: 2_000,
            ..ReceiverConfig::new(RECEIVER, GROUP)
        };
        let kind = script.below(4);
        let source_config = SourceConfig {
            first: FIRST,
            window: WindowLimit {
                packets: 64,
                bytes: Some(1 << 16),
                age: script.flag().then_some(Duration::from_secs(3)),
            },
            late_join: script.flag(),
            loss_reports: script.flag(),
            rate: Some(Rate {
                bytes_per_second: 1_000_000,
                burst: 20_000,
            }),
            parity: (kind == 1).then_some(ParityConfig {
                group_size: 4,
                proactive: 1,
                on_demand: true,
                shorten_groups: true,
            }),
            congestion: (kind == 2).then(CongestionConfig::default),
            back_off: (kind == 3).then_some(BackOffTuning {
                min: Duration::from_micros(100),
                max: Duration::from_millis(50),
                probes: 3,
            }),
            ..SourceConfig::new(tsi(0), address(0), GROUP)
        };
        let mut session = Session {
            receiver: Receiver::new(config).expect("a valid configuration"),
            config,
            source: Source::new(source_config, Time(0)).expect("a valid configuration"),
            source_config,
            now: Time(0),
            accounts: BTreeMap::new(),
            burst: 0.0,
            burst_at: Time(0),
            messages: 0,
            next_message: 0,
            is_disturbed: false,
            loses: false,
            naks: 0,
            numbers: 0,
            upstream_bytes: 0,
            confirmation_bytes: 0,
            limited_bytes: 0,
            repairs: 0,
            spms: 0,
        };
        // The receiver gets to know the honest source before the other sources.
        session.pass(0);
        session
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => {
                const WAITS: [u64; 5] = [
                    SECOND / 10_000,
                    SECOND / 100,
                    SECOND / 2,
                    5 * SECOND,
                    40 * SECOND,
                ];
                self.pass(WAITS[script.below(WAITS.len())]);
            }
            1 | 2 => {
                let mut message = self.messages.to_be_bytes().to_vec();
                message.resize(4 + 16 * usize::from(script.byte()), 0);
                self.messages += u32::from(self.source.send(&message).is_ok());
            }
            3 => {
                self.loses = script.below(4) == 0;
                self.is_disturbed |= self.loses;
            }
            // A member sends many packets with gaps, so that windows fill up.
            4 => {
                let source = 1 + script.below(SOURCES - 1);
                let (first, step) = (script.sqn(), 1 + script.below(3) as u32);
                let payload = &ZEROS[..16 * usize::from(script.byte())];
                for at in 0..u32::from(script.byte()) / 2 {
                    let packet = Packet {
                        source_port: tsi(source).port,
                        destination_port: 7500,
                        gsi: tsi(source).gsi,
                        parity: false,
                        variable_length: false,
                        body: Body::Odata(Data {
                            sqn: first.plus(at * step),
                            trail: first,
                        }),
                        options: Options::default(),
                        payload,
                    };
                    let mut bytes = Vec::new();
                    packet.write(Dialect::Rfc3208, &mut bytes);
                    self.forged(address(source), &bytes);
                }
            }
            5 => {
                let length = script.below(256);
                let mut bytes = script.bytes(length).to_vec();
                if bytes.len() >= Packet::HEADER {
                    bytes[6..8].fill(0);
                    let sum = checksum(&bytes);
                    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
                }
                let from = address(script.below(SOURCES));
                self.forged(from, &bytes);
            }
            _ => {
                let mut bytes = Vec::new();
                forge(script, &mut bytes);
                let from = script.address();
                // In a real network, no packet comes from these addresses.
                let is_possible = from != VICTIM && !from.is_unspecified();
                self.forged(if is_possible { from } else { address(1) }, &bytes);
            }
        }
        self.pass(0);
    }

    /// Delivers a forged packet to all members.
    fn forged(&mut self, from: IpAddr, bytes: &[u8]) {
        if let Ok(packet) = Packet::parse(bytes, Dialect::Rfc3208) {
            self.is_disturbed |= packet.tsi() == tsi(0) && !packet.body.is_upstream();
            self.send_to_source(bytes, &packet);
            self.send_to_receiver(from, bytes, &packet);
        }
    }

    fn send_to_source(&mut self, bytes: &[u8], packet: &Packet<'_>) {
        self.upstream_bytes += bytes.len();
        if let Body::Nak(_) = packet.body {
            self.naks += 1;
            self.numbers += 1 + packet
                .options
                .nak_list
                .map_or(0, |list| list.iter().count() as u64);
        }
        self.source.handle(self.now, packet);
    }

    fn send_to_receiver(&mut self, from: IpAddr, bytes: &[u8], packet: &Packet<'_>) {
        if !packet.body.is_upstream() {
            let account = self.accounts.entry(packet.tsi()).or_default();
            account.received += bytes.len();
            account.sent_in_silence = 0;
            account.addresses.insert(from);
            if self.config.trusts_path
                && let Body::Spm(Spm { path, .. }) | Body::Poll(Poll { path, .. }) = packet.body
            {
                account.addresses.insert(path);
            }
        }
        self.receiver.handle(self.now, from, packet);
    }

    /// Advances the time. During this time, the source and the receiver do all their due work.
    fn pass(&mut self, nanoseconds: u64) {
        let end = Time(self.now.0 + nanoseconds);
        let mut rounds_in_vain = 0;
        for round in 0.. {
            assert!(round < 200_000, "the ends do not come to rest");
            let did = self.work();
            rounds_in_vain = if did { 0 } else { rounds_in_vain + 1 };
            let source = self
                .source
                .timeout()
                .filter(|_| !self.source.is_finished(self.now));
            let next = source.into_iter().chain(self.receiver.timeout()).min();
            match next {
                Some(next) if next <= self.now => {
                    assert!(rounds_in_vain < 3, "an end is due but does nothing")
                }
                Some(next) if next <= end => self.now = next,
                _ => break,
            }
        }
        self.now = end;
    }

    /// Does all work that is due now. Returns true if there was any work.
    fn work(&mut self) -> bool {
        let mut did = false;
        let mut out = Vec::new();
        while self.source.poll_transmit(self.now, &mut out).is_some() {
            did = true;
            self.take_from_source(&out);
            out.clear();
        }
        while let Some(transmit) = self.receiver.poll_transmit(self.now, &mut out) {
            did = true;
            self.take_from_receiver(transmit.to, &out);
            out.clear();
        }
        while let Some(event) = self.receiver.poll_event(self.now) {
            did = true;
            self.event(&event);
        }
        assert!(
            self.receiver.sources().count() <= self.config.sources,
            "too many sources"
        );
        did
    }

    fn take_from_source(&mut self, bytes: &[u8]) {
        let packet = Packet::parse(bytes, Dialect::Rfc3208).expect("a source sends valid packets");
        assert!(
            bytes.len() <= self.source_config.max_packet,
            "a packet of {} bytes",
            bytes.len()
        );
        match packet.body {
            Body::Ncf(_) => self.confirmation_bytes += bytes.len(),
            body => {
                self.limited_bytes += bytes.len();
                self.repairs += u64::from(matches!(body, Body::Rdata(_)));
                self.spms += u64::from(matches!(body, Body::Spm(_)));
            }
        }
        let statistics = self.source.statistics();
        assert!(
            statistics.ncfs <= self.naks,
            "{} confirmations of {} requests",
            statistics.ncfs,
            self.naks
        );
        assert!(
            self.confirmation_bytes <= 2 * self.upstream_bytes,
            "confirmations are long"
        );
        let group_size = self
            .source_config
            .parity
            .map_or(1, |parity| parity.group_size);
        assert!(
            self.repairs <= self.numbers * u64::from(group_size),
            "{} repairs of {}",
            self.repairs,
            self.numbers
        );
        let elapsed = self.now.0;
        assert!(
            self.spms <= 3 + elapsed / 2_500_000,
            "{} SPMs in {elapsed} ns",
            self.spms
        );
        if let Some(rate) = self.source_config.rate {
            // The last packet may exceed the limit. SPMs are sent regardless of the limit.
            let limit = rate.burst
                + (u128::from(rate.bytes_per_second) * u128::from(elapsed) / u128::from(SECOND))
                    as usize
                + self.source_config.max_packet
                + 100 * self.spms as usize;
            assert!(
                self.limited_bytes <= limit,
                "{} bytes in {elapsed} ns",
                self.limited_bytes
            );
        }
        if !self.loses || bytes[7] & 3 != 0 {
            self.send_to_receiver(address(0), bytes, &packet);
        }
    }

    fn take_from_receiver(&mut self, to: Destination, bytes: &[u8]) {
        let packet =
            Packet::parse(bytes, Dialect::Rfc3208).expect("a receiver sends valid packets");
        assert!(!self.config.passive, "a passive receiver sends");
        assert!(bytes.len() <= 400, "a request of {} bytes", bytes.len());
        let account = self
            .accounts
            .get_mut(&packet.tsi())
            .expect("a source that was heard");
        account.sent += bytes.len();
        account.sent_in_silence += bytes.len();
        assert!(
            account.sent <= 2 * account.received,
            "{} bytes for {}",
            account.sent,
            account.received
        );
        assert!(
            account.sent_in_silence <= self.config.request_bytes,
            "too much to a silent source"
        );
        if let Destination::Unicast(to) = to {
            assert!(account.addresses.contains(&to), "a packet to {to}");
        }
        let rate = f64::from(self.config.packets_per_second);
        let passed = self
            .now
            .since(std::mem::replace(&mut self.burst_at, self.now));
        self.burst = (self.burst - passed.as_secs_f64() * rate).max(0.0) + 1.0;
        assert!(
            self.burst <= 0.05 * rate + 2.0,
            "{} packets at once",
            self.burst
        );
        if packet.tsi() == tsi(0) {
            self.send_to_source(bytes, &packet);
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Message {
                source, payload, ..
            } if *source == tsi(0) && !self.is_disturbed => {
                let number = payload
                    .first_chunk()
                    .map(|bytes| u32::from_be_bytes(*bytes));
                assert_eq!(number, Some(self.next_message), "messages are out of order");
                self.next_message += 1;
            }
            Event::Lost { source, .. } if *source == tsi(0) => {
                assert!(self.is_disturbed, "messages are lost without loss");
            }
            _ => {}
        }
    }
}

/// Returns a sequence number and the fields of a packet that is about it, both from the script.
fn body(script: &mut Script<'_>) -> (Sqn, Body) {
    let data = Data {
        sqn: script.sqn(),
        trail: script.sqn(),
    };
    let kind = script.below(10);
    let nak = Nak {
        sqn: data.sqn,
        source: if script.flag() {
            address(0)
        } else {
            script.address()
        },
        group: GROUP,
    };
    let body = match kind {
        0 => Body::Spm(Spm {
            sqn: Sqn(u32::from(script.byte())),
            trail: data.trail,
            lead: data.sqn,
            path: script.address(),
        }),
        1 => Body::Poll(Poll {
            sqn: data.sqn,
            round: 0,
            sub_type: 0,
            path: script.address(),
            back_off: u32::from(script.byte()) << script.below(24),
            random: 0,
            mask: 0,
        }),
        2 => Body::Polr(Polr {
            sqn: data.sqn,
            round: 0,
        }),
        3 => Body::Rdata(data),
        4 => Body::Nak(nak),
        5 => Body::Ncf(nak),
        6 => Body::Spmr,
        7 => Body::Ack(Ack {
            highest: data.sqn,
            bitmap: script.word(),
        }),
        _ => Body::Odata(data),
    };
    (data.sqn, body)
}

/// Writes a packet whose fields and options come from the script.
fn forge(script: &mut Script<'_>, out: &mut Vec<u8>) {
    let (sqn, body) = body(script);
    let is_upstream = body.is_upstream();
    let numbers: Vec<Sqn> = (0..script.below(4) * 20)
        .map(|at| sqn.plus(at as u32 * 2))
        .collect();
    let mut room = [0; 4 * NakList::MAX];
    let choices = script.word();
    let mut bit = 0;
    let mut is_chosen = || {
        bit += 2;
        choices >> (bit - 2) & 3 == 0
    };
    let session = tsi(script.below(SOURCES));
    let options = Options {
        fragment: is_chosen().then(|| Fragment {
            first: script.sqn(),
            offset: u32::from(script.byte()),
            length: u32::from(script.byte()) << script.below(20),
        }),
        encoded_fragment: is_chosen().then_some([7; 13]),
        nak_list: (matches!(body, Body::Nak(_) | Body::Ncf(_)) && !numbers.is_empty())
            .then(|| NakList::new(&numbers, &mut room)),
        join: is_chosen().then(|| script.sqn()),
        back_off_interval: is_chosen().then(|| BackOffInterval {
            interval: u32::from(script.byte()) << script.below(25),
            poll: Sqn(0),
        }),
        parity: is_chosen().then(|| ParityParameters {
            proactive: script.flag(),
            on_demand: script.flag(),
            group_size: 2 << script.below(7),
        }),
        parity_group: is_chosen().then(|| u32::from(script.byte())),
        current_group_size: is_chosen().then(|| u32::from(script.byte())),
        fin: is_chosen() && script.below(4) == 0,
        reset: (is_chosen() && script.below(4) == 0).then(|| Reset {
            no_repairs: script.flag(),
            code: 3,
        }),
        congestion_report: is_chosen().then(|| CongestionReport {
            kinds: script.byte() & 7,
            reference: sqn,
            worst_link: 0,
            worst_path: 0,
            worst_receiver: u16::from(script.byte()) << 8,
            receiver: script.address(),
        }),
        congestion_request: is_chosen().then(|| script.byte()),
        congestion_data: is_chosen().then(|| CongestionData {
            timestamp: script.word(),
            acker: script.address(),
        }),
        congestion_feedback: is_chosen().then(|| CongestionFeedback {
            timestamp: script.word(),
            loss: u16::from(script.byte()) << 8,
            receiver: script.address(),
        }),
        ..Options::default()
    };
    let packet = Packet {
        source_port: if is_upstream { 7500 } else { session.port },
        destination_port: if is_upstream { session.port } else { 7500 },
        gsi: session.gsi,
        parity: is_chosen(),
        variable_length: choices & 1 != 0,
        body,
        options,
        payload: if body.is_data() {
            &ZEROS[..16 * usize::from(script.byte())]
        } else {
            b""
        },
    };
    packet.write(Dialect::Rfc3208, out);
}
