//! Progress and cancellation of long work.

use tables::{Cancelled, Options};

/// Display of the progress of long work, which can also cancel the work. Tasks may run on several
/// threads.
pub trait Observer: Send + Sync {
    /// Begins a task. `what` is a present participle such as "reading".
    fn begin(&self, what: &'static str, amount: Amount) -> Box<dyn Task>;

    /// Shows a warning. The work continues after the warning.
    fn warn(&self, text: &str);

    /// Returns true if the work shall stop.
    fn is_cancelled(&self) -> bool;

    /// Checks that the work may continue.
    ///
    /// # Errors
    /// Returns an error if the work shall stop.
    fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }
}

/// Total amount of work of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Number of bytes to read.
    Bytes(u64),
    /// Number of units that have no meaning for users. Progress is shown as a share of this number.
    Units(u64),
}

impl Amount {
    /// Returns the total number of bytes or units.
    pub fn total(self) -> u64 {
        match self {
            Amount::Bytes(total) | Amount::Units(total) => total,
        }
    }
}

/// Running task. The task ends when this value is dropped.
pub trait Task: Send + Sync {
    /// Reports that `done` bytes or units of the total amount are complete.
    fn reach(&self, done: u64);
}

/// Runs `work` as one task of `total_bytes` bytes. `work` gets [`Options`] that report progress to the
/// observer, and that stop the work if the observer is cancelled.
pub fn watched<T>(
    observer: &dyn Observer,
    what: &'static str,
    total_bytes: u64,
    work: impl FnOnce(Options<'_>) -> T,
) -> T {
    let task = observer.begin(what, Amount::Bytes(total_bytes));
    let progress = |done: u64| {
        task.reach(done);
        !observer.is_cancelled()
    };
    work(Options {
        progress: &progress,
    })
}

/// An observer that shows nothing and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn begin(&self, _: &'static str, _: Amount) -> Box<dyn Task> {
        Box::new(Unobserved)
    }

    fn warn(&self, _: &str) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Task for Unobserved {
    fn reach(&self, _: u64) {}
}
