//! The source's side: whom it listens to and how much it may send.

use std::{
    collections::VecDeque,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::CongestionConfig;
use crate::{
    Time,
    wire::{Ack, CongestionData, CongestionFeedback, Sqn},
};

/// Below this, the window opens by a packet for each acknowledged one.
const SLOW_START: f64 = 4.0;
/// A packet is lost once so many after it were received.
const AFTER_LOSS: usize = 3;
/// The window never opens further: more would never be acknowledged in time.
const WIDEST: f64 = 65_536.0;

/// A window of packets, opened by acknowledgements and halved by loss.
#[derive(Debug)]
pub(crate) struct Controller {
    config: CongestionConfig,
    /// The address that asks anybody to acknowledge.
    nobody: IpAddr,
    acker: Option<Acker>,
    /// How many packets may be on their way. The tokens of the draft are what this leaves beside those
    /// that are: counted up and down on their own, they would leak with each packet that is lost.
    window: f64,
    /// The first packet that is neither acknowledged nor lost, and whether those from it on are.
    base: Sqn,
    acknowledged: VecDeque<bool>,
    /// How many of these are not.
    outstanding: usize,
    /// The window was halved when this was the last packet sent: until a later one is acknowledged,
    /// it is neither halved again nor opened.
    halved_at: Option<Sqn>,
    /// Since when nothing was heard.
    silent_since: Time,
    timeouts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Acker {
    address: IpAddr,
    quality: Quality,
}

/// What a receiver can take.
#[derive(Clone, Copy, Debug)]
struct Quality {
    round_trip_ms: f64,
    loss: f64,
}

impl Quality {
    fn of(now: Time, feedback: CongestionFeedback) -> Quality {
        let round_trip = now.milliseconds().wrapping_sub(feedback.timestamp);
        // A clock that jumps makes nonsense of a time-stamp; the wire knows no less than 1 ms.
        let round_trip_ms = f64::from(round_trip.cast_signed().max(1));
        Quality {
            round_trip_ms,
            loss: f64::from(feedback.loss) / 65_536.0,
        }
    }

    /// What TCP would send, up to a factor that all receivers share; without loss, without limit.
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
            nobody: match own {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            },
            acker: None,
            window: 1.0,
            base: first,
            acknowledged: VecDeque::new(),
            outstanding: 0,
            halved_at: None,
            silent_since: now,
            timeouts: 0,
        }
    }

    /// Whether an original may be sent. Repairs may always.
    pub(crate) fn may_send(&self) -> bool {
        self.outstanding as f64 + 1.0 <= self.window
    }

    /// What data carries.
    pub(crate) fn option(&self, now: Time) -> CongestionData {
        CongestionData {
            timestamp: now.milliseconds(),
            acker: self.acker.map_or(self.nobody, |acker| acker.address),
        }
    }

    /// An original was sent.
    pub(crate) fn sent(&mut self, now: Time, sqn: Sqn) {
        if self.acknowledged.is_empty() {
            self.base = sqn;
            self.silent_since = now;
        }
        self.acknowledged.push_back(false);
        self.outstanding += 1;
    }

    /// A receiver that is not the acker says how it fares: it may become the acker.
    pub(crate) fn report(&mut self, now: Time, feedback: CongestionFeedback) {
        let quality = Quality::of(now, feedback);
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
        // What is acknowledged may be before all that is outstanding, but not after.
        if behind >= self.acknowledged.len() && !ack.highest.is_before(self.base) {
            return;
        }
        self.silent_since = now;
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
        let lost = self.forget_lost();
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

    /// Opens the window for packets that were acknowledged: quickly at first, then by one a round.
    fn open(&mut self, newly: f64) {
        let quick = newly.min((SLOW_START - self.window).max(0.0));
        self.window += quick;
        self.window = (self.window + (newly - quick) / self.window).min(WIDEST);
    }

    /// Takes packets that must be lost for done, and says how many there were.
    fn forget_lost(&mut self) -> usize {
        let mut received_after = 0;
        let mut lost = 0;
        for acknowledged in self.acknowledged.iter_mut().rev() {
            if *acknowledged {
                received_after += 1;
            } else if received_after >= AFTER_LOSS {
                *acknowledged = true;
                lost += 1;
            }
        }
        lost
    }

    /// Begins anew when nothing was acknowledged for too long.
    pub(crate) fn expire(&mut self, now: Time) {
        if self.timeout().is_some_and(|timeout| timeout <= now) {
            self.window = 1.0;
            self.halved_at = None;
            self.base = self.base.plus(self.acknowledged.len() as u32);
            self.acknowledged.clear();
            self.outstanding = 0;
            self.silent_since = now;
            self.timeouts += 1;
            if self.timeouts >= 2 {
                self.acker = None;
            }
        }
    }

    /// When that will be, if something waits to be acknowledged.
    pub(crate) fn timeout(&self) -> Option<Time> {
        (!self.acknowledged.is_empty()).then(|| self.silent_since.plus(self.config.timeout))
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

    /// Sends while it may, and gives the last number.
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
    fn the_window_opens_quickly_then_slowly_and_halves_once_for_a_burst() {
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
        // 7 is lost, 8 to 10 are received; that 7 is still missing later halves no more.
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
        // 20 ms of round trip weigh more than the loss.
        controller.report(milliseconds(30), feedback(FIRST, 0, 1000));
        assert_eq!(controller.option(now).acker, FIRST);
    }

    #[test]
    fn silence_begins_anew_and_twice_seeks_another_acker() {
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
    fn what_was_never_sent_acknowledges_nothing() {
        let (mut controller, mut next) = (controller(), 0);
        send_all(&mut controller, &mut next);
        ack(&mut controller, 77, u32::MAX);
        assert!(!controller.may_send());
    }
}
