//! Congestion control of a source: the choice of the acker, and the size of the congestion window.

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::CongestionConfig;
use crate::{
    Time,
    wire::{Ack, CongestionData, CongestionFeedback, Sqn},
};

/// Limit of slow start, in packets. While the window is smaller than this limit, each acknowledged packet
/// enlarges the window by one packet.
const SLOW_START_THRESHOLD: f64 = 4.0;
/// Number of later packets that must be received before a missing packet counts as lost.
const LOSS_THRESHOLD: usize = 3;
/// Maximum window size in packets. Packets beyond this size could not be acknowledged in time.
const MAX_WINDOW: f64 = 65_536.0;

/// Congestion window of a source. Acknowledgements enlarge the window, and losses halve it.
#[derive(Debug)]
pub(crate) struct Controller {
    config: CongestionConfig,
    /// Unspecified address (0.0.0.0 or ::). In a data packet, it asks any receiver to acknowledge.
    any_acker: IpAddr,
    acker: Option<Acker>,
    /// Number of packets that may be in flight. The draft counts tokens instead, but then the token of a lost
    /// packet would never come back.
    window: f64,
    /// First packet that is neither acknowledged nor lost. The list `acknowledged` has one flag for this
    /// packet and for each later packet.
    base: Sqn,
    acknowledged: VecDeque<bool>,
    /// Number of packets in flight.
    outstanding: usize,
    /// Last packet that was sent before the window was halved. The window keeps its size until a
    /// later packet is acknowledged.
    halved_at: Option<Sqn>,
    /// Time of the last acknowledgement. If no packet was in flight, sending a packet also sets
    /// this time.
    last_ack: Time,
    timeouts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Acker {
    address: IpAddr,
    quality: Quality,
}

/// Round-trip time and loss rate of a receiver.
#[derive(Clone, Copy, Debug)]
struct Quality {
    round_trip_ms: f64,
    loss: f64,
}

impl Quality {
    fn from_feedback(now: Time, feedback: CongestionFeedback) -> Quality {
        let round_trip = now.milliseconds().wrapping_sub(feedback.timestamp);
        // After a clock jump, the timestamp may lie in the future. In this case, the round-trip time counts
        // as 1 ms, which is the resolution of timestamps in packets.
        let round_trip_ms = f64::from(round_trip.cast_signed().max(1));
        Quality {
            round_trip_ms,
            loss: f64::from(feedback.loss) / 65_536.0,
        }
    }

    /// Returns the throughput that TCP would reach, divided by a factor that is the same for all receivers.
    /// Without loss, the result is infinite.
    fn throughput(self) -> f64 {
        let Quality {
            round_trip_ms,
            loss,
        } = self;
        1.0 / (round_trip_ms * loss.sqrt() * (1.0 + 9.0 * loss * (1.0 + 32.0 * loss * loss)))
    }

    fn follow(&mut self, latest: Quality) {
        self.round_trip_ms += (latest.round_trip_ms - self.round_trip_ms) / 8.0;
        self.loss = latest.loss;
    }
}

impl Controller {
    pub(crate) fn new(config: CongestionConfig, own: IpAddr, first: Sqn, now: Time) -> Self {
        Self {
            config,
            any_acker: match own {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            },
            acker: None,
            window: 1.0,
            base: first,
            acknowledged: VecDeque::new(),
            outstanding: 0,
            halved_at: None,
            last_ack: now,
            timeouts: 0,
        }
    }

    /// Returns true if the window allows another original data packet. Repairs are always allowed.
    pub(crate) fn may_send(&self) -> bool {
        self.outstanding as f64 + 1.0 <= self.window
    }

    /// Returns the congestion-control option for a data packet.
    pub(crate) fn option(&self, now: Time) -> CongestionData {
        CongestionData {
            timestamp: now.milliseconds(),
            acker: self.acker.map_or(self.any_acker, |acker| acker.address),
        }
    }

    /// Records that an original data packet was sent.
    pub(crate) fn sent(&mut self, now: Time, sqn: Sqn) {
        if self.acknowledged.is_empty() {
            self.base = sqn;
            self.last_ack = now;
        }
        self.acknowledged.push_back(false);
        self.outstanding += 1;
    }

