//! Aggregates that a request computes for each group: parser and SQL.

use views::{Aggregate, TimeRange};

use crate::catalogue::{ColumnDef, ROWS, Source, TableDef};
use crate::durations::Durations;
use crate::in_view::TimeInView;
use crate::{ExploreError, query};

/// One requested aggregate.
pub(crate) enum RequestedAggregate {
    /// Aggregate function of a column of numbers. It contains the index of the column in `measures`.
    Number(Aggregate),
    /// Common value of a key in all rows of a group. The number is the index of the key in `common`.
    Common(usize),
}

/// All aggregates of a request.
#[derive(Default)]
pub(crate) struct Aggregates {
    pub(crate) requested: Vec<RequestedAggregate>,
    /// Columns of numbers, without repetition.
    pub(crate) measures: Vec<&'static ColumnDef>,
    /// Keys whose common values are requested, without repetition.
    pub(crate) common: Vec<&'static ColumnDef>,
    pub(crate) percentiles: bool,
}

impl Aggregates {
    /// Parses the aggregates of a request.
    pub(crate) fn parse(
        def: &'static TableDef,
        texts: &[String],
    ) -> Result<Aggregates, ExploreError> {
        let mut all = Aggregates::default();
        for text in texts {
            let aggregate = all.add(def, text)?;
            all.requested.push(aggregate);
        }
        Ok(all)
    }

    fn add(
        &mut self,
        def: &'static TableDef,
        text: &str,
    ) -> Result<RequestedAggregate, ExploreError> {
        if text == ROWS {
            return Ok(RequestedAggregate::Number(Aggregate::Rows));
        }
        let Some((name, function)) = text.split_once(':') else {
            let key = def.key(text)?;
            return Ok(RequestedAggregate::Common(index(&mut self.common, key)));
        };
        let column = match def.column(name)? {
            column if column.source == Source::InView => column,
            _ => def.number(name)?,
        };
        let measure = index(&mut self.measures, column);
        let aggregate = match function {
            "sum" => Aggregate::Sum(measure),
            "count" => Aggregate::Count(measure),
            "mean" => Aggregate::Mean(measure),
            "min" => Aggregate::Min(measure),
            "max" => Aggregate::Max(measure),
            percentile => {
                self.percentiles = true;
                Aggregate::Percentile(measure, share(percentile)?)
            }
        };
        Ok(RequestedAggregate::Number(aggregate))
    }

    /// Returns an aggregate as SQL. `range` is the time range of the request. If `cut` is true,
    /// durations are cut to it.
    pub(crate) fn sql(
        &self,
        requested: &RequestedAggregate,
        table: &TableDef,
        range: TimeRange,
        cut: bool,
    ) -> String {
        let sql_of = |measure: usize| match self.measures[measure] {
            column if column.source == Source::InView => TimeInView::sql(table, range),
            column => match Durations::find(table, column).filter(|_| cut) {
                Some(durations) => query::cut(durations, range),
                None => query::number(column).to_owned(),
            },
        };
        match requested {
            RequestedAggregate::Number(Aggregate::Rows) => "count(*)".to_owned(),
            RequestedAggregate::Number(Aggregate::Count(measure)) => {
                format!("count({})", sql_of(*measure))
            }
            RequestedAggregate::Number(Aggregate::Sum(measure)) => {
                format!("sum({})", sql_of(*measure))
            }
            RequestedAggregate::Number(Aggregate::Mean(measure)) => {
                format!("avg({})", sql_of(*measure))
            }
            RequestedAggregate::Number(Aggregate::Min(measure)) => {
                format!("min({})", sql_of(*measure))
            }
            RequestedAggregate::Number(Aggregate::Max(measure)) => {
                format!("max({})", sql_of(*measure))
            }
            RequestedAggregate::Number(Aggregate::Percentile(measure, share)) => {
                let sql = sql_of(*measure);
                format!(
                    "array_element(array_agg({sql} ORDER BY {sql}) FILTER (WHERE {sql} IS NOT NULL), \
                     greatest(1, CAST(ceil({share} * count({sql})) AS BIGINT)))"
                )
            }
            RequestedAggregate::Common(key) => {
                let sql = self.common[*key].sql();
                format!(
                    "CASE WHEN count({sql}) = count(*) AND count(DISTINCT {sql}) = 1 THEN \
                     CAST(min({sql}) AS VARCHAR) WHEN count({sql}) > 0 THEN concat(count(DISTINCT \
                     {sql}) + CASE WHEN count({sql}) < count(*) THEN 1 ELSE 0 END, ' different') END"
                )
            }
        }
    }
}

/// Returns the index of a column in a list. If the list lacks the column, it is appended.
fn index(columns: &mut Vec<&'static ColumnDef>, column: &'static ColumnDef) -> usize {
    let known = columns
        .iter()
        .position(|known| std::ptr::eq(*known, column));
    known.unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}

fn share(percentile: &str) -> Result<f64, ExploreError> {
    match percentile {
        "p50" => Ok(0.5),
        "p90" => Ok(0.9),
        "p95" => Ok(0.95),
        "p99" => Ok(0.99),
        "p999" => Ok(0.999),
        _ => Err(ExploreError::OutOfBounds {
            field: "aggregates",
            needed:
                "must be `rows`, the name of a key, or COLUMN:FUNCTION with one of sum, count, \
                     mean, min, max, p50, p90, p95, p99, p999"
                    .to_owned(),
        }),
    }
}
