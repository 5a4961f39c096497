//! State that a receiver keeps for each source.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;

use super::{
    Event, ReceiverConfig, ReceiverStatistics,
    credit::Credit,
    groups::ParityPacket,
    naks::PeerMessage,
    window::{Delivery, Origin, ReceiveWindow, StoredPacket},
};
use crate::{
    Destination, Time,
    congestion::{Acknowledger, Losses},
    fec::Parity,
    time::earlier,
    wire::{
        Body, CongestionReport, Data, Nak, NakList, Options, Packet, ParityParameters, Poll, Polr,
        Reset, Spm, Sqn, Tsi,
    },
};

/// State that a receiver keeps for each source.
#[derive(Debug)]
pub(super) struct Peer {
    config: ReceiverConfig,
    tsi: Tsi,
    /// Address from which the packets of the source come.
    address: IpAddr,
    /// Address to which requests are sent; `None` before the first SPM.
    path: Option<IpAddr>,
    spm_sqn: Option<Sqn>,
    parity: Option<ParityParameters>,
    window: Option<ReceiveWindow>,
    known_since: Time,
    heard_at: Time,
    credit: Credit,
    introduction: Introduction,
    /// Pending answer to a poll, and the time at which to send it.
    answer: Option<(Time, Poll)>,
    acknowledger: Option<Acknowledger>,
    /// Loss rate of this receiver, while the source requests loss reports.
    losses: Option<Losses>,
    /// Last packet of the session, if the source has ended it.
    last: Option<Sqn>,
    reset: Option<Reset>,
    is_reset_reported: bool,
    is_finish_reported: bool,
    is_expired: bool,
    /// Sequence number of the last outdated SPM, and the number of outdated SPMs that arrived in ascending
    /// order. An SPM is outdated if it is older than the newest SPM.
    old_spms: (Sqn, u32),
    rng: fastrand::Rng,
    statistics: ReceiverStatistics,
}

/// State of the request for an SPM from a source that has not sent one yet (RFC 3208 appendix C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Introduction {
    /// An SPM was received, or no SPM is needed.
    NotNeeded,
    /// A request is due at this time. If another receiver sends a request before this time, this receiver
    /// postpones its request. If the source sends an SPM before this time, no request is needed.
    AskAt(Time),
    /// The request was sent to the group, so that other receivers do not repeat it. The next request goes to
    /// the source.
    AskSource,
}

impl Peer {
    pub(super) fn new(
        config: ReceiverConfig,
        tsi: Tsi,
        address: IpAddr,
        now: Time,
        seed: u64,
    ) -> Self {
        Self {
            config,
            tsi,
            address,
            path: None,
            spm_sqn: None,
            parity: None,
            window: None,
            known_since: now,
            heard_at: now,
            credit: Credit::new(config.request_bytes),
            introduction: Introduction::NotNeeded,
            answer: None,
            acknowledger: None,
            losses: None,
            last: None,
            reset: None,
            is_reset_reported: false,
            is_finish_reported: false,
            is_expired: false,
            old_spms: (Sqn(0), 0),
            rng: fastrand::Rng::with_seed(seed),
            statistics: ReceiverStatistics::default(),
        }
    }

    pub(super) fn statistics(&self) -> ReceiverStatistics {
        let window = self.window.as_ref();
        ReceiverStatistics {
            spms: self.statistics.spms,
            ncfs: self.statistics.ncfs,
            naks: self.statistics.naks,
            numbers_requested: self.statistics.numbers_requested,
            foreign_paths: self.statistics.foreign_paths,
            withheld: self.statistics.withheld,
            naks_heard: self.statistics.naks_heard,
            ..window.map_or(self.statistics, |window| window.statistics)
        }
    }

    /// Handles a packet that this source sent.
    pub(super) fn handle(
        &mut self,
        now: Time,
        from: IpAddr,
        packet: &Packet<'_>,
        room: Option<&Bytes>,
    ) {
        if self.has_restarted() {
            return;
        }
        self.heard_at = now;
        self.is_expired = false;
        self.credit.earn(packet);
        match packet.body {
            Body::Spm(spm) => self.handle_spm(now, from, spm, &packet.options),
            Body::Odata(data) if self.handle_next(from, data, packet, room) => {}
            Body::Odata(data) => self.handle_data(now, from, data, packet, Origin::Original),
            Body::Rdata(data) => self.handle_data(now, from, data, packet, Origin::Repair),
            Body::Ncf(nak) => {
                self.statistics.ncfs += 1;
                self.apply_back_off(&packet.options);
                self.handle_nak(now, nak, packet, PeerMessage::Confirmation);
            }
            Body::Poll(poll) => self.handle_poll(now, from, poll),
            _ => {}
        }
    }

