//! How much a receiver loses.

use crate::wire::Sqn;

/// What a receiver loses of a session, by the numbers of what comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    filter: LossFilter,
    highest: Sqn,
}

impl Losses {
    /// The next packet to come is the one after `last`.
    pub(crate) fn after(last: Sqn) -> Self {
        Self {
            filter: LossFilter::default(),
            highest: last,
        }
    }

    /// The highest number that is known of: it came, or its group was cut short there.
    pub(crate) fn highest(&self) -> Sqn {
        self.highest
    }

    /// A packet came: those between it and the highest before are missing. Says how much higher it is;
    /// nothing of what comes late.
    pub(crate) fn came(&mut self, sqn: Sqn) -> Option<u32> {
        if !self.highest.is_before(sqn) {
            return None;
        }
        let step = sqn.since(self.highest);
        self.lose(step - 1);
        self.filter.add(false);
        self.highest = sqn;
        Some(step)
    }

    /// The last packet of a group that was cut short is `last`, and the numbers after it up to `end` are not
    /// used: what of the former did not come is missing, the latter are not.
    pub(crate) fn cut_short(&mut self, last: Sqn, end: Sqn) {
        if self.highest.is_before(last) {
            self.lose(last.since(self.highest));
            self.highest = last;
        }
        if self.highest.is_before(end) {
            self.highest = end;
        }
    }

    fn lose(&mut self, packets: u32) {
        // Beyond some, more losses change nothing: the filter says that all is lost.
        for _ in 0..packets.min(1_000) {
            self.filter.add(true);
        }
    }

    /// As it goes on the wire.
    pub(crate) fn loss(&self) -> u16 {
        self.filter.loss()
    }
}

/// A low-pass filter of what was received (0) and lost (1), in 1/65,536.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LossFilter(u32);

impl LossFilter {
    /// How much the latest packet weighs.
    const WEIGHT: u64 = 500;
    const ONE: u64 = 1 << 16;

    /// A packet came or was found missing.
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

    /// Of numbers 100 to 103 only 100 and 102 come, or not even the latter, and 103 is not used.
    #[test]
    fn what_is_not_used_is_not_lost_and_what_did_not_come_is() {
        let lost = |fates: &[bool]| {
            let mut filter = LossFilter::default();
            fates.iter().for_each(|is_lost| filter.add(*is_lost));
            filter.loss()
        };
        for (last_comes, fates) in [
            (true, &[false, true, false, false][..]),
            (false, &[false, true, true, false]),
        ] {
            let mut losses = Losses::after(Sqn(99));
            losses.came(Sqn(100));
            if last_comes {
                losses.came(Sqn(102));
            }
            losses.cut_short(Sqn(102), Sqn(103));
            // Said twice, it changes nothing.
            losses.cut_short(Sqn(102), Sqn(103));
            assert_eq!(losses.came(Sqn(104)), Some(1));
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
        // 500 × (1 − 500/65,536) = 496.2
        assert_eq!(filter.loss(), 496);
    }

    #[test]
    fn steady_loss_is_found() {
        let mut filter = LossFilter::default();
        for at in 0..20_000 {
            filter.add(at % 10 == 0);
        }
        let expected = 6_554;
        assert!(filter.loss().abs_diff(expected) < 400, "{}", filter.loss());
    }
}
