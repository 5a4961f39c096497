//! Events with their times. They are kept until table rows are made from them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::schema::Rows;

/// Values with their times, in nanoseconds since the trace's start.
#[derive(Clone, Debug)]
pub struct TimedValues<T>(pub Vec<(i64, T)>);

impl<T> Default for TimedValues<T> {
    fn default() -> Self {
        TimedValues(Vec::new())
    }
}

impl<T: Send> Rows for TimedValues<T> {
    fn sort(&mut self) {
        self.0.sort_by_key(|(time_ns, _)| *time_ns);
    }

    fn merge(mut parts: Vec<Self>) -> Self {
        if parts.len() < 2 {
            return parts.pop().unwrap_or_default();
        }
        // Memory for exactly these rows: growing would reserve up to twice as much.
        let mut all = TimedValues(Vec::with_capacity(parts.iter().map(Rows::rows).sum()));
        // The parts are sorted. A sort of all rows would need memory for half of them, and would move them twice.
        let mut parts: Vec<_> = parts.into_iter().map(|part| part.0.into_iter()).collect();
        let next = |rows: &std::vec::IntoIter<(i64, T)>| {
            rows.as_slice().first().map(|(time_ns, _)| *time_ns)
        };
        // Time of the next row of each part, and the index of the part.
        let heads = (0..).zip(&parts);
        let mut heads: BinaryHeap<Reverse<(i64, usize)>> = heads
            .filter_map(|(part, rows)| Some(Reverse((next(rows)?, part))))
            .collect();
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((time_ns, part)) = &mut *head;
            let rows = &mut parts[*part];
            all.0.extend(rows.next());
            match next(rows) {
                Some(next_ns) => *time_ns = next_ns,
                None => drop(PeekMut::pop(head)),
            }
        }
        all
    }

    fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
    }

    fn rows(&self) -> usize {
        self.0.len()
    }

    fn split_off(&mut self, time_ns: i64) -> Self {
        let at = self.0.partition_point(|(time, _)| *time < time_ns);
        TimedValues(self.0.split_off(at))
    }
}
