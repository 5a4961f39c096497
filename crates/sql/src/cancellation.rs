//! Cancellation of joins when their query is cancelled.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};

/// Shared flag that is set when a query is cancelled.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes joins stop when `cancelled` is set. DataFusion checks for cancellation only where rows are read, but a join
/// can combine a few rows for hours. Therefore, each join gets two changes: it yields its thread each time it returns
/// rows, and its filter fails after the query is cancelled.
pub(crate) fn with_cancellable_joins(
    plan: Arc<dyn ExecutionPlan>,
    cancelled: &CancelFlag,
) -> Result<Arc<dyn ExecutionPlan>> {
    let cancellable = |filter: &JoinFilter| {
        let expression = Arc::new(Cancellable {
            inner: Arc::clone(filter.expression()),
            cancelled: cancelled.clone(),
        });
        let (columns, schema) = (filter.column_indices(), filter.schema());
        Some(JoinFilter::new(
            expression,
            columns.to_vec(),
            Arc::clone(schema),
        ))
    };
    let wrapped = plan.transform_up(|node| {
        if !node.name().ends_with("JoinExec") {
            return Ok(Transformed::no(node));
        }
        let filtered: Arc<dyn ExecutionPlan> = if let Some(join) =
            node.downcast_ref::<HashJoinExec>()
            && let Some(filter) = join.filter()
        {
            join.builder()
                .with_filter(cancellable(filter))
                .build_exec()?
        } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
            && let Some(filter) = join.filter()
        {
            let join = NestedLoopJoinExecBuilder::from(join).with_filter(cancellable(filter));
            Arc::new(join.build()?)
        } else {
            node
        };
        Ok(Transformed::yes(
            Arc::new(CooperativeExec::new(filtered)) as Arc<dyn ExecutionPlan>
        ))
    });
    Ok(wrapped?.data)
}

/// Expression that fails after the query is cancelled.
#[derive(Debug)]
struct Cancellable {
    inner: Arc<dyn PhysicalExpr>,
    cancelled: CancelFlag,
}

impl PartialEq for Cancellable {
    fn eq(&self, other: &Cancellable) -> bool {
        self.inner.as_ref() == other.inner.as_ref()
    }
}

impl Eq for Cancellable {}

impl Hash for Cancellable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for Cancellable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for Cancellable {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.cancelled.is_set() {
            Err(DataFusionError::Execution(
                "the query was cancelled".to_owned(),
            ))
        } else {
            self.inner.evaluate(batch)
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Cancellable {
            inner: children.swap_remove(0),
            cancelled: self.cancelled.clone(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
