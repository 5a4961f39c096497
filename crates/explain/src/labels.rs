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

    /// Returns true if the image is the kernel or the hardware abstraction layer (HAL), which run timers.
    pub(crate) fn is_kernel_or_hal(&self, image_row: u32) -> bool {
        let module = self.module_label(Some(image_row)).unwrap_or("");
        is_kernel(module) || module.eq_ignore_ascii_case("hal.dll")
    }

    /// Returns the result of the SQL function `symbol(image_row, address)`.
    pub fn symbol(&self, image_row: Option<u32>, address: u64) -> String {
        self.names.symbol(self.functions, image_row, address)
    }

    /// Returns the function that contains the address, as `module!function`. Returns `None` if symbols are missing.
    pub fn function(&self, image_row: Option<u32>, address: u64) -> Option<String> {
        self.functions?.function(image_row?, address)
    }
}

/// Returns true if a module has one of the file names of the kernel.
pub fn is_kernel(module: &str) -> bool {
    ["ntoskrnl.exe", "ntkrnlmp.exe", "ntkrnlpa.exe"]
        .iter()
        .any(|kernel| kernel.eq_ignore_ascii_case(module))
}

/// Returns the result of the SQL function `wait_reason(code)`.
pub fn wait_reason(code: u8) -> String {
    tables::wait_reason(code).map_or_else(|| code.to_string(), str::to_owned)
}