    /// Handles a packet that another receiver sent to this source.
    pub(super) fn handle_from_receiver(&mut self, now: Time, packet: &Packet<'_>) {
        match packet.body {
            Body::Nak(nak) => {
                self.statistics.naks_heard += 1;
                self.handle_nak(now, nak, packet, PeerMessage::Request);
            }
            Body::Spmr if matches!(self.introduction, Introduction::AskAt(_)) => {
                self.introduction = Introduction::AskAt(now.plus(self.config.spm_repeat));
            }
            _ => {}
        }
    }

    fn handle_spm(&mut self, now: Time, from: IpAddr, spm: Spm, options: &Options<'_>) {
        if self.spm_sqn.is_some_and(|last| !last.is_before(spm.sqn)) {
            self.old_spm(spm.sqn);
            return;
        }
        self.old_spms.1 = 0;
        self.statistics.spms += 1;
        self.spm_sqn = Some(spm.sqn);
        self.address = from;
        self.statistics.foreign_paths += u64::from(spm.path != from);
        self.path = Some(self.path_to(from, spm.path));
        self.introduction = Introduction::NotNeeded;
        self.parity = options.parity.or(self.parity);
        self.apply_back_off(options);
        self.reset = options.reset.or(self.reset);
        self.losses = options
            .congestion_request
            .filter(|kinds| kinds & CongestionReport::RECEIVER != 0)
            .map(|_| self.losses.unwrap_or(Losses::starting_after(spm.lead)));
        self.note_unused_numbers(spm.lead, self.short_group(options));
        let has_window = (spm.trail, spm.lead) != (Sqn(0), Sqn(0x8000_0000));
        if has_window && spm.lead.plus(1).since(spm.trail) <= Sqn::MAX_SPAN {
            self.update_window(now, spm, options);
        }
        if self.reset.is_some_and(|reset| reset.no_repairs)
            && let Some(window) = &mut self.window
        {
            window.give_up();
        }
    }

    /// Returns the address for packets to the source: the address `named` in the packet if this address may be trusted,
    /// and otherwise the address `from` which the packet came.
    fn path_to(&self, from: IpAddr, named: IpAddr) -> IpAddr {
        let is_host = !named.is_multicast() && !named.is_unspecified();
        if self.config.trusts_path && is_host {
            named
        } else {
            from
        }
    }

    /// Records an SPM with an old sequence number. The network may have delayed a single old SPM.
    /// Several old SPMs in ascending order mean that the source crashed and restarted with the same
    /// session identifier.
    fn old_spm(&mut self, sqn: Sqn) {
        let (last, count) = self.old_spms;
        if self.spm_sqn != Some(sqn) && (count == 0 || last.is_before(sqn)) {
            self.old_spms = (sqn, count + 1);
        }
        if self.has_restarted() {
            self.forget();
        }
    }

    fn has_restarted(&self) -> bool {
        const CERTAIN: u32 = 3;
        self.old_spms.1 >= CERTAIN
    }

    fn update_window(&mut self, now: Time, spm: Spm, options: &Options<'_>) {
        if options.fin {
            self.last = Some(spm.lead);
        }
        let short = self.short_group(options);
        let window = match &mut self.window {
            Some(window) => window,
            None => self.open_window(now, spm.lead.plus(1), spm.trail, options),
        };
        if let Some(parity) = options.parity {
            window.set_parity(now, parity);
        }
        let is_idle = window.lead == spm.lead;
        window.advance_trail(spm.trail);
        window.advance_lead(now, spm.lead);
        if let Some((packets, size)) = short {
            window.shorten(now, spm.lead, packets, size);
        }
        if is_idle {
            window.on_idle_source(now);
        }
    }

