//! Progress of the current work on a trace, which requests can query.

use std::sync::{Arc, Mutex, PoisonError};

use session::{Amount, Observer, Task};

/// Progress of the current task of a trace; `None` if no task is running.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Option<TaskProgress>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskProgress {
    /// Name of the task as a present participle, such as "reading".
    pub(crate) what: &'static str,
    /// Number of bytes that are done.
    pub(crate) done: u64,
    /// Total number of bytes.
    pub(crate) of: u64,
}

impl Progress {
    /// Returns the progress of the current task.
    pub(crate) fn reached(&self) -> Option<TaskProgress> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, reached: Option<TaskProgress>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    }
}

/// Observer that stores progress for requests and forwards every call to another observer.
pub(crate) struct Relay {
    observer: Arc<dyn Observer>,
    progress: Arc<Progress>,
}

impl Relay {
    pub(crate) fn new(observer: Arc<dyn Observer>, progress: Arc<Progress>) -> Relay {
        Relay { observer, progress }
    }
}

impl Observer for Relay {
    fn begin(&self, what: &'static str, amount: Amount) -> Box<dyn Task> {
        Box::new(StoredTask {
            progress: Arc::clone(&self.progress),
            what,
            of: amount.total(),
        })
    }

    fn warn(&self, text: &str) {
        self.observer.warn(text);
    }

    fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }
}

/// Task that stores its progress for requests.
struct StoredTask {
    progress: Arc<Progress>,
    what: &'static str,
    of: u64,
}

impl Task for StoredTask {
    fn reach(&self, done: u64) {
        self.progress.note(Some(TaskProgress {
            what: self.what,
            done: done.min(self.of),
            of: self.of,
        }));
    }
}

impl Drop for StoredTask {
    fn drop(&mut self) {
        self.progress.note(None);
    }
}
