//! The source of a session, which sends its messages.

mod back_off;
mod config;
mod estimate;
mod originals;
mod parity;
mod rate;
mod repairs;
mod spm_schedule;
mod statistics;
mod window;

use std::time::Duration;

use crate::{
    Destination, Time, Transmit,
    congestion::Controller,
    fec::{Code, Parity},
    time::earlier,
    wire::{
        BackOffInterval, Body, CongestionReport, Data, Dialect, Nak, NakList, Options, Packet,
        ParityParameters, Poll, Reset, Spm, Sqn, Tsi,
    },
};
use back_off::BackOff;
pub use back_off::BackOffTuning;
pub use config::{ConfigError, ParityConfig, SourceConfig, WindowLimit};
use estimate::Estimate;
use parity::ParityGroups;
pub use rate::Rate;
use rate::TokenBucket;
use repairs::{Confirmation, Repair, Repairs};
use spm_schedule::SpmSchedule;
pub use statistics::{LossReport, SourceStatistics};
use window::TransmitWindow;

/// Source of one session, without I/O.
///
/// Call [`Source::send`] with messages and [`Source::handle`] with received packets. Then call
/// [`Source::poll_transmit`] until it returns `None`. Call `poll_transmit` again at the time that
/// [`Source::timeout`] returns.
#[derive(Debug)]
pub struct Source {
    config: SourceConfig,
    code: Option<&'static Code>,
    window: TransmitWindow,
    spms: SpmSchedule,
    spm_sqn: Sqn,
    repairs: Repairs,
    parity: ParityGroups,
    /// Number of repairs sent since the last original packet.
    repairs_in_turn: u32,
    rate: Option<TokenBucket>,
    back_off: Option<BackOff>,
    congestion: Option<Controller>,
    estimate: Estimate,
    end: Option<End>,
    rng: fastrand::Rng,
    statistics: SourceStatistics,
}

/// End of a session.
#[derive(Clone, Copy, Debug)]
struct End {
    reset: Option<Reset>,
    /// Time until which repairs are served; `None` until everything has been sent.
    until: Option<Time>,
    /// Time since which no receiver acknowledges, although packets wait to be sent (congestion
    /// control).
    unheard_since: Option<Time>,
}

/// Error of [`Source::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Too many packets wait to be sent. Try again after `poll_transmit` has sent some of them.
    #[error("too many packets wait to be sent; try again later")]
    WouldBlock {
        /// Time at which the rate allows the next packet. `None` while congestion control waits for an
        /// acknowledgement.
        until: Option<Time>,
    },
    /// The message needs more packets than the window holds.
    #[error("the message needs {packets} packets; the window holds {max}")]
    TooManyPackets {
        /// Number of packets that the message needs.
        packets: usize,
        /// Number of packets that the window holds.
        max: usize,
    },
    /// The message has more bytes than the window holds, or its length does not fit into 32 bits.
    #[error("the message has {bytes} bytes; at most {max} are possible")]
    TooManyBytes {
        /// Number of bytes of the message.
        bytes: usize,
        /// Maximum number of bytes.
        max: usize,
    },
    /// The session was closed.
    #[error("the session was closed")]
    Closed,
}

impl Source {
    /// Starts a session. The first call of `poll_transmit` returns an SPM.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid.
    pub fn new(config: SourceConfig, now: Time) -> Result<Source, ConfigError> {
        config.check()?;
        let parity = config.parity;
        let group_size = parity.map_or(1, |parity| parity.group_size);
        Ok(Source {
            code: parity.and_then(|parity| Code::for_group_size(parity.group_size)),
            window: TransmitWindow::new(config.first, config.window, group_size),
            spms: SpmSchedule::new(&config, now),
            spm_sqn: Sqn(0),
            repairs: Repairs::default(),
            parity: ParityGroups::new(parity),
            repairs_in_turn: 0,
            rate: config.rate.map(TokenBucket::new),
            back_off: config.back_off.map(BackOff::new),
            congestion: config
                .congestion
                .map(|settings| Controller::new(settings, config.address, config.first, now)),
            estimate: Estimate::default(),
            end: None,
            rng: fastrand::Rng::with_seed(config.seed),
            statistics: SourceStatistics::default(),
            config,
        })
    }

