//! How much a receiver loses.

/// A low-pass filter of what was received (0) and lost (1), in 1/65,536.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossFilter(u32);

impl LossFilter {
    /// How much the latest packet weighs.
    const WEIGHT: u64 = 500;
    const ONE: u64 = 1 << 16;

    /// A packet came or was found missing.
    pub(crate) fn add(&mut self, is_lost: bool) {
        let latest = if is_lost { Self::ONE * Self::WEIGHT } else { 0 };
        let before = u64::from(self.0) * (Self::ONE - Self::WEIGHT);
        self.0 = ((latest + before) >> 16) as u32;
    }

    /// As it goes on the wire.
    pub(crate) fn loss(self) -> u16 {
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
