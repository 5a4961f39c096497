//! Events with their times. They are kept until table rows are made from them.

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
        for part in parts {
            all.0.extend(part.0);
        }
        all.sort();
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
