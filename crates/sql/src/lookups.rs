//! Names of processes, threads and images in dense arrays, indexed by row number.
//!
//! Finding a name takes one array access, while a join would have to compute a hash. Names are loaded only if a query
//! uses them.

use std::sync::{Arc, OnceLock};

use arrow_array::builder::StringViewBuilder;
use arrow_array::{StringViewArray, UInt32Array};
use tables::{ImagesView, Options, ProcessesView, StoreError, StoredTable, Table, ThreadsView};

use crate::traces::Traces;

/// Names in all traces. They are loaded when a statement first needs them.
#[derive(Debug)]
pub(crate) struct Lookups {
    traces: Arc<Traces>,
    processes: OnceLock<ProcessNames>,
    threads: OnceLock<ThreadNames>,
    images: OnceLock<ImageNames>,
}

/// Names of processes, indexed by row of the table `processes`.
#[derive(Debug)]
pub(crate) struct ProcessNames {
    pub(crate) rows: DenseRows,
    /// Names such as `chrome.exe`.
    pub(crate) names: StringViewArray,
    /// Names with process ids, such as `chrome.exe (144)`.
    pub(crate) labels: StringViewArray,
}

/// Names of threads, indexed by row of the table `threads`.
#[derive(Debug)]
pub(crate) struct ThreadNames {
    pub(crate) rows: DenseRows,
    pub(crate) names: StringViewArray,
}

/// Names of images, indexed by row of the table `images`.
#[derive(Debug)]
pub(crate) struct ImageNames {
    pub(crate) rows: DenseRows,
    /// File names of the images.
    pub(crate) modules: StringViewArray,
    /// Base addresses of the images.
    pub(crate) bases: Vec<u64>,
}

/// Mapping from row numbers to array indices. The arrays contain the rows of all traces, one trace after
/// another.
#[derive(Debug)]
pub(crate) struct DenseRows {
    stride: u32,
    /// Array index of the first row of each trace, followed by the length of the array.
    starts: Vec<usize>,
}

impl DenseRows {
    /// Returns the array index of a row.
    pub(crate) fn index(&self, row: u32) -> Option<usize> {
        let (trace, local) = self.split(row);
        let (start, end) = (self.starts.get(trace)?, self.starts.get(trace + 1)?);
        Some(start + local as usize).filter(|index| index < end)
    }

    /// Returns the index of the trace that contains a row, and the row number in this trace.
    pub(crate) fn split(&self, row: u32) -> (usize, u32) {
        ((row / self.stride) as usize, row % self.stride)
    }

    /// Returns the array indices of rows; null for rows that do not exist.
    pub(crate) fn indices(&self, rows: &UInt32Array) -> UInt32Array {
        rows.iter()
            .map(|row| self.index(row?).map(|index| index as u32))
            .collect()
    }
}

impl Lookups {
    pub(crate) fn new(traces: Arc<Traces>) -> Lookups {
        Lookups {
            traces,
            processes: OnceLock::new(),
            threads: OnceLock::new(),
            images: OnceLock::new(),
        }
    }

    /// Loads the names in a table. The table must be built.
    pub(crate) fn load(&self, table: Table) -> Result<(), StoreError> {
        match table {
            Table::Processes if self.processes.get().is_none() => {
                let _ = self.processes.set(self.read_processes()?);
            }
            Table::Threads if self.threads.get().is_none() => {
                let _ = self.threads.set(self.read_threads()?);
            }
            Table::Images if self.images.get().is_none() => {
                let _ = self.images.set(self.read_images()?);
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn processes(&self) -> Option<&ProcessNames> {
        self.processes.get()
    }

    pub(crate) fn threads(&self) -> Option<&ThreadNames> {
        self.threads.get()
    }

    pub(crate) fn images(&self) -> Option<&ImageNames> {
        self.images.get()
    }

    fn read_processes(&self) -> Result<ProcessNames, StoreError> {
        let mut names = StringViewBuilder::new();
        let mut labels = StringViewBuilder::new();
        let rows = self.each_chunk(Table::Processes, |stored, chunk| {
            let batch = stored.read(chunk, &["process_id", "image_name"])?;
            let view = ProcessesView::new(&batch)?;
            for (row, id) in view.process_id.iter().enumerate() {
                let name = view.image_name.get(row);
                names.append_option(name);
                labels.append_value(format!("{} ({id})", name.unwrap_or("?")));
            }
            Ok(())
        })?;
        Ok(ProcessNames {
            rows,
            names: names.finish(),
            labels: labels.finish(),
        })
    }

    fn read_threads(&self) -> Result<ThreadNames, StoreError> {
        let mut names = StringViewBuilder::new();
        let rows = self.each_chunk(Table::Threads, |stored, chunk| {
            let batch = stored.read(chunk, &["name"])?;
            let view = ThreadsView::new(&batch)?;
            (0..view.len()).for_each(|row| names.append_option(view.name.get(row)));
            Ok(())
        })?;
        Ok(ThreadNames {
            rows,
            names: names.finish(),
        })
    }

    fn read_images(&self) -> Result<ImageNames, StoreError> {
        let mut modules = StringViewBuilder::new();
        let mut bases = Vec::new();
        let rows = self.each_chunk(Table::Images, |stored, chunk| {
            let batch = stored.read(chunk, &["base_address", "path", "nt_path"])?;
            let view = ImagesView::new(&batch)?;
            for (row, base) in view.base_address.iter().enumerate() {
                let path = view.path.get(row).or_else(|| view.nt_path.get(row));
                let file = path.and_then(|path| path.rsplit(['\\', '/']).next());
                modules.append_option(file.filter(|file| !file.is_empty()));
                bases.push(*base);
            }
            Ok(())
        })?;
        Ok(ImageNames {
            rows,
            modules: modules.finish(),
            bases,
        })
    }

    /// Calls `read` for each chunk of a table, in all traces, in their order.
    fn each_chunk(
        &self,
        table: Table,
        mut read: impl FnMut(&StoredTable, usize) -> Result<(), StoreError>,
    ) -> Result<DenseRows, StoreError> {
        let mut starts = vec![0];
        let mut rows = 0;
        for trace in self.traces.iter() {
            let stored = trace.store.table(table, Options::default())?;
            for chunk in 0..stored.chunks().len() {
                read(&stored, chunk)?;
            }
            rows += stored.rows();
            starts.push(rows);
        }
        Ok(DenseRows {
            stride: self.traces.stride(),
            starts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_later_traces_follow_those_of_earlier_ones() {
        let rows = DenseRows {
            stride: 1000,
            starts: vec![0, 3, 5],
        };
        assert_eq!(rows.index(2), Some(2));
        assert_eq!(rows.index(3), None);
        assert_eq!(rows.index(1000), Some(3));
        assert_eq!(rows.index(1001), Some(4));
        assert_eq!(rows.index(1002), None);
        assert_eq!(rows.index(2000), None);
        assert_eq!(rows.split(1001), (1, 1));
    }
}
