//! One level of a pivot table: groups under a path of ids, summarised and ranked.

use std::cmp::Ordering;

use crate::{Cancelled, NULL, Percentiles, Rows, Summary, TooLarge};

/// What a pivot groups and summarises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PivotSpec {
    /// For each key column, outermost first, the number of its ids.
    pub bounds: Vec<u32>,
    /// The groups opened so far, outermost first; `None` is the unknown id. The groups of the next
    /// key column are given: with no path those of the first.
    pub path: Vec<Option<u32>>,
    /// How many columns of measures there are.
    pub measures: usize,
    /// Whether percentiles are wanted, which cost several times what the rest does.
    pub percentiles: bool,
}

/// Groups rows under a path by the next key column.
#[derive(Clone, Debug)]
pub struct Pivot {
    spec: PivotSpec,
    /// Of the column that is grouped by; the unknown is the group after the last.
    bound: u32,
    /// By group, the rows that the first measure's summary does not count: those in which it is
    /// unknown, or all if there are no measures. Counting every row apart would be a pass more.
    uncounted: Vec<u64>,
    /// By measure, then by group.
    summaries: Vec<Vec<Summary>>,
    /// The same; none when none are wanted.
    percentiles: Vec<Vec<Percentiles>>,
}

/// The groups of one level.
#[derive(Clone, Debug)]
pub struct Level {
    /// The first ones of the order asked for.
    pub groups: Vec<Group>,
    /// How many more there are.
    pub rest: usize,
    /// Rows of all groups, those not given too.
    pub rows: u64,
    /// Each measure, over all groups.
    pub totals: Vec<Summary>,
}

/// The rows of one id.
#[derive(Clone, Debug)]
pub struct Group {
    /// The id; `None` is the unknown.
    pub id: Option<u32>,
    /// Rows in it.
    pub rows: u64,
    /// Each measure's summary, over the rows in which it is known.
    pub measures: Vec<Summary>,
    /// Each measure's percentiles; empty if they were not asked for.
    pub percentiles: Vec<Percentiles>,
}

/// What is computed of a group; measures are given by their place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// Rows.
    Rows,
    /// Rows in which a measure is known.
    Count(usize),
    /// Sum of a measure.
    Sum(usize),
    /// Mean of a measure.
    Mean(usize),
    /// Least of a measure.
    Min(usize),
    /// Greatest of a measure.
    Max(usize),
    /// A measure's value that this share of the rows does not exceed, say 0.99.
    Percentile(usize, f64),
}

/// An aggregate's value.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Number {
    /// Of all aggregates but the mean.
    Integer(i64),
    /// The mean.
    Real(f64),
}

/// How groups are ranked; equals by id, those without a value last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// By what.
    pub by: Aggregate,
    /// Greatest first.
    pub descending: bool,
}

impl Pivot {
    /// Groups nothing yet.
    ///
    /// # Errors
    /// When there are too many ids × measures.
    ///
    /// # Panics
    /// If the path is as long as there are key columns: there is nothing left to group by.
    pub fn new(spec: PivotSpec) -> Result<Pivot, TooLarge> {
        let bound = spec.bounds[spec.path.len()];
        let groups = bound as usize + 1;
        TooLarge::check(groups, spec.measures.max(1))?;
        let kept = if spec.percentiles { spec.measures } else { 0 };
        Ok(Pivot {
            uncounted: vec![0; groups],
            summaries: vec![vec![Summary::EMPTY; groups]; spec.measures],
            percentiles: vec![vec![Percentiles::EMPTY; groups]; kept],
            bound,
            spec,
        })
    }