    /// Returns the identifier of the session.
    pub fn tsi(&self) -> Tsi {
        self.config.tsi
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.config.dialect
    }

    /// Returns the statistics since the start of the session.
    pub fn statistics(&self) -> SourceStatistics {
        self.statistics
    }

    /// Returns two sequence numbers: the first packet that can be repaired, and the last packet sent. If
    /// there are no packets, the second number is the first number minus one.
    pub fn window(&self) -> (Sqn, Sqn) {
        (self.window.trail(), self.window.lead())
    }

    /// Handles a received packet. Packets of other sessions are ignored.
    pub fn handle(&mut self, now: Time, packet: &Packet<'_>) {
        if packet.tsi() != self.config.tsi || packet.source_port != self.config.destination_port {
            return;
        }
        if self.end.is_some_and(|end| end.no_repairs()) {
            return;
        }
        match packet.body {
            Body::Nak(nak) => self.handle_nak(now, nak, packet),
            Body::Nnak(_) => self.statistics.nnaks += 1,
            Body::Spmr => {
                self.statistics.spm_requests += 1;
                self.spms.request(now);
            }
            Body::Polr(answer) => self.estimate.answer(answer),
            Body::Ack(ack) => {
                self.statistics.acks += 1;
                if let (Some(controller), Some(feedback)) =
                    (&mut self.congestion, packet.options.congestion_feedback)
                {
                    controller.acknowledge(now, ack, feedback);
                }
            }
            Body::Spm(_) | Body::Poll(_) | Body::Odata(_) | Body::Rdata(_) | Body::Ncf(_) => {}
        }
    }

    /// Confirms a NAK and queues the requested repairs, except repairs that are already queued.
    fn handle_nak(&mut self, now: Time, nak: Nak, packet: &Packet<'_>) {
        if nak.source != self.config.address || nak.group != self.config.group {
            self.statistics.other_naks += 1;
            return;
        }
        self.statistics.naks += 1;
        if let (Some(controller), Some(feedback)) =
            (&mut self.congestion, packet.options.congestion_feedback)
        {
            controller.report(now, feedback);
        }
        if let Some(report) = packet.options.congestion_report {
            self.statistics.reported(report);
        }
        let list = packet.options.nak_list.into_iter();
        let numbers = std::iter::once(nak.sqn).chain(list.flat_map(|list| list.iter()));
        let mut confirmed = Vec::new();
        for sqn in numbers {
            self.statistics.numbers_requested += 1;
            let mut is_parity = packet.parity;
            let is_new = if packet.parity {
                let Some(code) = self.code.filter(|_| self.parity.on_demand()) else {
                    continue;
                };
                let size = code.size() as u32;
                if !self.window.was_sent(sqn.group(size).plus(size - 1)) {
                    continue;
                }
                self.parity.request(sqn.group(size), sqn.index(size) + 1)
            } else {
                let Some(kept) = self.window.sent_mut(sqn) else {
                    continue;
                };
                if kept.is_unused {
                    // The receiver requests an unused number, so it does not know that the group
                    // was shortened. A parity packet of the group contains this information.
                    is_parity = true;
                    self.parity.request(sqn.group(self.parity.group_size()), 1)
                } else {
                    !std::mem::replace(&mut kept.is_repair_waiting, true)
                }
            };
            if let Some(back_off) = &mut self.back_off {
                back_off.on_request(!is_new);
            }
            if is_new {
                self.repairs.push(if is_parity {
                    Repair::Parity(sqn.group(self.parity.group_size()))
                } else {
                    Repair::Original(sqn)
                });
            } else {
                self.statistics.numbers_eliminated += 1;
            }
            confirmed.push(sqn);
        }
        let confirmation = Confirmation {
            parity: packet.parity,
            numbers: confirmed,
        };
        self.repairs.confirm(now, confirmation);
    }

    /// Ends the session: sends the waiting packets, announces the end, and then serves repairs for the time
    /// [`SourceConfig::linger`]. With congestion control, the source drops the packets that still wait if no receiver
    /// acknowledges for two timeouts and then for the time `linger`.
    pub fn close(&mut self) {
        if self.end.is_none() {
            self.end = Some(End {
                reset: None,
                until: None,
                unheard_since: None,
            });
            self.mark_last();
        }
    }

