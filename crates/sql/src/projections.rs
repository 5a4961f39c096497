//! Workaround for an error of DataFusion 55, which removes one of two equal projections.
//!
//! In `SELECT a * 2 AS a FROM (SELECT a * 2 AS a FROM t)`, both projections have the same expressions, but they
//! mean different columns. The optimizer compares only the expressions and removes one projection, so the value is
//! doubled only once. This module gives the inner query a name. The columns of the outer query then contain this
//! name, so the expressions differ.

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection};

/// Name of inner projections.
const INNER: &str = "inner query";

/// Finds each projection that is above an equal projection, gives a name to its input, and returns the changed plan.
/// Other nodes, for example filters, may be between the two projections, because the optimizer moves these nodes away.
///
/// # Errors
/// Returns an error if two columns of a changed projection have the same name.
pub(crate) fn kept(plan: LogicalPlan) -> Result<LogicalPlan> {
    let transformed = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Projection(outer) if repeats(&outer) => {
            name_inner(&outer).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    });
    transformed.map(|transformed| transformed.data)
}

/// Returns true if the next projection below `outer` has the same expressions.
fn repeats(outer: &Projection) -> bool {
    let computes = |expression: &Expr| !matches!(expression, Expr::Column(_));
    if !outer.expr.iter().any(computes) {
        return false;
    }
    let mut below = outer.input.as_ref();
    loop {
        match (below, below.inputs().as_slice()) {
            (LogicalPlan::Projection(inner), _) => return inner.expr == outer.expr,
            (_, [only]) => below = *only,
            _ => return false,
        }
    }
}

fn name_inner(outer: &Projection) -> Result<LogicalPlan> {
    let inner = LogicalPlanBuilder::from(outer.input.as_ref().clone()).alias(INNER)?;
    let expressions: Result<Vec<Expr>> = outer
        .expr
        .iter()
        .map(|expression| {
            let (relation, name) = expression.qualified_name();
            let of_inner = expression.clone().transform(|part| {
                Ok(match part {
                    Expr::Column(column) => {
                        let column = Column::new(Some(INNER), column.name);
                        Transformed::yes(Expr::Column(column))
                    }
                    other => Transformed::no(other),
                })
            })?;
            Ok(of_inner.data.unalias().alias_qualified(relation, name))
        })
        .collect();
    inner.project(expressions?)?.build()
}