    /// Adds rows: the key columns, outermost first, and the measures. Key columns after the one that
    /// is grouped by may be left out.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is missing or shorter than the rows.
    pub fn add(
        &mut self,
        keys: &[&[u32]],
        measures: &[&[i64]],
        rows: &Rows<'_>,
    ) -> Result<(), Cancelled> {
        assert_eq!(measures.len(), self.spec.measures, "columns of measures");
        let (path, keys) = (&keys[..self.spec.path.len()], keys[self.spec.path.len()]);
        let opened = path.iter().zip(&self.spec.bounds).zip(&self.spec.path);
        let rows = opened.fold(rows.clone(), |rows, ((column, bound), opened)| {
            let wanted = opened.unwrap_or(*bound).min(*bound);
            rows.keep_if(|row| column[row].min(*bound) == wanted)
        });
        let bound = self.bound;
        let group = |id: &u32| (*id).min(bound) as usize;
        rows.each_run(|run| {
            // Column by column: a run's ids stay in the cache, and each loop is a simple one.
            let ids = &keys[run.clone()];
            if measures.is_empty() {
                ids.iter().for_each(|id| self.uncounted[group(id)] += 1);
            }
            for (place, values) in measures.iter().enumerate() {
                let summaries = &mut self.summaries[place];
                for (id, value) in ids.iter().zip(&values[run.clone()]) {
                    let counted = summaries[group(id)].add(*value);
                    if !counted && place == 0 {
                        self.uncounted[group(id)] += 1;
                    }
                }
            }
            for (percentiles, values) in self.percentiles.iter_mut().zip(measures) {
                let known = ids.iter().zip(&values[run.clone()]);
                for (id, value) in known.filter(|(_, value)| **value != NULL) {
                    percentiles[group(id)].add(*value);
                }
            }
        })
    }

    /// Adds what another of the same spec has seen.
    ///
    /// # Panics
    /// If its spec differs.
    pub fn merge(&mut self, other: &Pivot) {
        assert_eq!(self.spec, other.spec, "pivots of different shapes");
        for (rows, other) in self.uncounted.iter_mut().zip(&other.uncounted) {
            *rows += other;
        }
        let summaries = self.summaries.iter_mut().flatten();
        for (summary, other) in summaries.zip(other.summaries.iter().flatten()) {
            summary.merge(other);
        }
        let percentiles = self.percentiles.iter_mut().flatten();
        for (percentiles, other) in percentiles.zip(other.percentiles.iter().flatten()) {
            percentiles.merge(other);
        }
    }

    /// The groups that have rows, ranked: the first so many, and how many more there are.
    pub fn finish(mut self, order: Order, first: usize) -> Level {
        self.percentiles
            .iter_mut()
            .flatten()
            .for_each(Percentiles::sort);
        let mut totals = vec![Summary::EMPTY; self.spec.measures];
        let mut groups = Vec::new();
        let mut all_rows = 0;
        for (group, uncounted) in self.uncounted.iter().enumerate() {
            let measures: Vec<Summary> = self.summaries.iter().map(|all| all[group]).collect();
            let rows = uncounted + measures.first().map_or(0, Summary::count);
            if rows == 0 {
                continue;
            }
            all_rows += rows;
            for (total, summary) in totals.iter_mut().zip(&measures) {
                total.merge(summary);
            }
            let percentiles = self.percentiles.iter_mut();
            groups.push(Group {
                id: (group < self.bound as usize).then_some(group as u32),
                rows,
                measures,
                percentiles: percentiles
                    .map(|all| std::mem::replace(&mut all[group], Percentiles::EMPTY))
                    .collect(),
            });
        }
        // They are in the order of their ids, the unknown last, and the sort is stable.
        groups.sort_by(|a, b| order.compare(a, b));
        let rest = groups.len().saturating_sub(first);
        groups.truncate(first);
        Level {
            groups,
            rest,
            rows: all_rows,
            totals,
        }
    }
}

impl Group {
    /// The aggregate's value; none if the measure is nowhere known or there is no such measure.
    pub fn aggregate(&self, aggregate: Aggregate) -> Option<Number> {
        let integer = |count: u64| Number::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        let of = |measure: usize| self.measures.get(measure);
        match aggregate {
            Aggregate::Rows => Some(integer(self.rows)),
            Aggregate::Count(measure) => Some(integer(of(measure)?.count())),
            Aggregate::Sum(measure) => of(measure)?.sum().map(Number::Integer),
            Aggregate::Mean(measure) => of(measure)?.mean().map(Number::Real),
            Aggregate::Min(measure) => of(measure)?.min().map(Number::Integer),
            Aggregate::Max(measure) => of(measure)?.max().map(Number::Integer),
            Aggregate::Percentile(measure, share) => {
                let percentiles = self.percentiles.get(measure)?;
                percentiles.at(share).map(Number::Integer)
            }
        }
    }
}

impl Order {
    fn compare(self, a: &Group, b: &Group) -> Ordering {
        match (a.aggregate(self.by), b.aggregate(self.by)) {
            (Some(a), Some(b)) => {
                let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
                if self.descending {
                    order.reverse()
                } else {
                    order
                }
            }
            // A value before none, whichever way.
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
}
