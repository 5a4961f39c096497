//! Scans of tables. A chunk is read when its rows are requested.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
};
use arrow_schema::{DataType, SchemaRef, SortOptions};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream, StatisticsArgs,
};
use datafusion::scalar::ScalarValue;
use futures::stream;
use tables::{StoreError, StoredTable, Table};

use crate::columns::Column;
use crate::time_range::TimeRange;

/// Name of the DataFusion metric that counts the chunks that were read.
pub(crate) const CHUNKS_READ: &str = "chunks_read";

/// A table of one trace.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) stored: StoredTable,
    /// Name of the trace.
    pub(crate) trace: String,
    /// Row number of the trace's first row, as numbered in the session.
    pub(crate) first_row: u32,
}

/// A chunk to read, or a part of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) part: Arc<Part>,
    pub(crate) chunk: usize,
    /// Row number of the piece's first row, as numbered in the table of its trace.
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    /// Range of values of the sorted column; `None` for the whole chunk.
    pub(crate) cut: Option<TimeRange>,
}

/// Columns to read.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) columns: Vec<Column>,
    pub(crate) schema: SchemaRef,
    pub(crate) sorted_by: &'static str,
}

/// Node of a query plan that reads some columns of some chunks.
#[derive(Debug)]
pub(crate) struct Scan {
    table: Table,
    layout: Arc<Layout>,
    partitions: Vec<Vec<Piece>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    /// Creates a scan that reads the pieces of each partition in the given order. `is_sorted` is true if this
    /// order sorts the rows of all partitions by the table's sorted column.
    pub(crate) fn new(
        table: Table,
        layout: Layout,
        partitions: Vec<Vec<Piece>>,
        is_sorted: bool,
    ) -> Scan {
        let schema = Arc::clone(&layout.schema);
        let order = is_sorted
            .then(|| schema.index_of(layout.sorted_by).ok())
            .flatten()
            .map(|index| {
                [PhysicalSortExpr::new(
                    Arc::new(ColumnExpr::new(layout.sorted_by, index)),
                    SortOptions::new(false, false),
                )]
            });
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, order),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Scan {
            table,
            layout: Arc::new(layout),
            partitions,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn pieces(&self, partition: Option<usize>) -> impl Iterator<Item = &Piece> {
        match partition {
            Some(partition) => &self.partitions[partition..=partition],
            None => &self.partitions[..],
        }
        .iter()
        .flatten()
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self
            .layout
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(
            f,
            "Scan: table={}, chunks={}, columns=[{}]",
            self.table,
            self.pieces(None).count(),
            names.join(", ")
        )
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let chunks_read = MetricBuilder::new(&self.metrics).counter(CHUNKS_READ, partition);
        let rows = Rows {
            layout: Arc::clone(&self.layout),
            pieces: self.partitions[partition].clone().into_iter(),
            open: None,
            batch_rows: context.session_config().batch_size().max(1),
            chunks_read,
        };
        let schema = Arc::clone(&self.layout.schema);
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            stream::iter(rows),
        ))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let pieces = || self.pieces(arguments.partition());
        let rows = pieces().map(|piece| piece.rows).sum();
        let is_whole = pieces().all(|piece| piece.cut.is_none());
        let count = if is_whole {
            Precision::Exact(rows)
        } else {
            Precision::Inexact(rows)
        };
        let extreme = |value: Option<i64>| match value {
            Some(value) if is_whole => Precision::Exact(ScalarValue::Int64(Some(value))),
            Some(value) => Precision::Inexact(ScalarValue::Int64(Some(value))),
            None => Precision::Absent,
        };
        let chunk = |piece: &Piece| piece.part.stored.chunks()[piece.chunk];
        let mut statistics = Statistics::new_unknown(&self.layout.schema);
        statistics.num_rows = count;
        if let Ok(index) = self.layout.schema.index_of(self.layout.sorted_by) {
            statistics.column_statistics[index] = ColumnStatistics {
                null_count: Precision::Exact(0),
                min_value: extreme(pieces().map(|piece| chunk(piece).first).min()),
                max_value: extreme(pieces().map(|piece| chunk(piece).last).max()),
                ..ColumnStatistics::new_unknown()
            };
        }
        Ok(Arc::new(statistics))
    }
}

/// Iterator over the rows of pieces, in batches of the size that DataFusion requests.
struct Rows {
    layout: Arc<Layout>,
    pieces: std::vec::IntoIter<Piece>,
    open: Option<Open>,
    batch_rows: usize,
    chunks_read: Count,
}

