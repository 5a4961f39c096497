//! Scheduling groups. Their threads have a rank, which precedes priority.
//!
//! Two rules are documented (Windows Internals, 7th edition, part 1, chapter 4): rank precedes priority, and
//! the rank rises while a group's threads use more than their share within a generation. The formula for use
//! beyond the budget is invented: `rank = bias + 1 + (used - budget) / step`, with
//! `budget = weight / all weights × generation × processors`. The bias applies to an app in the background,
//! because a trace of a real machine showed a constant rank of 2 for such an app, and ranks from 2 to 19 for
//! a busy app.

use crate::time::Time;

/// A scheduling group.
#[derive(Debug)]
pub(crate) struct Group {
    /// Number that is added to the rank while the group's process is in the background.
    pub(crate) bias: u8,
    pub(crate) background: bool,
    /// Processor time that the group used in this generation. At the start of a generation, the used times of all
    /// groups become 0.
    pub(crate) used: Time,
    /// Processor time that the group may use in a generation before its rank rises.
    pub(crate) budget: Time,
    /// Processor time beyond `budget` that raises the rank by one.
    pub(crate) step: Time,
    pub(crate) highest: u8,
    /// Maximum processor time that the group may use in a generation.
    pub(crate) cap: Option<Time>,
    pub(crate) rank: u8,
    /// Threads that wait because the group's cap is reached.
    pub(crate) held: Vec<super::ThreadId>,
}

impl Group {
    /// Returns the rank that follows from the group's used time and bias.
    fn due_rank(&self) -> u8 {
        let bias = u64::from(if self.background { self.bias } else { 0 });
        let over = match self.used.checked_sub(self.budget + 1) {
            None => 0,
            Some(over) => 1 + over / self.step,
        };
        (bias + over).min(u64::from(self.highest)) as u8
    }

    /// Updates the rank. Returns true if it changed.
    #[inline]
    pub(crate) fn update(&mut self) -> bool {
        let rank = self.due_rank();
        let changed = rank != self.rank;
        self.rank = rank;
        changed
    }

    #[inline]
    pub(crate) fn is_capped(&self) -> bool {
        self.cap.is_some_and(|cap| self.used >= cap)
    }

    /// Returns the processor time that the group may still use before its rank rises or its cap is
    /// reached.
    #[inline]
    pub(crate) fn room(&self) -> Time {
        let next_rank = match self.used.checked_sub(self.budget + 1) {
            None => self.budget + 1 - self.used,
            Some(over) => self.step - over % self.step,
        };
        let cap = self
            .cap
            .map_or(Time::MAX, |cap| cap.saturating_sub(self.used));
        next_rank.min(cap).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> Group {
        Group {
            bias: 2,
            background: false,
            used: 0,
            budget: 100,
            step: 10,
            highest: 20,
            cap: Some(300),
            rank: 0,
            held: Vec::new(),
        }
    }

    #[test]
    fn rank_rises_with_use_beyond_the_share() {
        let mut group = group();
        let mut ranks = Vec::new();
        let mut rooms = Vec::new();
        for used in [0, 100, 101, 110, 111, 130] {
            group.used = used;
            group.update();
            ranks.push(group.rank);
            rooms.push(group.room());
        }
        assert_eq!(ranks, [0, 0, 1, 1, 2, 3]);
        assert_eq!(rooms, [101, 1, 10, 1, 10, 1]);
        group.background = true;
        assert!(group.update());
        assert_eq!(group.rank, 5);
        group.used = 10_000;
        group.update();
        assert_eq!(group.rank, 20);
        assert!(group.is_capped());
        group.used = 0;
        group.update();
        assert_eq!(group.rank, 2);
    }
}
