//! Execution of work on a thread with a large stack.

use std::thread;

use crate::SqlError;

/// Size of the stack, in bytes. Only pages that are used take memory. DataFusion recurses over expressions
/// and plans. [`MAX_COMPLEXITY`](crate::statement::MAX_COMPLEXITY) levels take less than a tenth of this
/// size.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// Runs `work` on a thread with a large stack, and waits until it ends.
///
/// # Errors
/// Returns an error if the thread cannot be started, or if `work` panics.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, SqlError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("sql-planner".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(SqlError::Setup)?;
        thread.join().map_err(|_| SqlError::Engine)
    })
}
