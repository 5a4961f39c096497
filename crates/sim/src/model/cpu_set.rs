//! Sets of processors, such as a thread's affinity.

const MAX_CPUS: usize = crate::scenario::MAX_CPUS as usize;

/// A set of processors, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuSet([u64; MAX_CPUS / 64]);

impl CpuSet {
    /// Returns the set of the processors 0 to `count` - 1.
    pub(crate) fn first(count: usize) -> CpuSet {
        (0..count).collect()
    }

    #[inline]
    pub(crate) fn insert(&mut self, cpu: usize) {
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, cpu: usize) {
        self.0[cpu / 64] &= !(1 << (cpu % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.0[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    #[inline]
    pub(crate) fn and(&self, other: &CpuSet) -> CpuSet {
        let mut both = *self;
        for (word, other) in both.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        both
    }

    /// Returns true if every processor of `self` is in `other`.
    #[inline]
    pub(crate) fn is_within(&self, other: &CpuSet) -> bool {
        self.and(other) == *self
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; MAX_CPUS / 64]
    }

    /// Returns the processor with the lowest index.
    #[inline]
    pub(crate) fn lowest(&self) -> Option<usize> {
        self.iter().next()
    }

    /// Returns the processors in ascending order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, bits)| {
            std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)))
                .take_while(|bits| *bits != 0)
                .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }

    /// Returns `count` processors from index `first` on as a bit mask. An example is the processors of a
    /// processor group.
    pub(crate) fn mask(&self, first: usize, count: usize) -> u64 {
        (0..count.min(64))
            .filter(|i| first + i < MAX_CPUS && self.contains(first + i))
            .fold(0, |mask, i| mask | 1 << i)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::default();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let set: CpuSet = [3, 64, 255].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 255]);
        assert!(set.contains(64) && !set.contains(65));
        assert_eq!(set.lowest(), Some(3));
        let low = CpuSet::first(70);
        assert_eq!(set.and(&low).iter().collect::<Vec<_>>(), [3, 64]);
        assert!(set.and(&low).is_within(&low) && !set.is_within(&low));
        assert!(set.and(&CpuSet::default()).is_empty());
        assert_eq!(set.mask(64, 64), 1);
    }
}
