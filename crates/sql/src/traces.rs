//! Traces of a session, and the numbering of their rows.

use std::sync::Arc;

use tables::{Options, Store, StoreError, Table};

/// A trace and its name.
#[derive(Clone, Debug)]
pub struct NamedTrace {
    /// Name in the column `trace`. It is unique in the session.
    pub name: String,
    /// Tables of the trace.
    pub store: Arc<Store>,
}

/// All traces of a session.
///
/// Row numbers are unique across traces. The row numbers of the second trace start at the
/// [stride](Traces::stride), the row numbers of the third trace start at twice the stride, and so on. So
/// `USING (process_row)` joins only rows of the same trace.
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

    /// Returns the difference between the first row numbers of two consecutive traces.
    pub(crate) fn stride(&self) -> u32 {
        self.stride
    }

    /// Returns the row number of a trace's first row, as numbered in the session.
    pub(crate) fn first_row(&self, trace: usize) -> u32 {
        match trace {
            0 => 0,
            later => self.stride.saturating_mul(later as u32),
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        let sizes = self.traces.iter().map(|t| t.store.info().size_bytes);
        sizes.sum()
    }

    /// Builds tables of all traces. The progress is the number of bytes read from all traces.
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
            before += trace.store.info().size_bytes;
        }
        Ok(())
    }
}

/// Returns the stride for this number of traces: the largest power of ten at which all row numbers fit into `u32`. A
/// single trace needs no stride, so it gets the maximum of `u32`.
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
    fn row_numbers_of_traces_do_not_overlap() {
        assert_eq!(stride(1), u32::MAX);
        assert_eq!(stride(2), 1_000_000_000);
        assert_eq!(stride(4), 1_000_000_000);
        assert_eq!(stride(5), 100_000_000);
        assert_eq!(stride(43), 10_000_000);
    }
}
