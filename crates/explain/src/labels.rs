//! Labels for the cells of evidence. Each function returns the same text as an SQL function.

use crate::Reader;

impl Reader<'_> {
    /// Returns the result of the SQL function `process(process_row)`.
    pub fn process_label(&self, row: Option<u32>) -> Option<String> {
        self.names.process_label(row)
    }

    /// Returns the result of the SQL function `module(image_row)`.
    pub fn module_label(&self, image_row: Option<u32>) -> Option<&str> {
        self.names.module_label(image_row)
    }

    /// Returns the result of the SQL function `symbol(image_row, address)`.
    pub fn symbol(&self, image_row: Option<u32>, address: u64) -> String {
        self.names.symbol(self.functions, image_row, address)
    }
}

/// Returns the result of the SQL function `wait_reason(code)`.
pub fn wait_reason(code: u8) -> String {
    events::kernel::wait_reason(code).map_or_else(|| code.to_string(), str::to_owned)
}
