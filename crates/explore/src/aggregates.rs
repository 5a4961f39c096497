//! What is computed of groups: parsed, and as SQL.

use views::{Aggregate, TimeRange};

use crate::catalogue::{ColumnDef, ColumnKind, Source, TableDef};
use crate::in_view::InView;
use crate::timeline::ROWS;
use crate::{ExploreError, query};

/// An aggregate of a request.
pub(crate) enum Wanted {
    /// Of a number, by its place among the measures.
    Number(Aggregate),
    /// What all rows of a group have of a key, by its place among the keys looked at.
    Same(usize),
}

/// The aggregates of a request.
#[derive(Default)]
pub(crate) struct Aggregates {
    pub(crate) wanted: Vec<Wanted>,
    /// Columns summed up, each once.
    pub(crate) measures: Vec<&'static ColumnDef>,
    /// Keys of which is told what all rows have, each once.
    pub(crate) same: Vec<&'static ColumnDef>,
    pub(crate) percentiles: bool,
}

impl Aggregates {
    /// # Errors
    /// If one of them is no aggregate of the table.
    pub(crate) fn parse(
        def: &'static TableDef,
        texts: &[String],
    ) -> Result<Aggregates, ExploreError> {
        let mut all = Aggregates::default();
        for text in texts {
            let wanted = all.add(def, text)?;
            all.wanted.push(wanted);
        }
        Ok(all)
    }

    fn add(&mut self, def: &'static TableDef, text: &str) -> Result<Wanted, ExploreError> {
        if text == ROWS {
            return Ok(Wanted::Number(Aggregate::Rows));
        }
        let Some((name, function)) = text.split_once(':') else {
            let key = def.key(text)?;
            return Ok(Wanted::Same(place(&mut self.same, key)));
        };
        let column = match def.column(name)? {
            // How often something happened is known of times too.
            column if column.kind == ColumnKind::Time && column.is_number() => column,
            column if column.source == Source::InView => column,
            _ => def.number(name)?,
        };
        let measure = place(&mut self.measures, column);
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
        Ok(Wanted::Number(aggregate))
    }

    /// The aggregate as SQL, of what is within a stretch of time.
    pub(crate) fn sql(&self, wanted: &Wanted, table: &TableDef, range: TimeRange) -> String {
        let of = |measure: usize| match self.measures[measure] {
            column if column.source == Source::InView => InView::sql(table, range),
            column => query::number(column),
        };
        match wanted {
            Wanted::Number(Aggregate::Rows) => "count(*)".to_owned(),
            Wanted::Number(Aggregate::Count(measure)) => format!("count({})", of(*measure)),
            Wanted::Number(Aggregate::Sum(measure)) => format!("sum({})", of(*measure)),
            Wanted::Number(Aggregate::Mean(measure)) => format!("avg({})", of(*measure)),
            Wanted::Number(Aggregate::Min(measure)) => format!("min({})", of(*measure)),
            Wanted::Number(Aggregate::Max(measure)) => format!("max({})", of(*measure)),
            Wanted::Number(Aggregate::Percentile(measure, share)) => {
                let of = of(*measure);
                format!(
                    "array_element(array_agg({of} ORDER BY {of}) FILTER (WHERE {of} IS NOT NULL), \
                     greatest(1, CAST(ceil({share} * count({of})) AS BIGINT)))"
                )
            }
            Wanted::Same(key) => {
                let of = self.same[*key].sql();
                format!(
                    "CASE WHEN count({of}) = count(*) AND count(DISTINCT {of}) = 1 THEN \
                     CAST(min({of}) AS VARCHAR) WHEN count({of}) > 0 THEN concat(count(DISTINCT \
                     {of}) + CASE WHEN count({of}) < count(*) THEN 1 ELSE 0 END, ' different') END"
                )
            }
        }
    }
}

fn place(columns: &mut Vec<&'static ColumnDef>, column: &'static ColumnDef) -> usize {
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