    /// Handles the feedback of a receiver. This receiver may become the acker.
    pub(crate) fn report(&mut self, now: Time, feedback: CongestionFeedback) {
        let quality = Quality::from_feedback(now, feedback);
        match &mut self.acker {
            Some(acker) if acker.address == feedback.receiver => acker.quality.follow(quality),
            Some(acker)
                if quality.throughput()
                    >= self.config.switch_below * acker.quality.throughput() => {}
            _ => {
                self.acker = Some(Acker {
                    address: feedback.receiver,
                    quality,
                });
            }
        }
    }

    pub(crate) fn acknowledge(&mut self, now: Time, ack: Ack, feedback: CongestionFeedback) {
        self.report(now, feedback);
        if self.acker.map(|acker| acker.address) != Some(feedback.receiver) {
            return;
        }
        let behind = ack.highest.since(self.base) as usize;
        // An acknowledgement is accepted even if its packets are older than all packets in flight. An
        // acknowledgement of a packet that was not sent yet is ignored.
        if behind >= self.acknowledged.len() && !ack.highest.is_before(self.base) {
            return;
        }
        self.last_ack = now;
        self.timeouts = 0;
        let mut newly = 0;
        for bit in (0..32).filter(|bit| ack.bitmap >> bit & 1 != 0) {
            let at = ack.highest.minus(bit).since(self.base) as usize;
            if let Some(acknowledged) = self.acknowledged.get_mut(at)
                && !std::mem::replace(acknowledged, true)
            {
                newly += 1;
            }
        }
        let lost = self.mark_lost();
        self.outstanding -= newly + lost;
        let lead = self.base.plus(self.acknowledged.len() as u32).minus(1);
        let was_halved = self.halved_at.is_some_and(|at| !at.is_before(ack.highest));
        if !was_halved && lost > 0 {
            self.halved_at = Some(lead);
            self.window = (self.window / 2.0).max(1.0);
        } else if !was_halved {
            self.halved_at = None;
            self.open(newly as f64);
        }
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.base = self.base.plus(1);
        }
    }

    /// Enlarges the window after `newly` packets were acknowledged. Up to the slow-start threshold, the
    /// window grows by one packet per acknowledged packet. Above the threshold, it grows by one packet per
    /// round trip.
    fn open(&mut self, newly: f64) {
        let quick = newly.min((SLOW_START_THRESHOLD - self.window).max(0.0));
        self.window += quick;
        self.window = (self.window + (newly - quick) / self.window).min(MAX_WINDOW);
    }

    /// Marks the packets that count as lost because enough later packets were received. Returns
    /// their number.
    fn mark_lost(&mut self) -> usize {
        let mut received_after = 0;
        let mut lost = 0;
        for acknowledged in self.acknowledged.iter_mut().rev() {
            if *acknowledged {
                received_after += 1;
            } else if received_after >= LOSS_THRESHOLD {
                *acknowledged = true;
                lost += 1;
            }
        }
        lost
    }

    /// Resets the window to one packet if no acknowledgement arrived before the timeout. After two
    /// timeouts in a row, the acker is also forgotten.
    pub(crate) fn expire(&mut self, now: Time) {
        if self.timeout().is_some_and(|timeout| timeout <= now) {
            self.window = 1.0;
            self.halved_at = None;
            self.base = self.base.plus(self.acknowledged.len() as u32);
            self.acknowledged.clear();
            self.outstanding = 0;
            self.last_ack = now;
            self.timeouts += 1;
            if self.is_unheard() {
                self.acker = None;
            }
        }
    }

    /// Returns true if the last two timeouts passed without an acknowledgement.
    pub(crate) fn is_unheard(&self) -> bool {
        self.timeouts >= 2
    }

