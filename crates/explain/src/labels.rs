//! Names as SQL gives them, for the cells of evidence.

use crate::Case;

impl Case<'_> {
    /// What `process(process_row)` gives.
    pub fn process_label(&self, row: Option<u32>) -> Option<String> {
        self.names.process_label(row)
    }

    /// What `module(image_row)` gives.
    pub fn module_label(&self, image_row: Option<u32>) -> Option<&str> {
        self.names.module_label(image_row)
    }

    /// What `symbol(image_row, address)` gives.
    pub fn symbol(&self, image_row: Option<u32>, address: u64) -> String {
        self.names.symbol(self.functions, image_row, address)
    }
}

/// What `wait_reason(code)` gives.
pub(crate) fn wait_reason(code: u8) -> String {
    events::kernel::wait_reason(code).map_or_else(|| code.to_string(), str::to_owned)
}
