//! Addresses of the frames of call stacks.

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{StacksView, StoreError, Table};

use crate::Reader;

impl Reader<'_> {
    /// Returns a map from stack ids to the addresses of the stacks. The address of the innermost frame comes
    /// first.
    ///
    /// # Errors
    /// Returns an error if the stacks cannot be read.
    pub(crate) fn stacks(
        &self,
        wanted: &FxHashSet<u32>,
    ) -> Result<FxHashMap<u32, Vec<u64>>, StoreError> {
        let mut frames = FxHashMap::default();
        let table = self.table(Table::Stacks)?;
        for (number, chunk) in table.chunks().iter().enumerate() {
            let is_in = |id: &&u32| (chunk.first..=chunk.last).contains(&i64::from(**id));
            let here: Vec<u32> = wanted.iter().filter(is_in).copied().collect();
            if here.is_empty() {
                continue;
            }
            self.check()?;
            let batch = table.read(number, &["stack_id", "addresses"])?;
            let view = StacksView::new(&batch)?;
            for id in here {
                if let Ok(row) = view.stack_id.binary_search(&i64::from(id)) {
                    frames.insert(id, view.addresses.get(row).to_vec());
                }
            }
        }
        Ok(frames)
    }
}
