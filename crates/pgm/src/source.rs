//! The sending end of a session.

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

/// The sending end of one session.
///
/// Whoever owns it calls [`Source::send`] with messages and [`Source::handle`] with packets that were
/// received; then [`Source::poll_transmit`] until it gives nothing more, and again at the moment that
/// [`Source::timeout`] says.
#[derive(Debug)]
pub struct Source {
    config: SourceConfig,
    code: Option<&'static Code>,
    window: TransmitWindow,
    spms: SpmSchedule,
    spm_sqn: Sqn,
    repairs: Repairs,
    parity: ParityGroups,
    /// Repairs sent since the last original, while both were waiting.
    repairs_in_turn: u32,
    rate: Option<TokenBucket>,
    back_off: Option<BackOff>,
    congestion: Option<Controller>,
    estimate: Estimate,
    end: Option<End>,
    rng: fastrand::Rng,
    statistics: SourceStatistics,
}

/// How a session ends.
#[derive(Clone, Copy, Debug)]
struct End {
    reset: Option<Reset>,
    /// When repairs are served no longer; known once everything has been sent.
    until: Option<Time>,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Too much is waiting to be sent. Try again once `poll_transmit` has sent some of it.
    #[error("too much is waiting to be sent; try again once some of it has been")]
    NotYet {
        /// When the rate lets the next packet go; unknown while congestion control waits for an
        /// acknowledgement.
        until: Option<Time>,
    },
    /// The message needs more packets than the window can keep.
    #[error("the message needs {packets} packets and the window keeps {most}")]
    TooLong {
        /// Packets that the message needs.
        packets: usize,
        /// Packets that the window keeps.
        most: usize,
    },
    /// The session was closed.
    #[error("the session was closed")]
    Closed,
}

impl Source {
    /// Begins a session, which announces itself as soon as it is polled.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(config: SourceConfig, now: Time) -> Result<Source, ConfigError> {
        config.check()?;
        let parity = config.parity;
        let group_size = parity.map_or(1, |parity| parity.group_size);
        Ok(Source {
            code: parity.and_then(|parity| Code::of(parity.group_size)),
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

    /// The session.
    pub fn tsi(&self) -> Tsi {
        self.config.tsi
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.config.dialect
    }

    /// What has happened so far.
    pub fn statistics(&self) -> SourceStatistics {
        self.statistics
    }

    /// The numbers of the first packet that can be repaired and the last that was sent; the latter is
    /// the former less one while there is none.
    pub fn window(&self) -> (Sqn, Sqn) {
        (self.window.trail(), self.window.lead())
    }

    /// Handles a packet that came for this session; others are ignored.
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

    /// Confirms a NAK and queues its repairs, unless they are waiting already.
    fn handle_nak(&mut self, now: Time, nak: Nak, packet: &Packet<'_>) {
        if nak.source != self.config.address || nak.group != self.config.group {
            self.statistics.foreign_naks += 1;
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
                    // Whoever asks has not heard that its group was cut short; all its parity says so.
                    is_parity = true;
                    self.parity.request(sqn.group(self.parity.group_size()), 1)
                } else {
                    !std::mem::replace(&mut kept.is_repair_waiting, true)
                }
            };
            if let Some(back_off) = &mut self.back_off {
                back_off.measured(!is_new);
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

    /// Ends the session: what is waiting is sent, then its end is announced, and repairs are served
    /// for the configured time.
    pub fn close(&mut self) {
        if self.end.is_none() {
            self.end = Some(End {
                reset: None,
                until: None,
            });
            self.window.finish();
        }
    }

    /// Breaks the session off: what has not been sent is dropped and receivers are told `code`,
    /// which has six bits.
    pub fn reset(&mut self, code: u8, no_repairs: bool) {
        self.end = Some(End {
            reset: Some(Reset {
                no_repairs,
                code: code & 0x3f,
            }),
            until: None,
        });
        self.window.drop_unsent();
        if no_repairs {
            self.repairs.clear();
        }
    }

    /// Whether the session has ended and repairs are served no longer: then it may be dropped.
    pub fn is_finished(&self, now: Time) -> bool {
        self.end
            .and_then(|end| end.until)
            .is_some_and(|until| until <= now)
    }

    /// Asks receivers to answer, so that their number can be estimated: each with a chance of one in
    /// 2^`rarity`, after a random time up to `back_off`. See [`Source::receivers`].
    pub fn poll_receivers(&mut self, back_off: Duration, rarity: u32) {
        self.estimate.begin(back_off, rarity, self.rng.u32(..));
    }

    /// How many receivers the answers to the last poll tell of; `None` before the first.
    pub fn receivers(&self) -> Option<u64> {
        self.estimate.receivers()
    }

    /// Appends the next packet that is to be sent now to `out`, if there is one.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.is_finished(now) {
            return None;
        }
        self.window.expire(now);
        self.parity.forget_before(self.window.trail());
        if let Some(controller) = &mut self.congestion {
            controller.expire(now);
        }
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

    /// When `poll_transmit` may have something next, or the session is finished; now or earlier if
    /// it may at once.
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
        let mut room = [0; 4 * NakList::MOST];
        let options = Options {
            nak_list: (!rest.is_empty()).then(|| NakList::of(rest, &mut room)),
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

    /// Writes an SPM if one is due: by its timers, on request, or because the session now ends.
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
        if self.parity.cuts_short()
            && is_pause
            && let Some(group) = self.window.cut_short(now)
        {
            self.parity.complete(group);
        }
        self.spms.sent(now);
        // While data is waiting, the end is not yet known to be the end.
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

    /// Writes proactive parity, a repair or an original, whichever's turn it is.
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

    /// Writes the next proactive parity packet that is waiting, and says whether there was one.
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

    /// Writes the next repair that is waiting and still possible, and says whether there was one.
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

    /// Writes a packet that is in the window, and says how long its payload is.
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

    /// How many packets the group has that a packet is in, if it was cut short.
    fn short_size(&self, sqn: Sqn) -> Option<u32> {
        let is_possible = self.parity.cuts_short();
        is_possible.then(|| self.window.short_size(sqn.group(self.parity.group_size())))?
    }

    fn encode(&self, group: Sqn, index: usize) -> Option<Parity> {
        let code = self.code?;
        let members = (0..code.size() as u32)
            .map(|at| self.window.get(group.plus(at)))
            .collect::<Option<Vec<_>>>()?;
        let members = members.into_iter().filter(|kept| !kept.is_unused);
        let members: Vec<_> = members.map(window::Kept::member).collect();
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
