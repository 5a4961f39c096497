//! Division of the compared time into blocks.

use std::ops::Range;

/// Range of the length of a block, in nanoseconds. Blocks are short, so that there are many of them, and long enough to
/// be nearly independent of each other.
const BLOCK_NS: Range<i64> = 500_000_000..2_000_000_000;

/// Usual number of blocks of a recording. The number is different if it would make blocks shorter or longer than
/// `BLOCK_NS` allows.
const BLOCKS: i64 = 40;

/// Maximum number of blocks. It limits the memory that long recordings or wrong clocks need. If the compared
/// time exceeds 480 s, blocks are longer than 2 s.
const MOST_BLOCKS: i64 = 240;

/// Blocks of equal length that fill the compared time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    start_ns: i64,
    /// Compared part of the trace. `None` if the whole trace is compared.
    pub(crate) part: Option<Range<i64>>,
    length_ns: i64,
    pub(crate) count: usize,
}

impl Blocks {
    /// Divides the given part of the trace. If `part` is `None`, divides the whole trace, whose rows are
    /// within `time`.
    pub(crate) fn new(time: Range<i64>, part: Option<Range<i64>>) -> Blocks {
        let time = part.clone().unwrap_or(time);
        let whole = time.end.saturating_sub(time.start).max(1);
        let usual = (whole / BLOCKS).clamp(BLOCK_NS.start, BLOCK_NS.end);
        let length = usual.max(whole / MOST_BLOCKS);
        let count = (whole / length).max(1);
        Blocks {
            start_ns: time.start,
            part,
            // All blocks have the same length, including the last one, because the whole time is divided by `count`.
            length_ns: (whole / count).max(1),
            count: count as usize,
        }
    }

    /// Returns the start and end of the time that the blocks fill, in nanoseconds. The end is exclusive.
    pub(crate) fn range_ns(&self) -> [i64; 2] {
        let blocks = self.count as i64;
        // Each block is up to 1 ns shorter than an equal share of the time, because its length is rounded down.
        let length = self.length_ns.saturating_mul(blocks).saturating_add(blocks);
        let end = self.start_ns.saturating_add(length);
        let end = self.part.as_ref().map_or(end, |part| part.end.min(end));
        [self.start_ns, end]
    }

    /// Returns the length of all blocks together, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.length_ns as f64 * self.count as f64 / 1e9
    }

    /// Returns the index of the block that contains a time. Returns `None` if the time is outside the
    /// compared part.
    pub(crate) fn at(&self, ns: i64) -> Option<usize> {
        let part = self.part.as_ref();
        (part.is_none_or(|part| part.contains(&ns))).then(|| self.nearest(ns))
    }

    /// Returns the index of the block that contains a time. A time before the first block belongs to the
    /// first block, and a time after the last block belongs to the last block.
    pub(crate) fn nearest(&self, ns: i64) -> usize {
        let block = ns.saturating_sub(self.start_ns) / self.length_ns;
        usize::try_from(block).unwrap_or(0).min(self.count - 1)
    }

    /// Returns the intersection of a time range and the compared part. Returns `None` if the intersection is
    /// empty.
    pub(crate) fn within(&self, time: Range<i64>) -> Option<Range<i64>> {
        let time = match &self.part {
            Some(part) => time.start.max(part.start)..time.end.min(part.end),
            None => time,
        };
        (time.start < time.end).then_some(time)
    }

    /// Calls `each` for each block that a time range overlaps, with the index of the block and the length of
    /// the overlap in nanoseconds.
    pub(crate) fn split(&self, time: Range<i64>, mut each: impl FnMut(usize, i64)) {
        let last = self.nearest(time.end);
        let mut from = time.start;
        for block in self.nearest(time.start)..=last {
            let end = if block == last {
                time.end
            } else {
                self.start_ns + (block as i64 + 1) * self.length_ns
            };
            each(block, end.saturating_sub(from).max(0));
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn blocks_fill_the_time() {
        for (time, count) in [
            (0..10 * S, 20),
            (5 * S..65 * S, 40),
            (0..480 * S, 240),
            (0..100_000 * S, 240),
            (0..i64::MAX / 2, 240),
            (0..S, 2),
            (0..0, 1),
        ] {
            let blocks = Blocks::new(time.clone(), None);
            assert_eq!(blocks.count, count, "{time:?}");
            assert_eq!(blocks.at(time.start), Some(0));
            assert_eq!(blocks.at(time.end), Some(count - 1));
            let (mut whole, mut parts) = (0, 0);
            let beyond = time.start - 5..time.end + 5;
            blocks.split(beyond, |_, ns| {
                whole += ns;
                parts += 1;
            });
            assert_eq!((whole, parts), (time.end - time.start + 10, count));
        }
    }

    #[test]
    fn a_part_ends_before_its_end() {
        let blocks = Blocks::new(0..20 * S, Some(5 * S..15 * S));
        assert_eq!((blocks.count, blocks.seconds()), (20, 10.0));
        assert_eq!(blocks.at(5 * S - 1), None);
        assert_eq!(blocks.at(5 * S), Some(0));
        assert_eq!(blocks.at(15 * S - 1), Some(19));
        assert_eq!(blocks.at(15 * S), None);
        assert_eq!(blocks.within(0..6 * S), Some(5 * S..6 * S));
        assert_eq!(blocks.within(0..5 * S), None);
        let mut parts = Vec::new();
        blocks.split(5_400_000_000..6_100_000_000, |block, ns| {
            parts.push((block, ns))
        });
        assert_eq!(
            parts,
            [(0, 100_000_000), (1, 500_000_000), (2, 100_000_000)]
        );
    }
}
