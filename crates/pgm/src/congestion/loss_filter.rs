//! Loss rate of a receiver, as a moving average.

use crate::wire::Sqn;

/// Loss rate of a receiver, computed from the sequence numbers that it receives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    filter: LossFilter,
    highest: Sqn,
}

impl Losses {
    /// Creates the state of a receiver that expects the packet after `last` next.
    pub(crate) fn starting_after(last: Sqn) -> Self {
        Self {
            filter: LossFilter::default(),
            highest: last,
        }
    }

    /// Returns the highest known sequence number. It is the number of a received packet or the last number of
    /// a shortened parity group.
    pub(crate) fn highest(&self) -> Sqn {
        self.highest
    }

    /// Records a received packet. All packets between the previous highest number and this packet count as
    /// lost. Returns the difference between the new and the previous highest number. Returns `None` if the
    /// packet's number is not higher than the previous highest number.
    pub(crate) fn received(&mut self, sqn: Sqn) -> Option<u32> {
        if !self.highest.is_before(sqn) {
            return None;
        }
        let step = sqn.since(self.highest);
        self.lose(step - 1);
        self.filter.add(false);
        self.highest = sqn;
        Some(step)
    }

    /// Records a shortened group, which has fewer packets than usual. `last` is the last packet of the group.
    /// The numbers after `last` up to `end` are unused. Packets up to `last` that were not received count as
    /// lost. Unused numbers do not count as lost.
    pub(crate) fn shorten_group(&mut self, last: Sqn, end: Sqn) {
        if self.highest.is_before(last) {
            self.lose(last.since(self.highest));
            self.highest = last;
        }
        if self.highest.is_before(end) {
            self.highest = end;
        }
    }

    fn lose(&mut self, packets: u32) {
        // More than 1,000 consecutive losses hardly change the filter, so further losses are skipped.
        for _ in 0..packets.min(1_000) {
            self.filter.add(true);
        }
    }

    /// Returns the loss rate in units of 1/65,536, the unit of the field in packets.
    pub(crate) fn loss(&self) -> u16 {
        self.filter.loss()
    }
}

/// Low-pass filter that averages packets, in units of 1/65,536. A received packet counts as 0, and
/// a lost packet as 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LossFilter(u32);

impl LossFilter {
    /// Weight of the latest packet, in units of 1/65,536.
    const WEIGHT: u64 = 500;
    const ONE: u64 = 1 << 16;

    /// Adds one received or lost packet to the average.
    fn add(&mut self, is_lost: bool) {
        let latest = if is_lost { Self::ONE * Self::WEIGHT } else { 0 };
        let before = u64::from(self.0) * (Self::ONE - Self::WEIGHT);
        self.0 = ((latest + before) >> 16) as u32;
    }

    fn loss(self) -> u16 {
        u16::try_from(self.0).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{LossFilter, Losses};
    use crate::wire::Sqn;

    /// Checks that unused numbers do not count as lost. The group has the numbers 100 to 103, and number 103
    /// is unused. Packet 100 arrives, and packet 101 is lost. Packet 102 arrives in the first of two cases.
    #[test]
    fn unused_numbers_are_not_lost() {
        let lost = |fates: &[bool]| {
            let mut filter = LossFilter::default();
            fates.iter().for_each(|is_lost| filter.add(*is_lost));
            filter.loss()
        };
        for (last_comes, fates) in [
            (true, &[false, true, false, false][..]),
            (false, &[false, true, true, false]),
        ] {
            let mut losses = Losses::starting_after(Sqn(99));
            losses.received(Sqn(100));
            if last_comes {
                losses.received(Sqn(102));
            }
            losses.shorten_group(Sqn(102), Sqn(103));
            // A second report of the same group changes nothing.
            losses.shorten_group(Sqn(102), Sqn(103));
            assert_eq!(losses.received(Sqn(104)), Some(1));
            assert_eq!(losses.loss(), lost(fates), "{last_comes}");
        }
        assert!(lost(&[true, false]) > lost(&[true, false, false]));
    }

    #[test]
    fn one_loss_weighs_500_and_fades() {
        let mut filter = LossFilter::default();
        filter.add(true);
        assert_eq!(filter.loss(), 500);
        filter.add(false);
        // A received packet reduces the loss to 500 × (1 − 500/65,536) = 496.2.
        assert_eq!(filter.loss(), 496);
    }

    #[test]
    fn steady_loss_is_measured() {
        let mut filter = LossFilter::default();
        for at in 0..20_000 {
            filter.add(at % 10 == 0);
        }
        let expected = 6_554;
        assert!(filter.loss().abs_diff(expected) < 400, "{}", filter.loss());
    }
}