    /// Returns the time of the next timeout if packets are in flight.
    pub(crate) fn timeout(&self) -> Option<Time> {
        (!self.acknowledged.is_empty()).then(|| self.last_ack.plus(self.config.timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn controller() -> Controller {
        Controller::new(CongestionConfig::default(), FIRST, Sqn(0), Time(0))
    }

    fn feedback(receiver: IpAddr, timestamp: u32, loss: u16) -> CongestionFeedback {
        CongestionFeedback {
            timestamp,
            loss,
            receiver,
        }
    }

    fn milliseconds(count: u64) -> Time {
        Time(count * 1_000_000)
    }

    /// Sends as many packets as the window allows and returns their number.
    fn send_all(controller: &mut Controller, next: &mut u32) -> usize {
        let start = *next;
        while controller.may_send() {
            controller.sent(Time(0), Sqn(*next));
            *next += 1;
        }
        (*next - start) as usize
    }

    fn ack(controller: &mut Controller, highest: u32, bitmap: u32) {
        let ack = Ack {
            highest: Sqn(highest),
            bitmap,
        };
        controller.acknowledge(milliseconds(10), ack, feedback(FIRST, 0, 0));
    }

    #[test]
    fn the_window_opens_and_halves_once_per_burst() {
        let (mut controller, mut next) = (controller(), 0);
        assert_eq!(controller.option(Time(0)).acker, IpAddr::from([0, 0, 0, 0]));
        assert_eq!(send_all(&mut controller, &mut next), 1);
        ack(&mut controller, 0, 1);
        assert_eq!(controller.option(Time(0)).acker, FIRST);
        assert_eq!(send_all(&mut controller, &mut next), 2);
        ack(&mut controller, 2, 0b11);
        assert_eq!(send_all(&mut controller, &mut next), 4);
        for sqn in 3..7 {
            ack(&mut controller, sqn, u32::MAX);
        }
        assert!(
            (4.5..5.5).contains(&controller.window),
            "{}",
            controller.window
        );
        let before = controller.window;
        send_all(&mut controller, &mut next);
        // Packet 7 is lost, and packets 8 to 10 are received. The window is halved once, although
        // the acknowledgement is repeated.
        ack(&mut controller, 10, 0b111);
        assert_eq!(controller.window, before / 2.0);
        ack(&mut controller, 10, 0b111);
        assert_eq!(controller.window, before / 2.0);
    }

    #[test]
    fn a_much_slower_receiver_becomes_the_acker() {
        let mut controller = controller();
        controller.sent(Time(0), Sqn(0));
        ack(&mut controller, 0, 1);
        let now = milliseconds(10);
        controller.report(now, feedback(FIRST, 0, 1000));
        controller.report(now, feedback(SECOND, 0, 1100));
        assert_eq!(controller.option(now).acker, FIRST, "not much slower");
        controller.report(now, feedback(SECOND, 0, 2000));
        assert_eq!(controller.option(now).acker, SECOND);
        // The first receiver's round-trip time is now 30 ms. This is three times the round-trip time of the
        // second receiver and outweighs the lower loss of the first receiver.
        controller.report(milliseconds(30), feedback(FIRST, 0, 1000));
        assert_eq!(controller.option(now).acker, FIRST);
    }

    #[test]
    fn timeouts_reset_the_window_and_then_the_acker() {
        let (mut controller, mut next) = (controller(), 0);
        send_all(&mut controller, &mut next);
        ack(&mut controller, 0, 1);
        send_all(&mut controller, &mut next);
        for (at, acker) in [(600, FIRST), (1200, IpAddr::from([0, 0, 0, 0]))] {
            assert!(!controller.may_send());
            controller.expire(milliseconds(at));
            assert!(controller.may_send());
            assert_eq!(controller.option(Time(0)).acker, acker);
            controller.sent(milliseconds(at), Sqn(next));
            next += 1;
        }
        assert_eq!(controller.timeout(), Some(milliseconds(1700)));
    }

    #[test]
    fn acknowledgements_of_unsent_packets_are_ignored() {
        let (mut controller, mut next) = (controller(), 0);
        send_all(&mut controller, &mut next);
        ack(&mut controller, 77, u32::MAX);
        assert!(!controller.may_send());
    }
}
