//! Functions that return tables, such as `generate_series`.

use std::sync::Arc;

use arrow_schema::ArrowError;
use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::{DataFusionError, Result};

/// A table function of DataFusion. Its errors are reported as errors of evaluation: the engine computes the arguments
/// while it plans, so the text of an error can contain values of the tables.
#[derive(Debug)]
pub(crate) struct EvaluatedFunction {
    inner: Arc<TableFunction>,
}

impl EvaluatedFunction {
    pub(crate) fn new(inner: Arc<TableFunction>) -> EvaluatedFunction {
        EvaluatedFunction { inner }
    }
}

impl TableFunctionImpl for EvaluatedFunction {
    fn call_with_args(
        &self,
        arguments: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>> {
        let table = self.inner.create_table_provider_with_args(arguments);
        table.map_err(|error| match error {
            DataFusionError::Plan(message)
            | DataFusionError::Execution(message)
            | DataFusionError::Internal(message) => {
                let error = ArrowError::InvalidArgumentError(message);
                DataFusionError::ArrowError(Box::new(error), None)
            }
            other => other,
        })
    }
}
