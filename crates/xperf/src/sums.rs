//! Sums of rows by group.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use tables::Identities;

use crate::layout::{Fold, Layout, ProcessKey, Value};
use crate::{Error, Writer, percent};

/// Sums of rows. The rows of a group have the same values in all columns without a fold.
pub(crate) struct Sums<X: 'static> {
    layout: &'static Layout<X>,
    /// Indexes of the columns without a fold.
    keys: Vec<usize>,
    /// Indexes of the columns with a fold.
    folds: Vec<(usize, Fold)>,
    /// Values of each group in the columns with a fold, by its values in the other columns.
    groups: FxHashMap<Vec<Key>, Vec<Option<i64>>>,
    rows: u64,
    /// Number of rows whose value is unknown, by column.
    unknown: Vec<u64>,
    /// Buffer for the group of a row.
    key: Vec<Key>,
}

/// Value that a group has in a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Unknown,
    Number(i64),
    Text(Box<str>),
    Process(ProcessKey),
}

impl<X> Sums<X> {
    pub(crate) fn new(layout: &'static Layout<X>) -> Sums<X> {
        let columns = layout.columns.iter().enumerate();
        let keys = columns.clone().filter(|(_, column)| column.fold.is_none());
        Sums {
            layout,
            keys: keys.map(|(at, _)| at).collect(),
            folds: columns
                .filter_map(|(at, column)| Some((at, column.fold?)))
                .collect(),
            groups: FxHashMap::default(),
            rows: 0,
            unknown: vec![0; layout.columns.len()],
            key: Vec::new(),
        }
    }

    /// Adds a row, from its value in each column.
    pub(crate) fn add<'v>(&mut self, value: impl Fn(usize) -> Value<'v>) {
        self.key.clear();
        self.key
            .extend(self.keys.iter().map(|at| Key::new(value(*at))));
        let sums = match self.groups.get_mut(&self.key) {
            Some(sums) => sums,
            None => {
                let start = |fold| matches!(fold, Fold::Count | Fold::SumOrZero).then_some(0);
                let starts = self.folds.iter().map(|(_, fold)| start(*fold)).collect();
                self.groups.entry(self.key.clone()).or_insert(starts)
            }
        };
        for (&(at, fold), sum) in self.folds.iter().zip(sums) {
            let known = match fold {
                Fold::Share => continue,
                Fold::Count => Some(1),
                Fold::Sum | Fold::SumOrZero | Fold::Max => value(at).number(),
            };
            match known {
                None => self.unknown[at] += 1,
                Some(_) if fold == Fold::Max => *sum = known.max(*sum),
                Some(number) => *sum = Some(sum.unwrap_or(0).saturating_add(number)),
            }
        }
        self.rows += 1;
    }

    /// Writes a row for each group. `order` names the columns by which the groups are sorted: columns with a fold from the
    /// largest value to the smallest, others from the smallest to the largest. The other columns without a fold follow.
    /// `whole_ns` is the time of which [`Fold::Share`] is a percentage.
    pub(crate) fn write(
        &self,
        order: &[&str],
        whole_ns: i64,
        names: &Identities,
        out: &mut Writer,
    ) -> Result<(), Error> {
        let columns = self.layout.columns;
        let named = order.iter().filter_map(|name| self.column(name));
        let order: Vec<usize> = named.chain(self.keys.iter().copied()).collect();
        let groups = self.groups.iter();
        let mut rows: Vec<_> = groups
            .map(|(key, sums)| self.row(key, sums, whole_ns))
            .collect();
        rows.sort_unstable_by(|a, b| {
            let compare = |at: &usize| match columns[*at].fold {
                None => a[*at].partial_cmp(&b[*at]),
                Some(_) => b[*at].partial_cmp(&a[*at]),
            };
            let mut orders = order.iter().filter_map(compare);
            orders
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        let mut table = out.table(self.layout, names);
        Ok(rows.iter().try_for_each(|row| table.row(row))?)
    }

    /// Returns the value of a group in each column.
    fn row<'s>(&self, key: &'s [Key], sums: &[Option<i64>], whole_ns: i64) -> Vec<Value<'s>> {
        let (mut key, mut sums) = (key.iter(), sums.iter());
        let mut left = None;
        let values = self.layout.columns.iter().map(|column| match column.fold {
            None => key.next().map_or(Value::Unknown, Key::value),
            Some(fold) => {
                let sum = sums.next().copied().flatten();
                let part = std::mem::replace(&mut left, sum);
                if fold == Fold::Share {
                    part.map_or(Value::Unknown, |part| Value::Share(percent(part, whole_ns)))
                } else {
                    sum.into()
                }
            }
        });
        values.collect()
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of rows whose value in a column is unknown, so that its fold excludes them.
    pub(crate) fn unknown(&self, name: &str) -> u64 {
        self.column(name).map_or(0, |column| self.unknown[column])
    }

    fn column(&self, name: &str) -> Option<usize> {
        let mut columns = self.layout.columns.iter();
        columns.position(|column| column.name == name)
    }
}

impl Key {
    fn new(value: Value<'_>) -> Key {
        match value {
            Value::Text(text) => Key::Text(text.into()),
            Value::Process(process) => Key::Process(process),
            _ => value.number().map_or(Key::Unknown, Key::Number),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Key::Unknown => Value::Unknown,
            Key::Number(number) => Value::Number(*number),
            Key::Text(text) => Value::Text(text),
            Key::Process(process) => Value::Process(*process),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Column, Format};

    static LAYOUT: Layout = Layout {
        name: "requests",
        columns: &[
            Column::new("", "kind", Format::Plain),
            Column::new("", "count", Format::Plain).fold(Fold::Count),
            Column::new("", "bytes", Format::Plain).fold(Fold::SumOrZero),
            Column::new("", "time_ns", Format::Time).fold(Fold::Sum),
            Column::new("", "percent", Format::Plain).fold(Fold::Share),
            Column::new("", "longest_ns", Format::Time).fold(Fold::Max),
        ],
    };

    #[test]
    fn unknown_times_are_in_no_sum_and_counted() {
        let mut sums = Sums::new(&LAYOUT);
        for (kind, bytes, time_ns) in [
            ("read", Some(512), None),
            ("read", None, Some(30)),
            ("read", None, Some(20)),
            ("flush", None, None),
        ] {
            sums.add(|column| match column {
                0 => kind.into(),
                2 => Value::from(bytes),
                _ => Value::from(time_ns),
            });
        }
        let mut rows: Vec<_> = sums
            .groups
            .iter()
            .map(|(key, values)| sums.row(key, values, 200))
            .collect();
        rows.sort_by_key(|row| row[1].number());
        let flush = [Value::Text("flush"), 1.into(), 0.into()];
        let read = [Value::Text("read"), 3.into(), 512.into(), 50.into()];
        assert_eq!(rows[0], [&flush[..], &[Value::Unknown; 3]].concat());
        assert_eq!(
            rows[1],
            [&read[..], &[Value::Share(25.0), 30.into()]].concat()
        );
        assert_eq!((sums.rows(), sums.unknown("time_ns")), (4, 2));
        assert_eq!((sums.unknown("bytes"), sums.unknown("count")), (3, 0));
    }
}