    /// Opens the receive window. The window starts at `first`, or earlier if late joining is
    /// possible.
    fn open_window(
        &mut self,
        now: Time,
        first: Sqn,
        trail: Sqn,
        options: &Options<'_>,
    ) -> &mut ReceiveWindow {
        let earliest = options.join.filter(|_| self.config.late_join).map(|join| {
            let join = if join.is_before(trail) { trail } else { join };
            // Packets that the window cannot hold are not requested.
            let most = first.minus(self.config.window - 1);
            if join.is_before(most) { most } else { join }
        });
        let begin = earliest
            .filter(|earliest| earliest.is_before(first))
            .unwrap_or(first);
        let mut window = ReceiveWindow::new(self.config, begin, self.rng.u64(..));
        if let Some(parity) = self.parity {
            window.set_parity(now, parity);
        }
        self.window.insert(window)
    }

    /// Returns the number of packets in the group and the normal group size, if the packet's group
    /// is shortened.
    fn short_group(&self, options: &Options<'_>) -> Option<(u32, u32)> {
        Some((options.current_group_size?, self.parity?.group_size))
    }

    /// Records the unused numbers of a shortened group, because they must not count as lost.
    fn note_unused_numbers(&mut self, sqn: Sqn, short: Option<(u32, u32)>) {
        if let (Some(losses), Some((packets, size))) = (&mut self.losses, short)
            && (1..size).contains(&packets)
        {
            let group = sqn.group(size);
            losses.shorten_group(group.plus(packets - 1), group.plus(size - 1));
        }
    }

    /// Handles the usual case quickly: the next packet in order from a known source. If the packet
    /// is not of this kind, does nothing and returns false.
    fn handle_next(
        &mut self,
        from: IpAddr,
        data: Data,
        packet: &Packet<'_>,
        room: Option<&Bytes>,
    ) -> bool {
        let Some(window) = &mut self.window else {
            return false;
        };
        let options = &packet.options;
        let is_alone = options.fragment.is_none()
            && !options.fin
            && options.congestion_data.is_none()
            && options.current_group_size.is_none();
        let is_usual = is_alone
            && !packet.parity
            && data.sqn.since(data.trail) < Sqn::MAX_SPAN
            && !self.is_finish_reported
            && self.spm_sqn.is_some()
            && self.losses.is_none()
            && window.is_next(data.sqn);
        if is_usual {
            self.address = from;
            window.advance_trail(data.trail);
            // This message is delivered next, so it can stay in the shared memory of the receive buffer. A
            // packet that waits for other packets is copied. Otherwise, a few short packets could keep large
            // buffers in memory.
            window.append(match room {
                Some(room) => room.slice_ref(packet.payload),
                None => Bytes::copy_from_slice(packet.payload),
            });
        }
        is_usual
    }

    fn handle_data(
        &mut self,
        now: Time,
        from: IpAddr,
        data: Data,
        packet: &Packet<'_>,
        origin: Origin,
    ) {
        let Data { sqn, trail } = data;
        if sqn.since(trail) >= Sqn::MAX_SPAN || self.is_finish_reported {
            return;
        }
        self.address = from;
        if self.spm_sqn.is_none() && self.introduction == Introduction::NotNeeded {
            let wait = self.config.spm_back_off.mul_f64(self.rng.f64());
            self.introduction = Introduction::AskAt(now.plus(wait));
        }
        let options = &packet.options;
        if options.fin {
            self.last = Some(sqn);
        }
        let may_acknowledge = !packet.parity && !self.config.passive;
        if let Some(option) = options.congestion_data.filter(|_| may_acknowledge) {
            self.acknowledger
                .get_or_insert_with(|| Acknowledger::new(self.config.address, sqn))
                .on_data(now, sqn, option, self.config.ack_back_off, &mut self.rng);
        }
        if let Some(losses) = self.losses.as_mut().filter(|_| !packet.parity) {
            losses.received(sqn);
        }
        let short = self.short_group(options);
        self.note_unused_numbers(sqn, short);
        let window = match &mut self.window {
            Some(window) => window,
            // A parity packet does not show where the window must start.
            None if packet.parity => return,
            // The requested SPM will show where the window must start.
            None if self.config.late_join && options.join.is_none() => return,
            None => self.open_window(now, sqn, trail, options),
        };
        window.advance_trail(trail);
        if let Some((packets, size)) = short {
            window.shorten(now, sqn, packets, size);
        }
        if packet.parity {
            window.insert_parity(
                now,
                ParityPacket {
                    sqn,
                    times: options.parity_group.unwrap_or(0),
                    parity: Parity {
                        payload: packet.payload.to_vec(),
                        variable_length: packet.variable_length,
                        encoded_fragment: options.encoded_fragment,
                    },
                    origin,
                },
            );
        } else {
            let piece = StoredPacket {
                payload: Bytes::copy_from_slice(packet.payload),
                fragment: options.fragment,
            };
            window.insert(now, sqn, piece, origin);
            window.on_data(now, sqn);
        }
    }

