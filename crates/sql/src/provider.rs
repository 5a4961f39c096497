//! Tables of all traces, in the form that DataFusion reads.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tables::{Options, Table};

use crate::columns::{self, Column};
use crate::scan::{Layout, Part, Piece, Scan};
use crate::time_range::{Bound, TimeRange};
use crate::traces::Traces;

/// A table of all traces. It must be built before it is scanned.
#[derive(Debug)]
pub(crate) struct Provider {
    table: Table,
    sorted_by: &'static str,
    traces: Arc<Traces>,
    /// Time range of the session; unlimited if the rows of the table are not events.
    range: TimeRange,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Provider {
    pub(crate) fn new(table: Table, traces: Arc<Traces>, range: TimeRange) -> Provider {
        let (columns, schema) = columns::columns(table);
        Provider {
            table,
            sorted_by: table.schema().sorted_by,
            traces,
            range: if columns::contains_events(table) {
                range
            } else {
                TimeRange::ALL
            },
            columns,
            schema: Arc::new(schema),
        }
    }

    /// Returns the parts of chunks that are in the time range.
    fn pieces(&self, range: TimeRange) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for (index, trace) in self.traces.iter().enumerate() {
            let stored = trace
                .store
                .table(self.table, Options::default())
                .map_err(|error| DataFusionError::External(Box::new(error)))?;
            let part = Arc::new(Part {
                stored,
                trace: trace.name.clone(),
                first_row: self.traces.first_row(index),
            });
            let mut first_row = 0;
            for (index, chunk) in part.stored.chunks().iter().enumerate() {
                if chunk.rows > 0 && range.overlaps(chunk.first, chunk.last) {
                    pieces.push(Piece {
                        part: Arc::clone(&part),
                        chunk: index,
                        first_row,
                        rows: chunk.rows,
                        cut: (!range.covers(chunk.first, chunk.last)).then_some(range),
                    });
                }
                first_row += chunk.rows;
            }
            if u32::try_from(first_row).map_or(true, |rows| rows > self.traces.stride()) {
                return Err(DataFusionError::Execution(format!(
                    "`{}` of {} has {first_row} rows, too many to number together with the rows of {} \
                     other traces; query fewer traces at once",
                    self.table,
                    trace.name,
                    self.traces.len() - 1,
                )));
            }
        }
        Ok(pieces)
    }
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match Bound::from_filter(filter, self.sorted_by) {
            Some(Bound { is_exact: true, .. }) => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let range = filters
            .iter()
            .filter_map(|filter| Bound::from_filter(filter, self.sorted_by))
            .fold(self.range, |range, bound| range.and(bound.range));
        let mut pieces = self.pieces(range)?;
        if let Some(limit) = limit {
            truncate(&mut pieces, limit);
        }
        let (columns, schema) = match projection {
            None => (self.columns.clone(), Arc::clone(&self.schema)),
            Some(indices) => (
                indices.iter().map(|index| self.columns[*index]).collect(),
                Arc::new(self.schema.project(indices)?),
            ),
        };
        let layout = Layout {
            columns,
            schema,
            sorted_by: self.sorted_by,
        };
        let is_sorted = self.traces.len() == 1;
        let partitions = split(pieces, state.config().target_partitions());
        Ok(Arc::new(Scan::new(
            self.table, layout, partitions, is_sorted,
        )))
    }
}

/// Keeps the first pieces that together have at least `limit` rows, and removes all later pieces. Cut pieces count as
/// empty, because it is unknown how many of their rows are in the time range.
fn truncate(pieces: &mut Vec<Piece>, limit: usize) {
    let mut certain = 0;
    let enough = pieces.iter().position(|piece| {
        certain += if piece.cut.is_none() { piece.rows } else { 0 };
        certain >= limit
    });
    if let Some(last) = enough {
        pieces.truncate(last + 1);
    }
}

/// Splits the pieces into about `partitions` parts of similar size, and at least into one part. The order of
/// the pieces stays the same.
fn split(pieces: Vec<Piece>, partitions: usize) -> Vec<Vec<Piece>> {
    let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
    let share = rows.div_ceil(partitions.max(1)).max(1);
    let mut split: Vec<Vec<Piece>> = Vec::new();
    let (mut before, mut place) = (0, None);
    for piece in pieces {
        // The middle of a piece determines its partition.
        let at = Some((before + piece.rows / 2) / share);
        before += piece.rows;
        match split.last_mut() {
            Some(partition) if place == at => partition.push(piece),
            _ => split.push(vec![piece]),
        }
        place = at;
    }
    if split.is_empty() {
        split.push(Vec::new());
    }
    split
}
