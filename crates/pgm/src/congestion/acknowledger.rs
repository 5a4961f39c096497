//! Acknowledgements that a receiver sends for congestion control.

use std::{net::IpAddr, time::Duration};

use super::Losses;
use crate::{
    Time,
    wire::{Ack, CongestionData, CongestionFeedback, Sqn},
};

/// State of the acknowledgements that this receiver sends to one source.
#[derive(Debug)]
pub(crate) struct Acknowledger {
    own: IpAddr,
    losses: Losses,
    /// One bit for each of the last 32 packets. Bit 0 belongs to the packet with the highest number. A bit is
    /// set if its packet was received.
    bitmap: u32,
    timestamp: u32,
    received_at: Time,
    /// Time at which the next acknowledgement is due; `None` if no acknowledgement is pending.
    due: Option<Time>,
}

impl Acknowledger {
    /// Creates the state. `first` is the first data packet that requests acknowledgements.
    pub(crate) fn new(own: IpAddr, first: Sqn) -> Self {
        Self {
            own,
            losses: Losses::starting_after(first.minus(1)),
            bitmap: 0,
            timestamp: 0,
            received_at: Time::default(),
            due: None,
        }
    }

    /// Records a received data packet and schedules its acknowledgement. If the source has not
    /// chosen an acker yet, the acknowledgement is delayed by a random time up to `back_off`.
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        sqn: Sqn,
        option: CongestionData,
        back_off: Duration,
        rng: &mut fastrand::Rng,
    ) {
        if let Some(step) = self.losses.received(sqn) {
            self.bitmap = self.bitmap.checked_shl(step).unwrap_or(0) | 1;
            self.timestamp = option.timestamp;
            self.received_at = now;
        } else {
            self.bitmap |= 1u32
                .checked_shl(self.losses.highest().since(sqn))
                .unwrap_or(0);
        }
        if option.acker == self.own {
            self.due = Some(now);
        } else if option.acker.is_unspecified() {
            let wait = back_off.mul_f64(rng.f64());
            self.due.get_or_insert(now.plus(wait));
        } else {
            self.due = None;
        }
    }

    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Returns the acknowledgement if it is due.
    pub(crate) fn acknowledge(&mut self, now: Time) -> Option<Ack> {
        self.due.take_if(|due| *due <= now)?;
        Some(Ack {
            highest: self.losses.highest(),
            bitmap: self.bitmap,
        })
    }

    /// Returns the congestion feedback: the option with the loss rate and the timestamp. Acknowledgements and
    /// NAKs carry this option.
    pub(crate) fn feedback(&self, now: Time) -> CongestionFeedback {
        let delay_ms = now.since(self.received_at).as_millis() as u32;
        CongestionFeedback {
            timestamp: self.timestamp.wrapping_add(delay_ms),
            loss: self.losses.loss(),
            receiver: self.own,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_bitmap_lists_received_packets() {
        let own = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut acknowledger = Acknowledger::new(own, Sqn(10));
        let mut rng = fastrand::Rng::with_seed(1);
        let option = CongestionData {
            timestamp: 1000,
            acker: own,
        };
        let mut data = |acknowledger: &mut Acknowledger, sqn| {
            acknowledger.on_data(Time(0), Sqn(sqn), option, Duration::ZERO, &mut rng);
            acknowledger.acknowledge(Time(0)).unwrap()
        };
        assert_eq!(data(&mut acknowledger, 10).bitmap, 0b1);
        assert_eq!(data(&mut acknowledger, 13).bitmap, 0b1001);
        let ack = data(&mut acknowledger, 11);
        assert_eq!((ack.highest, ack.bitmap), (Sqn(13), 0b1101));
        assert_eq!(data(&mut acknowledger, 100).bitmap, 0b1);
        assert_eq!(acknowledger.acknowledge(Time(0)), None);
        // The acknowledgement is sent 20.5 ms after the data. The delay is rounded down to 20 ms and added to
        // the timestamp.
        assert_eq!(acknowledger.feedback(Time(20_500_000)).timestamp, 1020);
    }
}
