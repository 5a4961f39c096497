//! Comparison of two traces: one before and one after a change.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use diff::{Comparison, Source, diff};

use crate::Refusal;
use crate::traces::ServedTrace;
use session::LazyCell;

/// Compared traces. The comparison is made on first use.
pub(super) struct LazyComparison {
    before: Arc<ServedTrace>,
    after: Arc<ServedTrace>,
    made: LazyCell<Comparison>,
}

impl LazyComparison {
    pub(super) fn new(before: &Arc<ServedTrace>, after: &Arc<ServedTrace>) -> LazyComparison {
        LazyComparison {
            before: Arc::clone(before),
            after: Arc::clone(after),
            made: LazyCell::new(),
        }
    }

    /// Returns the comparison with its pictures.
    pub(super) fn comparison(&self) -> Result<Arc<Comparison>, Refusal> {
        self.made.get(|| {
            let (before, after) = (self.before.recording()?, self.after.recording()?);
            let differences = diff(slice::from_ref(&before), slice::from_ref(&after), None);
            let before = Source {
                name: self.before.name(),
                explorer: &*self.before.explorer()?,
                recording: &before,
            };
            let after = Source {
                name: self.after.name(),
                explorer: &*self.after.explorer()?,
                recording: &after,
            };
            // Later requests also need the result. So the work continues even if a client disconnects.
            let cancel = AtomicBool::new(false);
            Ok(Comparison::new(&differences, &[before], &[after], &cancel)?)
        })
    }

    /// Returns the comparison as a self-contained page.
    pub(super) fn page(&self) -> Result<String, Refusal> {
        let title = format!("{} and {}", self.before.name(), self.after.name());
        Ok(report::comparison_page(&title, &*self.comparison()?)?)
    }
}