    /// Aborts the session: drops the packets that were not sent yet, and sends `code` to the receivers. Only
    /// the lower six bits of `code` are sent. If `no_repairs` is true, the source serves no more repairs.
    pub fn reset(&mut self, code: u8, no_repairs: bool) {
        self.end = Some(End {
            reset: Some(Reset {
                no_repairs,
                code: code & 0x3f,
            }),
            until: None,
            unheard_since: None,
        });
        self.statistics.dropped += self.window.drop_unsent();
        if no_repairs {
            self.repairs.clear();
        }
    }

    /// Returns true if the session has ended and repairs are no longer served. The source can then
    /// be dropped.
    pub fn is_finished(&self, now: Time) -> bool {
        self.end
            .and_then(|end| end.until)
            .is_some_and(|until| until <= now)
    }

    /// Polls receivers to estimate their number. Each receiver answers with a probability of 1 in
    /// 2^`rarity`, after a random time up to `back_off`. [`Source::receivers`] returns the
    /// estimate.
    pub fn poll_receivers(&mut self, back_off: Duration, rarity: u32) {
        self.estimate.begin(back_off, rarity, self.rng.u32(..));
    }

    /// Returns the number of receivers, estimated from the last poll. Returns `None` before the first poll.
    pub fn receivers(&self) -> Option<u64> {
        self.estimate.receivers()
    }

