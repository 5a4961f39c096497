//! One source, as a receiver knows it.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;

use super::{
    Event, ReceiverConfig, ReceiverStatistics,
    groups::ParityPacket,
    naks::Heard,
    window::{Delivery, How, Piece, ReceiveWindow},
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

/// One source.
#[derive(Debug)]
pub(super) struct Peer {
    config: ReceiverConfig,
    tsi: Tsi,
    /// Where its packets come from.
    address: IpAddr,
    /// Where requests go, once it has said so.
    path: Option<IpAddr>,
    spm_sqn: Option<Sqn>,
    parity: Option<ParityParameters>,
    window: Option<ReceiveWindow>,
    heard_at: Time,
    introduction: Introduction,
    /// The answer to a poll, and when it goes.
    answer: Option<(Time, Poll)>,
    acknowledger: Option<Acknowledger>,
    /// What is lost of it, while it wants to know.
    losses: Option<Losses>,
    /// The last packet of a session that has ended.
    last: Option<Sqn>,
    reset: Option<Reset>,
    is_reset_told: bool,
    is_finish_told: bool,
    is_expired: bool,
    /// The last of the SPMs that were old, each newer than the one before, and how many those are.
    old_spms: (Sqn, u32),
    rng: fastrand::Rng,
    statistics: ReceiverStatistics,
}

/// Asking a source that has not introduced itself to do so (RFC 3208 appendix C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Introduction {
    /// It has, or nothing of it is wanted.
    NotNeeded,
    /// Backs off, since another receiver may ask; or waits for an answer.
    AskAt(Time),
    /// Others were told; now the source itself is asked.
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
            heard_at: now,
            introduction: Introduction::NotNeeded,
            answer: None,
            acknowledger: None,
            losses: None,
            last: None,
            reset: None,
            is_reset_told: false,
            is_finish_told: false,
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
            naks_heard: self.statistics.naks_heard,
            ..window.map_or(self.statistics, |window| window.statistics)
        }
    }

    /// Handles a packet of this source.
    pub(super) fn handle(
        &mut self,
        now: Time,
        from: IpAddr,
        packet: &Packet<'_>,
        room: Option<&Bytes>,
    ) {
        if self.has_begun_anew() {
            return;
        }
        self.heard_at = now;
        self.is_expired = false;
        match packet.body {
            Body::Spm(spm) => self.handle_spm(now, from, spm, &packet.options),
            Body::Odata(data) if self.take_next(from, data, packet, room) => {}
            Body::Odata(data) => self.handle_data(now, from, data, packet, How::Original),
            Body::Rdata(data) => self.handle_data(now, from, data, packet, How::Repair),
            Body::Ncf(nak) => {
                self.statistics.ncfs += 1;
                self.obey_back_off(&packet.options);
                self.handle_nak(now, nak, packet, Heard::Confirmation);
            }
            Body::Poll(poll) => self.handle_poll(now, poll),
            _ => {}
        }
    }

    /// Handles what another receiver has sent to this source.
    pub(super) fn overhear(&mut self, now: Time, packet: &Packet<'_>) {
        match packet.body {
            Body::Nak(nak) => {
                self.statistics.naks_heard += 1;
                self.handle_nak(now, nak, packet, Heard::Request);
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
        self.path = Some(spm.path);
        self.introduction = Introduction::NotNeeded;
        self.parity = options.parity.or(self.parity);
        self.obey_back_off(options);
        self.reset = options.reset.or(self.reset);
        self.losses = options
            .congestion_request
            .filter(|kinds| kinds & CongestionReport::RECEIVER != 0)
            .map(|_| self.losses.unwrap_or(Losses::after(spm.lead)));
        self.numbers_unused(spm.lead, self.short_group(options));
        let says_window = (spm.trail, spm.lead) != (Sqn(0), Sqn(0x8000_0000));
        if says_window && spm.lead.plus(1).since(spm.trail) <= Sqn::MAX_SPAN {
            self.update_window(now, spm, options);
        }
        if self.reset.is_some_and(|reset| reset.no_repairs)
            && let Some(window) = &mut self.window
        {
            window.give_up();
        }
    }

    /// A network brings now and then an SPM late, but not several, one after the other as they were
    /// sent: then the source has crashed and begun anew under the same name.
    fn old_spm(&mut self, sqn: Sqn) {
        let (last, count) = self.old_spms;
        if self.spm_sqn != Some(sqn) && (count == 0 || last.is_before(sqn)) {
            self.old_spms = (sqn, count + 1);
        }
        if self.has_begun_anew() {
            self.forget();
        }
    }

    fn has_begun_anew(&self) -> bool {
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
            window.source_is_idle(now);
        }
    }

    /// Begins to listen: at `first`, or where those who join late may begin.
    fn open_window(
        &mut self,
        now: Time,
        first: Sqn,
        trail: Sqn,
        options: &Options<'_>,
    ) -> &mut ReceiveWindow {
        let earliest = options.join.filter(|_| self.config.late_join).map(|join| {
            let join = if join.is_before(trail) { trail } else { join };
            // What the window cannot hold is not asked for.
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

    /// How many packets the group has that a packet is about, and how many groups usually have, if it was
    /// cut short.
    fn short_group(&self, options: &Options<'_>) -> Option<(u32, u32)> {
        Some((options.current_group_size?, self.parity?.group_size))
    }

    /// Where a group was cut short, the rest of its numbers is not lost.
    fn numbers_unused(&mut self, sqn: Sqn, short: Option<(u32, u32)>) {
        if let (Some(losses), Some((packets, size))) = (&mut self.losses, short)
            && (1..size).contains(&packets)
        {
            let group = sqn.group(size);
            losses.cut_short(group.plus(packets - 1), group.plus(size - 1));
        }
    }

    /// Takes the packet that follows the last one, of a source that has introduced itself: the usual
    /// case, and short. Says whether it was that.
    fn take_next(
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
            && !self.is_finish_told
            && self.spm_sqn.is_some()
            && self.losses.is_none()
            && window.comes_next(data.sqn);
        if is_usual {
            self.address = from;
            window.advance_trail(data.trail);
            // It will be handed out next, and so can stay where it is. What waits for others is copied,
            // or a few short packets could hold much memory.
            window.append(match room {
                Some(room) => room.slice_ref(packet.payload),
                None => Bytes::copy_from_slice(packet.payload),
            });
        }
        is_usual
    }

    fn handle_data(&mut self, now: Time, from: IpAddr, data: Data, packet: &Packet<'_>, how: How) {
        let Data { sqn, trail } = data;
        if sqn.since(trail) >= Sqn::MAX_SPAN || self.is_finish_told {
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
        if let Some(option) = options.congestion_data.filter(|_| !packet.parity) {
            self.acknowledger
                .get_or_insert_with(|| Acknowledger::new(self.config.address, sqn))
                .data(now, sqn, option, self.config.ack_back_off, &mut self.rng);
        }
        if let Some(losses) = self.losses.as_mut().filter(|_| !packet.parity) {
            losses.came(sqn);
        }
        let short = self.short_group(options);
        self.numbers_unused(sqn, short);
        let window = match &mut self.window {
            Some(window) => window,
            // Parity alone tells of no packet that one could begin with.
            None if packet.parity => return,
            // Where to begin is for the SPM to say, which is being asked for.
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
                    how,
                },
            );
        } else {
            let piece = Piece {
                payload: Bytes::copy_from_slice(packet.payload),
                fragment: options.fragment,
            };
            window.insert(now, sqn, piece, how);
            window.data_came(now, sqn);
        }
    }

    fn handle_nak(&mut self, now: Time, nak: Nak, packet: &Packet<'_>, heard: Heard) {
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

    fn obey_back_off(&mut self, options: &Options<'_>) {
        // An interval that holds from a later poll on is that of a source which measures anew.
        if let Some(told) = options.back_off_interval
            && let Some(window) = &mut self.window
        {
            window.back_off = Duration::from_micros(u64::from(told.interval));
        }
    }

    fn handle_poll(&mut self, now: Time, poll: Poll) {
        const GENERAL: u16 = 0;
        // The identity that polls choose by: any will do that differs between receivers.
        let identity = self.config.seed as u32 ^ (self.config.seed >> 32) as u32;
        self.answer = None;
        let is_asked = identity & poll.mask == poll.random & poll.mask;
        if is_asked && poll.round == 0 && poll.sub_type == GENERAL && !self.config.passive {
            let longest = Duration::from_micros(u64::from(poll.back_off));
            self.answer = Some((now.plus(longest.mul_f64(self.rng.f64())), poll));
        }
    }

    /// Nothing was heard for too long, so that it is given up.
    pub(super) fn expire(&mut self, now: Time) {
        if !self.is_expired && self.expiry() <= now {
            self.forget();
        }
    }

    /// Once its events were taken, it is gone; should it come back, it is another.
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

    /// Whether its end was told already.
    pub(super) fn has_ended(&self) -> bool {
        self.is_finish_told || self.is_reset_told
    }

    /// When it wants to be polled.
    pub(super) fn timeout(&self) -> Option<Time> {
        if self.is_expired {
            return None;
        }
        let introduction = match self.introduction {
            Introduction::NotNeeded => None,
            Introduction::AskAt(_) if self.config.passive => None,
            Introduction::AskAt(time) => Some(time),
            Introduction::AskSource => Some(Time::default()),
        };
        let answer = self.answer.map(|(time, _)| time);
        let ack = self.acknowledger.as_ref().and_then(Acknowledger::due);
        let request = self.window.as_ref().and_then(ReceiveWindow::next_request);
        earlier(
            earlier(earlier(introduction, answer), earlier(ack, request)),
            Some(self.expiry()),
        )
    }

    /// Appends the next packet that is to be sent to this source.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Destination> {
        self.write_introduction(now, out)
            .or_else(|| self.write_answer(now, out))
            .or_else(|| self.write_ack(now, out))
            .or_else(|| self.write_nak(now, out))
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
        let content = self.window.as_mut()?.next_nak(now, self.path.is_some())?;
        let path = self.path?;
        let (first, rest) = content.numbers.split_first()?;
        let mut room = [0; 4 * NakList::MOST];
        let options = Options {
            nak_list: (!rest.is_empty()).then(|| NakList::of(rest, &mut room)),
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

    /// What has happened, the oldest first.
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
            && !std::mem::replace(&mut self.is_reset_told, true)
        {
            return Some(Event::Reset { source, reset });
        }
        let next = self.window.as_ref().map(ReceiveWindow::next_sqn);
        let is_over = self
            .last
            .is_some_and(|last| next.is_none_or(|next| last.is_before(next)));
        if is_over && !std::mem::replace(&mut self.is_finish_told, true) {
            return Some(Event::Finished { source });
        }
        None
    }
}
