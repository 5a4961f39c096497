//! Sequence numbers, which wrap around.

/// A 32-bit sequence number with wrap-around (RFC 3208 section 6.3). Sequence numbers have no total order. A
/// comparison of two numbers has a meaning only within half of the number space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sqn(pub u32);

impl Sqn {
    /// Maximum distance between two numbers of a window. At greater distances, it is not clear which of two
    /// numbers is the earlier number.
    pub const MAX_SPAN: u32 = 0x7fff_fffd;

    /// Returns the number that is `count` steps later.
    pub fn plus(self, count: u32) -> Sqn {
        Sqn(self.0.wrapping_add(count))
    }

    /// Returns the number that is `count` steps earlier.
    pub fn minus(self, count: u32) -> Sqn {
        Sqn(self.0.wrapping_sub(count))
    }

    /// Returns the number of steps from `earlier` to this number.
    pub fn since(self, earlier: Sqn) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns true if this number is in the half of the number space before `other`. If the distance is
    /// exactly half of the number space, each of the two numbers is before the other number.
    pub fn is_before(self, other: Sqn) -> bool {
        self.since(other) & 0x8000_0000 != 0
    }

    /// Returns the first number of the transmission group that contains this number. A group has `size`
    /// numbers. `size` must be a power of two.
    pub fn group(self, size: u32) -> Sqn {
        Sqn(self.0 & !(size - 1))
    }

    /// Returns the index of this number in its transmission group. A group has `size` numbers. `size` must be
    /// a power of two.
    pub fn index(self, size: u32) -> u32 {
        self.0 & (size - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Sqn;

    #[test]
    fn numbers_wrap_around() {
        assert_eq!(Sqn(u32::MAX).plus(2), Sqn(1));
        assert_eq!(Sqn(1).minus(2), Sqn(u32::MAX));
        assert_eq!(Sqn(1).since(Sqn(u32::MAX)), 2);
        assert!(Sqn(u32::MAX).is_before(Sqn(0)));
        assert!(!Sqn(0).is_before(Sqn(u32::MAX)));
        assert!(!Sqn(7).is_before(Sqn(7)));
    }

    #[test]
    fn at_half_the_range_each_is_before_the_other() {
        assert!(Sqn(0).is_before(Sqn(0x8000_0000)) && Sqn(0x8000_0000).is_before(Sqn(0)));
        assert!(Sqn(0).is_before(Sqn(0x7fff_ffff)) && !Sqn(0x7fff_ffff).is_before(Sqn(0)));
    }

    #[test]
    fn groups_are_aligned() {
        assert_eq!((Sqn(21).group(8), Sqn(21).index(8)), (Sqn(16), 5));
    }
}
