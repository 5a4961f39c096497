//! Size of expressions after the optimizer has replaced columns by the expressions that compute them.
//!
//! The optimizer moves filters below projections, and replaces their columns. In
//! `SELECT a + a AS a FROM (SELECT b + b AS a …) WHERE a > 0`, each level doubles the size of the filter.
//! With 30 levels, the filter would have a billion nodes. Such a query must be refused, because planning
//! cannot be cancelled.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Maximum number of nodes of an expanded expression.
const MAX_EXPANDED: usize = 10_000;

/// Returns true if an expression of the plan could have more than [`MAX_EXPANDED`] nodes.
pub(crate) fn is_too_large(plan: &LogicalPlan) -> bool {
    let mut largest = 0;
    expand(plan, &mut largest);
    largest > MAX_EXPANDED
}

/// Returns the expanded size of each output column of the plan, in nodes. Raises `largest` to the size of the
/// plan's largest expression.
fn expand(plan: &LogicalPlan, largest: &mut usize) -> Vec<usize> {
    let inputs: Vec<(&LogicalPlan, Vec<usize>)> = plan
        .inputs()
        .into_iter()
        .map(|input| (input, expand(input, largest)))
        .collect();
    let mut sizes = Vec::new();
    // The closures of this file never fail, so the traversals do not either.
    let _ = plan.apply_expressions(|expression| {
        sizes.push(size(expression, &inputs, largest));
        Ok(TreeNodeRecursion::Continue)
    });
    *largest = sizes.iter().copied().fold(*largest, usize::max);
    let columns = plan.schema().fields().len();
    match plan {
        LogicalPlan::Projection(_) if sizes.len() == columns => sizes,
        // A filter also moves below an aggregate or a window, if it uses only columns of the input.
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
            vec![sizes.into_iter().chain(of(&inputs)).max().unwrap_or(1); columns]
        }
        // A join has the columns of all its inputs. Other plans have the columns of each input.
        _ => {
            let joined: Vec<usize> = of(&inputs).collect();
            if joined.len() == columns {
                joined
            } else {
                vec![joined.into_iter().max().unwrap_or(1); columns]
            }
        }
    }
}

/// Returns the sizes of all columns of the inputs.
fn of(inputs: &[(&LogicalPlan, Vec<usize>)]) -> impl Iterator<Item = usize> {
    inputs.iter().flat_map(|(_, sizes)| sizes.iter().copied())
}

/// Returns the number of nodes of an expression after its columns were replaced. Literals are not counted.
fn size(expression: &Expr, inputs: &[(&LogicalPlan, Vec<usize>)], largest: &mut usize) -> usize {
    let mut nodes = 0usize;
    let _ = expression.apply(|part| {
        let size = match part {
            // A list of thousands of literals is cheap.
            Expr::Literal(..) => Some(0),
            Expr::Column(column) => inputs.iter().find_map(|(input, sizes)| {
                let index = input.schema().maybe_index_of_column(column)?;
                sizes.get(index).copied()
            }),
            _ => subquery(part).and_then(|inner| expand(inner, largest).into_iter().max()),
        };
        nodes = nodes.saturating_add(size.unwrap_or(1));
        Ok(TreeNodeRecursion::Continue)
    });
    nodes
}

/// Returns the plan of the query inside an expression.
fn subquery(expression: &Expr) -> Option<&LogicalPlan> {
    let subquery = match expression {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::InSubquery(outer) => &outer.subquery,
        Expr::Exists(outer) => &outer.subquery,
        Expr::SetComparison(outer) => &outer.subquery,
        _ => return None,
    };
    Some(&subquery.subquery)
}
