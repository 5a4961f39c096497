//! The traces of a session, and how their rows are numbered together.

use std::sync::Arc;

use tables::{Options, Store, StoreError, Table};

/// A trace and what its rows carry in the column `trace`.
#[derive(Clone, Debug)]
pub struct NamedTrace {
    /// Its name, different from that of the others.
    pub name: String,
    /// Its tables.
    pub store: Arc<Store>,
}

/// The traces of a session.
///
/// Columns that name a row of another table count through all traces: the rows of the second trace
/// begin at the [stride](Traces::stride), those of the third at twice of it, and so on. So
/// `USING (process_row)` joins rows of one trace only, however many there are.
#[derive(Debug)]
pub(crate) struct Traces {
    traces: Vec<NamedTrace>,
    stride: u32,
}

impl Traces {
    pub(crate) fn new(traces: Vec<NamedTrace>) -> Traces {
        let stride = stride(traces.len());
        Traces { traces, stride }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &NamedTrace> {
        self.traces.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.traces.len()
    }

    /// By how much the row numbers of a trace are higher than those of the trace before.
    pub(crate) fn stride(&self) -> u32 {
        self.stride
    }

    /// The number of the first row of the trace's tables.
    pub(crate) fn first_row(&self, trace: usize) -> u32 {
        match trace {
            0 => 0,
            later => self.stride.saturating_mul(later as u32),
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        let sizes = self.traces.iter().map(|t| t.store.trace().size_bytes());
        sizes.sum()
    }

    /// Makes the tables in all traces. Progress counts the bytes of all of them.
    pub(crate) fn make(&self, wanted: &[Table], options: Options<'_>) -> Result<(), StoreError> {
        let mut before = 0;
        for trace in &self.traces {
            let progress = |done: u64| (options.progress)(before + done);
            trace.store.make(
                wanted,
                Options {
                    progress: &progress,
                },
            )?;
            before += trace.store.trace().size_bytes();
        }
        Ok(())
    }
}

/// The greatest power of ten that so many traces can be apart.
fn stride(traces: usize) -> u32 {
    match traces {
        0 | 1 => u32::MAX,
        several => (0..10)
            .rev()
            .map(|digits| 10_u32.pow(digits))
            .find(|stride| u64::from(*stride) * several as u64 <= u64::from(u32::MAX))
            .unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_of_traces_do_not_meet() {
        assert_eq!(stride(1), u32::MAX);
        assert_eq!(stride(2), 1_000_000_000);
        assert_eq!(stride(4), 1_000_000_000);
        assert_eq!(stride(5), 100_000_000);
        assert_eq!(stride(43), 10_000_000);
    }
}
