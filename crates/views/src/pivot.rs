//! One level of a pivot table: groups under a path of ids, with their summaries.

use crate::{Cancelled, NULL, Percentiles, Rows, Summary, TooLarge};

/// Key columns and measures of a pivot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PivotSpec {
    /// Number of ids of each key column, outermost first.
    pub bounds: Vec<u32>,
    /// Ids of the opened groups, outermost first. `None` is the unknown id. Only rows in all opened groups count. The
    /// key column after the path groups these rows. If the path is empty, the first key column groups the rows.
    pub path: Vec<Option<u32>>,
    /// Number of measure columns.
    pub measures: usize,
    /// True if percentiles are computed. They take several times as long as all other aggregates together.
    pub percentiles: bool,
}

/// Groups of the rows under a path. The key column after the path groups the rows.
#[derive(Clone, Debug)]
pub struct Pivot {
    spec: PivotSpec,
    /// Number of ids of the key column that groups the rows. The unknown id forms one more group at the end.
    bound: u32,
    /// Number of rows of each group in which the first measure is unknown. The summary of the first measure counts all
    /// other rows. So the number of all rows is the sum of both counts, and no separate pass counts the rows. If there
    /// are no measures, this is the number of all rows of the group.
    uncounted: Vec<u64>,
    /// Summaries, indexed by measure and then by group.
    summaries: Vec<Vec<Summary>>,
    /// Percentiles, indexed by measure and then by group; empty if they are not computed.
    percentiles: Vec<Vec<Percentiles>>,
}

/// Groups of one level of a pivot table.
#[derive(Clone, Debug)]
pub struct Level {
    /// Groups that have rows, sorted by id. The unknown id is last.
    pub groups: Vec<Group>,
    /// Number of rows of all groups.
    pub rows: u64,
    /// Summary of each measure over all groups.
    pub totals: Vec<Summary>,
}

/// Group of the rows with the same id.
#[derive(Clone, Debug)]
pub struct Group {
    /// The id; `None` if it is unknown.
    pub id: Option<u32>,
    /// Number of rows.
    pub rows: u64,
    /// Summary of each measure.
    pub measures: Vec<Summary>,
    /// Percentiles of each measure; empty if they are not computed.
    pub percentiles: Vec<Percentiles>,
}

/// Value computed for a group. Measures are identified by their index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// Number of rows.
    Rows,
    /// Number of rows in which a measure is known.
    Count(usize),
    /// Sum of a measure.
    Sum(usize),
    /// Mean of a measure.
    Mean(usize),
    /// Minimum of a measure.
    Min(usize),
    /// Maximum of a measure.
    Max(usize),
    /// Percentile of a measure. The second value is a share from 0 to 1.
    Percentile(usize, f64),
}

/// Value of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Number {
    /// Value of an aggregate other than the mean.
    Integer(i64),
    /// Value of the mean.
    Real(f64),
}

impl Pivot {
    /// Creates a pivot without rows.
    ///
    /// # Errors
    /// Returns an error if the product of the number of ids and the number of measures is too large.
    ///
    /// # Panics
    /// Panics if the path is as long as the list of key columns. No column then remains to group by.
    pub fn new(spec: PivotSpec) -> Result<Pivot, TooLarge> {
        let bound = spec.bounds[spec.path.len()];
        let groups = bound as usize + 1;
        TooLarge::check(groups, spec.measures.max(1))?;
        let measures = if spec.percentiles { spec.measures } else { 0 };
        Ok(Pivot {
            uncounted: vec![0; groups],
            summaries: vec![vec![Summary::EMPTY; groups]; spec.measures],
            percentiles: vec![vec![Percentiles::default(); groups]; measures],
            bound,
            spec,
        })
    }

    /// Adds rows. `keys` are their key columns, outermost first. Key columns after the column that groups the
    /// rows may be omitted.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    ///
    /// # Panics
    /// Panics if a column is missing or shorter than the rows.
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
            // Each measure is added in a separate loop. The ids of a run of rows stay in the cache, and each loop is
            // simple.
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

    /// Adds the rows of another pivot.
    ///
    /// # Panics
    /// Panics if the other pivot has another spec.
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

    /// Returns the groups that have rows.
    pub fn finish(mut self) -> Level {
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
                    .map(|all| std::mem::take(&mut all[group]))
                    .collect(),
            });
        }
        Level {
            groups,
            rows: all_rows,
            totals,
        }
    }
}

impl Group {
    /// Returns the value of the aggregate. Returns `None` if the measure does not exist, or if it is unknown in all rows.
    /// A sum or maximum of 0 is also unknown if the measure is unknown in most rows: the 0 would hide them.
    pub fn aggregate(&self, aggregate: Aggregate) -> Option<Number> {
        let integer = |count: u64| Number::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        let summary = |measure: usize| self.measures.get(measure);
        let is_shown =
            |summary: &Summary, value: i64| value != 0 || summary.count() * 2 >= self.rows;
        let shown = |summary: &Summary, value: Option<i64>| {
            let value = value.filter(|value| is_shown(summary, *value));
            value.map(Number::Integer)
        };
        match aggregate {
            Aggregate::Rows => Some(integer(self.rows)),
            Aggregate::Count(measure) => Some(integer(summary(measure)?.count())),
            Aggregate::Sum(measure) => shown(summary(measure)?, summary(measure)?.sum()),
            Aggregate::Mean(measure) => summary(measure)?.mean().map(Number::Real),
            Aggregate::Min(measure) => summary(measure)?.min().map(Number::Integer),
            Aggregate::Max(measure) => shown(summary(measure)?, summary(measure)?.max()),
            Aggregate::Percentile(measure, share) => {
                let percentiles = self.percentiles.get(measure)?;
                percentiles.at(share).map(Number::Integer)
            }
        }
    }
}
