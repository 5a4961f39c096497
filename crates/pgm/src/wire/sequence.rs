//! Sequence numbers, which go round.

/// A sequence number: 32 bits on a circle (RFC 3208 section 6.3's arithmetic).
///
/// It has no order of its own; what is before what is only meaningful within half the circle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sqn(pub u32);

impl Sqn {
    /// The longest distance between two numbers of one window. Beyond it, before and after cannot be
    /// told apart.
    pub const MAX_SPAN: u32 = 0x7fff_fffd;

    /// The number that comes `count` later.
    pub fn plus(self, count: u32) -> Sqn {
        Sqn(self.0.wrapping_add(count))
    }

    /// The number that came `count` earlier.
    pub fn minus(self, count: u32) -> Sqn {
        Sqn(self.0.wrapping_sub(count))
    }

    /// How many steps lead from `earlier` to this.
    pub fn since(self, earlier: Sqn) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this lies in the half of the circle before `other`. At a distance of exactly half
    /// the circle, each is before the other.
    pub fn is_before(self, other: Sqn) -> bool {
        self.since(other) & 0x8000_0000 != 0
    }

    /// The first number of the transmission group of `size` (a power of two) that this is in.
    pub fn group(self, size: u32) -> Sqn {
        Sqn(self.0 & !(size - 1))
    }

    /// Where in its transmission group of `size` (a power of two) this is.
    pub fn index(self, size: u32) -> u32 {
        self.0 & (size - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Sqn;

    #[test]
    fn numbers_go_round() {
        assert_eq!(Sqn(u32::MAX).plus(2), Sqn(1));
        assert_eq!(Sqn(1).minus(2), Sqn(u32::MAX));
        assert_eq!(Sqn(1).since(Sqn(u32::MAX)), 2);
        assert!(Sqn(u32::MAX).is_before(Sqn(0)));
        assert!(!Sqn(0).is_before(Sqn(u32::MAX)));
        assert!(!Sqn(7).is_before(Sqn(7)));
    }

    #[test]
    fn half_the_circle_away_both_are_before() {
        assert!(Sqn(0).is_before(Sqn(0x8000_0000)) && Sqn(0x8000_0000).is_before(Sqn(0)));
        assert!(Sqn(0).is_before(Sqn(0x7fff_ffff)) && !Sqn(0x7fff_ffff).is_before(Sqn(0)));
    }

    #[test]
    fn groups_are_aligned() {
        assert_eq!((Sqn(21).group(8), Sqn(21).index(8)), (Sqn(16), 5));
    }
}