/// A chunk in memory.
struct Open {
    piece: Piece,
    batch: RecordBatch,
    /// Name of the trace, repeated for each row of one batch.
    trace: Option<ArrayRef>,
    /// Index in the chunk of the next row to return.
    next: usize,
    /// Index in the chunk after the last row to return.
    end: usize,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Some(open) = &mut self.open
                && open.next < open.end
            {
                let rows = self.batch_rows.min(open.end - open.next);
                let from = open.next;
                open.next += rows;
                return Some(open.rows(&self.layout, from, rows));
            }
            self.open = None;
            let piece = self.pieces.next()?;
            self.chunks_read.add(1);
            match Open::read(piece, &self.layout, self.batch_rows) {
                Ok(open) => self.open = Some(open),
                Err(error) => return Some(Err(DataFusionError::External(Box::new(error)))),
            }
        }
    }
}

impl Open {
    fn read(piece: Piece, layout: &Layout, batch_rows: usize) -> Result<Open, StoreError> {
        let mut names: Vec<&str> = Vec::with_capacity(layout.columns.len() + 1);
        for column in &layout.columns {
            if let Column::Stored(name) | Column::RowNumbers(name) = column {
                names.push(name);
            }
        }
        if piece.cut.is_some() && !names.contains(&layout.sorted_by) {
            names.push(layout.sorted_by);
        }
        let batch = piece.part.stored.read(piece.chunk, &names)?;
        let (next, end) = match piece.cut {
            Some(range) => within(&batch, layout.sorted_by, range),
            None => (0, batch.num_rows()),
        };
        let trace = layout.columns.contains(&Column::Trace).then(|| {
            let rows = batch_rows.min(end - next);
            let names = std::iter::repeat_n(piece.part.trace.as_str(), rows);
            Arc::new(StringArray::from_iter_values(names)) as ArrayRef
        });
        Ok(Open {
            piece,
            batch,
            trace,
            next,
            end,
        })
    }

    /// Returns `rows` rows from index `from`, with the columns of the scan.
    fn rows(&self, layout: &Layout, from: usize, rows: usize) -> Result<RecordBatch> {
        let part = &self.piece.part;
        let stored = |name: &str| {
            let array = self.batch.column_by_name(name).ok_or_else(|| {
                DataFusionError::Internal(format!("the column `{name}` is not loaded"))
            })?;
            Ok::<_, DataFusionError>(array.slice(from, rows))
        };
        let arrays = layout
            .columns
            .iter()
            .map(|column| match column {
                Column::Stored(name) => stored(name),
                Column::RowNumbers(name) => Ok(renumbered(stored(name)?, part.first_row)),
                Column::Row => {
                    let first = part.first_row + (self.piece.first_row + from) as u32;
                    let numbers = first..first + rows as u32;
                    Ok(Arc::new(UInt32Array::from_iter_values(numbers)) as ArrayRef)
                }
                Column::Trace => Ok(match &self.trace {
                    Some(names) => names.slice(0, rows),
                    None => Arc::new(StringArray::new_null(rows)),
                }),
            })
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&layout.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// Returns the index of the first row in the time range, and the index after the last row in the range.
fn within(batch: &RecordBatch, sorted_by: &str, range: TimeRange) -> (usize, usize) {
    let sorted = batch
        .column_by_name(sorted_by)
        .and_then(|array| array.as_primitive_opt::<Int64Type>());
    let Some(sorted) = sorted else {
        return (0, batch.num_rows());
    };
    let values = sorted.values();
    let from = values.partition_point(|value| *value < range.first);
    let to = values.partition_point(|value| *value <= range.last);
    (from, to.max(from))
}

/// Converts row numbers in a trace to row numbers in the session.
fn renumbered(numbers: ArrayRef, first_row: u32) -> ArrayRef {
    if first_row == 0 {
        return numbers;
    }
    match numbers.data_type() {
        DataType::Int64 => {
            let numbers: &Int64Array = numbers.as_primitive();
            Arc::new(numbers.unary::<_, Int64Type>(|number| number + i64::from(first_row)))
        }
        _ => match numbers.as_primitive_opt::<arrow_array::types::UInt32Type>() {
            Some(rows) => Arc::new(
                rows.unary::<_, arrow_array::types::UInt32Type>(|row| row.wrapping_add(first_row)),
            ),
            None => numbers,
        },
    }
}