    /// Appends the next due packet to `out`. Returns `None` if no packet is due.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.is_finished(now) {
            return None;
        }
        self.window.expire(now);
        self.parity.forget_before(self.window.trail());
        if let Some(controller) = &mut self.congestion {
            controller.expire(now);
        }
        self.drop_unheard(now);
        let start = out.len();
        self.write_confirmation(now, out)
            .or_else(|| self.write_end_or_spm(now, out))
            .or_else(|| self.write_poll(out))
            .or_else(|| self.write_data(now, out))
            .map(|router_alert| Transmit {
                to: Destination::Group,
                size: out.len() - start,
                router_alert,
            })
    }

    /// Drops the waiting packets of a closed session if no receiver acknowledges. Without acknowledgements,
    /// congestion control sends only one packet per timeout, so the end of the session could take hours.
    fn drop_unheard(&mut self, now: Time) {
        let (Some(controller), Some(end)) = (&self.congestion, &mut self.end) else {
            return;
        };
        if end.until.is_some() || !controller.is_unheard() {
            end.unheard_since = None;
        } else if end
            .unheard_since
            .get_or_insert(now)
            .plus(self.config.linger)
            <= now
        {
            self.statistics.dropped += self.window.drop_unsent();
        }
    }

    /// Returns the time at which `poll_transmit` may return a packet or the session is finished.
    /// This time may be in the past.
    pub fn timeout(&self) -> Option<Time> {
        if self.repairs.has_confirmation() || self.estimate.is_waiting() {
            return Some(Time::default());
        }
        let data = self
            .has_data()
            .then(|| self.rate.map_or(Time::default(), |rate| rate.ready()));
        let congestion = self.congestion.as_ref().and_then(Controller::timeout);
        let end = self.end.and_then(|end| end.until);
        let spm = if self.end.is_some_and(|end| end.until.is_none()) && !self.window.has_unsent() {
            Time::default()
        } else {
            self.spms.next()
        };
        earlier(
            earlier(Some(spm), data),
            earlier(earlier(congestion, end), self.window.next_expiry()),
        )
    }

    fn may_send_original(&self) -> bool {
        self.congestion.as_ref().is_none_or(Controller::may_send)
    }

    fn has_data(&self) -> bool {
        self.repairs.has_repair()
            || self.parity.has_proactive()
            || self.window.has_unsent() && self.may_send_original()
    }

    fn packet<'a>(&self, body: Body, options: Options<'a>, payload: &'a [u8]) -> Packet<'a> {
        Packet {
            source_port: self.config.tsi.port,
            destination_port: self.config.destination_port,
            gsi: self.config.tsi.gsi,
            parity: false,
            variable_length: false,
            body,
            options,
            payload,
        }
    }

    fn write_confirmation(&mut self, now: Time, out: &mut Vec<u8>) -> Option<bool> {
        let back_off_interval = self.back_off_interval();
        let confirmation = self.repairs.next_confirmation(now)?;
        let parity = confirmation.parity;
        let (first, rest) = confirmation.numbers.split_first()?;
        let mut room = [0; 4 * NakList::MAX];
        let options = Options {
            nak_list: (!rest.is_empty()).then(|| NakList::new(rest, &mut room)),
            back_off_interval,
            ..Options::default()
        };
        let body = Body::Ncf(Nak {
            sqn: *first,
            source: self.config.address,
            group: self.config.group,
        });
        let packet = Packet {
            parity,
            ..self.packet(body, options, b"")
        };
        packet.write(self.config.dialect, out);
        self.statistics.ncfs += 1;
        Some(true)
    }

    fn back_off_interval(&self) -> Option<BackOffInterval> {
        self.back_off.as_ref().map(BackOff::interval)
    }

    /// Writes an SPM if one is due because of a timer, a request, or the end of the session.
    fn write_end_or_spm(&mut self, now: Time, out: &mut Vec<u8>) -> Option<bool> {
        let mut is_due = self.spms.is_due(now);
        if let Some(end) = &mut self.end
            && end.until.is_none()
            && !self.window.has_unsent()
        {
            end.until = Some(now.plus(self.config.linger));
            self.spms.data_sent(now);
            is_due = true;
        }
        if !is_due {
            return None;
        }
        let is_pause = self.spms.is_pause(now) || self.end.is_some();
        if self.parity.shortens_groups()
            && is_pause
            && let Some(group) = self.window.shorten_groups(now)
        {
            self.parity.complete(group);
        }
        self.spms.sent(now);
        // While data is waiting, the SPM must not announce the end. At this time, the last packet sent is not
        // the last packet of the session.
        let end = self.end.filter(|end| end.until.is_some());
        let options = Options {
            join: self.config.late_join.then(|| self.window.trail()),
            back_off_interval: self.back_off_interval(),
            back_off_range: self.back_off.as_ref().map(BackOff::range),
            parity: self.config.parity.map(|parity| ParityParameters {
                proactive: parity.proactive > 0,
                on_demand: parity.on_demand,
                group_size: parity.group_size,
            }),
            current_group_size: self.short_size(self.window.lead()),
            congestion_request: (self.config.loss_reports).then_some(CongestionReport::RECEIVER),
            fin: end.is_some_and(|end| end.reset.is_none()),
            reset: end.and_then(|end| end.reset),
            ..Options::default()
        };
        let body = Body::Spm(Spm {
            sqn: self.spm_sqn,
            trail: self.window.trail(),
            lead: self.window.lead(),
            path: self.config.address,
        });
        let start = out.len();
        self.packet(body, options, b"")
            .write(self.config.dialect, out);
        self.charge(now, out.len() - start);
        self.spm_sqn = self.spm_sqn.plus(1);
        self.statistics.spms += 1;
        Some(true)
    }

    fn write_poll(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        let question = self.estimate.question()?;
        let body = Body::Poll(Poll {
            path: self.config.address,
            ..question
        });
        self.packet(body, Options::default(), b"")
            .write(self.config.dialect, out);
        Some(true)
    }

    /// Writes one packet. Proactive parity comes first. Repairs and originals take turns.
    fn write_data(&mut self, now: Time, out: &mut Vec<u8>) -> Option<bool> {
        if !self.has_data() || self.rate.is_some_and(|rate| rate.ready() > now) {
            return None;
        }
        let start = out.len();
        let is_original_waiting = self.window.has_unsent() && self.may_send_original();
        let is_repairs_turn =
            !is_original_waiting || self.repairs_in_turn < self.config.repairs_per_original;
        let is_repair = if self.write_proactive(out) {
            false
        } else if is_repairs_turn && self.write_repair(now, out) {
            self.repairs_in_turn += 1;
            true
        } else if is_original_waiting {
            self.repairs_in_turn = 0;
            self.write_original(now, out);
            false
        } else {
            return None;
        };
        self.charge(now, out.len() - start);
        self.spms.data_sent(now);
        Some(is_repair)
    }

    /// Writes the next proactive parity packet. Returns false if there is no such packet.
    fn write_proactive(&mut self, out: &mut Vec<u8>) -> bool {
        while let Some((group, index)) = self.parity.next_proactive() {
            if let Some(parity) = self.encode(group, index) {
                self.write_parity(group, index, &parity, Body::Odata, out);
                self.statistics.parity_sent += 1;
                return true;
            }
        }
        false
    }

    /// Writes the next repair that is still possible. Returns false if there is no such repair.
    fn write_repair(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        while let Some(repair) = self.repairs.next_repair() {
            match repair {
                Repair::Original(sqn) => {
                    let Some(kept) = self.window.sent_mut(sqn) else {
                        continue;
                    };
                    kept.is_repair_waiting = false;
                    self.write_kept(now, sqn, Body::Rdata, out);
                    self.statistics.repairs += 1;
                }
                Repair::Parity(group) => {
                    let Some((index, is_more)) = self.parity.serve(group) else {
                        continue;
                    };
                    if is_more {
                        self.repairs.push_front(Repair::Parity(group));
                    }
                    let Some(parity) = self.encode(group, index) else {
                        continue;
                    };
                    self.write_parity(group, index, &parity, Body::Rdata, out);
                    self.statistics.parity_repairs += 1;
                }
            }
            return true;
        }
        false
    }

    fn write_original(&mut self, now: Time, out: &mut Vec<u8>) {
        let Some(sqn) = self.window.send_next(now) else {
            return;
        };
        let bytes = self.write_kept(now, sqn, Body::Odata, out);
        self.statistics.packets += 1;
        self.statistics.bytes += bytes as u64;
        if let Some(controller) = &mut self.congestion {
            controller.sent(now, sqn);
        }
        self.parity.sent(sqn);
    }

    /// Writes a packet of the window and returns the length of its payload in bytes.
    fn write_kept(&self, now: Time, sqn: Sqn, body: fn(Data) -> Body, out: &mut Vec<u8>) -> usize {
        let Some(kept) = self.window.get(sqn) else {
            return 0;
        };
        let options = Options {
            fragment: kept.fragment,
            syn: kept.is_first,
            fin: kept.is_last,
            congestion_data: self
                .congestion
                .as_ref()
                .map(|controller| controller.option(now)),
            ..Options::default()
        };
        let body = body(Data {
            sqn,
            trail: self.window.trail(),
        });
        self.packet(body, options, &kept.payload)
            .write(self.config.dialect, out);
        kept.payload.len()
    }

    /// Returns the number of packets in the group of `sqn`, if the group was shortened.
    fn short_size(&self, sqn: Sqn) -> Option<u32> {
        let is_possible = self.parity.shortens_groups();
        is_possible.then(|| self.window.short_size(sqn.group(self.parity.group_size())))?
    }

    fn encode(&self, group: Sqn, index: usize) -> Option<Parity> {
        let code = self.code?;
        let members = (0..code.size() as u32)
            .map(|at| self.window.get(group.plus(at)))
            .collect::<Option<Vec<_>>>()?;
        let members = members.into_iter().filter(|kept| !kept.is_unused);
        let members: Vec<_> = members.map(window::WindowPacket::member).collect();
        Some(crate::fec::encode(code, index, &members))
    }

    fn write_parity(
        &self,
        group: Sqn,
        index: usize,
        parity: &Parity,
        body: fn(Data) -> Body,
        out: &mut Vec<u8>,
    ) {
        let size = self.parity.group_size();
        let (times, index) = (index as u32 / size, index as u32 % size);
        let options = Options {
            encoded_fragment: parity.encoded_fragment,
            parity_group: (times > 0).then_some(times),
            current_group_size: self.short_size(group),
            ..Options::default()
        };
        let body = body(Data {
            sqn: group.plus(index),
            trail: self.window.trail(),
        });
        let packet = Packet {
            parity: true,
            variable_length: parity.variable_length,
            ..self.packet(body, options, &parity.payload)
        };
        packet.write(self.config.dialect, out);
    }

    fn charge(&mut self, now: Time, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.charge(now, bytes + self.config.overhead);
        }
    }
}

impl End {
    fn no_repairs(self) -> bool {
        self.reset.is_some_and(|reset| reset.no_repairs)
    }
}
