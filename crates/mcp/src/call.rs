//! One call of a tool: its cancellation, time limit and progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use session::{Amount, Observer, Task};
use tables::Options;

/// Maximum time of a query. Making the tables of a trace is not limited: it happens once, and its progress is
/// reported.
const QUERY_TIME: Duration = Duration::from_secs(30);

/// State that the work of a call shares with the server.
#[derive(Debug, Default)]
pub(crate) struct Call {
    cancelled: AtomicBool,
    is_late: AtomicBool,
    /// Start of the query; `None` until the tables of the trace are made.
    query: Mutex<Option<Instant>>,
    done: AtomicU64,
    total: AtomicU64,
}

impl Call {
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Cancels the call if its query takes too long.
    pub(crate) fn check_time(&self) {
        let begun = *self.query.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.is_some_and(|begun| begun.elapsed() > QUERY_TIME) {
            self.is_late.store(true, Ordering::Relaxed);
            self.cancel();
        }
    }

    /// Returns true if the call was cancelled because its query took too long.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Starts the time limit of the query.
    pub(crate) fn begin_query(&self) {
        *self.query.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns the flag that is true if the call is cancelled.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.cancelled
    }

    /// Returns the completed and the total amount of work; `None` if the amount is unknown.
    pub(crate) fn progress(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed).min(total), total))
    }

    /// Runs `work`, which builds or reads tables. The work reports its progress, and ends soon after a cancellation.
    pub(crate) fn watched<T>(&self, work: impl FnOnce(Options<'_>) -> T) -> T {
        let progress = |done: u64| {
            self.done.fetch_max(done, Ordering::Relaxed);
            !self.cancelled.load(Ordering::Relaxed)
        };
        work(Options {
            progress: &progress,
        })
    }
}

/// Observer of the tables of a trace for one call.
pub(crate) struct CallObserver(pub(crate) Arc<Call>);

impl Observer for CallObserver {
    fn begin(&self, _: &'static str, amount: Amount) -> Box<dyn Task> {
        self.0.total.fetch_max(amount.total(), Ordering::Relaxed);
        Box::new(CallObserver(Arc::clone(&self.0)))
    }

    fn warn(&self, _: &str) {}

    fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }
}

impl Task for CallObserver {
    fn reach(&self, done: u64) {
        self.0.done.fetch_max(done, Ordering::Relaxed);
    }
}
