//! What is no table itself: events that the rows of a table are made of.

use crate::schema::Rows;

/// Events and when they were.
#[derive(Clone, Debug)]
pub(crate) struct Timed<T>(pub(crate) Vec<(i64, T)>);

impl<T> Default for Timed<T> {
    fn default() -> Self {
        Timed(Vec::new())
    }
}

impl<T: Send> Rows for Timed<T> {
    fn sort(&mut self) {
        self.0.sort_by_key(|(time_ns, _)| *time_ns);
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    fn merge(parts: Vec<Self>) -> Self {
        let mut all = Timed(parts.into_iter().flat_map(|part| part.0).collect());
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
        Timed(self.0.split_off(at))
    }
}
