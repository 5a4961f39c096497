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

    /// The highest number that came.
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
        // Beyond some, more losses change nothing: the filter says that all is lost.
        for _ in 1..step.min(1000) {
            self.filter.add(true);
        }
        self.filter.add(false);
        self.highest = sqn;
        Some(step)
    }

    /// Numbers up to this one that did not come are not used, and so are not missing.
    pub(crate) fn unused_until(&mut self, end: Sqn) {
        if self.highest.is_before(end) {
            self.highest = end;
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
    use super::LossFilter;

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