    fn handle_nak(&mut self, now: Time, nak: Nak, packet: &Packet<'_>, heard: PeerMessage) {
        let Some(window) = &mut self.window else {
            return;
        };
        if nak.group != self.config.group {
            return;
        }
        let list = packet.options.nak_list.into_iter();
        for sqn in std::iter::once(nak.sqn).chain(list.flat_map(|list| list.iter())) {
            window.heard(now, sqn, packet.parity, heard);
        }
    }

    fn apply_back_off(&mut self, options: &Options<'_>) {
        // The option can name a later poll at which the interval takes effect. The code ignores this poll and
        // uses the interval at once, because only a source that repeats its measurements would name a poll.
        if let Some(told) = options.back_off_interval
            && let Some(window) = &mut self.window
        {
            window.back_off = Duration::from_micros(u64::from(told.interval));
        }
    }

    fn handle_poll(&mut self, now: Time, from: IpAddr, poll: Poll) {
        const GENERAL: u16 = 0;
        // The identity in polls may be any number, but it must differ between receivers.
        let identity = self.config.seed as u32 ^ (self.config.seed >> 32) as u32;
        self.answer = None;
        let is_asked = identity & poll.mask == poll.random & poll.mask;
        if is_asked && poll.round == 0 && poll.sub_type == GENERAL && !self.config.passive {
            let longest = Duration::from_micros(u64::from(poll.back_off));
            let path = self.path_to(from, poll.path);
            let answer = Poll { path, ..poll };
            self.answer = Some((now.plus(longest.mul_f64(self.rng.f64())), answer));
        }
    }

    /// Gives up the source if it was silent for too long. If no SPM has reported the address for
    /// requests in time, gives up the missing packets.
    pub(super) fn expire(&mut self, now: Time) {
        if !self.is_expired && self.expiry() <= now {
            self.forget();
        }
        if self.introduction_ends().is_some_and(|end| end <= now)
            && let Some(window) = &mut self.window
        {
            window.give_up();
        }
    }

    /// Returns the time at which missing packets are given up because no SPM has reported the
    /// address for requests.
    fn introduction_ends(&self) -> Option<Time> {
        let is_waiting = self.path.is_none()
            && !self.config.passive
            && self.window.as_ref().is_some_and(|w| w.missing > 0);
        is_waiting.then(|| self.known_since.plus(self.config.expiry))
    }

    /// Marks the source as gone. The source is removed after its events were returned.
    fn forget(&mut self) {
        self.is_expired = true;
        if let Some(window) = &mut self.window {
            window.give_up();
        }
    }

    fn expiry(&self) -> Time {
        self.heard_at.plus(self.config.expiry)
    }

    pub(super) fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// Returns true if the end or reset of the session was reported.
    pub(super) fn has_ended(&self) -> bool {
        self.is_finish_reported || self.is_reset_reported
    }

    /// Returns the time of the next action for this source.
    pub(super) fn timeout(&self) -> Option<Time> {
        if self.is_expired {
            return None;
        }
        if self.credit.is_used_up() {
            return earlier(self.introduction_ends(), Some(self.expiry()));
        }
        let introduction = match self.introduction {
            Introduction::NotNeeded => None,
            Introduction::AskAt(_) if self.config.passive => None,
            Introduction::AskAt(time) => Some(time),
            Introduction::AskSource => Some(Time::default()),
        };
        let answer = self.answer.map(|(time, _)| time);
        let ack = self.acknowledger.as_ref().and_then(Acknowledger::due);
        let request = match self.path {
            Some(_) => self.window.as_ref().and_then(ReceiveWindow::next_request),
            None => self.introduction_ends(),
        };
        earlier(
            earlier(earlier(introduction, answer), earlier(ack, request)),
            Some(self.expiry()),
        )
    }

