//! Owners of ids over time. Windows reuses the ids of processes and threads.

/// The time during which a process or a thread had an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Id of the process or thread.
    pub id: u32,
    /// Time of the first event about the process or thread, in nanoseconds since the trace's start.
    pub first_seen_ns: i64,
    /// Time at which the process or thread started; `None` if it started before the trace.
    pub start_ns: Option<i64>,
    /// Time at which the process or thread ended; `None` if it ended after the trace.
    pub end_ns: Option<i64>,
}

/// Look-up of the process or thread that had an id at a given time. A look-up takes logarithmic time. The
/// result is an index in the list of lives that was passed to `new`.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// Entries with three values: an id, the time from which a life had the id, and the index of the life.
    /// The entries are sorted by id and time.
    entries: Vec<(u32, i64, usize)>,
}

impl Lifetimes {
    /// Creates the look-up from lives in any order.
    ///
    /// If a life has no start, it begins directly after the end of the previous life with the same id. If this end is
    /// unknown, it begins at `first_seen_ns`. If there is no previous life, it begins before all other times.
    pub fn new(lives: impl IntoIterator<Item = Life>) -> Lifetimes {
        let mut lives: Vec<(Life, usize)> = lives.into_iter().zip(0..).collect();
        lives.sort_by_key(|(life, _)| (life.id, life.first_seen_ns));
        let mut entries: Vec<(u32, i64, usize)> = Vec::with_capacity(lives.len());
        let mut previous: Option<Life> = None;
        for (life, index) in lives {
            let previous = previous.replace(life).filter(|last| last.id == life.id);
            let since = previous.map(|last| {
                last.end_ns
                    .map_or(life.first_seen_ns, |end| end.saturating_add(1))
            });
            let from = life.start_ns.or(since).unwrap_or(i64::MIN);
            entries.push((life.id, from, index));
        }
        entries.sort_by_key(|entry| (entry.0, entry.1));
        Lifetimes { entries }
    }

    /// Returns the life that had the id at a given time. A life keeps its id after its end until another life
    /// gets the id. The reason is that events about the end of a life are logged after the end.
    pub fn at(&self, id: u32, time_ns: i64) -> Option<usize> {
        self.span_at(id, time_ns).0
    }

    /// Returns the life that had the id at a given time, like [`Lifetimes::at`]. If the time is before the
    /// first life with the id, returns the first life.
    pub fn at_or_first(&self, id: u32, time_ns: i64) -> Option<usize> {
        self.at(id, time_ns).or_else(|| {
            let first = self.entries.partition_point(|entry| entry.0 < id);
            let first = self.entries.get(first).filter(|entry| entry.0 == id);
            first.map(|(.., index)| *index)
        })
    }

    /// Returns the life that had the id at a given time. Also returns the time range in which this result is
    /// valid. The end of the range is excluded.
    pub(crate) fn span_at(&self, id: u32, time_ns: i64) -> (Option<usize>, i64, i64) {
        let after = self
            .entries
            .partition_point(|entry| (entry.0, entry.1) <= (id, time_ns));
        let has_id = |entry: &&(u32, i64, usize)| entry.0 == id;
        let next = self.entries.get(after).filter(has_id);
        let until = next.map_or(i64::MAX, |entry| entry.1);
        let now = after.checked_sub(1).and_then(|at| self.entries.get(at));
        match now.filter(has_id) {
            Some((_, from, index)) => (Some(*index), *from, until),
            None => (None, i64::MIN, until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(id: u32, first_seen_ns: i64, start: bool, end_ns: Option<i64>) -> Life {
        Life {
            id,
            first_seen_ns,
            start_ns: start.then_some(first_seen_ns),
            end_ns,
        }
    }

    #[test]
    fn ids_are_reused() {
        let lives = [
            life(8, 200, true, None),
            life(8, 0, false, Some(100)),
            life(12, 50, true, None),
        ];
        let lifetimes = Lifetimes::new(lives);
        for (id, time_ns, index) in [
            (8, -10, Some(1)),
            (8, 50, Some(1)),
            (8, 150, Some(1)),
            (8, 200, Some(0)),
            (8, 400, Some(0)),
            (12, 49, None),
            (12, 50, Some(2)),
            (16, 50, None),
        ] {
            assert_eq!(lifetimes.at(id, time_ns), index, "{id} at {time_ns}");
        }
        assert_eq!(lifetimes.at_or_first(12, 49), Some(2));
        assert_eq!(lifetimes.at_or_first(8, -10), Some(1));
        assert_eq!(lifetimes.at_or_first(16, 50), None);
    }

    #[test]
    fn a_life_without_start_begins_after_the_previous_one() {
        let lives = [life(4, 100, false, Some(100)), life(4, 200, false, None)];
        let lifetimes = Lifetimes::new(lives);
        assert_eq!(lifetimes.at(4, 0), Some(0));
        assert_eq!(lifetimes.at(4, 100), Some(0));
        assert_eq!(lifetimes.at(4, 150), Some(1));
        assert_eq!(lifetimes.span_at(4, 150), (Some(1), 101, i64::MAX));
        // These are two lives without start and end.
        let lives = [life(4, 100, false, None), life(4, 200, false, None)];
        assert_eq!(Lifetimes::new(lives).at(4, 150), Some(0));
    }
}