    /// Appends the next due packet for this source to `out`, if the credit is large enough.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Destination> {
        let start = out.len();
        let to = self
            .write_introduction(now, out)
            .or_else(|| self.write_answer(now, out))
            .or_else(|| self.write_ack(now, out))
            .or_else(|| self.write_nak(now, out))?;
        if self.credit.pay(out.len() - start) {
            return Some(to);
        }
        self.statistics.withheld += 1;
        out.truncate(start);
        None
    }

    fn write(&self, body: Body, parity: bool, options: Options<'_>, out: &mut Vec<u8>) {
        let packet = Packet {
            source_port: self.config.destination_port,
            destination_port: self.tsi.port,
            gsi: self.tsi.gsi,
            parity,
            variable_length: false,
            body,
            options,
            payload: b"",
        };
        packet.write(self.config.dialect, out);
    }

    fn write_introduction(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Destination> {
        let to = match self.introduction {
            Introduction::AskAt(time) if time <= now && !self.config.passive => {
                self.introduction = Introduction::AskSource;
                Destination::GroupOneHop
            }
            Introduction::AskSource => {
                self.introduction = Introduction::AskAt(now.plus(self.config.spm_repeat));
                Destination::Unicast(self.address)
            }
            _ => return None,
        };
        self.write(Body::Spmr, false, Options::default(), out);
        Some(to)
    }

    fn write_answer(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Destination> {
        let (_, poll) = self.answer.take_if(|(time, _)| *time <= now)?;
        let body = Body::Polr(Polr {
            sqn: poll.sqn,
            round: poll.round,
        });
        self.write(body, false, Options::default(), out);
        Some(Destination::Unicast(poll.path))
    }

    fn write_ack(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Destination> {
        let acknowledger = self.acknowledger.as_mut()?;
        let ack = acknowledger.acknowledge(now)?;
        let options = Options {
            congestion_feedback: Some(acknowledger.feedback(now)),
            ..Options::default()
        };
        self.write(Body::Ack(ack), false, options, out);
        Some(Destination::Unicast(self.path.unwrap_or(self.address)))
    }

    fn write_nak(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Destination> {
        let window = self.window.as_mut()?;
        let path = self.path?;
        let fixed = match self.config.group {
            IpAddr::V4(_) => Packet::HEADER + 20,
            IpAddr::V6(_) => Packet::HEADER + 44,
        };
        // Upper bound of the options in bytes: 8 for the headers of the options and of the NAK
        // list, and 64 for the two congestion options.
        let options = if self.acknowledger.is_some() || self.losses.is_some() {
            8 + 64
        } else {
            8
        };
        let most = 1 + self.credit.bytes().saturating_sub(fixed + options) / 4;
        let content = window.next_nak(now, most)?;
        let (first, rest) = content.numbers.split_first()?;
        let mut room = [0; 4 * NakList::MAX];
        let options = Options {
            nak_list: (!rest.is_empty()).then(|| NakList::new(rest, &mut room)),
            congestion_feedback: self.acknowledger.as_ref().map(|a| a.feedback(now)),
            congestion_report: self.losses.map(|losses| CongestionReport {
                kinds: CongestionReport::RECEIVER,
                reference: losses.highest(),
                worst_link: 0,
                worst_path: 0,
                worst_receiver: losses.loss(),
                receiver: self.config.address,
            }),
            ..Options::default()
        };
        let body = Body::Nak(Nak {
            sqn: *first,
            source: self.address,
            group: self.config.group,
        });
        self.statistics.naks += 1;
        self.statistics.numbers_requested += content.numbers.len() as u64;
        self.write(body, content.parity, options, out);
        Some(Destination::Unicast(path))
    }

    /// Returns the next event of this source.
    pub(super) fn next_event(&mut self, now: Time) -> Option<Event> {
        let source = self.tsi;
        if let Some(delivery) = self.window.as_mut().and_then(|w| w.next_delivery(now)) {
            return Some(match delivery {
                Delivery::Message { sqn, payload } => Event::Message {
                    source,
                    sqn,
                    payload,
                },
                Delivery::Lost { first, packets } => Event::Lost {
                    source,
                    first,
                    packets,
                },
            });
        }
        if let Some(reset) = self.reset
            && !std::mem::replace(&mut self.is_reset_reported, true)
        {
            return Some(Event::Reset { source, reset });
        }
        let next = self.window.as_ref().map(ReceiveWindow::next_sqn);
        let is_over = self
            .last
            .is_some_and(|last| next.is_none_or(|next| last.is_before(next)));
        if is_over && !std::mem::replace(&mut self.is_finish_reported, true) {
            return Some(Event::Finished { source });
        }
        None
    }
}
